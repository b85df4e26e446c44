//! RF232: a worker that is ended before Ray's drain is.

use crate::finding::Finding;
use crate::path::FieldPath;
use crate::policy::Mode;
use crate::ray::drain::{self, DrainTime, DrainVariable};
use crate::ray::{Cluster, Group, since};
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::{Cel, Check, Each, Findings, OwnMode, Rule, Subject};
use crate::text::shown_text;

/// RF232
pub static RULE: Rule = Rule {
    id: RuleId(232),
    name: "graceful-end",
    mode: OwnMode::Always(Mode::Warn),
    summary: "`terminationGracePeriodSeconds` is shorter than Ray's drain and its end, or `ray stop` comes before",
    page: RulePage(include_str!("graceful_end.md")),
    why: "Kubernetes kills the pod before Ray's drain has ended, so work that had the time to end \
          is lost, and Ray learns of it only by missing the node.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::InPart(
    &[Check {
        each: Each::Group,
        mode: Mode::Warn,
        faults: r#"!s.auto || !s.cluster.?rayVersion.orValue('').matches(r'^v?(2\.(5[7-9]|[6-9][0-9]|[1-9][0-9]{2,})|([3-9]|[1-9][0-9]+)\.[0-9])') ? [] :
  [g.containers.size() == 0 ? [] : g.containers[0].?env.orValue([]).filter(e, e.name == 'RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S')]
  .map(es, {'grace': dyn(g.spec.?template.?spec.?terminationGracePeriodSeconds), 'drain': dyn(es.size() == 0 ? '30' : es[es.size() - 1].?value.orValue(''))})
  .filter(v, (v.grace.hasValue() || v.drain != '30') && v.drain.matches('^[0-9]{1,6}$') && int(v.drain) > 0 && v.grace.orValue(30) < int(v.drain) + 5)
  .map(v, '.template.spec: a grace period of ' + string(v.grace.orValue(30)) + ' s is too short for a drain of ' + v.drain + ' s')"#,
        fix: "Set terminationGracePeriodSeconds to ten seconds more than the drain takes.",
    }],
    "A drain time that is not a whole number, or that is written as 30, and `preStop` hooks are not \
     checked.",
);

/// How many seconds the end of Ray's processes takes after the drain: each has up to one.
const END_S: f64 = 5.0;

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let Some(cluster) = subject.autoscaled().filter(|cluster| drains(cluster)) else {
        return;
    };
    for group in cluster.groups() {
        check_group(group, findings);
    }
}

fn drains(cluster: &Cluster<'_>) -> bool {
    let version = cluster.ray_version();
    version.is_some_and(|version| version >= since::DRAIN_ON_SIGTERM)
}

fn check_group(group: &Group<'_>, findings: &mut Findings) {
    let is_cut_short = |container| drain::is_cut_short(&container);
    if !group.is_head() && group.ray_container().is_some_and(is_cut_short) {
        findings.add(cut_short(group));
        return;
    }
    let grace = drain::grace(group);
    let variable = group.ray_container().and_then(DrainVariable::of);
    // DF10 gives both to new workers.
    if grace.is_none() && variable.is_none() {
        return;
    }
    let DrainTime::Seconds(seconds) = DrainTime::of(variable) else {
        return;
    };
    let given = grace.unwrap_or(drain::GRACE_S);
    #[expect(clippy::cast_precision_loss, reason = "seconds")]
    let is_enough = given as f64 >= seconds + END_S;
    if is_enough {
        return;
    }
    let drained = match variable {
        Some(variable) => format!("{} = {}", drain::VARIABLE, shown_text(variable.value)),
        None => format!("Ray's own {} = 30", drain::VARIABLE),
    };
    let granted = if grace.is_some() {
        ""
    } else {
        "Kubernetes' own "
    };
    let path = match (grace, variable) {
        (None, Some(variable)) => variable_path(group, variable),
        _ => group.pod_spec_path().key(drain::GRACE),
    };
    findings.add(
        RULE.finding(
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
        )
        .valued(format!("{given} < {seconds}")),
    );
}

fn cut_short(group: &Group<'_>) -> Finding {
    let path = group.ray_container_path();
    let path = drain::PRE_STOP.into_iter().fold(path, FieldPath::key);
    RULE.finding(
        path,
        "calls ray stop, which ends all work before Ray can drain",
        "Remove the hook: Ray ends by itself when its pod is deleted.",
    )
    .because("Work that had the time to end is lost, although Ray would let it end.")
}

fn variable_path(group: &Group<'_>, variable: DrainVariable<'_>) -> FieldPath {
    let env = group.ray_container_path().key("env");
    env.item(variable.index, drain::VARIABLE)
}
