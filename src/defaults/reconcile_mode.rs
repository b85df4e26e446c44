//! DF07: who scales the cluster, where a policy sets it.

use serde_json::json;

use super::draft::Before;
use super::{DefaultId, DefaultRule, Draft, Origin};
use crate::path::FieldPath;
use crate::ray::{Cluster, Kind, RayObject, ReconcileMode, reconcile};
use crate::rule_page::RulePage;

/// DF07
pub static DEFAULT: DefaultRule = DefaultRule {
    id: DefaultId(7),
    name: "reconcile-mode",
    summary: "`rayfit.dev/reconcile`, only where a policy sets it",
    page: RulePage(include_str!("reconcile_mode.md")),
    why: "A team's clusters are scaled in one way without anybody having to know of it.",
    since: "0.1.0",
    apply,
};

fn apply(draft: &mut Draft<'_>) {
    let reconcile = &draft.settings.reconcile.written;
    let mode = reconcile.mode.map(ReconcileMode::name);
    // RF402 would deny the object for a mode that its author has not written.
    let is_allowed = |mode| draft.settings.allowed_modes.contains(&mode);
    let is_allowed = reconcile.mode.is_none_or(is_allowed);
    let Some(mode) = mode else {
        return;
    };
    let key = reconcile::ANNOTATION;
    let annotations = draft
        .object
        .metadata()
        .and_then(|all| all.get("annotations"));
    let open =
        annotations.is_none_or(|all| all.as_object().is_some_and(|all| !all.contains_key(key)));
    // A JSON patch can add no annotation where `metadata` itself is absent.
    if !open || !is_scaled(draft.object) || draft.object.metadata().is_none() {
        return;
    }
    let before = Before {
        had_reason: draft.old.is_some_and(is_scaled),
        value: draft.old.and_then(|old| old.annotation_value(key)),
    };
    let Some((value, origin)) = before.settle(json!(mode)) else {
        return;
    };
    if origin == Origin::Fresh && !is_allowed {
        return;
    }
    if annotations.is_none() {
        draft.make_parent(&FieldPath::of(&["metadata", "annotations"]));
    }
    draft.add(DefaultId(7), FieldPath::annotation(key), value, origin);
}

fn is_scaled(object: &RayObject<'_>) -> bool {
    object.kind != Kind::RayCronJob && object.cluster.as_ref().is_some_and(Cluster::autoscaling)
}
