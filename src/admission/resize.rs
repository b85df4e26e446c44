//! Writes to `pods/resize`, which rule RF401 checks.

use k8s_openapi::jiff::Timestamp;
use rayfit_core::judge::{Verdict, fold};
use rayfit_core::policy::{EffectivePolicy, Mode};
use rayfit_core::ray::{Kind, RayObject};
use rayfit_core::rules::guards::resize_by_others;
use serde_json::json;

use super::review::{Review, ReviewError};
use super::tree::{self, Detail, TreeArena};

/// Checks a resize under the policies that match the pod's RayCluster, as far as the pod shows it.
pub(super) fn judge(
    review: &Review<'_>,
    policy: &EffectivePolicy,
    now: Timestamp,
    arena: &TreeArena,
) -> Result<Verdict, ReviewError> {
    let (pod, old) = review.objects()?;
    let read = |raw, field| tree::read_fields(raw, field, Detail::Whole, arena);
    let pod = read(pod, "object")?;
    let Some(old) = old.map(|old| read(old, "oldObject")).transpose()? else {
        return Ok(Verdict::default());
    };
    // The pod shows of its RayCluster the name, the namespace, and the labels that KubeRay copied.
    let metadata = old.below("metadata");
    let labels = metadata.below("labels");
    let cluster = json!({
        "apiVersion": "ray.io/v1",
        "kind": Kind::RayCluster.name(),
        "metadata": {
            "name": labels.text("ray.io/cluster"),
            "namespace": metadata.text("namespace"),
            "labels": labels.to_map(),
        },
    });
    let Some(cluster) = RayObject::parse(&cluster) else {
        return Ok(Verdict::default());
    };
    let settings = policy.settings_for(&cluster, now);
    if settings.modes.is_off(resize_by_others::RULE.id) {
        return Ok(Verdict::default());
    }
    let finding = resize_by_others::find(pod, old, &review.user_info.username);
    Ok(fold(
        Vec::from_iter(finding),
        &settings,
        Mode::Enforce,
        |_| false,
    ))
}
