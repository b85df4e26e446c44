//! DF07: who scales the cluster, and who stands by, where a policy sets it.

use serde_json::json;

use super::draft::Before;
use super::{DefaultId, DefaultRule, Draft, Origin};
use crate::path::FieldPath;
use crate::ray::{Cluster, Kind, RayObject, ReconcileMode, reconcile};

/// DF07
pub static DEFAULT: DefaultRule = DefaultRule {
    id: DefaultId(7),
    name: "reconcile-mode",
    summary: "`rayfit.dev/reconcile` and `rayfit.dev/standby`, only where a policy sets them",
    what: "With autoscaling on, and only where a RayPolicy sets `reconcile.mode`, an object without \
           the annotation `rayfit.dev/reconcile` gets it with that mode; the other defaults then \
           follow it. Not where another RayPolicy does not allow that mode (`allowedModes`), not a \
           RayCronJob, whose annotations reach no cluster, and not an object that was there before: who \
           scales a running cluster does not change behind its owner's back.",
    why: "A team's clusters are scaled in one way without anybody having to know of it.",
    before: r#"
# where a RayPolicy sets reconcile: {mode: central, standby: true}
metadata:
  annotations: {}
spec:
  enableInTreeAutoscaling: true
  autoscalerOptions: {version: v2, image: x, resources: {}, idleTimeoutSeconds: 60, upscalingMode: Default}
"#,
    after: r#"
# where a RayPolicy sets reconcile: {mode: central, standby: true}
metadata:
  annotations: {rayfit.dev/reconcile: central, rayfit.dev/standby: rayfit-system}
spec:
  enableInTreeAutoscaling: true
  autoscalerOptions: {version: v2, image: x, resources: {}, idleTimeoutSeconds: 60, upscalingMode: Default}
"#,
    since: "0.1.0",
    apply,
};

fn apply(draft: &mut Draft<'_>) {
    let reconcile = &draft.settings.reconcile;
    let mode = reconcile.mode.map(ReconcileMode::name);
    // RF402 would deny the object for a mode that its author has not written.
    let is_allowed = |mode| draft.settings.allowed_modes.contains(&mode);
    let is_allowed = reconcile.mode.is_none_or(is_allowed);
    let filled_in = mode
        .is_some_and(|mode| annotate(draft, reconcile::ANNOTATION, (mode, is_allowed), |_| true));
    let is_central = if filled_in {
        reconcile.mode == Some(ReconcileMode::Central)
    } else {
        draft.object.reconcile_mode() == ReconcileMode::Central
    };
    if reconcile.standby && is_central {
        let namespace = draft.settings.defaults.standby_namespace();
        annotate(draft, reconcile::STANDBY, (namespace, true), |object| {
            object.reconcile_mode() == ReconcileMode::Central
        });
    }
}

/// Writes an annotation where it is absent, unless the stored object had the `reason` for it already; returns
/// whether it did. A value that the stored object did not have is written only if that is allowed.
fn annotate(
    draft: &mut Draft<'_>,
    key: &'static str,
    (value, may_be_new): (&str, bool),
    reason: impl Fn(&RayObject<'_>) -> bool,
) -> bool {
    let annotations = draft
        .object
        .metadata()
        .and_then(|all| all.get("annotations"));
    let open =
        annotations.is_none_or(|all| all.as_object().is_some_and(|all| !all.contains_key(key)));
    // A JSON patch can add no annotation where `metadata` itself is absent.
    if !open || !is_scaled(draft.object) || draft.object.metadata().is_none() {
        return false;
    }
    let before = Before {
        had_reason: draft.old.is_some_and(|old| is_scaled(old) && reason(old)),
        value: draft.old.and_then(|old| old.annotation_value(key)),
    };
    let Some((value, origin)) = before.settle(json!(value)) else {
        return false;
    };
    if origin == Origin::Fresh && !may_be_new {
        return false;
    }
    if annotations.is_none() {
        draft.make_parent(&FieldPath::of(&["metadata", "annotations"]));
    }
    draft.add(DefaultId(7), FieldPath::annotation(key), value, origin);
    true
}

fn is_scaled(object: &RayObject<'_>) -> bool {
    object.kind != Kind::RayCronJob && object.cluster.as_ref().is_some_and(Cluster::autoscaling)
}
