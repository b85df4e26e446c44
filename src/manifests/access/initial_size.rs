//! The permissions for the initial sizes of pods. The manifests grant exactly these.

use crate::manifests::access::{Access, AccessScope};

/// Reading the RayCluster that owns a new pod, in every namespace whose clusters are scaled. The lists and watches of
/// the audit are not enough: they can be behind by the moment in which the RayCluster was changed.
pub const OWNERS: &[Access] = &[AccessScope::Scaled.may(&["get"], "ray.io", "rayclusters")];
