//! RF112: in-place resize with version 1 of the autoscaler.

use crate::ray::cluster::V2_ENV;
use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(112),
    name: "ippr-needs-v2",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "`ray.io/ippr` with version 1 of the autoscaler",
    page: include_str!("autoscaler_version.md"),
    why: "Only version 2 of Ray's autoscaler resizes pods in place; version 1 ignores ray.io/ippr.",
    cel: Cel::InPart(
        &[Check {
            each: Each::Object,
            // A variable with `valueFrom` has a value that no policy can read, so it counts as unknown.
            faults: r#"!s.auto || s.object.kind == 'RayCronJob' || !s.groups.exists(g, '"' + g.name + '"' in s.keys) ? []
: (s.version == 'v1' ? [s.path + '.autoscalerOptions.version "v1" cannot resize pods in place'] : [])
+ (s.env.size() > 0 && !has(s.env[s.env.size() - 1].valueFrom) && !(s.env[s.env.size() - 1].?value.orValue('').lowerAscii() in ['1', 'true'])
  ? ['RAY_enable_autoscaler_v2 of the head switches version 2 of the autoscaler off'] : [])"#,
            fix: "Write autoscalerOptions.version: v2 and remove RAY_enable_autoscaler_v2.",
        }],
        PLAIN,
    ),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let Some(cluster) = subject.autoscaled() else {
        return;
    };
    if subject.resized_groups().next().is_none() {
        return;
    }
    // The autoscaler's container asks the head which version to run (Ray, `run_kuberay_autoscaler`), so either place
    // can choose version 1.
    if cluster.autoscaler_version() == Some(AutoscalerVersion::V1) {
        let path = cluster.option_path("version");
        let problem = "\"v1\" cannot resize pods in place";
        findings.push(
            RULE.finding(path, problem, "Write version: v2.")
                .valued("\"v1\"")
                .mended_by("v2"),
        );
    }
    let Some((head, container)) = cluster
        .head
        .as_ref()
        .and_then(|head| Some((head, head.ray_container?)))
    else {
        return;
    };
    let index = container.env_index(V2_ENV);
    let entry =
        index.and_then(|index| Some((index, container.spec.list("env").get(index)?.as_object()?)));
    let Some((index, entry)) = entry else {
        return;
    };
    // Ray reads everything but `1` and `true`, in any case of letters, as false. A value from elsewhere is
    // unknown.
    let is_elsewhere = entry.get("valueFrom").is_some_and(|from| !from.is_null());
    let value = entry.text("value");
    let is_on = value.is_some_and(|value| value == "1" || value.eq_ignore_ascii_case("true"));
    if is_elsewhere || is_on {
        return;
    }
    let path = head.ray_container_path().key("env").item(index, V2_ENV);
    let path = match value {
        Some(_) => path.key("value"),
        None => path,
    };
    let value = shown_text(value.unwrap_or_default());
    let finding = RULE.finding(
        path,
        format!("{value} switches version 2 of the autoscaler off"),
        format!("Remove {V2_ENV} and write autoscalerOptions.version: v2."),
    );
    findings.push(finding.valued(value));
}
