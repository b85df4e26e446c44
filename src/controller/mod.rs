//! The controller: what scales live clusters, for all clusters in mode `central` from one process,
//! or for one cluster from its head pod.
//!
//! In come lists and watches of the API server, the answers of GCSs, and the settings that RayPolicies
//! give; out go requests to the API server, calls of GCSs, Events, lines for drivers and metrics.
//! What is decided about a cluster is decided by [`reconcile`](crate::reconcile), from values. This is
//! the shell around it: it watches, asks, sends, and has the clock.
//!
//! # The rooms
//!
//! - [`observe`]: what is watched, and the objects as they were last seen
//! - [`lease`]: which clusters are this replica's, and until when it may write for them
//! - [`head`]: where the GCS of a cluster is, and what it wants to see
//! - [`act`]: effects, by requests to the API server through its [gate](crate::apiserver::gate) and by
//!   calls of the GCS
//! - [`events`]: publishing Events, within budgets and after everything else
//!
//! Beside them stand, in the order of a round: [`worker_pool`] (a task for each cluster),
//! [`reconciler`] (one look at one cluster: see, decide, act, remember), [`eligibility`] (is it ours by
//! what was last seen), [`tuning`] (by which settings), [`offload`] (slow work beside the async tasks),
//! [`requeue`] and [`busy_count`] (when to look again), [`driver_log`] and [`metrics`] (what people
//! see); and for the process [`mod@run`], [`stop`] and [`clock`].
//!
//! # Invariants
//!
//! - A write about a cluster is begun only while the Lease of its shard outlasts it. In a head pod
//!   there is no Lease, as nobody else scales from there.
//! - What changes pods or Ray nodes is sent only by a [permission](act::permission) that is seconds old.
//! - A fault that one cluster sets off costs that cluster a round.

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
