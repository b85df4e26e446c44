//! RF103: `ray.io/ippr` names a group that the object does not have.

use std::collections::HashSet;

use crate::ray::group::HEAD_NAME;
use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(103),
    name: "ippr-unknown-group",
    mode: OwnMode::Always(Mode::Warn),
    summary: "`ray.io/ippr` names a group that the cluster does not have",
    page: include_str!("unknown_group.md"),
    why: "Ray silently ignores the entry, and the intended group never grows.",
    cel: Cel::InPart(
        &[Check {
            each: Each::Object,
            faults: r#"!s.has ? [] : [s.groups.map(g, '"' + g.name + '"')].map(names, s.keys.filter(k, k != '"headgroup"' && !(k in names))
  .map(k, 'names a group that this cluster does not have: ' + k).join('\n'))"#,
            fix: "Ray ignores the entry; name one of the groups.",
        }],
        PLAIN,
    ),
    check,
};

/// The most that are reported; an annotation has room for tens of thousands.
const MOST: usize = 100;

/// Names beyond these are not searched for the nearest one, which costs more than a lookup.
const SEARCHED: usize = 200;

/// The most names of groups that a fix lists.
const FEW: usize = 5;

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let listed = &subject.object.ippr.groups;
    let Some(cluster) = subject.cluster().filter(|_| !listed.is_empty()) else {
        return;
    };
    let names: Vec<&str> = cluster.groups().filter_map(|group| group.name).collect();
    // Ray finds the head group by this name, although no field of the RayCluster has it.
    let valid_names: HashSet<&str> = names.iter().copied().chain([HEAD_NAME]).collect();
    let unknown = listed
        .iter()
        .filter(|resize_limits| !valid_names.contains(resize_limits.name.as_str()));
    for resize_limits in unknown.take(MOST) {
        let name = &resize_limits.name;
        let few: Vec<String> = names
            .iter()
            .take(FEW)
            .map(|name| shown_text(name))
            .collect();
        let more = if names.len() > FEW { ", ..." } else { "" };
        let fix = match nearest(name, names.iter().copied().take(SEARCHED)) {
            Some(meant) => format!(
                "Write {} if you mean that, or remove the entry.",
                shown_text(meant)
            ),
            None => format!(
                "Name one of the groups ({}{more}), or remove the entry.",
                few.join(", ")
            ),
        };
        let problem = format!(
            "names a group that this cluster does not have: {}",
            shown_text(name)
        );
        findings.push(RULE.finding(resize_limits.path(), problem, fix));
    }
}
