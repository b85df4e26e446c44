//! The figures of a cluster's autoscaler, from what its GCS says. Pure.

use std::collections::{BTreeMap, HashSet};

use rayfit_core::ray::node_resources::NodeResources;
use rayfit_core::ray::{Cluster, Kind};
use rayfit_core::snapshot::autoscaling_state::LaunchCounts;
use rayfit_core::snapshot::gcs::{ClusterResourceState, NodeStatus};
use serde_json::Value;

use crate::controller::head::address::port;
use crate::telemetry::ray_autoscaler::{AutoscalerFigures, NodeCounts};

/// The most node types, and the most resources, that are counted: they are names that the users of the cluster choose, and
/// each is a series.
const NAMES: usize = 1_000;

/// The longest of these names; Kubernetes has no longer ones.
const LONGEST: usize = 253;

/// The part of a RayCluster on which the figures depend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClusterGroups {
    /// The port of the GCS.
    pub port: u16,
    /// The resources that Ray's autoscaler derives for a node of each group, the head's included; none where
    /// it cannot.
    pub resources: BTreeMap<String, NodeResources>,
}

impl ClusterGroups {
    /// The part of this RayCluster.
    pub(super) fn of(cluster: &Value) -> Self {
        let spec = cluster["spec"].as_object();
        let spec = spec.map(|spec| Cluster::parse(Kind::RayCluster, spec));
        let groups = spec.iter().flat_map(Cluster::groups);
        let named = groups.filter_map(|group| {
            let resources = NodeResources::of(group).unwrap_or_default();
            Some((group.name?.to_owned(), resources))
        });
        Self {
            port: port(cluster),
            resources: named.take(NAMES).collect(),
        }
    }
}

/// The pods of workers that have stopped, counted from one answer of the GCS to the next.
#[derive(Debug, Default)]
pub(super) struct StoppedPods {
    count: u64,
    live: HashSet<String>,
}

impl StoppedPods {
    /// The number of stopped pods, now that this is the state.
    pub(super) fn count(&mut self, state: &ClusterResourceState) -> u64 {
        let live = state.live().into_values();
        let workers = live.filter(|node| !node.is_head() && !node.instance_id.is_empty());
        let live: HashSet<String> = workers.map(|node| node.instance_id.clone()).collect();
        self.count += self.live.difference(&live).count() as u64;
        self.live = live;
        self.count
    }
}

/// The figures. (Ray, `autoscaler/v2/metrics_reporter.py`.)
pub(super) fn figures(
    groups: &ClusterGroups,
    state: &ClusterResourceState,
    launches: &LaunchCounts,
) -> AutoscalerFigures {
    // Ray shows each node type of its configuration, also one without nodes.
    let types = groups.resources.keys();
    let mut nodes: BTreeMap<String, NodeCounts> = types
        .map(|name| (name.clone(), NodeCounts::default()))
        .collect();
    let names = groups.resources.values().flat_map(NodeResources::iter);
    let names = names.map(|(name, _)| name).filter(|name| is_shown(name));
    let mut pending: BTreeMap<String, f64> = BTreeMap::new();
    for name in names {
        if pending.len() < NAMES {
            // Ray's gauge keeps the last amount for ever when nothing is pending any more.
            pending.entry(name.to_owned()).or_default();
        }
    }
    let mut cluster: BTreeMap<String, f64> = BTreeMap::new();
    // A node that drains is neither active nor pending.
    let live = state.live().into_values();
    for node in live.filter(|node| node.status != NodeStatus::Draining) {
        if let Some(counts) = entry(&mut nodes, &node.ray_node_type_name) {
            counts.active += 1;
        }
        // As Ray does it, the names are those of the group: there are no addresses and placement groups among them.
        let derived = groups.resources.get(&node.ray_node_type_name);
        for (name, _) in derived.iter().flat_map(|derived| derived.iter()) {
            if pending.contains_key(name) {
                let amount = node.total_resources.get(name).copied().unwrap_or(0.0);
                *cluster.entry(name.to_owned()).or_default() += amount;
            }
        }
    }
    for (group, count) in &launches.pending {
        if let Some(counts) = entry(&mut nodes, group) {
            counts.pending += count;
        }
        let derived = groups.resources.get(group);
        for (name, amount) in derived.iter().flat_map(|derived| derived.iter()) {
            if let Some(sum) = pending.get_mut(name) {
                *sum += float(amount) * float(i64::try_from(*count).unwrap_or(i64::MAX));
            }
        }
    }
    for (group, count) in &launches.failed {
        if let Some(counts) = entry(&mut nodes, group) {
            counts.failed += count;
        }
    }
    AutoscalerFigures {
        nodes,
        cluster,
        pending,
        ..AutoscalerFigures::default()
    }
}

fn is_shown(name: &str) -> bool {
    name.len() <= LONGEST
}

