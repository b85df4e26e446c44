//! DF06: Rayfit in place of Ray's autoscaler container.

use serde_json::json;

use super::ray_sidecar::resources;
use super::{DefaultId, DefaultRule, Draft};
use crate::policy::Settings;
use crate::ray::RayObject;

/// DF06
pub static DEFAULT: DefaultRule = DefaultRule {
    id: DefaultId(6),
    name: "rayfit-sidecar",
    summary: "Rayfit's image and small resources where Rayfit scales the cluster",
    what: "With autoscaling on and `rayfit.dev/reconcile` central or sidecar, `autoscalerOptions` \
           gets Rayfit's image and `resources` (requests and limits of 50m CPU and 64Mi) where they \
           are absent. Nothing else is needed on any version of KubeRay: in Rayfit's image \
           `/bin/bash` is Rayfit itself and understands the command that KubeRay starts there.",
    why: "KubeRay keeps treating the cluster as autoscaled (it never deletes workers at random), \
          while Rayfit does the scaling.",
    before: r#"
metadata:
  annotations: {rayfit.dev/reconcile: central}
spec:
  enableInTreeAutoscaling: true
  autoscalerOptions: {version: v2, idleTimeoutSeconds: 60, upscalingMode: Default}
"#,
    after: r#"
metadata:
  annotations: {rayfit.dev/reconcile: central}
spec:
  enableInTreeAutoscaling: true
  autoscalerOptions:
    version: v2
    idleTimeoutSeconds: 60
    upscalingMode: Default
    image: rayfit:0.1.0
    resources: {limits: {cpu: 50m, memory: 64Mi}, requests: {cpu: 50m, memory: 64Mi}}
"#,
    since: "0.1.0",
    apply,
};

fn apply(draft: &mut Draft<'_>) {
    let values = &draft.settings.defaults;
    draft.option(DefaultId(6), "image", is_ours, || json!(values.image));
    draft.option(DefaultId(6), "resources", is_ours, || {
        resources(&values.rayfit_sidecar)
    });
}

fn is_ours(object: &RayObject<'_>, _: &Settings) -> bool {
    object
        .cluster
        .as_ref()
        .is_some_and(super::super::ray::cluster::Cluster::autoscaling)
        && object.reconcile_mode().is_ours()
}
