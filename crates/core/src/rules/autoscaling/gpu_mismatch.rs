//! RF215: `num-gpus` that differs from the GPUs that the pod has.

use crate::ray::start_params::start_integer;
use crate::rules::prelude::*;
use crate::rules::shared::has_claims;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(215),
    name: "gpu-mismatch",
    mode: OwnMode::Always(Mode::Warn),
    summary: "`num-gpus` differs from the GPUs in the ray container's limits",
    page: include_str!("gpu_mismatch.md"),
    why: "Ray trusts num-gpus: if it is too high, tasks find no GPU; if it is too low, GPUs stay \
          idle.",
    cel: Cel::InPart(
        &[Check {
            each: Each::Group,
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
    ),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for group in subject.autoscaled_groups() {
        let Some(value) = group.start_param("num-gpus") else {
            continue;
        };
        // RF204 reports values that are not whole numbers, and a GPU count in `resources` takes
        // precedence.
        let declared = start_integer(value).filter(|count| *count >= 0);
        let overridden = group.resources.is_some_and(|r| r.contains_key("GPU"));
        let (Some(declared), Some((count, is_sliced)), false) =
            (declared, group.ray_container.and_then(gpus), overridden)
        else {
            continue;
        };
        // `num-gpus` takes precedence over the limits in Ray's autoscaler (`_get_num_gpus`) and in the start command
        // (KubeRay, `addWellKnownAcceleratorResources`); neither compares the two.
        if i128::from(declared) == count {
            continue;
        }
        let (present, fix) = match (count, is_sliced) {
            (0, _) => (
                "no GPU".to_owned(),
                "Remove num-gpus, or add the GPUs to the ray container's limits (nvidia.com/gpu, \
                 amd.com/gpu, ..)."
                    .to_owned(),
            ),
            (count, false) => (
                format!("{count} GPU{}", if count == 1 { "" } else { "s" }),
                format!(
                    "Remove num-gpus, and Ray takes the number from the limits; or write num-gpus: \
                     \"{count}\"."
                ),
            ),
            // Ray's autoscaler does not count slices by itself, so the number has to stay.
            (1, true) => (
                "1 slice of a GPU".to_owned(),
                "Write num-gpus: \"1\".".to_owned(),
            ),
            (count, true) => (
                format!("{count} slices of GPUs"),
                format!("Write num-gpus: \"{count}\"."),
            ),
        };
        let shown = shown(value);
        let path = group.start_param_path("num-gpus");
        let finding = RULE.finding(
            path,
            format!("{shown} differs from the limits: {present}"),
            fix,
        );
        let finding = finding.valued(format!("num-gpus {shown}, limits {count}"));
        findings.push(if is_sliced {
            finding.mended_by(count.to_string())
        } else {
            finding.mended_by_removal()
        });
    }
}

/// The number of GPUs in the limits, and whether they are slices; `None` if the number is not certain.
fn gpus(container: Container<'_>) -> Option<(i128, bool)> {
    let limits = container.limits;
    let amounts = |of: fn(&str) -> bool| {
        limits
            .unwrap_or_default()
            .iter()
            .filter(move |(name, _)| of(name))
            .filter_map(|(name, _)| Some(container.limit(name)?.ceil_units()))
            .filter(|amount| *amount > 0)
    };
    // Ray counts only the first kind of GPU that it finds above zero.
    if let Some(whole) = amounts(|name| name.ends_with("gpu")).next() {
        return Some((whole, false));
    }
    let slices = amounts(|name| name.starts_with("nvidia.com/mig-")).sum();
    if slices > 0 {
        return Some((slices, true));
    }
    // `nvidia.com/gpu.shared`, `aliyun.com/gpu-mem` and `gpu.intel.com/i915` may be GPUs, and others may come by
    // dynamic resource allocation.
    let may_be_gpu = amounts(|name| name.contains("gpu")).next().is_some();
    (!may_be_gpu && !has_claims(&container)).then_some((0, false))
}
