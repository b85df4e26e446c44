//! What the process says about itself: logs and metrics.

pub mod audit;
pub mod controller;
pub mod logs;
pub mod metrics;
pub mod reviews;
mod watches;

pub use metrics::Metrics;
