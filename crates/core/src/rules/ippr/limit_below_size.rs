//! RF109: a resize limit below the size that the pods start with.

use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(109),
    name: "ippr-limit-below-size",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "a resize limit in `ray.io/ippr` below the size that the pods start with",
    page: include_str!("limit_below_size.md"),
    why: "Ray sends the pod to both resize limits at once, so that growing in the other dimension \
          would take away what the running work uses in this one.",
    cel: Cel::InPart(
        &[
            Check {
                each: Each::Listed,
                // No large exponent may reach `quantity()`, which takes the API server minutes to
                // parse; `l.cpu` and `l.memory` have been checked for one where they are read.
                faults: r#"isQuantity(l.cpu) && g.limits[?'cpu'].or(g.requests[?'cpu']).hasValue()
  ? ['%s'.format([g.limits[?'cpu'].or(g.requests[?'cpu']).value()])].filter(size, !size.matches('[eE][-+]?[0-9.]{3}') && isQuantity(size) && quantity(l.cpu).isGreaterThan(quantity('0')) && quantity(l.cpu).isLessThan(quantity(size)))
    .map(size, ': max-cpu ' + l.cpu + ' is below the ' + size + ' that the pods start with')
  : []"#,
                fix: "Write a resize limit that is at least the size.",
            },
            Check {
                each: Each::Listed,
                faults: r#"isQuantity(l.memory) && g.limits[?'memory'].or(g.requests[?'memory']).hasValue()
  ? ['%s'.format([g.limits[?'memory'].or(g.requests[?'memory']).value()])].filter(size, !size.matches('[eE][-+]?[0-9.]{3}') && isQuantity(size) && quantity(l.memory).isGreaterThan(quantity('0')) && quantity(l.memory).isLessThan(quantity(size)))
    .map(size, ': max-memory ' + l.memory + ' is below the ' + size + ' that the pods start with')
  : []"#,
                fix: "Write a resize limit that is at least the size.",
            },
        ],
        PLAIN,
    ),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for (group, resize_limits) in subject.listed_groups() {
        let Some(container) = group.ray_container else {
            continue;
        };
        for resource in Resource::ALL {
            // Ray resizes a pod while one dimension is below its resize limit, and then asks for both resize limits,
            // the lower one included (`IPPRStatus.can_resize_up`, `queue_resize_request`).
            let pair = resize_limits.amount(resource);
            let pair = pair.zip(container.size(resource.name()));
            let Some((limit, size)) = pair.filter(|(limit, size)| limit < size) else {
                continue;
            };
            let text = resource.show(size);
            let (limit, size) = (resource.say(limit), resource.say(size));
            let finding = RULE.finding(
                resize_limits.key_path(resource.limit_key()),
                format!("{limit} is below the {size} that the pods start with"),
                format!(
                    "Write {text:?} to keep the {} as it is, or more to let it grow.",
                    resource.title()
                ),
            );
            let finding = finding.valued(format!("resize limit {limit} < size {size}"));
            findings.push(finding.mended_by(text));
        }
    }
}
