//! RF205: custom resources in the start parameters that Ray cannot read.

use serde::de::IgnoredAny;
use serde_json::Value;

use crate::policy::Mode;
use crate::ray::Group;
use crate::ray::start_params::{StartResourcesError, start_resources_object};
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::{Cel, Check, Each, Findings, OwnMode, Rule, Subject};
use crate::text::{shown, shown_text};

/// RF205
pub static RULE: Rule = Rule {
    id: RuleId(205),
    name: "start-param-resources",
    mode: OwnMode::ByCase(
        "Enforce for a text that Ray cannot read, Warn for one that a shell takes apart",
    ),
    summary: "`rayStartParams.resources` that is not quoted JSON of whole numbers",
    page: RulePage(include_str!("start_param_resources.md")),
    why: "Ray's autoscaler fails on it, and scales no group of the cluster.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::InPart(
    &[Check {
        each: Each::Group,
        mode: Mode::Enforce,
        // CEL cannot parse JSON. A fault is reported only where the text cannot be right, since a
        // policy may find nothing that the webhook does not find.
        faults: r#"s.auto && g.resources.size() == 0 && 'resources' in g.params && !(g.params['resources'].size() > 1
  && g.params['resources'].substring(1, g.params['resources'].size() - 1).replace('\\', '')
    .matches(r'^\s*\{\s*("[^"\x00-\x1f]*"\s*:\s*(-?0|[1-9][0-9]{0,18})\s*(,\s*"[^"\x00-\x1f]*"\s*:\s*(-?0|[1-9][0-9]{0,18})\s*)*)?\}\s*$'))
  ? ['.rayStartParams.resources is not JSON of whole numbers in quotes of its own'] : []"#,
        fix: r#"Write it like this: resources: "'{\"license\": 1}'"."#,
    }],
    "Commands of the author's own are not checked.",
);

const PARAM: &str = "resources";

/// Longer values are not repeated in a fix.
const SUGGESTED: usize = 200;

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    for group in subject
        .groups()
        .filter(|_| subject.object.overwrites_commands())
    {
        check_command(group, findings);
    }
    for group in subject.autoscaled_groups() {
        // Ray reads only one of the two; RF206 reports both together.
        if group.resources().is_some() {
            continue;
        }
        let Some(text) = group.start_param(PARAM).and_then(Value::as_str) else {
            continue;
        };
        match start_resources_object(text) {
            Ok(amounts) => {
                for (resource, amount) in &amounts {
                    check_amount(group, resource, amount, findings);
                }
            }
            Err(error) => report_text(group, text, &error, findings),
        }
    }
}

/// The start command that KubeRay generates, as a variable that a shell expands without reading the
/// quotes in it.
const EXPANDED: [&str; 2] = ["$KUBERAY_GEN_RAY_START_CMD", "${KUBERAY_GEN_RAY_START_CMD}"];

fn check_command(group: &Group<'_>, findings: &mut Findings) {
    let resources = group.path().key("resources");
    let path = match (group.start_param(PARAM), group.resources()) {
        (Some(_), _) => group.start_param_path(PARAM),
        (None, Some(map)) if map.keys().any(|key| is_custom(key)) => resources,
        _ => return,
    };
    if !group.command().any(is_expanded) {
        return;
    }
    let problem = "is in quotes in KUBERAY_GEN_RAY_START_CMD, which the shell of the group's own command does not read";
    let fix = "Write eval \"$KUBERAY_GEN_RAY_START_CMD\", or $(KUBERAY_GEN_RAY_START_CMD), in the command.";
    let finding = RULE.finding(path, problem, fix);
    let why = "`ray start` ends on it, so no pod of the group joins the cluster.";
    findings.add(finding.because(why).in_mode(Mode::Warn));
}

/// Whether KubeRay passes it in `--resources` (KubeRay, `updateRayStartParamsResources`).
fn is_custom(resource: &str) -> bool {
    let name = resource.to_ascii_lowercase();
    !matches!(name.as_str(), "cpu" | "memory") && !name.ends_with("gpu")
}

fn is_expanded(word: &str) -> bool {
    let unquoted = |start: usize| !word[..start].ends_with(['"', '\'']);
    !word.contains("eval")
        && EXPANDED
            .iter()
            .any(|text| word.find(text).is_some_and(unquoted))
}

fn report_text(
    group: &Group<'_>,
    text: &str,
    error: &StartResourcesError,
    findings: &mut Findings,
) {
    let problem = match error {
        StartResourcesError::NotQuotedJson(_) if text.trim().is_empty() => {
            "\"\" is not a JSON object in quotes".to_owned()
        }
        StartResourcesError::NotQuotedJson(_) if is_object(text) => format!(
            "{} lacks the quotes around the JSON that are part of the value",
            shown_text(text)
        ),
        StartResourcesError::NotQuotedJson(reason) => format!(
            "{} is not JSON in quotes once its first and last character are dropped ({reason})",
            shown_text(text)
        ),
        _ => format!("{} is not a JSON object in quotes", shown_text(text)),
    };
    findings.add(
        RULE.finding(group.start_param_path(PARAM), problem, quoted(text))
            .valued(shown_text(text)),
    );
}

fn is_object(text: &str) -> bool {
    // Whether there is one is checked without parsing it into a tree, which can be many times as
    // large.
    text.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// What to write for a text that may lack nothing but the quotes.
fn quoted(text: &str) -> String {
    let bare = text.trim_matches(['\'', '"', '`', ' ']).replace('\\', "");
    let meant = if bare.len() <= SUGGESTED && is_object(&bare) {
        bare
    } else {
        r#"{"license": 1}"#.to_owned()
    };
    let yaml = Value::String(format!("'{meant}'"));
    format!(
        "Write the JSON in quotes of its own, in YAML like this: resources: {yaml} (or remove it)."
    )
}

fn check_amount(group: &Group<'_>, resource: &str, amount: &Value, findings: &mut Findings) {
    let fault = match amount {
        Value::Number(number) if number.as_i64().is_some_and(|n| n < 0) => "is negative",
        Value::Number(number) if number.is_i64() || number.is_u64() => return,
        _ => "is not a whole number",
    };
    findings.add(
        RULE.finding(
            group.start_param_path(PARAM).inside(resource),
            format!("{} {fault}", shown(amount)),
            format!("Write {}: {}.", shown_text(resource), meant(amount)),
        )
        .valued(shown(amount)),
    );
}

/// The whole number of at least 0 that was probably intended.
fn meant(amount: &Value) -> String {
    let number = match amount {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse::<f64>().ok(),
        _ => None,
    };
    match number {
        Some(number) if number > 0.0 && number < 1e15 => format!("{:.0}", number.ceil()),
        Some(_) => "0, or more".to_owned(),
        None => "1, or another whole number".to_owned(),
    }
}
