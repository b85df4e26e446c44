//! RF238: a head that cannot pull Rayfit's image.

use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(238),
    name: "pull-secret",
    mode: OwnMode::Always(Mode::Warn),
    summary: "A head without the pull Secret that a RayPolicy names for Rayfit's image",
    page: include_str!("pull_secret.md"),
    why: "A head pod one of whose images cannot be pulled does not become ready, and its cluster \
          does not scale.",
    cel: Cel::NotCovered("The Secret is named by RayPolicies, which CEL does not see."),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let head = subject.settings.head_with_image(subject.object);
    let (Some(secret), Some(head)) = (subject.settings.pull_secret(), head) else {
        return;
    };
    if head.lacks_pull_secret(secret) {
        let secret = shown_text(secret);
        findings.push(RULE.finding(
            head.pod_spec_path().key("imagePullSecrets"),
            format!("lacks {secret}, with which Rayfit's image is pulled"),
            format!("Add name: {secret}, and have that Secret in the namespace of the object."),
        ));
    }
}
