//! From rows to nodes as packing sees them: as Ray reports them, or as their group starts them.

use std::collections::{BTreeMap, BTreeSet};

use crate::plan::demand::names::{Name, Names};
use crate::plan::demand::requests;
use crate::plan::list::{GroupIndex, ListPosition, NodeIndex};
use crate::plan::nodes::group::{ClusterConfig, GroupConfig};
use crate::plan::nodes::life::{ExistingNode, NodeLife, RayInPod, Raylet, Stage};
use crate::plan::nodes::node::{Fate, NodeGroup, NodeResource, PlannedNode, StartProspect};
use crate::plan::nodes::rows::Row;
use crate::plan::nodes::standby_role::StandbyRole;
use crate::snapshot::Snapshot;
use crate::snapshot::gcs::{ClusterResourceState, NodeState, ResourceRequest};

/// Builds planned nodes from rows.
pub(crate) struct NodeReader<'a> {
    pub(crate) names: &'a Names,
    /// The resources that requests name, and CPU, memory and GPU.
    pub(crate) wanted: BTreeSet<Name>,
    /// The labels that requests name.
    pub(crate) labels: BTreeSet<Name>,
}

impl NodeReader<'_> {
    /// The node of a row, whose group has that number, unless it is gone.
    pub(crate) fn node(
        &self,
        row: &Row<'_>,
        group: Option<(GroupIndex, &GroupConfig)>,
    ) -> PlannedNode {
        let gone = || NodeGroup::Gone(row.group.to_owned());
        let mut node = match (row.stage, row.ray, group) {
            (Stage::Running, Some(ray), _) => {
                let known = group.map(|(number, _)| NodeGroup::Known(number));
                self.running(ray, known.unwrap_or_else(gone))
            }
            (_, _, Some((number, config))) => self.template(config, number),
            _ => empty(gone()),
        };
        node.head = row.head;
        node.life = life(row);
        node.count = row.count;
        node
    }

    /// A node as its group starts it, at its base size.
    pub(crate) fn template(&self, config: &GroupConfig, group: GroupIndex) -> PlannedNode {
        let mut node = empty(NodeGroup::Known(group));
        for (name, total) in &config.resources {
            self.add(&mut node, name, Some(*total), Some(*total));
        }
        let labels = config.labels.iter().map(|(label, value)| (label, value));
        node.labels = self.known_labels(labels);
        node
    }

    /// A node as Ray reports it.
    fn running(&self, ray: &NodeState, group: NodeGroup) -> PlannedNode {
        let mut node = empty(group);
        for (name, total) in &ray.total_resources {
            self.add(
                &mut node,
                name,
                Some(*total),
                ray.available_resources.get(name).copied(),
            );
        }
        for (name, free) in &ray.available_resources {
            if !ray.total_resources.contains_key(name) {
                self.add(&mut node, name, None, Some(*free));
            }
        }
        let mut labels: BTreeMap<&String, &String> = ray.labels.iter().collect();
        // The dynamic label counts if both name a label. (Ray, `scheduler.py`.)
        labels.extend(&ray.dynamic_labels);
        node.labels = self.known_labels(labels.into_iter());
        node.idle_ms = ray.idle_duration_ms;
        node
    }

    /// Adds a resource, or only counts it if it makes no difference except in means.
    fn add(&self, node: &mut PlannedNode, name: &str, total: Option<f64>, free: Option<f64>) {
        let Some(known) = self.names.get(name) else {
            // Ray leaves a total of zero out of its means.
            if total.is_some_and(|total| total > 0.0) {
                node.untouched += 1;
            }
            return;
        };
        if self.wanted.contains(&known)
            || (total != free && total.is_some_and(|total| total != 0.0))
        {
            node.amounts.push(NodeResource {
                name: known,
                total,
                free: [free, total],
            });
        } else if total.is_some_and(|total| total > 0.0) {
            node.untouched += 1;
        }
    }

    fn known_labels<'b>(
        &self,
        labels: impl Iterator<Item = (&'b String, &'b String)>,
    ) -> Vec<(Name, Name)> {
        let mut known: Vec<(Name, Name)> = labels
            .filter_map(|(label, value)| {
                let label = self
                    .names
                    .get(label)
                    .filter(|label| self.labels.contains(label))?;
                // A value that no request names is different from all values that requests name.
                Some((label, self.names.get(value).unwrap_or(Name::UNNAMED)))
            })
            .collect();
        known.sort_unstable();
        known
    }
}

