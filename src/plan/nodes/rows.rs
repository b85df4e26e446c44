//! From a snapshot to the rows that nodes are made of.
//!
//! Ray keeps a table of instances in memory. Here the same list is derived from the objects in
//! every round: first the instances that are remembered, then the Ray nodes in the order in which
//! Ray reports them, then the pods without a Ray node. (Ray, `reconciler.py`, `_sync_from`, in the
//! state that it settles in.)

use std::collections::BTreeMap;

use crate::hash::{HashMap, HashSet};
use crate::plan::nodes::departure::is_evicted;
use crate::plan::nodes::group::ClusterConfig;
use crate::plan::nodes::hanging::HangingPods;
use crate::plan::nodes::life::Stage;
use crate::plan::outcome::cause::Departure;
use crate::plan::strategy::Strategy;
use crate::snapshot::Snapshot;
use crate::snapshot::gcs::{LiveNodes, NodeState, NodeStatus};
use crate::snapshot::group_spec::MOST_NODES;
use crate::snapshot::history::InstanceStatus;
use crate::snapshot::pod::{Pod, PodRole};

/// Seconds for which a node that was asked to stop is expected to drain. If it still runs after
/// that, the request was lost or refused. (Ray, `InstanceReconcileConfig`.)
const STOP_TIMEOUT_S: f64 = 300.0;

/// Seconds for which Ray waits for the Ray node of a pod that runs
/// (`allocate_status_timeout_s`).
const ALLOCATE_TIMEOUT_S: f64 = 3600.0;

/// A row of the list: a pod, or launches that have no pod yet.
#[derive(Debug, Clone)]
pub(crate) struct NodeRow<'a> {
    pub(crate) group: &'a str,
    pub(crate) pod: Option<&'a Pod<'a>>,
    pub(crate) ray: Option<&'a NodeState>,
    pub(crate) stage: Stage,
    pub(crate) head: bool,
    pub(crate) since: Option<f64>,
    /// The number of equal launches that it stands for; a row with a pod stands for one.
    pub(crate) count: u64,
}

/// The pods of the snapshot on which nothing is placed any more.
#[derive(Debug, Default)]
pub(crate) struct Leftovers<'a> {
    /// Pods whose Ray node has stopped.
    pub(crate) stopped: Vec<&'a Pod<'a>>,
    /// Pods whose Ray node is draining.
    pub(crate) draining: Vec<&'a Pod<'a>>,
    /// Pods that Ray gives up, because their raylets never joined (strategy `Ray`).
    pub(crate) never_joined: Vec<&'a Pod<'a>>,
    /// Pods that hang in termination (strategy `Rayfit`).
    pub(crate) hanging: HangingPods<'a>,
}

/// Returns the rows of a snapshot, and the pods without a row.
pub(crate) fn rows<'a>(
    snapshot: &'a Snapshot,
    (pods, rays): (&'a [Pod<'a>], &LiveNodes<'a>),
    strategy: Strategy,
    now: f64,
) -> (Vec<NodeRow<'a>>, Leftovers<'a>) {
    // Head pods that stand by while another one leads join only once they lead, so nothing can be placed
    // on them. Ray knows of one head only.
    let is_head = |pod: &Pod<'_>| pod.role == PodRole::Head;
    let leads = |pod: &Pod<'_>| rays.contains_key(pod.name);
    let one_leads = strategy.is_rayfit() && pods.iter().any(|pod| is_head(pod) && leads(pod));
    let live: Vec<&Pod<'_>> = pods
        .iter()
        // Ray ignores pods that are being deleted, too: their Ray nodes take no more work.
        .filter(|pod| !pod.deleting && pod.role != PodRole::Other)
        .filter(|pod| !one_leads || !is_head(pod) || leads(pod))
        .collect();
    let by_name: HashMap<&str, &'a Pod<'a>> = live.iter().map(|pod| (pod.name, *pod)).collect();
    let mut rows = remembered(snapshot, &live, &by_name);
    let mut names: HashSet<&str> = HashSet::default();
    rows.retain(|row| row.pod.is_none_or(|pod| names.insert(pod.name)));
    let reported = snapshot.gcs.node_states.iter().filter_map(|ray| {
        // A Ray node without its pod is as good as gone.
        let pod = by_name
            .get(ray.instance_id.as_str())
            .filter(|_| ray.is_alive())?;
        // Ray goes by the group that the Ray node reports. That may be a lie, by which a pod would get
        // the sizes of another group; KubeRay, and the rules for plans, go by the pod's label.
        let group = if strategy.is_rayfit() {
            pod.group
        } else {
            ray.ray_node_type_name.as_str()
        };
        Some((group, *pod))
    });
    for (group, pod) in reported.chain(live.iter().map(|pod| (pod.group, *pod))) {
        if names.insert(pod.name) {
            rows.push(NodeRow::of(group, pod, Stage::Allocated, None));
        }
    }
    let leftovers = settle(&mut rows, snapshot, rays, strategy, now);
    (rows, leftovers)
}

