//! RF215: `num-gpus` that differs from the GPUs that the pod has.

use serde_json::Value;

use crate::policy::Mode;
use crate::ray::start_params::start_integer;
use crate::ray::{Container, Group, list_at, object_at};
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::{Cel, Check, Each, Findings, OwnMode, Rule, Subject};
use crate::text::shown;

/// RF215
pub static RULE: Rule = Rule {
    id: RuleId(215),
    name: "gpu-mismatch",
    mode: OwnMode::Always(Mode::Warn),
    summary: "`num-gpus` differs from the GPUs in the ray container's limits",
    page: RulePage(include_str!("gpu_mismatch.md")),
    why: "Ray trusts num-gpus: if it is too high, tasks find no GPU; if it is too low, GPUs stay \
          idle.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::InPart(
    &[Check {
        each: Each::Group,
        mode: Mode::Warn,
        // A map has no order in CEL, and Ray counts the first kind of GPU, so that several kinds
        // are passed over. No large exponent may reach `quantity()`, which takes the API server
        // minutes to parse.
        faults: r#"!s.auto || g.containers.size() == 0 || 'GPU' in g.resources || !g.params[?'num-gpus'].orValue('').matches('^[0-9]{1,9}$')
  || g.limits.exists(k, k.contains('gpu') && !k.endsWith('gpu') || k.startsWith('nvidia.com/mig-'))
  || g.limits.exists(k, k.endsWith('gpu') && string(g.limits[k]).matches('[eE][-+]?[0-9.]{3}'))
  || has(g.containers[0].?resources.orValue({}).claims) ? []
: [g.limits.filter(k, k.endsWith('gpu') && quantity(string(g.limits[k])).isGreaterThan(quantity('0')))].map(gpus,
  gpus.size() > 1 || (gpus.size() == 1 ? quantity(string(g.limits[gpus[0]])).compareTo(quantity(g.params['num-gpus'])) == 0 : int(g.params['num-gpus']) == 0)
  ? '' : '.rayStartParams.num-gpus "' + g.params['num-gpus'] + '" is not what the limits of the ray container give it')"#,
        fix: "Remove num-gpus, and Ray takes the number from the limits.",
    }],
    "Slices of GPUs (`nvidia.com/mig-..`), several kinds of GPUs in one container, and numbers not \
     written in digits alone are not checked.",
);

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    for group in subject.autoscaled_groups() {
        let Some(value) = group.start_param("num-gpus") else {
            continue;
        };
        // RF204 reports values that are not whole numbers, and a GPU count in `resources` takes
        // precedence.
        let declared = start_integer(value).filter(|count| *count >= 0);
        let overridden = group.resources().is_some_and(|r| r.contains_key("GPU"));
        let (Some(declared), Some(present), false) =
            (declared, group.ray_container().and_then(gpus), overridden)
        else {
            continue;
        };
        if i128::from(declared) != present.count() {
            report(group, value, &present, findings);
        }
    }
}

fn report(group: &Group<'_>, value: &Value, present: &Gpus, findings: &mut Findings) {
    let count = present.count();
    let fix = match present {
        Gpus::Whole(_) => format!(
            "Remove num-gpus, and Ray takes the number from the limits; or write num-gpus: \
             \"{count}\"."
        ),
        Gpus::Slices(_) => format!("Write num-gpus: \"{count}\"."),
        Gpus::None => "Remove num-gpus, or add the GPUs to the ray container's limits \
                       (nvidia.com/gpu, amd.com/gpu, ..)."
            .to_owned(),
    };
    findings.add(
        RULE.finding(
            group.start_param_path("num-gpus"),
            format!(
                "{} differs from the limits: {}",
                shown(value),
                present.shown()
            ),
            fix,
        )
        .valued(format!("num-gpus {}, limits {count}", shown(value))),
    );
}

/// What the limits give.
enum Gpus {
    None,
    Whole(i128),
    /// Ray's autoscaler does not count these by itself.
    Slices(i128),
}

impl Gpus {
    fn count(&self) -> i128 {
        match self {
            Self::None => 0,
            Self::Whole(count) | Self::Slices(count) => *count,
        }
    }

    fn shown(&self) -> String {
        match self {
            Self::None => "no GPU".to_owned(),
            Self::Whole(1) => "1 GPU".to_owned(),
            Self::Whole(count) => format!("{count} GPUs"),
            Self::Slices(1) => "1 slice of a GPU".to_owned(),
            Self::Slices(count) => format!("{count} slices of GPUs"),
        }
    }
}

/// The GPUs in the limits; `None` if the number is not certain.
fn gpus(container: Container<'_>) -> Option<Gpus> {
    let limits = container.limits();
    let amounts = |of: fn(&str) -> bool| {
        limits
            .into_iter()
            .flatten()
            .filter(move |(name, _)| of(name))
            .filter_map(|(name, _)| Some(container.limit(name)?.ceil_units()))
            .filter(|amount| *amount > 0)
    };
    // Ray counts only the first kind of GPU that it finds above zero.
    if let Some(whole) = amounts(|name| name.ends_with("gpu")).next() {
        return Some(Gpus::Whole(whole));
    }
    match amounts(is_slice).sum() {
        0 if amounts(may_be_gpu).next().is_some() || claims(&container) => None,
        0 => Some(Gpus::None),
        slices => Some(Gpus::Slices(slices)),
    }
}

fn is_slice(name: &str) -> bool {
    name.starts_with("nvidia.com/mig-")
}

/// `nvidia.com/gpu.shared`, `aliyun.com/gpu-mem`, `gpu.intel.com/i915`.
fn may_be_gpu(name: &str) -> bool {
    name.contains("gpu")
}

/// GPUs may come by dynamic resource allocation.
fn claims(container: &Container<'_>) -> bool {
    object_at(container.spec, "resources").is_some_and(|r| !list_at(r, "claims").is_empty())
}
