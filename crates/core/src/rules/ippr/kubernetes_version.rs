//! RF114: a Kubernetes that cannot resize pods in place, or only as a beta feature.

use crate::facts::KubernetesVersion;
use crate::ray::ippr::ANNOTATION;
use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(114),
    name: "ippr-kubernetes-version",
    mode: OwnMode::ByCase("Enforce below Kubernetes 1.33, Warn on 1.33 and 1.34"),
    summary: "`ray.io/ippr` on a Kubernetes before 1.35",
    page: include_str!("kubernetes_version.md"),
    why: "Before Kubernetes 1.33 the API server does not serve pods/resize; the first resize fails, \
          and Ray then stops scaling the cluster.",
    cel: Cel::NotCovered("A CEL expression cannot read the API server's version."),
    check,
};

/// The first version with `pods/resize` switched on.
const FIRST: KubernetesVersion = KubernetesVersion::new(1, 33);

/// The first version where it cannot be switched off.
const STABLE: KubernetesVersion = KubernetesVersion::new(1, 35);

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let version = subject.facts.kubernetes.filter(|version| *version < STABLE);
    let Some(version) = version.filter(|_| subject.resized_groups().next().is_some()) else {
        return;
    };
    let path = FieldPath::annotation(ANNOTATION);
    // The API server answers 404 there, and Ray does not catch the error, so every round ends at the first resize
    // (`do_ippr_requests`).
    if version < FIRST {
        findings.push(RULE.finding(
            path,
            format!("needs Kubernetes 1.33 or later, and this is {version}"),
            "Remove the annotation, or upgrade Kubernetes, preferably to 1.35 or later.",
        ));
        return;
    }
    let why = if version == FIRST {
        "In 1.33 in-place resize is beta, may be switched off, and cannot lower a memory limit, so \
         a resize that Ray takes back fails."
    } else {
        "In 1.34 in-place resize is beta and may be switched off."
    };
    let finding = RULE.finding(
        path,
        format!("relies on a beta feature of Kubernetes {version}"),
        "Make sure that the feature gate InPlacePodVerticalScaling is on, or upgrade to 1.35.",
    );
    findings.push(finding.in_mode(Mode::Warn).because(why));
}
