//! RF304: another scaler for a running cluster.

use super::live_change::LiveChange;
use crate::ray::reconcile::ANNOTATION;
use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(304),
    name: "mode-changed",
    mode: OwnMode::Always(Mode::Warn),
    summary: "`rayfit.dev/reconcile` changes on a running cluster",
    page: include_str!("mode_changed.md"),
    why: "The containers of a running pod cannot be replaced, so the old scaler stays until the \
          head pod is replaced.",
    cel: Cel::Covered(&[Check {
        each: Each::Change,
        faults: r#"s.object.kind == 'RayCluster' && s.auto && s.mode != old.mode && [s.mode, old.mode].all(m, m in ['ray', 'central', 'sidecar'])
  && [s, old].all(o, !o.cluster.?suspend.orValue(false) && o.cluster.?managedBy.orValue('ray.io/kuberay-operator') == 'ray.io/kuberay-operator')
  ? ['metadata.annotations rayfit.dev/reconcile changes who scales the running cluster, from ' + old.mode + ' to ' + s.mode] : []"#,
        fix: "A change to or from ray takes effect when the head pod is replaced.",
    }]),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let (Some(change), Some(old)) = (LiveChange::of(subject), subject.old) else {
        return;
    };
    // RF402 reports a value that is no mode.
    let mode = |object: &RayObject<'_>| match object.annotation_value(ANNOTATION) {
        None => Some(ReconcileMode::Ray),
        Some(value) => value.as_str()?.parse().ok(),
    };
    let (Some(old_mode), Some(new_mode)) = (mode(old), mode(subject.object)) else {
        return;
    };
    if old_mode == new_mode || !change.new.autoscaling() {
        return;
    }
    let path = subject.annotation_path(ANNOTATION);
    let problem = format!("changes who scales the running cluster, from {old_mode} to {new_mode}");
    let value = format!("{old_mode} -> {new_mode}");
    // KubeRay adds the container when it makes the head pod and does not compare it later (`DefaultHeadPodTemplate`);
    // in both of these modes it is Rayfit, which reads the annotation itself.
    if old_mode.is_ours() && new_mode.is_ours() {
        let fix = "Nothing else is needed; no pod restarts.";
        let finding = RULE.finding(path, problem, fix).valued(value);
        let why = "It takes effect at once: the same container does both.";
        findings.push(finding.because(why));
        return;
    }
    let image = change.new.autoscaler_option("image").and_then(Json::as_str);
    let is_ours = image == Some(subject.settings.image());
    let first = match change.new.autoscaler_option("resources") {
        _ if new_mode != ReconcileMode::Ray || !is_ours => "",
        // The resources that DF06 fills in beside the image are too small for Ray's autoscaler.
        Some(_) => {
            "First remove autoscalerOptions.image, which is Rayfit's, and autoscalerOptions.resources: with \
             the 64Mi that Rayfit needs, Ray's autoscaler is killed. "
        }
        None => "First remove autoscalerOptions.image, which is Rayfit's. ",
    };
    let name = subject.object.name().unwrap_or("<name>");
    let fix = format!(
        "{first}Replace the head pod when the cluster tolerates that: kubectl delete pod -l \
         ray.io/cluster={name},ray.io/node-type=head. Running work is then lost, unless GCS fault \
         tolerance is on."
    );
    findings.push(RULE.finding(path, problem, fix).valued(value));
}
