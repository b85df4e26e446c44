//! RF110: both resize limits equal the size.

use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(110),
    name: "ippr-nothing-to-gain",
    mode: OwnMode::Always(Mode::Warn),
    summary: "both resize limits in `ray.io/ippr` equal the size, so the group can never grow",
    page: include_str!("nothing_to_gain.md"),
    why: "The pods of this group can never grow, so listing it has no effect.",
    cel: Cel::InPart(
        &[Check {
            each: Each::Listed,
            // No large exponent may reach `quantity()`, which takes the API server minutes to parse.
            faults: r#"['cpu', 'memory'].all(r, isQuantity(l[r]) && g.limits[?r].or(g.requests[?r]).hasValue()
  && !'%s'.format([g.limits[?r].or(g.requests[?r]).value()]).matches('[eE][-+]?[0-9.]{3}')
  && isQuantity('%s'.format([g.limits[?r].or(g.requests[?r]).value()]))
  && quantity(l[r]).compareTo(quantity('%s'.format([g.limits[?r].or(g.requests[?r]).value()]))) == 0) ? [': both resize limits are what the pods start with'] : []"#,
            fix: "Raise max-cpu or max-memory, or remove the group from the annotation.",
        }],
        PLAIN,
    ),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for (group, resize_limits) in subject.listed_groups() {
        let container = group.ray_container;
        // Ray resizes a pod in which one of the two can grow (`IPPRStatus.can_resize_up`).
        let limit_that_is_the_size = |resource: Resource| {
            let size = container?.size(resource.name());
            let limit = resize_limits.amount(resource);
            limit.filter(|limit| Some(*limit) == size)
        };
        let (Some(cpu), Some(memory)) = (
            limit_that_is_the_size(Resource::Cpu),
            limit_that_is_the_size(Resource::Memory),
        ) else {
            continue;
        };
        let (cpu, memory) = (Resource::Cpu.say(cpu), Resource::Memory.say(memory));
        let finding = RULE.finding(
            resize_limits.path(),
            format!(
                "both resize limits equal the size that the pods start with: {cpu} and {memory}"
            ),
            format!(
                "Raise max-cpu or max-memory above that, or remove {} from the annotation.",
                group.title()
            ),
        );
        findings.push(finding.valued(format!("{cpu} and {memory}")));
    }
}
