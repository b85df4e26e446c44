//! RF3xx: changes, checked on updates only.
//!
//! In: an object and what was stored of it before. Out: findings. Invariant: an object that is created has none.

pub mod edit_without_effect;
pub mod group_removed;
pub mod limit_lowered;
mod live_change;
pub mod max_lowered;
pub mod mode_changed;
pub mod restarts_pods;
pub mod scaling_overwritten;
