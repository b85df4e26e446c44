//! DF04: Ray's own autoscaler container.

use serde_json::{Value, json};

use super::{DefaultId, DefaultRule, Draft};
use crate::policy::Settings;
use crate::policy::settings::SidecarSize;
use crate::ray::{RayObject, since};

/// DF04
pub static DEFAULT: DefaultRule = DefaultRule {
    id: DefaultId(4),
    name: "ray-sidecar",
    summary: "pull policy and resources of Ray's autoscaler container, as KubeRay would choose them",
    what: "With autoscaling on and Ray's own autoscaler in charge, `autoscalerOptions` gets \
           `imagePullPolicy: IfNotPresent` and `resources` (requests and limits of 500m CPU and \
           512Mi) where they are absent. `resources` is only ever written as a whole, since KubeRay \
           takes it as a whole. `image` is written only where `rayVersion` is below 2.0.0 \
           (`rayproject/ray:2.0.0`, the first with this autoscaler); elsewhere the container follows \
           the head's image through upgrades.",
    why: "What the container will get is visible in the object, to people and to quota tools.",
    before: r#"
spec:
  enableInTreeAutoscaling: true
  autoscalerOptions: {idleTimeoutSeconds: 60, upscalingMode: Default}
"#,
    after: r#"
spec:
  enableInTreeAutoscaling: true
  autoscalerOptions:
    idleTimeoutSeconds: 60
    upscalingMode: Default
    imagePullPolicy: IfNotPresent
    resources: {limits: {cpu: 500m, memory: 512Mi}, requests: {cpu: 500m, memory: 512Mi}}
"#,
    since: "0.1.0",
    apply,
};

fn apply(draft: &mut Draft<'_>) {
    let size = &draft.settings.defaults.ray_sidecar;
    draft.option(DefaultId(4), "imagePullPolicy", is_ray_scaled, || {
        json!("IfNotPresent")
    });
    draft.option(DefaultId(4), "resources", is_ray_scaled, || resources(size));
    draft.option(DefaultId(4), "image", needs_newer_image, || {
        json!("rayproject/ray:2.0.0")
    });
}

fn is_ray_scaled(object: &RayObject<'_>, _: &Settings) -> bool {
    object
        .cluster
        .as_ref()
        .is_some_and(super::super::ray::cluster::Cluster::autoscaling)
        && !object.reconcile_mode().is_ours()
}

fn needs_newer_image(object: &RayObject<'_>, settings: &Settings) -> bool {
    let version = object
        .cluster
        .as_ref()
        .and_then(super::super::ray::cluster::Cluster::ray_version);
    is_ray_scaled(object, settings)
        && version.is_some_and(|version| version < since::AUTOSCALER_IN_IMAGE)
}

/// Requests equal to limits.
pub(super) fn resources(size: &SidecarSize) -> Value {
    let amounts = json!({"cpu": size.cpu, "memory": size.memory});
    json!({"limits": amounts, "requests": amounts})
}
