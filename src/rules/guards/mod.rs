//! RF4xx: guards of what Rayfit itself depends on.

pub mod reconcile_invalid;
