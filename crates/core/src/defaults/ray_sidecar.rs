//! DF04: Ray's own autoscaler container.

use serde_json::{Value, json};

use super::draft::autoscaled;
use super::{DefaultId, DefaultRule, DefaultsDraft};
use crate::policy::Settings;
use crate::policy::resource::Amount;
use crate::ray::{Cluster, RayObject, since};

pub(crate) static DEFAULT: DefaultRule = DefaultRule {
    id: DefaultId(4),
    name: "ray-sidecar",
    summary: "pull policy and resources of Ray's autoscaler container, as KubeRay would choose them",
    page: include_str!("ray_sidecar.md"),
    why: "What the container will get is visible in the object, to people and to quota tools.",
    apply,
};

fn apply(draft: &mut DefaultsDraft<'_>) {
    let size = draft.settings.defaults.ray_container.as_ref();
    let amounts = size.map_or([None, None], |size| {
        [size.cpu.as_ref(), size.memory.as_ref()]
    });
    draft.option(DefaultId(4), "imagePullPolicy", is_ray_scaled, || {
        json!("IfNotPresent")
    });
    draft.option(DefaultId(4), "resources", is_ray_scaled, || {
        // KubeRay gives the container the same (`BuildAutoscalerContainer`).
        resources(amounts, ["500m", "512Mi"])
    });
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

/// Requests equal to limits: CPU and memory as a policy has them, or else `usual`.
pub(super) fn resources([cpu, memory]: [Option<&Amount>; 2], usual: [&str; 2]) -> Value {
    // A quantity is a string in the object, also where the policy writes a number.
    let text = |amount: Option<&Amount>, usual: &str| match amount.map(|amount| &amount.0) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => usual.to_owned(),
    };
    let amounts = json!({"cpu": text(cpu, usual[0]), "memory": text(memory, usual[1])});
    json!({"limits": amounts, "requests": amounts})
}
