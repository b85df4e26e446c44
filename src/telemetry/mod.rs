//! Logs and metrics of the process.

pub mod audit;
pub mod budgets;
pub mod controller;
pub mod logs;
pub mod metrics;
pub mod reviews;
mod saved;
mod sizes;
mod watches;

pub use metrics::Metrics;
