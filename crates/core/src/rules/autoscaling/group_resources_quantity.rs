//! RF227: an invalid quantity in a group's `resources`.

use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(227),
    name: "group-resources-quantity",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "A value in a group's `resources` is not a quantity, or negative",
    page: include_str!("group_resources_quantity.md"),
    why: "Ray's autoscaler fails on it in every round, so nothing scales; KubeRay starts the pods \
          without that resource.",
    cel: Cel::Covered(&[Check {
        each: Each::Group,
        // No large exponent may reach `isQuantity()` or `quantity()`: the API server takes minutes over
        // one.
        faults: r#"g.resources.filter(k, g.resources[k].matches(r'[eE][-+]?[0-9.]{3}') || !isQuantity(g.resources[k]) || quantity(g.resources[k]).isLessThan(quantity('0')))
  .map(k, '.resources.' + k + ' "' + g.resources[k] + '" is not a quantity of at least 0')"#,
        fix: r#"Write it like CPU: "4" or memory: "16Gi"."#,
    }]),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for group in subject.groups() {
        for (key, value) in group.resources.unwrap_or_default().iter() {
            let example = if key.eq_ignore_ascii_case("memory") {
                format!("{key}: \"16Gi\"")
            } else {
                format!("{key}: \"4\"")
            };
            // The schema takes any string. KubeRay skips what it cannot parse (`updateRayStartParamsResources`), and
            // Ray fails on it (`parse_quantity`).
            let (problem, fix, why) = match (Quantity::from_json(value), value) {
                // The API server drops nulls.
                (_, Json::Null) => continue,
                (Err(error), Json::String(text)) => (
                    format!("{} is not a quantity: {error}", shown_text(text)),
                    format!("Write it like {example}."),
                    RULE.why,
                ),
                (Ok(amount), _) if amount.is_negative() => (
                    format!("{} is negative", shown(value)),
                    format!("Write {key}: \"0\" if a pod has none, or remove {key}."),
                    "Ray's autoscaler fails on it in every round, so nothing scales, and `ray \
                     start` refuses it.",
                ),
                (_, Json::String(_)) => continue,
                (_, other) => (
                    format!("{} is not a string", shown(other)),
                    format!("Write it in quotes, like {example}."),
                    "The API server refuses the object.",
                ),
            };
            let path = group.path().key("resources").key(key.to_owned());
            let finding = RULE.finding(path, problem, fix).because(why);
            findings.push(finding.valued(shown(value)));
        }
    }
}