impl<'a> NodeRow<'a> {
    fn of(group: &'a str, pod: &'a Pod<'a>, stage: Stage, since: Option<f64>) -> Self {
        Self {
            group,
            pod: Some(pod),
            ray: None,
            stage,
            head: pod.role == PodRole::Head,
            since,
            count: 1,
        }
    }
}

/// The rows of the instances that are remembered.
fn remembered<'a>(
    snapshot: &'a Snapshot,
    live: &[&'a Pod<'a>],
    by_name: &HashMap<&str, &'a Pod<'a>>,
) -> Vec<NodeRow<'a>> {
    let instances = &snapshot.history.instances;
    let mut rows = Vec::new();
    // Of a cluster at rest nothing is remembered, and the tables below would be for nothing.
    if instances.is_empty() {
        return rows;
    }
    let named: HashSet<&str> = instances.iter().filter_map(|i| i.pod.as_deref()).collect();
    // Pods that are not remembered, by group. Launches take the last pod of a group first.
    let mut spare: HashMap<&str, Vec<&'a Pod<'a>>> = HashMap::default();
    for pod in live.iter().filter(|pod| !named.contains(pod.name)) {
        spare.entry(pod.group).or_default().push(pod);
    }
    for instance in instances {
        let stage = match instance.status {
            InstanceStatus::StopRequested => Stage::Stopping,
            _ => Stage::Allocated,
        };
        if let Some(name) = &instance.pod {
            let pod = by_name.get(name.as_str());
            rows.extend(pod.map(|pod| NodeRow::of(pod.group, pod, stage, instance.since)));
            continue;
        }
        let mut rest = instance.count;
        if instance.status == InstanceStatus::Requested
            && let Some(spare) = spare.get_mut(instance.group.as_str())
        {
            while rest > 0
                && let Some(pod) = spare.pop()
            {
                rows.push(NodeRow::of(pod.group, pod, stage, instance.since));
                rest -= 1;
            }
        }
        if rest > 0 {
            rows.push(NodeRow {
                group: &instance.group,
                pod: None,
                ray: None,
                stage: match instance.status {
                    InstanceStatus::Queued => Stage::Queued,
                    _ => Stage::Requested,
                },
                head: false,
                since: instance.since,
                // A snapshot in a file may have any number here.
                count: rest.min(MOST_NODES),
            });
        }
    }
    rows
}

/// Joins rows and Ray nodes. The row's stage follows from the status of its Ray node.
fn settle<'a>(
    rows: &mut Vec<NodeRow<'a>>,
    snapshot: &Snapshot,
    rays: &LiveNodes<'a>,
    strategy: Strategy,
    now: f64,
) -> Leftovers<'a> {
    let stopped = snapshot.gcs.node_states.iter();
    let stopped = stopped.filter(|ray| ray.status == NodeStatus::Dead);
    let dead: HashSet<&str> = stopped.map(|ray| ray.instance_id.as_str()).collect();
    // Ray gives up a worker pod whose container runs, and that has not become a Ray node.
    let is_given_up = |pod: &Pod<'_>| {
        let started = pod.started().filter(|_| pod.role == PodRole::Worker);
        let is_late = started.is_some_and(|started| now - started > ALLOCATE_TIMEOUT_S);
        strategy == Strategy::Ray && is_late
    };
    let mut leftovers = Leftovers::default();
    rows.retain_mut(|row| {
        let Some(pod) = row.pod else { return true };
        row.ray = rays.get(pod.name).copied();
        match row.ray {
            // A Ray node that was asked to stop and is no longer reported has stopped, however long ago
            // that was.
            None if dead.contains(pod.name) || row.stage == Stage::Stopping => {
                leftovers.stopped.push(pod);
            }
            None if is_given_up(pod) => leftovers.never_joined.push(pod),
            Some(ray) if ray.status == NodeStatus::Draining => leftovers.draining.push(pod),
            Some(ray) => {
                row.head |= ray.is_head();
                // One that was asked to stop is reported as running until it begins to drain.
                let waited = row.since.map_or(0.0, |since| now - since);
                if row.stage == Stage::Allocated || waited > STOP_TIMEOUT_S {
                    row.stage = Stage::Running;
                }
                return true;
            }
            None => return true,
        }
        false
    });
    leftovers
}

