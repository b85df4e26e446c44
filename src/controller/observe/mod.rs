//! Observation: which objects are watched, what is kept of them, and where.
//!
//! In: the events of watches. Out: the cluster, pods and nodes as last seen, and which clusters have changed. Invariant:
//! objects belong to a cluster by namespace, name and UID.

pub mod kept;
mod scaled;
pub mod store;
mod texts;
mod tombstones;
pub mod watch;

pub use store::Key;
pub use texts::{ClusterTexts, ClusterView};
pub use watch::{Observed, WatchScope};
