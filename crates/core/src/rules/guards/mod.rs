//! RF4xx: guards of what Rayfit itself depends on.
//!
//! In: an object or a pod, and who writes it. Out: findings. Invariant: Rayfit's own writes have none.

pub mod reconcile_invalid;
pub mod resize_by_others;
