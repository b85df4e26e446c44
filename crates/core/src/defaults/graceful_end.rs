//! DF10: workers whose drain has ended before Kubernetes kills them.

use serde_json::{Value, json};

use super::draft::{autoscaled, settle};
use super::{DefaultId, DefaultRule, DefaultsDraft};
use crate::json::Json;
use crate::ray::drain;
use crate::ray::{Cluster, Group, RayObject, since};

/// Seconds for which a new worker may drain, so that a task of most of a minute ends in it.
const DRAIN_S: i64 = 50;

pub(crate) static DEFAULT: DefaultRule = DefaultRule {
    id: DefaultId(10),
    name: "graceful-end",
    summary: "workers have 60 s to end, of which Ray drains 50",
    page: include_str!("graceful_end.md"),
    why: "From 2.57 on Ray drains a node for up to 30 s when its pod is deleted, and Kubernetes \
          kills the pod after 30 s: the kill falls on the drain's last second. With this, tasks of \
          up to 50 s end in a pod that is evicted or deleted, instead of running again elsewhere, \
          and Ray ends its processes itself. A worker without work ends at once, as before.",
    apply,
};

fn apply(draft: &mut DefaultsDraft<'_>) {
    // Workers of such a cluster drain when they are asked to end.
    fn draining<'a>(object: &'a RayObject<'a>) -> Option<&'a Cluster<'a>> {
        let cluster = autoscaled(object)?;
        let version = cluster.ray_version()?;
        (version >= since::DRAIN_ON_SIGTERM).then_some(cluster)
    }
    let Some(cluster) = draining(draft.object) else {
        return;
    };
    for group in &cluster.workers {
        let stored_group = draft.old.and_then(draining).and_then(|old| {
            // By the index of the groups: there can be ten thousands of them.
            old.group(group.name?).filter(|old| !old.is_head())
        });
        let Some((grace, drain)) = lacking(group) else {
            continue;
        };
        if let Some(grace) = grace {
            let stored = stored_group.and_then(|group| group.pod_spec?.get(drain::GRACE));
            if let Some((value, origin)) = settle(stored_group.is_some(), stored, json!(grace)) {
                let path = group.pod_spec_path().key(drain::GRACE);
                draft.add(DEFAULT.id, path, value, origin);
            }
        }
        if let Some(drain) = drain {
            let stored = stored_group.and_then(|group| group.ray_container?.env(drain::VARIABLE));
            // An empty value comes from elsewhere (`valueFrom`), and nothing here knows from where.
            let stored = stored.filter(|value| !value.is_empty()).map(Json::String);
            let fresh = drain.to_string().into();
            if let Some((value, origin)) = settle(stored_group.is_some(), stored, fresh) {
                let item = |name: &str, value: &Value| json!({"name": name, "value": value});
                let entries = vec![(drain::VARIABLE, value, origin)];
                draft.extend(DEFAULT.id, group, "env", entries, item);
            }
        }
    }
}

/// The grace period and the time of the drain that a group lacks, in seconds.
fn lacking(group: &Group<'_>) -> Option<(Option<i64>, Option<i64>)> {
    let spec = group.pod_spec?;
    let container = group.ray_container?;
    // Nothing is left to drain then (RF232).
    if drain::is_cut_short(&container) {
        return None;
    }
    let value = container.env(drain::VARIABLE);
    match (spec.get(drain::GRACE), value) {
        (None, None) => Some((Some(DRAIN_S + drain::MARGIN_S), Some(DRAIN_S))),
        (None, Some(_)) => {
            let grace = drain::grace_for(drain::drain_s(value)?);
            Some(((grace > drain::GRACE_S).then_some(grace), None))
        }
        (Some(grace), None) => {
            // For Ray a time of 0 turns its drain off.
            let drain = drain::drain_within(grace.as_i64()?);
            Some((None, (drain > 0).then_some(drain)))
        }
        (Some(_), Some(_)) => None,
    }
}
