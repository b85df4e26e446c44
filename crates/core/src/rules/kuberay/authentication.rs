//! RF702: authentication that this Ray or this kind of object does not have.

use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(702),
    name: "authentication",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "Authentication by token without a `rayVersion` that has it, or with options that exclude each other",
    page: include_str!("authentication.md"),
    why: "KubeRay considers the spec invalid and creates nothing.",
    cel: Cel::NotCovered("KubeRay refuses such objects itself, if later."),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let Some(cluster) = subject.cluster() else {
        return;
    };
    let Some(options) = cluster.spec.object("authOptions") else {
        return;
    };
    let mut report = |key: &'static str, problem: String, fix: &str| {
        let path = cluster.path().key("authOptions").key(key);
        findings.push(RULE.finding(path, problem, fix));
    };
    let is_token = options.text("mode") == Some("token");
    let by_kubernetes = options.is_true("enableK8sTokenAuth");
    // KubeRay goes by `rayVersion` and not by the image. A text that begins with a digit may be a version that only
    // this code cannot read.
    let too_old = |least: RayVersion| match (cluster.ray_version_text(), cluster.ray_version()) {
        (None, _) => Some("is absent".to_owned()),
        (Some(_), Some(version)) => (version < least).then(|| format!("is {version}")),
        (Some(text), None) => {
            let is_version = text
                .trim_start_matches('v')
                .starts_with(|c: char| c.is_ascii_digit());
            (!is_version).then(|| "is not a version".to_owned())
        }
    };
    if is_token && let Some(problem) = too_old(since::TOKENS) {
        let problem = format!(
            "token needs Ray {}, and rayVersion {problem}",
            since::TOKENS
        );
        report(
            "mode",
            problem,
            "Write the rayVersion of the image, or leave authOptions out.",
        );
    }
    if !by_kubernetes {
        return;
    }
    let mut kubernetes = |problem: String, fix| report("enableK8sTokenAuth", problem, fix);
    if subject.object.kind != Kind::RayCluster {
        kubernetes(
            format!("is not supported in a {}", subject.object.kind.name()),
            "Remove it, and use a token from a Secret.",
        );
    } else if !is_token {
        kubernetes(
            "needs mode: token".to_owned(),
            "Write authOptions.mode: token.",
        );
    } else if let Some(problem) = too_old(since::KUBERNETES_TOKENS) {
        kubernetes(
            format!(
                "needs Ray {}, and rayVersion {problem}",
                since::KUBERNETES_TOKENS
            ),
            "Use a later Ray, or a token from a Secret.",
        );
    }
    if options.filled("secretName").is_some() {
        kubernetes("excludes secretName".to_owned(), "Remove one of the two.");
    }
}
