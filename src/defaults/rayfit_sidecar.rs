//! DF06: Rayfit in place of Ray's autoscaler container.

use serde_json::json;

use super::draft::autoscaled;
use super::ray_sidecar::resources;
use super::{DefaultId, DefaultRule, DefaultsDraft};
use crate::policy::Settings;
use crate::ray::RayObject;
use crate::rule_page::RulePage;

pub(crate) static DEFAULT: DefaultRule = DefaultRule {
    id: DefaultId(6),
    name: "rayfit-sidecar",
    summary: "Rayfit's image and small resources where Rayfit scales the cluster",
    page: RulePage(include_str!("rayfit_sidecar.md")),
    why: "KubeRay keeps treating the cluster as autoscaled (it never deletes workers at random), \
          while Rayfit does the scaling.",
    apply,
};

fn apply(draft: &mut DefaultsDraft<'_>) {
    let is_ours = |object: &RayObject<'_>, _: &Settings| {
        autoscaled(object).is_some() && object.reconcile_mode().is_ours()
    };
    let image = draft.settings.image();
    draft.option(DefaultId(6), "image", is_ours, || json!(image));
    let size = draft.settings.defaults.rayfit_container.as_ref();
    let amounts = size.map_or([None, None], |size| {
        [size.cpu.as_ref(), size.memory.as_ref()]
    });
    draft.option(DefaultId(6), "resources", is_ours, || {
        resources(amounts, ["50m", "64Mi"])
    });
}
