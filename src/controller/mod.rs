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

pub mod access;
pub mod announce;
pub mod blind;
pub mod clock;
pub mod credentials;
pub mod crowd;
pub mod driver_log;
pub mod fleet;
pub mod head;
pub mod heavy;
pub mod judge;
pub mod lease;
pub mod measure;
pub mod observe;
pub mod pause;
pub mod perform;
pub mod permit;
pub mod run;
pub mod stop;
pub mod tender;
pub mod tuning;
pub mod words;
pub mod writer;

pub use run::{Options, Surroundings, run};
