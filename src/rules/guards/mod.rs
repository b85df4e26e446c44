//! RF4xx: guards of what Rayfit itself depends on.

pub mod reconcile_invalid;
pub mod resize_by_others;
