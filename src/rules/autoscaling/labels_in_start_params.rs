//! RF207: node labels in the start parameters.

use serde_json::Value;

use crate::policy::Mode;
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::{Cel, Check, Each, Findings, OwnMode, Rule, Subject};
use crate::text::shown;

/// RF207
pub static RULE: Rule = Rule {
    id: RuleId(207),
    name: "labels-in-start-params",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "`labels` in `rayStartParams` instead of the group's `labels`",
    page: RulePage(include_str!("labels_in_start_params.md")),
    why: "KubeRay stops reconciling the whole cluster because of it, and Ray's autoscaler does not \
          read labels from there.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::Covered(&[Check {
    each: Each::Group,
    mode: Mode::Enforce,
    faults: r#"'labels' in g.params ? ['.rayStartParams.labels "' + g.params['labels'] + '" stands where KubeRay allows no labels'] : []"#,
    fix: "Remove it and write the labels as a map in the group itself.",
}]);

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    for group in subject.groups() {
        let Some(value) = group.start_param("labels").filter(|v| !v.is_null()) else {
            continue;
        };
        findings.add(
            RULE.finding(
                group.start_param_path("labels"),
                format!("{} stands where KubeRay allows no labels", shown(value)),
                fix(value),
            )
            .valued(shown(value)),
        );
    }
}

/// The group's `labels` that say the same, if the text can be read.
fn fix(value: &Value) -> String {
    let pairs: Option<Vec<String>> = value
        .as_str()
        .filter(|text| !text.is_empty() && text.len() <= 200)
        .and_then(|text| text.split(',').map(pair).collect());
    match pairs {
        Some(pairs) => format!(
            "Remove it and write in the group itself: labels: {{{}}}.",
            pairs.join(", ")
        ),
        None => "Remove it and write the labels as a map in the group itself, like labels: \
                 {tier: \"spot\"}."
            .to_owned(),
    }
}

fn pair(text: &str) -> Option<String> {
    let (key, value) = text.split_once('=')?;
    Some(format!("{}: {:?}", key.trim(), value.trim()))
}
