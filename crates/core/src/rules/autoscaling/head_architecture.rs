//! RF239: a head on nodes for which there is no image of Rayfit.

use crate::facts::scheduling::Demands;
use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(239),
    name: "head-architecture",
    mode: OwnMode::Always(Mode::Warn),
    summary: "A head that may only be on nodes of an architecture that Rayfit's image does not have",
    page: include_str!("head_architecture.md"),
    why: "Rayfit's container in the head pod cannot be pulled or fails at its start, and the \
          cluster does not scale.",
    cel: Cel::NotCovered("The architectures are named by RayPolicies, which CEL does not see."),
    check,
};

/// The label by which Kubernetes tells nodes of different architectures apart.
const ARCHITECTURE: &str = "kubernetes.io/arch";

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let head = subject.settings.head_with_image(subject.object);
    let Some((head, spec)) = head.and_then(|head| Some((head, head.pod_spec?))) else {
        return;
    };
    let (demands, architectures) = (Demands::of(spec), subject.settings.architectures());
    let mut all = architectures.iter();
    if !all.all(|architecture| demands.rule_out(ARCHITECTURE, architecture)) {
        return;
    }
    let selector = spec.object("nodeSelector");
    let path = head.pod_spec_path();
    let path = if selector.is_some_and(|selector| selector.contains_key(ARCHITECTURE)) {
        path.key("nodeSelector").key(ARCHITECTURE)
    } else {
        path.key("affinity").key("nodeAffinity")
    };
    let known = architectures.join(" and ");
    findings.push(RULE.finding(
        path,
        format!("leaves no node of an architecture that Rayfit's image has, {known}"),
        format!(
            "Let the head be on {known}; or build the image for this architecture too, and say so \
             in defaults.rayfitContainer.architectures of a RayPolicy."
        ),
    ));
}
