//! Observation: which objects are watched, what is kept of them, and where.

pub mod kept;
mod scaled;
pub mod store;
mod tombstones;
pub mod watch;

pub use store::{ClusterTexts, ClusterView, Key};
pub use watch::{Observed, Reach};
