//! The autoscaling state that Ray is given, for `ray status` and for drivers.
//!
//! In: the plan and the snapshot. Out: the message that Ray's GCS stores. Invariant: Ray can read it, whatever the cluster's size.

pub(crate) mod failed_launches;
pub mod status;