/// Adds the pods that KubeRay was asked for and has not made yet, as `replicas` says. A pod that is
/// deleted is missing, and is made again, but for one that leaves with its node: what takes its place
/// is a launch. The rows are then in an order that depends neither on Ray's report, nor on what is
/// remembered, nor on a pod of another group.
pub(crate) fn add_awaited<'a>(
    rows: &mut Vec<NodeRow<'a>>,
    config: &'a ClusterConfig,
    pods: &[Pod<'_>],
    departures: &BTreeMap<String, Departure>,
    hanging: &HangingPods<'_>,
) {
    // KubeRay counts pods that hang among those that it was asked for, so what is remembered says too much.
    rows.retain(|row| {
        row.pod.is_some() || row.stage != Stage::Requested || hanging.count(row.group) == 0
    });
    let mut counts: HashMap<&str, u64> = HashMap::default();
    for pod in pods {
        let is_evicted = || is_evicted(departures, config, pod) && !hanging.holds(pod);
        let is_present = !pod.deleting || is_evicted();
        if pod.role == PodRole::Worker && is_present && !config.is_listed(pod.group, pod.name) {
            *counts.entry(pod.group).or_default() += 1;
        }
    }
    for row in rows.iter() {
        if row.pod.is_none() && row.stage == Stage::Requested {
            let count = counts.entry(row.group).or_default();
            *count = count.saturating_add(row.count);
        }
    }
    for group in config.groups.iter().filter(|group| !group.is_head()) {
        let replicas = group
            .replicas
            .unwrap_or(0)
            .max(group.min_replicas.unwrap_or(0))
            .clamp(0, group.max_replicas.unwrap_or(0).max(0));
        let present = counts.get(group.name.as_str()).copied().unwrap_or(0);
        // Replicas count as wholes.
        let hanging = hanging.count(&group.name).div_ceil(group.hosts) * group.hosts;
        let count = group
            .nodes(replicas)
            .saturating_sub(present.saturating_add(hanging));
        // This is how launches survive a restart of the controller.
        if count > 0 {
            rows.push(NodeRow {
                group: &group.name,
                pod: None,
                ray: None,
                stage: Stage::Requested,
                head: false,
                since: None,
                count,
            });
        }
    }
    // Of several nodes that are equally good the same one then wins in every round, so that the
    // others can become idle.
    rows.sort_by_key(|row| match row.pod {
        Some(pod) => (false, row.group, pod.name),
        // Launches have no name. The sort is stable and leaves them in the order in which they were
        // asked for.
        None => (true, "", ""),
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_head_that_stands_by_while_another_leads_is_no_node() {
        let pod = |name: &str| {
            json!({"metadata": {"name": name, "labels": {"ray.io/cluster": "c",
                "ray.io/node-type": "head", "ray.io/group": "headgroup"}}})
        };
        let rows_of = |reported: &[&str], strategy| {
            let nodes = reported.iter().map(|name| {
                json!({"instanceId": name, "rayNodeTypeName": "headgroup", "status": "RUNNING"})
            });
            let snapshot: Snapshot = serde_json::from_value(json!({
                "apiVersion": "rayfit.dev/v1alpha1", "kind": "Snapshot",
                "time": "2026-01-14T12:00:00Z", "gcs": {"nodeStates": nodes.collect::<Vec<_>>()},
                "pods": [pod("a"), pod("b")], "rayCluster": {"metadata": {"name": "c"}}}))
            .unwrap();
            let pods: Vec<Pod<'_>> = snapshot.pods.iter().collect();
            let (rows, _) = rows(&snapshot, (&pods, &snapshot.gcs.live()), strategy, 0.0);
            let names = rows.iter().filter_map(|row| Some(row.pod?.name.to_owned()));
            names.collect::<Vec<_>>()
        };
        assert_eq!(rows_of(&["b"], Strategy::Rayfit), ["b"]);
        assert_eq!(rows_of(&["b"], Strategy::Ray), ["b", "a"], "as Ray");
        assert_eq!(
            rows_of(&[], Strategy::Rayfit),
            ["a", "b"],
            "neither leads yet"
        );
    }
}
