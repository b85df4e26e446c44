//! DF06: Rayfit in place of Ray's autoscaler container.

use serde_json::json;

use super::draft::{autoscaled, settle};
use super::ray_sidecar::resources;
use super::{DefaultId, DefaultRule, DefaultsDraft};
use crate::json::Json;
use crate::policy::Settings;
use crate::ray::RayObject;

pub(crate) static DEFAULT: DefaultRule = DefaultRule {
    id: DefaultId(6),
    name: "rayfit-sidecar",
    summary: "Rayfit's image, its pull Secret and small resources where Rayfit scales the cluster",
    page: include_str!("rayfit_sidecar.md"),
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
    add_pull_secret(draft, is_ours);
}

/// Adds the Secret with which the head pulls the image, where a policy names one.
fn add_pull_secret(
    draft: &mut DefaultsDraft<'_>,
    is_ours: impl Fn(&RayObject<'_>, &Settings) -> bool,
) {
    const KEY: &str = "imagePullSecrets";
    let settings = draft.settings;
    let head = settings.head_with_image(draft.object);
    let (Some(secret), Some(head)) = (settings.pull_secret(), head) else {
        return;
    };
    let Some(spec) = head.pod_spec.filter(|_| head.lacks_pull_secret(secret)) else {
        return;
    };
    let old = draft.old.filter(|old| is_ours(old, settings));
    let stored = old.and_then(|old| old.cluster.as_ref()?.head.as_ref());
    let entry = json!({ "name": secret });
    let kept = stored.filter(|group| group.pull_secrets().any(|name| name == secret));
    let kept = kept.map(|_| Json::from(&entry));
    let Some((entry, origin)) = settle(old.is_some(), kept, entry.clone()) else {
        return;
    };
    let path = head.pod_spec_path().key(KEY);
    match spec.get(KEY) {
        None => draft.add(DEFAULT.id, path, json!([entry]), origin),
        // The place after the last one.
        Some(Json::Array(secrets)) => {
            draft.add(DEFAULT.id, path.index(secrets.len()), entry, origin);
        }
        Some(_) => {}
    }
}
