//! RF105: `num-cpus` or `memory` in the start parameters of a listed group.

use crate::policy::Mode;
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::{Cel, Check, Each, Findings, OwnMode, PLAIN, Rule, Subject};
use crate::text::shown;

/// RF105
pub static RULE: Rule = Rule {
    id: RuleId(105),
    name: "ippr-start-params",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "`num-cpus` or `memory` in `rayStartParams` of a group that grows in place",
    page: RulePage(include_str!("start_params.md")),
    why: "Ray refuses the whole annotation because of it and stops autoscaling the cluster.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::InPart(
    &[Check {
        each: Each::Listed,
        mode: Mode::Enforce,
        faults: r#"['num-cpus', 'memory'].filter(k, k in g.params).map(k, '.rayStartParams.' + k + ' "' + string(g.params[k]) + '" fixes the size of a group that is to grow in place')"#,
        fix: "Remove it; Ray takes the size from the ray container's limits.",
    }],
    PLAIN,
);

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    for (group, _) in subject.listed_groups() {
        for key in ["num-cpus", "memory"] {
            let Some(value) = group.start_param(key) else {
                continue;
            };
            findings.add(
                RULE.finding(
                    group.start_param_path(key),
                    format!(
                        "{} fixes the size of a group that is to grow in place",
                        shown(value)
                    ),
                    format!(
                        "Remove {key}; Ray takes the size from the ray container's limits. Or \
                         remove {} from the ray.io/ippr annotation.",
                        group.title(),
                    ),
                )
                .valued(shown(value)),
            );
        }
    }
}
