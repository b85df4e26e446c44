//! Observation: which objects are watched, what is kept of them, and where.

pub mod kept;
mod scaled;
pub mod store;
mod texts;
mod tombstones;
pub mod watch;

pub use store::Key;
pub use texts::{ClusterTexts, ClusterView};
pub use watch::{Observed, WatchScope};
