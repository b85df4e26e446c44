//! RF214: a head that runs tasks.

use serde_json::Value;

use crate::finding::Finding;
use crate::policy::Mode;
use crate::quantity::Quantity;
use crate::ray::Group;
use crate::ray::start_params::start_integer;
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::{Cel, Check, Each, Findings, OwnMode, Rule, Subject};
use crate::text::shown;

/// RF214
pub static RULE: Rule = Rule {
    id: RuleId(214),
    name: "head-takes-work",
    mode: OwnMode::Always(Mode::Audit),
    summary: "A head group without `num-cpus: \"0\"`",
    page: RulePage(include_str!("head_takes_work.md")),
    why: "Tasks and actors are scheduled on the head, and one that uses too much memory brings the \
          whole cluster down.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::Covered(&[Check {
    each: Each::Head,
    mode: Mode::Audit,
    // CEL cannot parse the annotation, so a mention of the head group in it counts as an entry. No
    // large exponent may reach `quantity()`, which takes the API server minutes to parse.
    faults: r#"!s.auto || s.ippr.contains('"headgroup"') ? []
: g.resources.size() > 0 && g.resources.exists(k, k.lowerAscii() == 'cpu')
? (g.resources.exists(k, k.lowerAscii() == 'cpu' && !g.resources[k].matches('[eE][-+]?[0-9.]{3}') && isQuantity(g.resources[k]) && quantity(g.resources[k]).compareTo(quantity('0')) == 0) ? [] : ['.resources lets tasks run on the head'])
: 'num-cpus' in g.params
? (g.params['num-cpus'].matches(r'^\s*[+]?[0_]*[1-9][0-9_]*\s*$') || g.resources.size() > 0 && !g.params['num-cpus'].matches(r'^\s*[-+]?0+(_0+)*\s*$') ? ['.rayStartParams.num-cpus "' + g.params['num-cpus'] + '" lets tasks run on the head'] : [])
: ['.rayStartParams.num-cpus is absent, so tasks run on the head too']"#,
    fix: r#"Write num-cpus: "0" in the rayStartParams of the head group."#,
}]);

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let Some(head) = subject.autoscaled().and_then(|c| c.head.as_ref()) else {
        return;
    };
    if head
        .name
        .is_some_and(|name| subject.object.ippr.lists(name))
    {
        // Neither field may be set in a group that grows in place (RF105, RF106).
        return;
    }
    let finding = match head.resources() {
        Some(_) => by_resources(head),
        None => by_start_params(head),
    };
    if let Some(finding) = finding {
        findings.add(finding);
    }
}

/// What the head's `resources` say.
fn by_resources(head: &Group<'_>) -> Option<Finding> {
    let resources = head.resources()?;
    let path = head.path().key("resources");
    let entry = resources
        .iter()
        // KubeRay reads the key in any case of letters.
        .find(|(key, _)| key.eq_ignore_ascii_case("cpu"));
    let fix = "Write CPU: \"0\" in the head group's resources.";
    match entry {
        Some((_, cpu)) if Quantity::from_json(cpu).is_ok_and(Quantity::is_zero) => None,
        Some((key, cpu)) => Some(
            RULE.finding(path.key(key.clone()), takes(cpu), fix)
                .valued(shown(cpu)),
        ),
        // RF206 reports `num-cpus` beside `resources`.
        None if starts_without_cpus(head) => None,
        None => Some(RULE.finding(path.key("CPU"), ABSENT, fix)),
    }
}

fn by_start_params(head: &Group<'_>) -> Option<Finding> {
    let fix = "Write num-cpus: \"0\" in the head group's rayStartParams.";
    match head.start_param("num-cpus").filter(|v| !v.is_null()) {
        // RF204 reports values that are not counts.
        Some(cpus) if start_integer(cpus).is_none_or(|count| count <= 0) => None,
        Some(cpus) => Some(
            RULE.finding(head.start_param_path("num-cpus"), takes(cpus), fix)
                .valued(shown(cpus)),
        ),
        None if head.start_params().is_some() => {
            Some(RULE.finding(head.start_param_path("num-cpus"), ABSENT, fix))
        }
        None => Some(RULE.finding(head.path().key("rayStartParams"), ABSENT, fix)),
    }
}

const ABSENT: &str = "is absent, so tasks run on the head too";

fn takes(cpus: &Value) -> String {
    format!("{} lets tasks run on the head", shown(cpus))
}

fn starts_without_cpus(head: &Group<'_>) -> bool {
    head.start_param("num-cpus").and_then(start_integer) == Some(0)
}
