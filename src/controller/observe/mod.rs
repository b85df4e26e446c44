//! Observation: which objects are watched, what is kept of them, and where; and what Events say of
//! pods that wait for a Kubernetes node.
//!
//! In: the events of watches, and lists of Events. Out: the cluster, pods and nodes as last seen, and which clusters have changed. Invariant:
//! objects belong to a cluster by namespace, name and UID.

mod ask_times;
mod awaiting;
mod bytes;
pub mod kept;
pub mod pod_events;
mod prospects;
pub mod store;
mod texts;
mod tombstones;
pub mod watch;

pub use rayfit_core::dns_name::Key;
pub use texts::{ClusterTexts, MANY};
pub use watch::{Observed, WatchScope};
