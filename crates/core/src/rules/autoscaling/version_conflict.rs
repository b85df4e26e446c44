//! RF209: the autoscaler's version chosen twice, or chosen without an autoscaler.

use crate::ray::cluster::V2_ENV;
use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(209),
    name: "version-conflict",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "`RAY_enable_autoscaler_v2` together with `autoscalerOptions.version`, or with \
              autoscaling off",
    page: include_str!("version_conflict.md"),
    why: "KubeRay requires that the autoscaler's version is set in one place only, and only where \
          there is an autoscaler; otherwise it stops reconciling the whole cluster.",
    cel: Cel::Covered(&[Check {
        each: Each::Object,
        // In Kubernetes the last entry of a name is the one that holds.
        faults: r#"s.env.size() == 0 ? []
: s.auto ? (has(s.options.version) ? ['RAY_enable_autoscaler_v2 of the head is set beside autoscalerOptions.version ' + s.version] : [])
: s.env[s.env.size() - 1].?value.orValue('') in ['1', 'true'] ? ['RAY_enable_autoscaler_v2 of the head asks for autoscaler v2 while enableInTreeAutoscaling is not true'] : []"#,
        fix: "Remove RAY_enable_autoscaler_v2; autoscalerOptions.version already sets the version.",
    }]),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let Some((cluster, env)) = subject.cluster().and_then(|c| Some((c, c.v2_env()?))) else {
        return;
    };
    let head = cluster.head.as_ref();
    let index = head.and_then(|head| head.ray_container?.env_index(V2_ENV));
    let path = head
        .map_or_else(|| cluster.path(), Group::ray_container_path)
        .key("env")
        .item(index.unwrap_or_default(), V2_ENV);
    let env = shown_text(env);
    if !cluster.autoscaling() {
        if cluster.v2_by_env() {
            let finding = RULE.finding(
                path,
                format!("{env} asks for autoscaler v2 while enableInTreeAutoscaling is not true"),
                format!(
                    "Remove {V2_ENV}; or, to have the cluster scaled, set enableInTreeAutoscaling: \
                     true and autoscalerOptions.version: v2 in its place."
                ),
            );
            findings.push(finding.valued(env));
        }
        return;
    }
    let version = cluster.autoscaler_option("version");
    let Some(version) = version.filter(|version| !version.is_null()).map(shown) else {
        return;
    };
    // KubeRay refuses both together, also where they agree (`ValidateRayClusterSpec`).
    let is_same =
        cluster.v2_by_env() && cluster.autoscaler_version() == Some(AutoscalerVersion::V2);
    let fix = if is_same {
        format!("Remove {V2_ENV}; autoscalerOptions.version: v2 says the same.")
    } else {
        format!("Remove {V2_ENV} and write the intended version in autoscalerOptions.version.")
    };
    let problem = format!("is set together with autoscalerOptions.version, which is {version}");
    let finding = RULE.finding(path, problem, fix);
    let finding = finding.valued(format!("env {env}, version {version}"));
    findings.push(if is_same {
        finding.mended_by_removal()
    } else {
        finding
    });
}
