//! RF104: an invalid resize limit or time limit in `ray.io/ippr`.

use crate::ray::ippr::{GroupResizeLimits, ResizeLimitFault};
use crate::rules::prelude::*;
use crate::rules::shared::meant;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(104),
    name: "ippr-limit-invalid",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "a resize limit in `ray.io/ippr` that is not a sensible quantity, or a \
              `resize-timeout` not above 0",
    page: include_str!("invalid_limit.md"),
    why: "Ray cannot read the quantity and stops autoscaling the whole cluster.",
    cel: Cel::InPart(
        &[Check {
            each: Each::Listed,
            faults: r#"(l.cpu == 'none' ? [] : !isQuantity(l.cpu) ? [': max-cpu ' + l.cpu + ' is not a quantity']
  : !quantity(l.cpu).isGreaterThan(quantity('0')) ? [': max-cpu ' + l.cpu + ' is not above 0']
  : quantity(l.cpu).isGreaterThan(quantity('100k')) ? [': max-cpu ' + l.cpu + ' is more than any pod can have'] : [])
+ (l.memory == 'none' ? [] : !isQuantity(l.memory) ? [': max-memory ' + l.memory + ' is not a quantity']
  : !quantity(l.memory).isGreaterThan(quantity('0')) ? [': max-memory ' + l.memory + ' is not above 0']
  : quantity(l.memory).isGreaterThan(quantity('1Pi')) ? [': max-memory ' + l.memory + ' is more than any pod can have'] : [])
+ (l.entry.matches(r'"resize-timeout"\s*:\s*(-|0+(\.0*)?\s*[,}])') ? [': resize-timeout is not above 0'] : [])"#,
            fix: r#"Write amounts that a pod can have, such as "8" and "32Gi", and the seconds that a resize may take, such as 300."#,
        }],
        PLAIN,
    ),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for (_, resize_limits) in subject.listed_groups() {
        let limits = Resource::ALL.into_iter();
        findings.extend(limits.filter_map(|resource| check_limit(resize_limits, resource)));
        // Ray counts a resize as failed once this time is over, and never resizes that pod again
        // (`_handle_failed_or_timed_out_ippr`).
        if let Some(seconds) = resize_limits.resize_timeout.filter(|seconds| *seconds <= 0) {
            let finding = RULE.finding(
                resize_limits.key_path("resize-timeout"),
                format!("{seconds} is not above 0"),
                "Write the seconds that a resize may take, such as 300.",
            );
            let why = "Every resize would count as timed out at once, and Ray never resizes a pod again after \
                       that.";
            findings.push(finding.because(why).valued(seconds.to_string()));
        }
    }
}

fn check_limit(resize_limits: &GroupResizeLimits, resource: Resource) -> Option<Finding> {
    let limit = resize_limits.limit(resource)?;
    let fault = limit.check(resource).err()?;
    let text = shown_text(&limit.text);
    let backwards = "Ray takes it as the size to go to, so that growing in the other dimension would take this one \
                     away; Kubernetes refuses that, and scaling stops.";
    // Ray's schema of the annotation checks no ranges: `parse_quantity` fails on a text, does not come back from a
    // large exponent, and every other amount is taken as a size to go to.
    let (problem, why) = match fault {
        ResizeLimitFault::Unreadable(error) => {
            (format!("{text} is not a quantity: {error}"), RULE.why)
        }
        ResizeLimitFault::Zero => (format!("{text} is zero"), backwards),
        ResizeLimitFault::Negative => (format!("{text} is negative"), backwards),
        ResizeLimitFault::BeyondReason => (
            format!(
                "{text} is more than any pod can have (at most {})",
                resource.say(resource.beyond_reason())
            ),
            "No node can give it, so every resize fails, or Ray hangs while it reads it.",
        ),
    };
    let fix = match (meant(&limit.text, resource), resource) {
        (Some(meant), _) => format!("Write {meant:?} if you mean that."),
        (None, Resource::Cpu) => {
            "Write the most CPU that a pod may get, such as \"8\" or \"7500m\".".to_owned()
        }
        (None, Resource::Memory) => {
            "Write the most memory that a pod may get, such as \"32Gi\".".to_owned()
        }
    };
    let path = resize_limits.key_path(resource.limit_key());
    Some(RULE.finding(path, problem, fix).because(why).valued(text))
}
