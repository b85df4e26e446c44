//! RF232: a worker that is ended before Ray's drain is.

use crate::ray::drain;
use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(232),
    name: "graceful-end",
    mode: OwnMode::Always(Mode::Warn),
    summary: "`terminationGracePeriodSeconds` is shorter than Ray's drain and its end, or `ray stop` comes before",
    page: include_str!("graceful_end.md"),
    why: "Kubernetes kills the pod before Ray's drain has ended, so work that had the time to end \
          is lost, and Ray learns of it only by missing the node.",
    cel: Cel::InPart(
        &[Check {
            each: Each::Group,
            faults: r#"!s.auto || !s.cluster.?rayVersion.orValue('').matches(r'^v?(2\.(5[7-9]|[6-9][0-9]|[1-9][0-9]{2,})|([3-9]|[1-9][0-9]+)\.[0-9])') ? [] :
  [g.containers.size() == 0 ? [] : g.containers[0].?env.orValue([]).filter(e, e.name == 'RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S')]
  .map(es, {'grace': dyn(g.spec.?template.?spec.?terminationGracePeriodSeconds), 'drain': dyn(es.size() == 0 ? '30' : es[es.size() - 1].?value.orValue(''))})
  .filter(v, (v.grace.hasValue() || v.drain != '30') && v.drain.matches('^[0-9]{1,6}$') && int(v.drain) > 0 && v.grace.orValue(30) < int(v.drain) + 5)
  .map(v, '.template.spec: a grace period of ' + string(v.grace.orValue(30)) + ' s is too short for a drain of ' + v.drain + ' s')"#,
            fix: "Set terminationGracePeriodSeconds to ten seconds more than the drain takes.",
        }],
        "A drain time that is not a whole number, or that is written as 30, and `preStop` hooks are not \
     checked.",
    ),
    check,
};

/// Seconds that the end of Ray's processes takes after the drain: each has up to one.
const END_S: f64 = 5.0;

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let version = subject.autoscaled().and_then(Cluster::ray_version);
    if version.is_some_and(|version| version >= since::DRAIN_ON_SIGTERM) {
        findings.extend(subject.groups().filter_map(finding));
    }
}

fn finding(group: &Group<'_>) -> Option<Finding> {
    // A `preStop` hook runs before SIGTERM. Older examples of KubeRay have this one (up to 1.2).
    let is_cut_short = |container| drain::is_cut_short(&container);
    if !group.is_head() && group.ray_container.is_some_and(is_cut_short) {
        let path = group.ray_container_path();
        let finding = RULE.finding(
            drain::PRE_STOP.into_iter().fold(path, FieldPath::key),
            "calls ray stop, which ends all work before Ray can drain",
            "Remove the hook: Ray ends by itself when its pod is deleted.",
        );
        let why = "Work that had the time to end is lost, although Ray would let it end.";
        return Some(finding.because(why).mended_by_removal());
    }
    // `ray start --block` drains on SIGTERM and then ends its processes one by one (Ray,
    // `_drain_node_before_shutdown`); the kubelet kills what still runs when the grace period is over.
    let grace = drain::grace(group);
    let container = group.ray_container;
    let value = container.and_then(|container| container.env(drain::VARIABLE));
    // DF10 gives both to new workers.
    if grace.is_none() && value.is_none() {
        return None;
    }
    let seconds = drain::drain_s(value)?;
    let given = grace.unwrap_or(drain::GRACE_S);
    #[expect(clippy::cast_precision_loss, reason = "seconds")]
    let is_enough = given as f64 >= seconds + END_S;
    if is_enough {
        return None;
    }
    let drained = match value {
        Some(value) => format!("{} = {}", drain::VARIABLE, shown_text(value)),
        None => format!("Ray's own {} = 30", drain::VARIABLE),
    };
    let granted = grace.map_or("Kubernetes' own ", |_| "");
    let index = container.and_then(|container| container.env_index(drain::VARIABLE));
    let path = match (grace, index) {
        (None, Some(index)) => {
            let env = group.ray_container_path().key("env");
            env.item(index, drain::VARIABLE)
        }
        _ => group.pod_spec_path().key(drain::GRACE),
    };
    let finding = RULE.finding(
        path,
        format!(
            "{granted}{} = {given} ends before the drain does: {drained}",
            drain::GRACE
        ),
        format!(
            "Set {} to {} or more, or {} to {} or less.",
            drain::GRACE,
            drain::grace_for(seconds),
            drain::VARIABLE,
            drain::drain_within(given)
        ),
    );
    Some(finding.valued(format!("{given} < {seconds}")))
}
