//! Logs and metrics of the process.
//!
//! In: what the other modules count and log. Out: lines on standard error, and the metrics page. Invariant: nothing
//! secret is logged, and the number of series is bounded, whatever objects tenants make.

pub mod audit;
mod cluster_series;
pub mod clusters;
pub mod controller;
mod labels;
pub mod logs;
pub mod metrics;
pub mod ray_autoscaler;
pub mod reviews;
mod watches;

pub use metrics::Metrics;
