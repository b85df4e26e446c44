//! Logs and metrics of the process.
//!
//! In: what the other modules count and log. Out: lines on standard error, and the metrics page. Invariant: nothing
//! secret is logged, and the number of series does not grow with tenants' objects, except on the page of a head pod, which is one tenant's.

pub mod audit;
pub mod controller;
mod labels;
pub mod logs;
pub mod metrics;
pub mod ray_autoscaler;
pub mod reviews;
mod saved;
mod sizes;
mod watches;

pub use metrics::Metrics;
