//! RF205: custom resources in the start parameters that Ray cannot read.

use serde::de::IgnoredAny;

use crate::ray::start_params::{StartResourcesError, start_resources_object};
use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(205),
    name: "start-param-resources",
    mode: OwnMode::ByCase(
        "Enforce for a text that Ray cannot read, Warn for one that a shell takes apart",
    ),
    summary: "`rayStartParams.resources` that is not quoted JSON of whole numbers",
    page: include_str!("start_param_resources.md"),
    why: "Ray's autoscaler fails on it, and scales no group of the cluster.",
    cel: Cel::InPart(
        &[Check {
            each: Each::Group,
            // CEL cannot parse JSON. A fault is reported only where the text cannot be right, since a
            // policy may find nothing that the webhook does not find.
            faults: r#"s.auto && g.resources.size() == 0 && 'resources' in g.params && !(g.params['resources'].size() > 1
  && g.params['resources'].substring(1, g.params['resources'].size() - 1).replace('\\', '')
    .matches(r'^\s*\{\s*("[^"\x00-\x1f]*"\s*:\s*(-?0|[1-9][0-9]{0,18})\s*(,\s*"[^"\x00-\x1f]*"\s*:\s*(-?0|[1-9][0-9]{0,18})\s*)*)?\}\s*$'))
  ? ['.rayStartParams.resources is not JSON of whole numbers in quotes of its own'] : []"#,
            fix: r#"Write it like this: resources: "'{\"license\": 1}'"."#,
        }],
        "Commands of the author's own are not checked.",
    ),
    check,
};

const PARAM: &str = "resources";

/// Longer values are not repeated in a fix.
const SUGGESTED: usize = 200;

/// The start command that KubeRay generates, as a variable that a shell expands without reading the
/// quotes in it.
const EXPANDED: [&str; 2] = ["$KUBERAY_GEN_RAY_START_CMD", "${KUBERAY_GEN_RAY_START_CMD}"];

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    if subject.object.overwrites_commands() {
        findings.extend(subject.groups().filter_map(check_command));
    }
    for group in subject.autoscaled_groups() {
        // Ray reads only one of the two; RF206 reports both together.
        if group.resources.is_some() {
            continue;
        }
        let Some(text) = group.start_param(PARAM).and_then(Json::as_str) else {
            continue;
        };
        let path = group.start_param_path(PARAM);
        // Ray drops the first and the last character and all backslashes, as a shell takes quotes away, and asserts
        // that every amount is an integer (`_get_custom_resources`).
        let amounts = match start_resources_object(text) {
            Ok(amounts) => amounts,
            Err(error) => {
                let (problem, fix) = text_fault(text, &error);
                findings.push(RULE.finding(path, problem, fix).valued(shown_text(text)));
                continue;
            }
        };
        for (resource, amount) in &amounts {
            let fault = match amount {
                Value::Number(number) if number.as_i64().is_some_and(|n| n < 0) => "is negative",
                Value::Number(number) if number.is_i64() || number.is_u64() => continue,
                _ => "is not a whole number",
            };
            // The whole number of at least 0 that was probably intended.
            let number = match amount {
                Value::Number(number) => number.as_f64(),
                Value::String(text) => text.trim().parse::<f64>().ok(),
                _ => None,
            };
            let meant = match number {
                Some(number) if number > 0.0 && number < 1e15 => format!("{:.0}", number.ceil()),
                Some(_) => "0, or more".to_owned(),
                None => "1, or another whole number".to_owned(),
            };
            let finding = RULE.finding(
                path.clone().inside(resource),
                format!("{} {fault}", shown(amount)),
                format!("Write {}: {meant}.", shown_text(resource)),
            );
            findings.push(finding.valued(shown(amount)));
        }
    }
}

/// The finding about a group whose own command expands the start command of KubeRay.
fn check_command(group: &Group<'_>) -> Option<Finding> {
    // KubeRay passes the others by flags of their own (KubeRay, `updateRayStartParamsResources`).
    let is_custom = |resource: &str| {
        let name = resource.to_ascii_lowercase();
        !matches!(name.as_str(), "cpu" | "memory") && !name.ends_with("gpu")
    };
    let path = match (group.start_param(PARAM), group.resources) {
        (Some(_), _) => group.start_param_path(PARAM),
        (None, Some(map)) if map.keys().any(is_custom) => group.path().key("resources"),
        _ => return None,
    };
    let is_expanded = |word: &str| {
        let is_unquoted = |start: usize| !word[..start].ends_with(['"', '\'']);
        let mut starts = EXPANDED.iter().filter_map(|text| word.find(text));
        !word.contains("eval") && starts.any(is_unquoted)
    };
    if !group.command().any(is_expanded) {
        return None;
    }
    let problem = "is in quotes in KUBERAY_GEN_RAY_START_CMD, which the shell of the group's own command does not read";
    let fix = "Write eval \"$KUBERAY_GEN_RAY_START_CMD\", or $(KUBERAY_GEN_RAY_START_CMD), in the command.";
    let finding = RULE.finding(path, problem, fix);
    let why = "`ray start` ends on it, so no pod of the group joins the cluster.";
    Some(finding.because(why).in_mode(Mode::Warn))
}

/// The problem of a text that is no JSON object in quotes, and its fix.
fn text_fault(text: &str, error: &StartResourcesError) -> (String, String) {
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
    // The text may lack nothing but the quotes.
    let bare = text.trim_matches(['\'', '"', '`', ' ']).replace('\\', "");
    let meant = if bare.len() <= SUGGESTED && is_object(&bare) {
        bare
    } else {
        r#"{"license": 1}"#.to_owned()
    };
    let yaml = Value::String(format!("'{meant}'"));
    let fix = format!(
        "Write the JSON in quotes of its own, in YAML like this: resources: {yaml} (or remove it)."
    );
    (problem, fix)
}

fn is_object(text: &str) -> bool {
    // Nothing is parsed into a tree, which can be many times as large as the text.
    text.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok()
}
