//! RF304: another scaler for a running cluster.

use crate::path::FieldPath;
use crate::policy::Mode;
use crate::ray::reconcile::ANNOTATION;
use crate::ray::{Cluster, RayObject, ReconcileMode};
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::{Cel, Check, Each, Findings, OwnMode, Rule, Subject};

use super::live_change::LiveChange;

/// RF304
pub static RULE: Rule = Rule {
    id: RuleId(304),
    name: "mode-changed",
    mode: OwnMode::Always(Mode::Warn),
    summary: "`rayfit.dev/reconcile` changes on a running cluster",
    page: RulePage(include_str!("mode_changed.md")),
    why: "The containers of a running pod cannot be replaced, so the old scaler stays until the \
          head pod is replaced.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::Covered(&[Check {
    each: Each::Change,
    mode: Mode::Warn,
    faults: r#"s.object.kind == 'RayCluster' && s.auto && s.mode != old.mode && [s.mode, old.mode].all(m, m in ['ray', 'central', 'sidecar'])
  && [s, old].all(o, !o.cluster.?suspend.orValue(false) && o.cluster.?managedBy.orValue('ray.io/kuberay-operator') == 'ray.io/kuberay-operator')
  ? ['metadata.annotations rayfit.dev/reconcile changes who scales the running cluster, from ' + old.mode + ' to ' + s.mode] : []"#,
    fix: "A change to or from ray takes effect when the head pod is replaced.",
}]);

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let (Some(change), Some(old)) = (LiveChange::of(subject), subject.old) else {
        return;
    };
    let (Some(before), Some(after)) = (mode(old), mode(subject.object)) else {
        return;
    };
    if before == after || !change.new.autoscaling() {
        return;
    }
    let finding = RULE
        .finding(
            place(subject.object),
            format!("changes who scales the running cluster, from {before} to {after}"),
            fix(subject, change.new, before, after),
        )
        .valued(format!("{before} -> {after}"));
    findings.add(if before.is_ours() && after.is_ours() {
        finding.because("It takes effect at once: the same container does both.")
    } else {
        finding
    });
}

/// The mode that an object asks for; `None` for a value that is none (RF402).
fn mode(object: &RayObject<'_>) -> Option<ReconcileMode> {
    match object.annotation_value(ANNOTATION) {
        None => Some(ReconcileMode::Ray),
        Some(value) => value.as_str()?.parse().ok(),
    }
}

/// The annotation, or where it was.
fn place(object: &RayObject<'_>) -> FieldPath {
    if object.has_annotations() {
        FieldPath::annotation(ANNOTATION)
    } else {
        FieldPath::of(&["metadata", "annotations"])
    }
}

fn fix(
    subject: &Subject<'_>,
    cluster: &Cluster<'_>,
    before: ReconcileMode,
    after: ReconcileMode,
) -> String {
    if before.is_ours() && after.is_ours() {
        return "Nothing else is needed; no pod restarts.".to_owned();
    }
    let name = subject.object.name().unwrap_or("<name>");
    let replace = format!(
        "Replace the head pod when the cluster tolerates that: kubectl delete pod -l \
         ray.io/cluster={name},ray.io/node-type=head. Running work is then lost, unless GCS fault \
         tolerance is on."
    );
    let image = cluster.autoscaler_option("image").and_then(|v| v.as_str());
    if after != ReconcileMode::Ray || image != Some(&subject.settings.defaults.image) {
        return replace;
    }
    // The resources that DF06 fills in beside the image are too small for Ray's autoscaler.
    if cluster.autoscaler_option("resources").is_some() {
        return format!(
            "First remove autoscalerOptions.image, which is Rayfit's, and \
             autoscalerOptions.resources: with the 64Mi that Rayfit needs, Ray's autoscaler is \
             killed. {replace}"
        );
    }
    format!("First remove autoscalerOptions.image, which is Rayfit's. {replace}")
}
