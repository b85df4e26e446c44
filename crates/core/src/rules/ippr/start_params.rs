//! RF105: `num-cpus` or `memory` in the start parameters of a listed group.

use super::group_resources::fixed_size;
use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(105),
    name: "ippr-start-params",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "`num-cpus` or `memory` in `rayStartParams` of a group that grows in place",
    page: include_str!("start_params.md"),
    why: "Ray refuses the whole annotation because of it and stops autoscaling the cluster.",
    cel: Cel::InPart(
        &[Check {
            each: Each::Listed,
            faults: r#"['num-cpus', 'memory'].filter(k, k in g.params).map(k, '.rayStartParams.' + k + ' "' + string(g.params[k]) + '" fixes the size of a group that is to grow in place')"#,
            fix: "Remove it; Ray takes the size from the ray container's limits.",
        }],
        PLAIN,
    ),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for (group, _) in subject.listed_groups() {
        for key in ["num-cpus", "memory"] {
            // Ray raises ValueError for either while it reads the annotation, whatever the value
            // (`validate_and_set_ippr_specs`).
            if let Some(value) = group.start_param(key) {
                let path = group.start_param_path(key);
                findings.push(fixed_size(&RULE, group, path, key, value));
            }
        }
    }
}
