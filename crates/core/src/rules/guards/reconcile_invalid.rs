//! RF402: annotations of ours that say nothing.

use crate::ray::initial_sizes;
use crate::ray::reconcile::{ANNOTATION, PREFIX, RECORD, SETTINGS};
use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(402),
    name: "reconcile-invalid",
    mode: OwnMode::ByCase(
        "Enforce for a value that is unknown or not allowed, Warn for an unknown key and for any \
         on a RayCronJob",
    ),
    summary: "A `rayfit.dev/` annotation with an unknown key or value, or a mode not allowed",
    page: include_str!("reconcile_invalid.md"),
    why: "Rayfit would act as if the annotation were not there, and Ray's own autoscaler would \
          scale the cluster.",
    cel: Cel::WithWarnings(
        &Cel::InPart(
            &[Check {
                each: Each::Object,
                faults: r#"s.object.kind != 'RayCronJob' && !(s.annotations[?'rayfit.dev/reconcile'].orValue('ray') in ['ray', 'central', 'sidecar'])
  ? ['metadata.annotations rayfit.dev/reconcile "' + s.annotations['rayfit.dev/reconcile'] + '" is not a mode'] : []"#,
                fix: "Write ray, central or sidecar.",
            }],
            "Which modes the policies allow is not checked.",
        ),
        &[Check {
            each: Each::Object,
            faults: r#"s.annotations.filter(k, k.startsWith('rayfit.dev/') && (s.object.kind == 'RayCronJob' || !(k in ['rayfit.dev/initial-sizes', 'rayfit.dev/reconcile', 'rayfit.dev/scaled-by', 'rayfit.dev/settings'])))
  .map(k, 'metadata.annotations ' + k + (s.object.kind == 'RayCronJob' ? ' has no effect on a RayCronJob' : ' is not an annotation that Rayfit knows'))"#,
            fix: "Remove it.",
        }],
    ),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let allowed = &subject.settings.allowed_modes;
    for (key, value) in subject.object.annotations() {
        if !key.starts_with(PREFIX) {
            continue;
        }
        // KubeRay copies the annotations of a RayJob and a RayService to the RayCluster that it creates, and gives
        // the RayJobs of a RayCronJob only its own (`constructRayJob`).
        let path = FieldPath::of(&["metadata", "annotations"]).key(key.to_owned());
        let finding = if subject.object.kind == Kind::RayCronJob {
            RULE.finding(
                path,
                "has no effect on a RayCronJob",
                "Remove it. A RayPolicy can set the mode of the clusters of the job.",
            )
            .mended_by_removal()
            .in_mode(Mode::Warn)
            .because(
                "KubeRay passes the annotations of a RayCronJob neither to its jobs nor to their \
                 clusters.",
            )
        } else if key == ANNOTATION {
            match value.as_str().and_then(|text| text.parse().ok()) {
                Some(mode) if allowed.contains(&mode) => continue,
                Some(mode) => {
                    let problem = format!("mode {mode} is not allowed in this Kubernetes cluster");
                    RULE.finding(path, problem, choice(allowed)).because(
                        "The cluster's admins decide by policy who may scale Ray clusters.",
                    )
                }
                None => {
                    let modes = allowed.iter().map(|mode| mode.name());
                    let meant = value.as_str().and_then(|text| nearest(text, modes));
                    let fix = match meant {
                        Some(mode) => format!("Write {mode}."),
                        None => choice(allowed),
                    };
                    let text = value.as_str().map_or_else(|| shown(value), shown_text);
                    RULE.finding(path, format!("{text} is not a mode"), fix)
                }
            }
        } else if [RECORD, SETTINGS, initial_sizes::ANNOTATION].contains(&key) {
            continue;
        } else {
            let fix = match nearest(key, [ANNOTATION]) {
                Some(name) => format!("Write {name}."),
                None => format!("Remove it; the annotation for users is {ANNOTATION}."),
            };
            RULE.finding(path, "is not an annotation that Rayfit knows", fix)
                .in_mode(Mode::Warn)
                .because("Rayfit ignores it.")
        };
        findings.push(finding.valued(shown(value)));
    }
}

fn choice(allowed: &[ReconcileMode]) -> String {
    let names: Vec<&str> = allowed.iter().map(|mode| mode.name()).collect();
    match names.as_slice() {
        [] => "Remove the annotation.".to_owned(),
        [only] => format!("Write {only}, or remove the annotation."),
        [first @ .., last] => format!("Write {} or {last}.", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::facts::Facts;
    use crate::policy::Settings;
    use crate::ray::RayObject;

    fn findings_of(mode: &str, allowed: &[ReconcileMode]) -> Vec<Finding> {
        let settings = Settings {
            allowed_modes: allowed.to_vec(),
            ..Settings::default()
        };
        found_under(ANNOTATION, mode, &settings)
    }

    fn found_under(key: &str, value: &str, settings: &Settings) -> Vec<Finding> {
        let object = json!({
            "apiVersion": "ray.io/v1",
            "kind": "RayService",
            "metadata": {"annotations": {key: value}},
        });
        let mut findings = Vec::new();
        check(
            &Subject {
                object: &RayObject::parse(&object).unwrap(),
                old: None,
                facts: &Facts::default(),
                settings,
                user: None,
            },
            &mut findings,
        );
        findings
    }

    /// A user who may not choose mode sidecar may not have it by another name either.
    #[test]
    fn a_mode_that_is_not_allowed_is_denied_and_an_allowed_one_is_not() {
        let allowed = [ReconcileMode::Ray, ReconcileMode::Central];
        assert!(findings_of("central", &allowed).is_empty());
        let findings = findings_of("sidecar", &allowed);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].mode, Mode::Enforce);
        assert_eq!(findings[0].fix, "Write ray or central.");
    }

    #[test]
    fn a_typo_is_led_to_what_is_allowed() {
        assert_eq!(
            findings_of("Sidecar", &ReconcileMode::ALL)[0].fix,
            "Write sidecar."
        );
        assert_eq!(
            findings_of("Sidecar", &[ReconcileMode::Ray])[0].fix,
            "Write ray, or remove the annotation."
        );
        assert_eq!(findings_of("sidecar", &[])[0].fix, "Remove the annotation.");
    }
}
