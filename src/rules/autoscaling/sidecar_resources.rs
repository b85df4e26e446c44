//! RF217: an autoscaler container that cannot start or will be killed.

use serde_json::Value;

use super::container_resources::{plain, report_above_limits};
use crate::policy::Mode;
use crate::quantity::Quantity;
use crate::ray::{Cluster, Fields, object_at};
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::{Cel, Check, Each, Findings, OwnMode, Rule, Subject};

/// RF217
pub static RULE: Rule = Rule {
    id: RuleId(217),
    name: "sidecar-resources",
    mode: OwnMode::ByCase(
        "Enforce for a request above its limit, Warn for too little memory for Ray's autoscaler",
    ),
    summary: "`autoscalerOptions.resources` with requests above limits, or with too little memory",
    page: RulePage(include_str!("sidecar_resources.md")),
    why: "The API server refuses a head pod whose container requests more than its limit, so the \
          cluster never starts.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::Covered(&[
    Check {
        each: Each::Object,
        mode: Mode::Enforce,
        // The API server takes minutes to parse a quantity with a large exponent, so texts with
        // three digits or more after an `e` never reach `quantity()`.
        faults: r#"!s.auto ? [] : [s.options.?resources.?limits.orValue({})].map(limits, s.options.?resources.?requests.orValue({})
  .filter(r, r in limits && ![limits[r], s.options.resources.requests[r]].exists(a, string(a).matches('[eE][-+]?[0-9.]{3}'))
    && isQuantity(string(s.options.resources.requests[r])) && isQuantity(string(limits[r])) && quantity(string(s.options.resources.requests[r])).isGreaterThan(quantity(string(limits[r]))))
  .map(r, s.path + '.autoscalerOptions.resources.requests.' + r + ' ' + string(s.options.resources.requests[r]) + ' is above the limit ' + string(limits[r])).join('\n'))"#,
        fix: "Lower the request or raise the limit.",
    },
    Check {
        each: Each::Object,
        mode: Mode::Warn,
        // Large exponents are kept from `quantity()` here too.
        faults: r#"!s.auto || s.mode in ['central', 'sidecar'] ? [] : [string(s.options.?resources.?limits[?'memory'].orValue(''))]
  .filter(m, !m.matches('[eE][-+]?[0-9.]{3}') && isQuantity(m) && quantity(m).isLessThan(quantity('256Mi')) && quantity(m).compareTo(quantity('0')) != 0)
  .map(m, s.path + ".autoscalerOptions.resources.limits.memory " + m + " is too little for Ray's autoscaler")"#,
        fix: "Write memory: 512Mi; 256Mi is the minimum.",
    },
]);

/// What Ray's autoscaler needs at least, with some room.
const ENOUGH: Quantity = Quantity::from_units(256 << 20);

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let Some(cluster) = subject.autoscaled() else {
        return;
    };
    let Some(resources) = cluster
        .autoscaler_option("resources")
        .and_then(Value::as_object)
    else {
        return;
    };
    report_above_limits(
        &RULE,
        resources,
        &cluster.option_path("resources"),
        findings,
    );
    // Rayfit needs much less than Ray's autoscaler: DF06 gives it 64Mi.
    if let (false, Some(limits)) = (
        subject.reconcile_mode().is_ours(),
        object_at(resources, "limits"),
    ) {
        report_small(cluster, limits, findings);
    }
}

fn report_small(cluster: &Cluster<'_>, limits: &Fields, findings: &mut Findings) {
    let Some(limit) = limits.get("memory") else {
        return;
    };
    // A limit of zero is none, for the kubelet.
    if !Quantity::from_json(limit).is_ok_and(|amount| amount < ENOUGH && !amount.is_zero()) {
        return;
    }
    findings.add(
        RULE.finding(
            cluster.option_path("resources").key("limits").key("memory"),
            format!("{} is too little for Ray's autoscaler", plain(limit)),
            "Write memory: 512Mi in limits and requests; 256Mi is the minimum.",
        )
        .in_mode(Mode::Warn)
        .because(
            "The autoscaler uses 101 to 216 MB, and more with many pods; if it is killed for its \
             memory, the cluster stops scaling.",
        )
        .valued(plain(limit)),
    );
}
