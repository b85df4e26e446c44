//! Placement groups whose pods did not all get a Kubernetes node ([`placement_groups`]), and replicas that were asked
//! for together and not admitted ([`jumps`], by their [`gated`] pods): [`attempts`] has both.

pub(crate) mod attempts;
mod gated;
pub(crate) mod jumps;
mod placement_groups;
pub(crate) mod reason;
