//! What the process says about itself: logs and metrics.

pub mod audit;
pub mod controller;
pub mod logs;
pub mod metrics;
mod watches;

pub use metrics::Metrics;
