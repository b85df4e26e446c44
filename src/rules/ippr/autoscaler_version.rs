//! RF112: in-place resize with version 1 of the autoscaler.

use crate::finding::Finding;
use crate::policy::Mode;
use crate::ray::cluster::V2_ENV;
use crate::ray::{AutoscalerVersion, Cluster, Group, list_at, text_at};
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::{Cel, Check, Each, Findings, OwnMode, PLAIN, Rule, Subject};
use crate::text::shown_text;

/// RF112
pub static RULE: Rule = Rule {
    id: RuleId(112),
    name: "ippr-needs-v2",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "`ray.io/ippr` with version 1 of the autoscaler",
    page: RulePage(include_str!("autoscaler_version.md")),
    why: "Only version 2 of Ray's autoscaler resizes pods in place; version 1 ignores ray.io/ippr.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::InPart(
    &[Check {
        each: Each::Object,
        mode: Mode::Enforce,
        // A variable with `valueFrom` has a value that no policy can read, so it counts as unknown.
        faults: r#"!s.auto || s.object.kind == 'RayCronJob' || !s.groups.exists(g, '"' + g.name + '"' in s.keys) ? []
: (s.version == 'v1' ? [s.path + '.autoscalerOptions.version "v1" cannot resize pods in place'] : [])
+ (s.env.size() > 0 && !has(s.env[s.env.size() - 1].valueFrom) && !(s.env[s.env.size() - 1].?value.orValue('').lowerAscii() in ['1', 'true'])
  ? ['RAY_enable_autoscaler_v2 of the head switches version 2 of the autoscaler off'] : [])"#,
        fix: "Write autoscalerOptions.version: v2 and remove RAY_enable_autoscaler_v2.",
    }],
    PLAIN,
);

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let Some(cluster) = subject.autoscaled() else {
        return;
    };
    if subject.resized_groups().next().is_none() {
        return;
    }
    if cluster.autoscaler_version() == Some(AutoscalerVersion::V1) {
        findings.add(v1_field(cluster));
    }
    if let Some(head) = &cluster.head {
        findings_of_env(head, findings);
    }
}

fn v1_field(cluster: &Cluster<'_>) -> Finding {
    RULE.finding(
        cluster.option_path("version"),
        "\"v1\" cannot resize pods in place",
        "Write version: v2.",
    )
    .valued("\"v1\"")
}

fn findings_of_env(head: &Group<'_>, findings: &mut Findings) {
    let Some((index, value)) = switched_off(head) else {
        return;
    };
    let entry = head.ray_container_path().key("env").item(index, V2_ENV);
    let path = match value {
        Some(_) => entry.key("value"),
        None => entry,
    };
    let value = value.unwrap_or_default();
    let finding = RULE.finding(
        path,
        format!(
            "{} switches version 2 of the autoscaler off",
            shown_text(value)
        ),
        format!("Remove {V2_ENV} and write autoscalerOptions.version: v2."),
    );
    findings.add(finding.valued(shown_text(value)));
}

/// Position and value of the variable, where Ray takes the value for no: everything but `1` and
/// `true`, in any case of letters. Unknown where the value comes from elsewhere.
fn switched_off<'a>(head: &Group<'a>) -> Option<(usize, Option<&'a str>)> {
    let container = head.ray_container()?;
    let index = container.env_index(V2_ENV)?;
    let entry = list_at(container.spec, "env").get(index)?.as_object()?;
    let elsewhere = entry.get("valueFrom").is_some_and(|from| !from.is_null());
    let value = text_at(entry, "value");
    let on = value.is_some_and(|value| value == "1" || value.eq_ignore_ascii_case("true"));
    (!elsewhere && !on).then_some((index, value))
}
