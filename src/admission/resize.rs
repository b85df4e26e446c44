//! Writes to `pods/resize`, which rule RF401 checks.

use std::collections::BTreeMap;

use k8s_openapi::jiff::Timestamp;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::objects::{self, objects};
use super::review::{Review, ReviewError};
use super::tree::{Detail, TreeBudget};
use crate::judge::{Verdict, fold};
use crate::policy::{EffectivePolicy, Mode};
use crate::ray::{Fields, Kind, RayObject, object_at};
use crate::rules::guards::resize_by_others;

/// A pod is resized.
pub(super) fn is_one(review: &Review<'_>) -> bool {
    review.kind.group.is_empty()
        && review.kind.kind == "Pod"
        && review.sub_resource == "resize"
        && review.operation == "UPDATE"
}

/// Checks a resize under the policies that match the pod's RayCluster, as far as the pod shows it.
pub(super) fn judge(
    review: &Review<'_>,
    policy: &EffectivePolicy,
    now: Timestamp,
    budget: &TreeBudget,
) -> Result<Verdict, ReviewError> {
    let (pod, old) = objects(review)?;
    let read = |raw, field| read(raw, field, budget);
    let pod = read(pod, "object")?;
    let Some(old) = old.map(|old| read(old, "oldObject")).transpose()? else {
        return Ok(Verdict::default());
    };
    let cluster = cluster_of(&old);
    let Some(cluster) = RayObject::parse(&cluster) else {
        return Ok(Verdict::default());
    };
    let settings = policy.settings_for(&cluster, now);
    if settings.modes.is_off(resize_by_others::RULE.id) {
        return Ok(Verdict::default());
    }
    let user = &review.user_info.username;
    let found = resize_by_others::find(&pod, &old, user);
    Ok(fold(
        Vec::from_iter(found),
        &settings,
        Mode::Enforce,
        |_| false,
    ))
}

fn read(raw: &RawValue, field: &'static str, budget: &TreeBudget) -> Result<Fields, ReviewError> {
    match objects::read(raw, field, Detail::Whole, budget)? {
        Value::Object(fields) => Ok(fields),
        _ => Err(ReviewError::NotAnObject(field)),
    }
}

/// The RayCluster of a pod, as far as the pod shows it: name, namespace, and the labels that
/// KubeRay copied.
fn cluster_of(pod: &Fields) -> Value {
    let metadata = object_at(pod, "metadata");
    let labels = metadata.and_then(|metadata| object_at(metadata, "labels"));
    let name = labels.and_then(|labels| labels.get("ray.io/cluster"));
    let namespace = metadata.and_then(|metadata| metadata.get("namespace"));
    let labels: BTreeMap<&String, &Value> = labels.into_iter().flatten().collect();
    json!({
        "apiVersion": "ray.io/v1",
        "kind": Kind::RayCluster.name(),
        "metadata": { "name": name, "namespace": namespace, "labels": labels },
    })
}
