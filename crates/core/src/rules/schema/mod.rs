//! RF6xx: what the API server drops or refuses because of KubeRay's CRDs.
//!
//! In: an object as a manifest has it. Out: findings. Invariant: an object that was read from an API server, as
//! admission and the audit see it, has none; so only `rayfit check` asks.

pub mod refused_value;
pub mod unknown_field;

use crate::finding::Finding;
use crate::json::Fields;
use crate::ray::RayVersion;
use crate::schema::{SchemaFault, deviations};

/// The findings about `object` as it is written, for this version of KubeRay.
pub fn find(object: Fields<'_>, kuberay: RayVersion) -> Vec<Finding> {
    let deviations = deviations(object, kuberay).into_iter();
    deviations
        .map(|(path, fault)| match fault {
            SchemaFault::Unknown(remedy) => unknown_field::finding(path, remedy, kuberay),
            fault => refused_value::finding(path, &fault),
        })
        .collect()
}
