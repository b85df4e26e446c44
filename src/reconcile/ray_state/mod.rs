//! What Ray is told of the cluster: its autoscaling state, for `ray status` and for drivers.

pub(crate) mod failed_launches;
pub(crate) mod pending;
pub mod status;
