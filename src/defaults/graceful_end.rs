//! DF10: workers whose drain has ended before Kubernetes kills them.

use serde_json::{Value, json};

use super::draft::Before;
use super::{DefaultId, DefaultRule, Draft, DraftEntry};
use crate::ray::drain::{self, DrainTime, DrainVariable};
use crate::ray::{Cluster, Group, RayObject, since};
use crate::rule_page::RulePage;

/// How many seconds a new worker may drain, so that a task of most of a minute ends in it.
const DRAIN_S: i64 = 50;

/// DF10
pub static DEFAULT: DefaultRule = DefaultRule {
    id: DefaultId(10),
    name: "graceful-end",
    summary: "workers have 60 s to end, of which Ray drains 50",
    page: RulePage(include_str!("graceful_end.md")),
    why: "From 2.57 on Ray drains a node for up to 30 s when its pod is deleted, and Kubernetes \
          kills the pod after 30 s: the kill falls on the drain's last second. With this, tasks of \
          up to 50 s end in a pod that is evicted or deleted, instead of running again elsewhere, \
          and Ray ends its processes itself. A worker without work ends at once, as before.",
    since: "0.1.0",
    apply,
};

fn apply(draft: &mut Draft<'_>) {
    let Some(cluster) = draining(draft.object) else {
        return;
    };
    for group in &cluster.workers {
        let before = draft.old.and_then(draining).and_then(|old| {
            // By the index of the groups: there can be ten thousands of them.
            old.group(group.name?).filter(|old| !old.is_head())
        });
        let Some(wanted) = Wanted::of(group) else {
            continue;
        };
        if let Some(grace) = wanted.grace {
            fill_in_grace(draft, group, before, grace);
        }
        if let Some(drain) = wanted.drain {
            fill_in_drain(draft, group, before, drain);
        }
    }
}

/// The cluster, if its workers drain when they are asked to end.
fn draining<'a>(object: &'a RayObject<'a>) -> Option<&'a Cluster<'a>> {
    let cluster = object.cluster.as_ref();
    cluster.filter(|cluster| {
        let version = cluster.ray_version();
        cluster.autoscaling() && version.is_some_and(|version| version >= since::DRAIN_ON_SIGTERM)
    })
}

/// What a group lacks, in seconds.
struct Wanted {
    grace: Option<i64>,
    drain: Option<i64>,
}

impl Wanted {
    fn of(group: &Group<'_>) -> Option<Self> {
        let spec = group.pod_spec()?;
        let container = group.ray_container()?;
        // Nothing is left to drain then (RF232).
        if drain::is_cut_short(&container) {
            return None;
        }
        let variable = DrainVariable::of(container);
        let wanted = match (spec.get(drain::GRACE), variable) {
            (None, None) => Self {
                grace: Some(DRAIN_S + drain::MARGIN_S),
                drain: Some(DRAIN_S),
            },
            (None, Some(_)) => {
                let DrainTime::Seconds(seconds) = DrainTime::of(variable) else {
                    return None;
                };
                let grace = drain::grace_for(seconds);
                Self {
                    grace: (grace > drain::GRACE_S).then_some(grace),
                    drain: None,
                }
            }
            (Some(grace), None) => Self {
                grace: None,
                // For Ray a time of 0 turns its drain off.
                drain: Some(drain::drain_within(grace.as_i64()?)).filter(|drain| *drain > 0),
            },
            (Some(_), Some(_)) => return None,
        };
        Some(wanted)
    }
}

fn fill_in_grace(draft: &mut Draft<'_>, group: &Group<'_>, before: Option<&Group<'_>>, fresh: i64) {
    let stored = before.and_then(|group| group.pod_spec()?.get(drain::GRACE));
    let settled = Before {
        had_reason: before.is_some(),
        value: stored,
    }
    .settle(json!(fresh));
    if let Some((value, origin)) = settled {
        let path = group.pod_spec_path().key(drain::GRACE);
        draft.add(DEFAULT.id, path, value, origin);
    }
}

fn fill_in_drain(draft: &mut Draft<'_>, group: &Group<'_>, before: Option<&Group<'_>>, fresh: i64) {
    let stored = before.and_then(|group| DrainVariable::of(group.ray_container()?));
    let stored = stored.map(|variable| Value::from(variable.value));
    let settled = Before {
        had_reason: before.is_some(),
        // An empty value comes from elsewhere (`valueFrom`), and nothing here knows from where.
        value: stored.as_ref().filter(|value| *value != ""),
    }
    .settle(fresh.to_string().into());
    if let Some((value, origin)) = settled {
        let item = json!({"name": drain::VARIABLE, "value": value});
        let entry = DraftEntry {
            name: drain::VARIABLE,
            value,
            item,
            origin,
        };
        draft.extend(DEFAULT.id, group, "env", vec![entry]);
    }
}
