//! RF103: `ray.io/ippr` names a group that the object does not have.

use std::collections::HashSet;

use crate::finding::Finding;
use crate::policy::Mode;
use crate::ray::group::HEAD_NAME;
use crate::ray::ippr::GroupResizeLimits;
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::{Cel, Check, Each, Findings, OwnMode, PLAIN, Rule, Subject};
use crate::text::{nearest, shown_text};

/// RF103
pub static RULE: Rule = Rule {
    id: RuleId(103),
    name: "ippr-unknown-group",
    mode: OwnMode::Always(Mode::Warn),
    summary: "`ray.io/ippr` names a group that the cluster does not have",
    page: RulePage(include_str!("unknown_group.md")),
    why: "Ray silently ignores the entry, and the intended group never grows.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::InPart(
    &[Check {
        each: Each::Object,
        mode: Mode::Warn,
        faults: r#"!s.has ? [] : [s.groups.map(g, '"' + g.name + '"')].map(names, s.keys.filter(k, k != '"headgroup"' && !(k in names))
  .map(k, 'names a group that this cluster does not have: ' + k).join('\n'))"#,
        fix: "Ray ignores the entry; name one of the groups.",
    }],
    PLAIN,
);

/// So many are reported; an annotation has room for tens of thousands.
const MOST: usize = 100;

/// Names beyond these are not searched for the nearest one, which costs more than a lookup.
const SEARCHED: usize = 200;

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let listed = &subject.object.ippr.groups;
    let Some(cluster) = subject.cluster().filter(|_| !listed.is_empty()) else {
        return;
    };
    let names: Vec<&str> = cluster.groups().filter_map(|group| group.name).collect();
    let known: HashSet<&str> = names.iter().copied().chain([HEAD_NAME]).collect();
    listed
        .iter()
        .filter(|resize_limits| !known.contains(resize_limits.name.as_str()))
        .take(MOST)
        .for_each(|resize_limits| findings.add(finding(resize_limits, &names)));
}

fn finding(resize_limits: &GroupResizeLimits, names: &[&str]) -> Finding {
    let fix = match nearest(&resize_limits.name, names.iter().copied().take(SEARCHED)) {
        Some(meant) => format!(
            "Write {} if you mean that, or remove the entry.",
            shown_text(meant)
        ),
        None => format!(
            "Name one of the groups ({}), or remove the entry.",
            some_of(names)
        ),
    };
    RULE.finding(
        resize_limits.path(),
        format!(
            "names a group that this cluster does not have: {}",
            shown_text(&resize_limits.name)
        ),
        fix,
    )
}

/// The first few names, for people.
fn some_of(names: &[&str]) -> String {
    const FEW: usize = 5;
    let more = if names.len() > FEW { ", ..." } else { "" };
    let few: Vec<String> = names
        .iter()
        .take(FEW)
        .map(|name| shown_text(name))
        .collect();
    format!("{}{more}", few.join(", "))
}
