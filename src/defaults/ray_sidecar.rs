//! DF04: Ray's own autoscaler container.

use serde_json::{Value, json};

use super::draft::autoscaled;
use super::{DefaultId, DefaultRule, Draft};
use crate::policy::Settings;
use crate::policy::settings::SidecarSize;
use crate::ray::{Cluster, RayObject, since};
use crate::rule_page::RulePage;

/// DF04
pub static DEFAULT: DefaultRule = DefaultRule {
    id: DefaultId(4),
    name: "ray-sidecar",
    summary: "pull policy and resources of Ray's autoscaler container, as KubeRay would choose them",
    page: RulePage(include_str!("ray_sidecar.md")),
    why: "What the container will get is visible in the object, to people and to quota tools.",
    apply,
};

fn apply(draft: &mut Draft<'_>) {
    let size = &draft.settings.defaults.ray_sidecar;
    draft.option(DefaultId(4), "imagePullPolicy", is_ray_scaled, || {
        json!("IfNotPresent")
    });
    draft.option(DefaultId(4), "resources", is_ray_scaled, || resources(size));
    let needs_newer_image = |object: &RayObject<'_>, settings: &Settings| {
        let version = autoscaled(object).and_then(Cluster::ray_version);
        is_ray_scaled(object, settings)
            && version.is_some_and(|version| version < since::AUTOSCALER_IN_IMAGE)
    };
    draft.option(DefaultId(4), "image", needs_newer_image, || {
        json!("rayproject/ray:2.0.0")
    });
}

fn is_ray_scaled(object: &RayObject<'_>, _: &Settings) -> bool {
    autoscaled(object).is_some() && !object.reconcile_mode().is_ours()
}

/// Requests equal to limits.
pub(super) fn resources(size: &SidecarSize) -> Value {
    let amounts = json!({"cpu": size.cpu, "memory": size.memory});
    json!({"limits": amounts, "requests": amounts})
}
