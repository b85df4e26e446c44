//! RF217: an autoscaler container that cannot start or will be killed.

use super::container_resources::report_above_limits;
use crate::rules::prelude::*;
use crate::rules::shared::plain;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(217),
    name: "sidecar-resources",
    mode: OwnMode::ByCase(
        "Enforce for a request above its limit, Warn for too little memory for Ray's autoscaler",
    ),
    summary: "`autoscalerOptions.resources` with requests above limits, or with too little memory",
    page: include_str!("sidecar_resources.md"),
    why: "The API server refuses a head pod whose container requests more than its limit, so the \
          cluster never starts.",
    cel: Cel::WithWarnings(
        &Cel::Covered(&[Check {
            each: Each::Object,
            // The API server takes minutes to parse a quantity with a large exponent, so texts with
            // three digits or more after an `e` never reach `quantity()`.
            faults: r#"!s.auto ? [] : [s.options.?resources.?limits.orValue({})].map(limits, s.options.?resources.?requests.orValue({})
  .filter(r, r in limits && ![limits[r], s.options.resources.requests[r]].exists(a, string(a).matches('[eE][-+]?[0-9.]{3}'))
    && isQuantity(string(s.options.resources.requests[r])) && isQuantity(string(limits[r])) && quantity(string(s.options.resources.requests[r])).isGreaterThan(quantity(string(limits[r]))))
  .map(r, s.path + '.autoscalerOptions.resources.requests.' + r + ' ' + string(s.options.resources.requests[r]) + ' is above the limit ' + string(limits[r])).join('\n'))"#,
            fix: "Lower the request or raise the limit.",
        }]),
        &[Check {
            each: Each::Object,
            // Large exponents are kept from `quantity()` here too.
            faults: r#"!s.auto || s.mode in ['central', 'sidecar'] ? [] : [string(s.options.?resources.?limits[?'memory'].orValue(''))]
  .filter(m, !m.matches('[eE][-+]?[0-9.]{3}') && isQuantity(m) && quantity(m).isLessThan(quantity('256Mi')) && quantity(m).compareTo(quantity('0')) != 0)
  .map(m, s.path + ".autoscalerOptions.resources.limits.memory " + m + " is too little for Ray's autoscaler")"#,
            fix: "Write memory: 512Mi; 256Mi is the minimum.",
        }],
    ),
    check,
};

/// The memory that Ray's autoscaler needs, with some room.
const ENOUGH: Quantity = Quantity::from_units(256 << 20);

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let Some(cluster) = subject.autoscaled() else {
        return;
    };
    let resources = cluster.autoscaler_option("resources");
    let Some(resources) = resources.and_then(Json::as_object) else {
        return;
    };
    // KubeRay copies the block to the container unchanged (`mergeAutoscalerOverrides`), and Kubernetes validates it
    // only when the head pod is made.
    let path = cluster.option_path("resources");
    report_above_limits(&RULE, resources, || path.clone(), findings);
    let limit = resources.below("limits").get("memory");
    // Rayfit needs much less than Ray's autoscaler: DF06 gives it 64Mi.
    let Some(limit) = limit.filter(|_| !subject.object.reconcile_mode().is_ours()) else {
        return;
    };
    // A limit of zero is none, for the kubelet.
    if !Quantity::from_json(limit).is_ok_and(|amount| amount < ENOUGH && !amount.is_zero()) {
        return;
    }
    let finding = RULE.finding(
        path.key("limits").key("memory"),
        format!("{} is too little for Ray's autoscaler", plain(limit)),
        "Write memory: 512Mi in limits and requests; 256Mi is the minimum.",
    );
    let why = "The autoscaler uses 101 to 216 MB, and more with many pods; if it is killed for its memory, the \
               cluster stops scaling.";
    findings.push(
        finding
            .in_mode(Mode::Warn)
            .because(why)
            .valued(plain(limit)),
    );
}
