//! RF102: a key in `ray.io/ippr` that Ray does not know.

use crate::ray::ippr::{GROUP_KEYS, IpprProblem};
use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(102),
    name: "ippr-unknown-key",
    mode: OwnMode::Always(Mode::Warn),
    summary: "a key in `ray.io/ippr` that Ray does not know",
    page: include_str!("unknown_key.md"),
    why: "Ray silently ignores the key.",
    cel: Cel::InPart(
        &[Check {
            each: Each::Object,
            faults: r#"s.entries.map(e, e.substring(e.indexOf('{') + 1).findAll(r'"[^"\\]*"\s*:\s*("[^"\\]*"|[-+.0-9a-zA-Z]+)')
  .filter(p, !p.matches(r'^"(max-cpu|max-memory|resize-timeout)"')).map(p, p + ' in ' + e.find('^"[^"]*"')).join('\n'))"#,
            fix: "Ray ignores it; remove it, or write max-cpu, max-memory or resize-timeout.",
        }],
        "Keys beside `groups` are not checked, nor is an annotation in which a group contains an \
     object, a list or an escaped character.",
    ),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let ippr = &subject.object.ippr;
    // Then RF101 has said that all of these keys do nothing.
    let rootless = ippr.problems.contains(&IpprProblem::NoGroups);
    for place in &ippr.unknown_keys {
        let valid_keys: &[&str] = match place.parents.is_empty() {
            true if rootless => continue,
            true => &["groups"],
            false => &GROUP_KEYS,
        };
        // Ray's schema allows further keys at every level, so a misspelt one is accepted like any other
        // (`IPPRSpecsSchema`).
        let fix = match nearest(&place.key, valid_keys.iter().copied()) {
            Some(meant) => format!("Write {meant:?} if you mean that, or remove it."),
            None => format!(
                "Remove it; the keys that Ray knows here: {}.",
                valid_keys.join(", ")
            ),
        };
        let problem = format!("is not a key that Ray knows: {}", shown_text(&place.key));
        findings.push(RULE.finding(place.path(), problem, fix));
    }
}