/// The stage of life of a row's node.
fn life(row: &Row<'_>) -> NodeLife {
    let Some(pod) = row.pod else {
        return match row.stage {
            Stage::Queued => NodeLife::Queued,
            _ => NodeLife::Requested { since: row.since },
        };
    };
    let ray = match (row.stage, row.ray) {
        (Stage::Running, Some(ray)) => RayInPod::Running(raylet(ray)),
        (Stage::Stopping, _) => RayInPod::Stopping { since: row.since },
        _ => RayInPod::Absent,
    };
    NodeLife::Existing(ExistingNode {
        pod: pod.name.to_owned(),
        replica: pod.replica.map(str::to_owned),
        ray,
    })
}

fn raylet(ray: &NodeState) -> Raylet {
    let total = |name| ray.total_resources.get(name).copied().unwrap_or(0.0);
    Raylet {
        id: Some(ray.node_id.clone()).filter(|id| !id.is_empty()),
        cpu: total("CPU"),
        memory: total("memory"),
    }
}

fn empty(group: NodeGroup) -> PlannedNode {
    PlannedNode {
        group,
        head: false,
        life: NodeLife::New,
        fate: Fate::Stay,
        idle_ms: 0,
        amounts: Vec::new(),
        untouched: 0,
        labels: Vec::new(),
        placed: [Vec::new(), Vec::new()],
        takes: Vec::new(),
        resize: None,
        unschedulable_s: None,
        gated_s: None,
        at_resize_limits: false,
        start: StartProspect::Expected,
        class: [None; 2],
        count: 1,
        born: NodeIndex::at(0),
        standby: StandbyRole::None,
        kept: None,
    }
}

/// Collects the texts by which nodes are compared with requests: those of the requests themselves,
/// CPU, memory and GPU, and the resources in use. All other texts only need counting.
pub(crate) fn texts<'a>(
    snapshot: &'a Snapshot,
    config: &'a ClusterConfig,
    texts: &mut BTreeSet<&'a str>,
) {
    texts.extend(["CPU", "memory", "GPU"]);
    for node in &snapshot.gcs.node_states {
        let partly =
            |(name, total): &(&String, &f64)| node.available_resources.get(*name) != Some(*total);
        texts.extend(
            node.total_resources
                .iter()
                .filter(partly)
                .map(|(name, _)| name.as_str()),
        );
    }
    // There are only a few groups, so their resources are listed too. They then keep their places
    // in the sums that scores are made of.
    texts.extend(
        config
            .groups
            .iter()
            .flat_map(|group| &group.resources)
            .map(|(name, _)| name.as_str()),
    );
}

/// The resources that anything asks for, and CPU, memory and GPU.
pub(crate) fn wanted<'a>(
    gcs: &'a ClusterResourceState,
    standby: impl Iterator<Item = &'a str>,
    names: &Names,
) -> BTreeSet<Name> {
    let requested = requests::requests(gcs).flat_map(|request| request.resources_bundle.keys());
    let wanted = requested
        .map(String::as_str)
        .chain(standby)
        .chain(["CPU", "memory", "GPU"]);
    wanted.filter_map(|name| names.get(name)).collect()
}

/// The labels that requests name.
pub(crate) fn labels(gcs: &ClusterResourceState, names: &Names) -> BTreeSet<Name> {
    let of = |request: &ResourceRequest| {
        let selected = request
            .label_selectors
            .iter()
            .flat_map(|s| &s.label_constraints);
        let apart = request
            .placement_constraints
            .iter()
            .filter_map(|c| c.anti_affinity.as_ref());
        let labels: Vec<Name> = selected
            .filter_map(|c| names.get(&c.label_key))
            .chain(apart.filter_map(|label| names.get(&label.label_name)))
            .collect();
        labels
    };
    requests::requests(gcs).flat_map(of).collect()
}
