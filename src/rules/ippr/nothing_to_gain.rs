//! RF110: both resize limits equal the size.

use crate::finding::Finding;
use crate::policy::Mode;
use crate::quantity::Quantity;
use crate::ray::ippr::GroupResizeLimits;
use crate::ray::{Group, Resource};
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::{Cel, Check, Each, Findings, OwnMode, PLAIN, Rule, Subject};

/// RF110
pub static RULE: Rule = Rule {
    id: RuleId(110),
    name: "ippr-nothing-to-gain",
    mode: OwnMode::Always(Mode::Warn),
    summary: "both resize limits in `ray.io/ippr` equal the size, so the group can never grow",
    page: RulePage(include_str!("nothing_to_gain.md")),
    why: "The pods of this group can never grow, so listing it has no effect.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::InPart(
    &[Check {
        each: Each::Listed,
        mode: Mode::Warn,
        // No large exponent may reach `quantity()`, which takes the API server minutes to parse.
        faults: r#"['cpu', 'memory'].all(r, isQuantity(l[r]) && g.limits[?r].or(g.requests[?r]).hasValue()
  && !'%s'.format([g.limits[?r].or(g.requests[?r]).value()]).matches('[eE][-+]?[0-9.]{3}')
  && isQuantity('%s'.format([g.limits[?r].or(g.requests[?r]).value()]))
  && quantity(l[r]).compareTo(quantity('%s'.format([g.limits[?r].or(g.requests[?r]).value()]))) == 0) ? [': both resize limits are what the pods start with'] : []"#,
        fix: "Raise max-cpu or max-memory, or remove the group from the annotation.",
    }],
    PLAIN,
);

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    for (group, resize_limits) in subject.listed_groups() {
        let cpu = limit_that_is_the_size(group, resize_limits, Resource::Cpu);
        let memory = limit_that_is_the_size(group, resize_limits, Resource::Memory);
        if let Some((cpu, memory)) = cpu.zip(memory) {
            findings.add(finding(group, resize_limits, cpu, memory));
        }
    }
}

fn limit_that_is_the_size(
    group: &Group<'_>,
    resize_limits: &GroupResizeLimits,
    resource: Resource,
) -> Option<Quantity> {
    let size = group.ray_container()?.size(resource.name());
    resize_limits
        .amount(resource)
        .filter(|limit| Some(*limit) == size)
}

fn finding(
    group: &Group<'_>,
    resize_limits: &GroupResizeLimits,
    cpu: Quantity,
    memory: Quantity,
) -> Finding {
    let size = format!(
        "{} and {}",
        Resource::Cpu.say(cpu),
        Resource::Memory.say(memory)
    );
    RULE.finding(
        resize_limits.path(),
        format!("both resize limits equal the size that the pods start with: {size}"),
        format!(
            "Raise max-cpu or max-memory above that, or remove {} from the annotation.",
            group.title()
        ),
    )
    .valued(size)
}
