//! The controller: what scales live clusters, for all clusters in mode `central` from one process,
//! or for one cluster from its head pod.
//!
//! Everything that is decided is decided by [`reconcile`](crate::reconcile), from values. This is
//! the shell around it: it watches, asks the GCS, sends, and has the clock.
//!
//! Reading order: [`observe`] (what is seen and kept), [`lease`] (which replica may write),
//! [`tender`] (one cluster: see, decide, act), [`pause`] and [`crowd`] (and when again), [`tuning`]
//! (by which settings), [`heavy`] (without holding up others), [`judge`] and [`permit`] (may it be
//! written now), [`head`], [`credentials`] and [`blind`] (its GCS), [`writer`] (requests to the API
//! server, through its [gate](crate::apiserver::gate)), [`perform`] (effects), [`announce`], [`driver_log`] and [`measure`] (what people
//! see), [`fleet`] (a task for each cluster), [`mod@run`] (a process), [`access`] (the rights that it
//! needs), [`words`] (errors, for people).

pub mod act;
pub mod busy_count;
pub mod clock;
pub mod driver_log;
pub mod eligibility;
pub mod events;
pub mod head;
pub mod lease;
pub mod metrics;
pub mod observe;
pub mod offload;
pub mod reconciler;
pub mod requeue;
pub mod run;
pub mod stop;
pub mod tuning;
pub mod worker_pool;

pub use run::{ControllerOptions, Surroundings, run};
