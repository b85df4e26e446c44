//! DF07: who scales the cluster, where a policy sets it.

use serde_json::json;

use super::draft::{autoscaled, settle};
use super::{DefaultId, DefaultRule, DefaultsDraft, Origin};
use crate::json::Json;
use crate::path::FieldPath;
use crate::ray::{Kind, RayObject, reconcile};

pub(crate) static DEFAULT: DefaultRule = DefaultRule {
    id: DefaultId(7),
    name: "reconcile-mode",
    summary: "`rayfit.dev/reconcile`, only where a policy sets it",
    page: include_str!("reconcile_mode.md"),
    why: "A team's clusters are scaled in one way without anybody having to know of it.",
    apply,
};

fn apply(draft: &mut DefaultsDraft<'_>) {
    let Some(mode) = draft.settings.reconcile.written.mode else {
        return;
    };
    let is_scaled =
        |object: &RayObject<'_>| object.kind != Kind::RayCronJob && autoscaled(object).is_some();
    let key = reconcile::ANNOTATION;
    // A JSON patch can add no annotation where `metadata` itself is absent.
    let Some(metadata) = draft.object.metadata().filter(|_| is_scaled(draft.object)) else {
        return;
    };
    let annotations = metadata.get("annotations");
    let is_open = |all: Json<'_>| all.as_object().is_some_and(|all| !all.contains_key(key));
    if !annotations.is_none_or(is_open) {
        return;
    }
    let had_reason = draft.old.is_some_and(is_scaled);
    let stored = draft.old.and_then(|old| old.annotation_value(key));
    let Some((value, origin)) = settle(had_reason, stored, json!(mode.name())) else {
        return;
    };
    // RF402 would deny the object for a mode that its author has not written.
    if origin == Origin::Fresh && !draft.settings.allowed_modes.contains(&mode) {
        return;
    }
    if annotations.is_none() {
        draft.make_parent(&FieldPath::of(&["metadata", "annotations"]));
    }
    draft.add(DefaultId(7), FieldPath::annotation(key), value, origin);
}
