//! The autoscaling state that Ray is given, for `ray status` and for drivers.

pub(crate) mod failed_launches;
pub(crate) mod pending;
pub mod status;