/// The counts of a node type, unless there are too many types.
fn entry<'a>(
    nodes: &'a mut BTreeMap<String, NodeCounts>,
    name: &str,
) -> Option<&'a mut NodeCounts> {
    if !nodes.contains_key(name) && (nodes.len() >= NAMES || !is_shown(name)) {
        return None;
    }
    Some(nodes.entry(name.to_owned()).or_default())
}

#[expect(clippy::cast_precision_loss, reason = "Ray's amounts are floats")]
fn float(amount: i64) -> f64 {
    amount as f64
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn groups() -> ClusterGroups {
        let sized = |cpu: &str| json!({"spec": {"containers": [{"resources": {"limits": {"cpu": cpu, "memory": "1k"}}}]}});
        ClusterGroups::of(&json!({"spec": {
        "headGroupSpec": {"rayStartParams": {"num-cpus": "0", "port": "7000"}, "template": sized("1")},
        "workerGroupSpecs": [
            {"groupName": "cpu", "rayStartParams": {}, "template": sized("2")},
            {"groupName": "broken", "rayStartParams": {"num-cpus": "many"}, "template": sized("2")},
        ]}}))
    }

    fn state(nodes: &[(&str, &str, NodeStatus)]) -> ClusterResourceState {
        let node = |(pod, group, status): &(&str, &str, NodeStatus)| {
            rayfit_core::snapshot::gcs::NodeState {
                instance_id: (*pod).to_owned(),
                ray_node_type_name: (*group).to_owned(),
                status: *status,
                total_resources: [
                    ("CPU".to_owned(), 3.0),
                    ("memory".to_owned(), 1000.0),
                    ("node:10.0.0.1".to_owned(), 1.0),
                ]
                .into(),
                ..Default::default()
            }
        };
        ClusterResourceState {
            node_states: nodes.iter().map(node).collect(),
            ..Default::default()
        }
    }

    #[test]
    fn nodes_are_counted_by_type_with_what_they_really_have() {
        let state = state(&[
            ("h", "headgroup", NodeStatus::Idle),
            ("a", "cpu", NodeStatus::Running),
            ("b", "cpu", NodeStatus::Draining),
            ("c", "cpu", NodeStatus::Dead),
            ("d", "gone", NodeStatus::Running),
        ]);
        let launches = LaunchCounts {
            pending: [("cpu".to_owned(), 2)].into(),
            failed: [("broken".to_owned(), 1)].into(),
        };
        let groups = groups();
        assert_eq!(groups.port, 7000);
        let figures = figures(&groups, &state, &launches);
        let counts = |active, pending, failed| NodeCounts {
            active,
            pending,
            failed,
        };
        let nodes = [
            ("broken".to_owned(), counts(0, 0, 1)),
            ("cpu".to_owned(), counts(1, 2, 0)),
            ("gone".to_owned(), counts(1, 0, 0)),
            ("headgroup".to_owned(), counts(1, 0, 0)),
        ];
        assert_eq!(figures.nodes, nodes.into());
        // A pod that has grown counts as it is, and a pending one as its group says.
        let cluster = [("CPU".to_owned(), 6.0), ("memory".to_owned(), 2000.0)];
        assert_eq!(figures.cluster, cluster.into());
        let pending = [("CPU".to_owned(), 4.0), ("memory".to_owned(), 2000.0)];
        assert_eq!(figures.pending, pending.into());
    }

    #[test]
    fn many_names_make_no_more_series_than_there_may_be() {
        let nodes: Vec<String> = (0..3 * NAMES).map(|at| format!("{at}-type")).collect();
        let long = "x".repeat(LONGEST + 1);
        let mut listed: Vec<_> = nodes
            .iter()
            .map(|name| (name.as_str(), name.as_str(), NodeStatus::Idle))
            .collect();
        listed.insert(0, ("long", &long, NodeStatus::Idle));
        let figures = figures(&groups(), &state(&listed), &LaunchCounts::default());
        assert_eq!(figures.nodes.len(), NAMES);
        assert!(!figures.nodes.contains_key(&long));
        assert!(figures.nodes.contains_key("cpu"));
    }

    #[test]
    fn a_pod_that_is_gone_has_stopped() {
        let mut stopped = StoppedPods::default();
        let both = state(&[
            ("a", "cpu", NodeStatus::Running),
            ("b", "cpu", NodeStatus::Idle),
        ]);
        assert_eq!(stopped.count(&both), 0);
        let one = state(&[
            ("a", "cpu", NodeStatus::Dead),
            ("b", "cpu", NodeStatus::Draining),
        ]);
        assert_eq!(stopped.count(&one), 1);
        assert_eq!(stopped.count(&state(&[])), 2);
        assert_eq!(stopped.count(&state(&[])), 2);
    }
}
