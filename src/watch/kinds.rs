//! The kinds that are watched, and the parts of their objects that are read.

use std::time::Duration;

use kube::api::ObjectMeta;
use rayfit_core::ray::Kind;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::apiserver::Selection;

/// The time until a change of policies takes effect.
pub(crate) const SOON: Duration = Duration::from_millis(20);

/// The time until a change of facts is known. Pods come and go in bursts, which are collected.
pub(crate) const GATHERED: Duration = Duration::from_millis(500);

/// All Ray objects of a kind.
pub(crate) fn ray_objects(kind: Kind) -> Selection {
    let title = match kind {
        Kind::RayCluster => "RayClusters",
        Kind::RayJob => "RayJobs",
        Kind::RayService => "RayServices",
        Kind::RayCronJob => "RayCronJobs",
    };
    Selection::all(title, format!("/apis/ray.io/v1/{}", kind.plural()))
}

/// An object of which only some parts are read: nothing of one that is `NotUsed`. Missing parts are empty, so that an
/// object without a `spec` can be read too.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChangedPart<P, U> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) api_version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<String>,
    #[serde(default)]
    pub(crate) metadata: ObjectMeta,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) spec: Option<P>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<U>,
}

/// The fields of specs and statuses that become facts: what keeps pods off a node, and what they can request of it; the
/// containers of a pod with their resources, and whether it has ended.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct FactFields {
    taints: Value,
    unschedulable: Value,
    allocatable: Value,
    containers: Vec<FactFields>,
    resources: Value,
    phase: Value,
}

/// The object as the rules read it.
pub(crate) fn value(object: &impl Serialize) -> Value {
    serde_json::to_value(object).unwrap_or_default()
}
