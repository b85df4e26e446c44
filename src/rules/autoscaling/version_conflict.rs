//! RF209: the autoscaler's version chosen twice, or chosen without an autoscaler.

use crate::finding::Finding;
use crate::path::FieldPath;
use crate::policy::Mode;
use crate::ray::cluster::V2_ENV;
use crate::ray::{AutoscalerVersion, Cluster, Group};
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::{Cel, Check, Each, Findings, OwnMode, Rule, Subject};
use crate::text::{shown, shown_text};

/// RF209
pub static RULE: Rule = Rule {
    id: RuleId(209),
    name: "version-conflict",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "`RAY_enable_autoscaler_v2` together with `autoscalerOptions.version`, or with \
              autoscaling off",
    page: RulePage(include_str!("version_conflict.md")),
    why: "KubeRay requires that the autoscaler's version is set in one place only, and only where \
          there is an autoscaler; otherwise it stops reconciling the whole cluster.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::Covered(&[Check {
    each: Each::Object,
    mode: Mode::Enforce,
    // In Kubernetes the last entry of a name is the one that holds.
    faults: r#"s.env.size() == 0 ? []
: s.auto ? (has(s.options.version) ? ['RAY_enable_autoscaler_v2 of the head is set beside autoscalerOptions.version ' + s.version] : [])
: s.env[s.env.size() - 1].?value.orValue('') in ['1', 'true'] ? ['RAY_enable_autoscaler_v2 of the head asks for autoscaler v2 while enableInTreeAutoscaling is not true'] : []"#,
    fix: "Remove RAY_enable_autoscaler_v2; autoscalerOptions.version already sets the version.",
}]);

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let Some((cluster, env)) = subject.cluster().and_then(|c| Some((c, c.v2_env()?))) else {
        return;
    };
    if !cluster.autoscaling() {
        if cluster.v2_by_env() {
            findings.add(without_autoscaling(cluster, env));
        }
    } else if let Some(version) = cluster
        .autoscaler_option("version")
        .filter(|v| !v.is_null())
    {
        findings.add(twice(cluster, env, &shown(version)));
    }
}

fn without_autoscaling(cluster: &Cluster<'_>, env: &str) -> Finding {
    RULE.finding(
        env_path(cluster),
        format!(
            "{} asks for autoscaler v2 while enableInTreeAutoscaling is not true",
            shown_text(env)
        ),
        format!(
            "Remove {V2_ENV}; or, to have the cluster scaled, set enableInTreeAutoscaling: true \
             and autoscalerOptions.version: v2 in its place."
        ),
    )
    .valued(shown_text(env))
}

fn twice(cluster: &Cluster<'_>, env: &str, version: &str) -> Finding {
    let same = cluster.v2_by_env() && cluster.autoscaler_version() == Some(AutoscalerVersion::V2);
    let fix = if same {
        format!("Remove {V2_ENV}; autoscalerOptions.version: v2 says the same.")
    } else {
        format!("Remove {V2_ENV} and write the intended version in autoscalerOptions.version.")
    };
    RULE.finding(
        env_path(cluster),
        format!("is set together with autoscalerOptions.version, which is {version}"),
        fix,
    )
    .valued(format!("env {}, version {version}", shown_text(env)))
}

fn env_path(cluster: &Cluster<'_>) -> FieldPath {
    let head = cluster.head.as_ref();
    let index = head
        .and_then(|head| head.ray_container()?.env_index(V2_ENV))
        .unwrap_or_default();
    head.map_or_else(|| cluster.path(), Group::ray_container_path)
        .key("env")
        .item(index, V2_ENV)
}
