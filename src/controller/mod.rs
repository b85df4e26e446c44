//! The controller scales live clusters: all clusters in mode `central` from one process, or one
//! cluster from its head pod.
//!
//! It takes lists and watches of the API server, the answers of GCSs, and the settings of RayPolicies.
//! It sends requests to the API server and to GCSs, Events, messages for drivers, and metrics. Decisions
//! about a cluster are made by [`reconcile`](rayfit_core::reconcile), from values. The controller is the shell
//! around it: it watches, asks, sends, and reads the clock.
//!
//! # The modules
//!
//! - [`observe`]: what is watched, and the objects as they were last observed
//! - [`lease`]: which clusters this replica scales, and until when it may write for them
//! - [`head`]: the address of a cluster's GCS, and the credentials that it requires
//! - [`act`]: effects, by requests to the API server through its [gate](crate::apiserver::gate) and by
//!   calls of the GCS
//! - [`events`]: publishing Events, within budgets and after everything else
//!
//! The files beside them, in the order of a round: [`worker_pool`] (a task for each cluster),
//! [`reconciler`] (one look at one cluster: observe, decide, act, remember) with `look_host` (how a look observes and
//! asks), [`eligibility`] (whether this process may scale it), [`tuning`] (by which settings), [`offload`] (slow work beside the async tasks),
//! [`driver_log`] and [`metrics`] (what people see). [`mod@run`], [`stop`] and [`clock`] belong to the process.
//!
//! # Invariants
//!
//! - A write about a cluster starts only if it will end before the Lease expires. In a head
//!   pod there is no Lease, because nobody else scales from there.
//! - A change of pods or Ray nodes is sent only with a [permission](act::perform) that is seconds old.
//! - A bug that one cluster triggers costs only that cluster a round.

pub mod act;
pub mod clock;
pub mod driver_log;
pub mod eligibility;
pub mod events;
pub mod head;
pub mod lease;
mod look_host;
pub mod metrics;
pub mod observe;
pub mod offload;
pub mod reconciler;
pub mod run;
pub mod stop;
pub mod tuning;
pub mod worker_pool;

pub use lease::LeaseOptions;
pub use run::{ControllerOptions, run};
