//! RF3xx: changes, checked on updates only.

pub mod cap_lowered;
pub mod group_removed;
mod live_change;
pub mod max_lowered;
pub mod mode_changed;
pub mod restarts_pods;
pub mod scaling_overwritten;
