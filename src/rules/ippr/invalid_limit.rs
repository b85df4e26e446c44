//! RF104: an invalid resize limit or time limit in `ray.io/ippr`.

use crate::finding::Finding;
use crate::policy::Mode;
use crate::quantity::Quantity;
use crate::ray::Resource;
use crate::ray::ippr::{GroupResizeLimits, ResizeLimit, ResizeLimitFault};
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::{Cel, Check, Each, Findings, OwnMode, PLAIN, Rule, Subject};
use crate::text::shown_text;

/// RF104
pub static RULE: Rule = Rule {
    id: RuleId(104),
    name: "ippr-limit-invalid",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "a resize limit in `ray.io/ippr` that is not a sensible quantity, or a \
              `resize-timeout` not above 0",
    page: RulePage(include_str!("invalid_limit.md")),
    why: "Ray cannot read the quantity and stops autoscaling the whole cluster.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::InPart(
    &[Check {
        each: Each::Listed,
        mode: Mode::Enforce,
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
);

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    for (_, resize_limits) in subject.listed_groups() {
        for resource in Resource::ALL {
            let Some(limit) = resize_limits.limit(resource) else {
                continue;
            };
            if let Err(fault) = limit.check(resource) {
                findings.add(bad_limit(resize_limits, limit, resource, fault));
            }
        }
        if let Some(seconds) = resize_limits.resize_timeout.filter(|seconds| *seconds <= 0) {
            findings.add(bad_timeout(resize_limits, seconds));
        }
    }
}

fn bad_limit(
    resize_limits: &GroupResizeLimits,
    limit: &ResizeLimit,
    resource: Resource,
    fault: ResizeLimitFault,
) -> Finding {
    let text = shown_text(&limit.text);
    let sample = match resource {
        Resource::Cpu => "\"8\" or \"7500m\"",
        Resource::Memory => "\"32Gi\"",
    };
    let problem = match fault {
        ResizeLimitFault::Unreadable(error) => format!("{text} is not a quantity: {error}"),
        ResizeLimitFault::Zero => format!("{text} is zero"),
        ResizeLimitFault::Negative => format!("{text} is negative"),
        ResizeLimitFault::BeyondReason => format!(
            "{text} is more than any pod can have (at most {})",
            resource.say(resource.beyond_reason())
        ),
    };
    let fix = match meant(&limit.text, resource) {
        Some(meant) => format!("Write {meant:?} if you mean that."),
        None => format!(
            "Write the most {} that a pod may get, such as {sample}.",
            resource.title()
        ),
    };
    let finding = RULE
        .finding(resize_limits.key_path(resource.limit_key()), problem, fix)
        .valued(text);
    match fault {
        ResizeLimitFault::Unreadable(_) => finding,
        ResizeLimitFault::Zero | ResizeLimitFault::Negative => finding.because(
            "Ray takes it as the size to go to, so that growing in the other dimension would take \
             this one away; Kubernetes refuses that, and scaling stops.",
        ),
        ResizeLimitFault::BeyondReason => finding
            .because("No node can give it, so every resize fails, or Ray hangs while it reads it."),
    }
}

/// The intended quantity of `32GB`, `4gb` or `512MB`.
pub(in crate::rules) fn meant(text: &str, resource: Resource) -> Option<String> {
    let text = text.trim();
    let at = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(at);
    let letter = match unit.to_ascii_lowercase().as_str() {
        "kb" | "kib" | "k" | "ki" => "Ki",
        "mb" | "mib" | "mi" => "Mi",
        "gb" | "gib" | "g" | "gi" => "Gi",
        "tb" | "tib" | "t" | "ti" => "Ti",
        _ => return None,
    };
    let meant = format!("{}{letter}", number.trim());
    let quantity = Quantity::parse(&meant).ok()?;
    let fits = resource == Resource::Memory && quantity <= resource.beyond_reason();
    (fits && quantity > Quantity::ZERO).then_some(meant)
}

fn bad_timeout(resize_limits: &GroupResizeLimits, seconds: i64) -> Finding {
    RULE.finding(
        resize_limits.key_path("resize-timeout"),
        format!("{seconds} is not above 0"),
        "Write the seconds that a resize may take, such as 300.",
    )
    .because(
        "Every resize would count as timed out at once, and Ray never resizes a pod again after \
         that.",
    )
    .valued(seconds.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guesses_what_was_meant() {
        let memory = |text| meant(text, Resource::Memory);
        assert_eq!(memory("32GB").as_deref(), Some("32Gi"));
        assert_eq!(memory("512 mb").as_deref(), Some("512Mi"));
        assert_eq!(memory("eight"), None);
        assert_eq!(memory("-1GB"), None);
        assert_eq!(memory("9999TB"), None);
        assert_eq!(meant("32GB", Resource::Cpu), None);
    }
}
