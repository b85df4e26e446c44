//! RF227: an invalid quantity in a group's `resources`.

use serde_json::Value;

use crate::finding::Finding;
use crate::policy::Mode;
use crate::quantity::Quantity;
use crate::ray::Group;
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::{Cel, Check, Each, Findings, OwnMode, Rule, Subject};
use crate::text::{shown, shown_text};

/// RF227
pub static RULE: Rule = Rule {
    id: RuleId(227),
    name: "group-resources-quantity",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "A value in a group's `resources` is not a quantity, or negative",
    page: RulePage(include_str!("group_resources_quantity.md")),
    why: "Ray's autoscaler fails on it in every round, so nothing scales; KubeRay starts the pods \
          without that resource.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::Covered(&[Check {
    each: Each::Group,
    mode: Mode::Enforce,
    // No large exponent may reach `isQuantity()` or `quantity()`: the API server takes minutes over
    // one.
    faults: r#"g.resources.filter(k, g.resources[k].matches(r'[eE][-+]?[0-9.]{3}') || !isQuantity(g.resources[k]) || quantity(g.resources[k]).isLessThan(quantity('0')))
  .map(k, '.resources.' + k + ' "' + g.resources[k] + '" is not a quantity of at least 0')"#,
    fix: r#"Write it like CPU: "4" or memory: "16Gi"."#,
}]);

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    for group in subject.groups() {
        for (key, value) in group.resources().into_iter().flatten() {
            if let Some(finding) = finding(group, key, value) {
                findings.add(finding);
            }
        }
    }
}

fn finding(group: &Group<'_>, key: &str, value: &Value) -> Option<Finding> {
    let path = || group.path().key("resources").key(key.to_owned());
    let found = match (Quantity::from_json(value), value) {
        // The API server drops nulls.
        (_, Value::Null) => return None,
        (Err(error), Value::String(text)) => RULE.finding(
            path(),
            format!("{} is not a quantity: {error}", shown_text(text)),
            format!("Write it like {}.", example(key)),
        ),
        (Ok(amount), _) if amount.is_negative() => RULE
            .finding(
                path(),
                format!("{} is negative", shown(value)),
                format!("Write {key}: \"0\" if a pod has none, or remove {key}."),
            )
            .because(
                "Ray's autoscaler fails on it in every round, so nothing scales, and `ray start` \
                 refuses it.",
            ),
        (_, Value::String(_)) => return None,
        (_, other) => RULE
            .finding(
                path(),
                format!("{} is not a string", shown(other)),
                format!("Write it in quotes, like {}.", example(key)),
            )
            .because("The API server refuses the object."),
    };
    Some(found.valued(shown(value)))
}

/// A right value for a resource of that name.
fn example(key: &str) -> String {
    let amount = if key.eq_ignore_ascii_case("memory") {
        "16Gi"
    } else {
        "4"
    };
    format!("{key}: \"{amount}\"")
}
