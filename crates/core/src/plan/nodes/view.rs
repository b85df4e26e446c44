//! From rows to nodes as packing sees them: as Ray reports them, or as their group starts them.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::plan::demand::names::{Name, Names};
use crate::plan::demand::requests::requests;
use crate::plan::list::{GroupIndex, NodeIndex};
use crate::plan::nodes::amounts::{NodeAmounts, NodeResource};
use crate::plan::nodes::group::ClusterConfig;
use crate::plan::nodes::node::{Fate, NodeGroup, NodeLife, PlannedNode, RayInPod, Stage};
use crate::plan::nodes::rows::NodeRow;
use crate::snapshot::Snapshot;
use crate::snapshot::group_spec::GroupSpec;

/// Builds planned nodes from rows.
pub(crate) struct NodeReader {
    /// The texts by which nodes are compared with requests. All other texts only need counting.
    pub(crate) names: Names,
    /// The resources that requests name, and CPU, memory and GPU.
    resources: BTreeSet<Name>,
    /// The labels that requests name.
    labels: BTreeSet<Name>,
}

impl NodeReader {
    /// A reader of nodes that are compared with the requests of the GCS, and with `further` resources.
    pub(crate) fn of(snapshot: &Snapshot, config: &ClusterConfig, further: &[&str]) -> Self {
        let mut resources = BTreeSet::from(["CPU", "memory", "GPU"]);
        resources.extend(further);
        let (mut labels, mut others) = (BTreeSet::<&str>::new(), BTreeSet::<&str>::new());
        for request in requests(&snapshot.gcs) {
            resources.extend(request.resources_bundle.keys().map(String::as_str));
            let selectors = request.label_selectors.iter();
            for constraint in selectors.flat_map(|selector| &selector.label_constraints) {
                labels.insert(&constraint.label_key);
                others.extend(constraint.label_values.iter().map(String::as_str));
            }
            for constraint in &request.placement_constraints {
                let apart = constraint.anti_affinity.iter();
                labels.extend(apart.map(|label| label.label_name.as_str()));
                for label in constraint.anti_affinity.iter().chain(&constraint.affinity) {
                    others.extend([label.label_name.as_str(), label.label_value.as_str()]);
                }
            }
        }
        for node in &snapshot.gcs.node_states {
            let totals = node.total_resources.iter();
            let used =
                totals.filter(|(name, total)| node.available_resources.get(*name) != Some(*total));
            others.extend(used.map(|(name, _)| name.as_str()));
        }
        // There are only a few groups, so their resources are listed too. They then keep their places
        // in the sums that scores are made of.
        let of_groups = config.groups.iter().flat_map(|group| &group.resources);
        others.extend(of_groups.flatten().map(|(name, _)| name.as_str()));
        others.extend(resources.iter().chain(&labels));
        let names = Names::of(others);
        let numbers = |texts: BTreeSet<&str>| -> BTreeSet<Name> {
            texts.iter().map(|text| names.number(text)).collect()
        };
        Self {
            resources: numbers(resources),
            labels: numbers(labels),
            names,
        }
    }

    /// The node of a row, whose group has that number, unless it is gone: as Ray reports it, or as its
    /// group starts it.
    pub(crate) fn node(
        &self,
        row: &NodeRow<'_>,
        group: Option<(GroupIndex, &GroupSpec)>,
    ) -> PlannedNode {
        let listed = group.map(|(number, _)| NodeGroup::Known(number));
        let mut node = empty(listed.unwrap_or_else(|| NodeGroup::Gone(row.group.to_owned())));
        // Once Ray runs, its own amounts count: images and scripts may start it with others than the template has.
        if let (Stage::Running, Some(ray)) = (row.stage, row.ray) {
            for (name, total) in &ray.total_resources {
                let free = ray.available_resources.get(name).copied();
                self.add(&mut node, name, Some(*total), free);
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
        } else if let Some((number, config)) = group {
            node = self.template(config, number);
        }
        node.head = row.head;
        node.life = life(row);
        node.count = row.count;
        node
    }

    /// A node as its group starts it, at its base size.
    pub(crate) fn template(&self, config: &GroupSpec, group: GroupIndex) -> PlannedNode {
        let mut node = empty(NodeGroup::Known(group));
        for (name, total) in config.resources.iter().flatten() {
            self.add(&mut node, name, Some(*total), Some(*total));
        }
        let labels = config.labels.iter().map(|(label, value)| (label, value));
        node.labels = self.known_labels(labels);
        node
    }

    /// Adds a resource, or only counts it if it makes no difference except in means.
    fn add(&self, node: &mut PlannedNode, name: &str, total: Option<f64>, free: Option<f64>) {
        let is_in_use = total != free && total.is_some_and(|total| total != 0.0);
        let listed = self.names.get(name);
        let listed = listed.filter(|name| is_in_use || self.resources.contains(name));
        if let Some(name) = listed {
            node.amounts.listed.push(NodeResource {
                name,
                total,
                free: [free, total],
            });
        } else if total.is_some_and(|total| total > 0.0) {
            // Ray leaves a total of zero out of its means.
            node.amounts.untouched += 1;
        }
    }

    fn known_labels<'b>(
        &self,
        labels: impl Iterator<Item = (&'b String, &'b String)>,
    ) -> Vec<(Name, Name)> {
        let mut named: Vec<(Name, Name)> = labels
            .filter_map(|(label, value)| {
                let label = self.names.get(label)?;
                // A value that no request names is different from all values that requests name.
                let is_named = self.labels.contains(&label);
                is_named.then(|| (label, self.names.number(value)))
            })
            .collect();
        named.sort_unstable();
        named
    }
}

/// The stage of life of a row's node.
fn life(row: &NodeRow<'_>) -> NodeLife {
    let Some(pod) = row.pod else {
        return match row.stage {
            Stage::Queued => NodeLife::Queued,
            _ => NodeLife::Requested { since: row.since },
        };
    };
    let ray = match (row.stage, row.ray) {
        (Stage::Running, Some(ray)) => {
            let total = |name| ray.total_resources.get(name).copied().unwrap_or(0.0);
            RayInPod::Running {
                // The GCS cannot be asked about a Ray node without an id.
                id: Some(&*ray.node_id)
                    .filter(|id| !id.is_empty())
                    .map(Rc::from),
                cpu: total("CPU"),
                memory: total("memory"),
            }
        }
        (Stage::Stopping, _) => RayInPod::Stopping { since: row.since },
        _ => RayInPod::Absent,
    };
    NodeLife::Existing {
        pod: pod.name.into(),
        replica: pod.replica.map(Rc::from),
        ray,
    }
}

fn empty(group: NodeGroup) -> PlannedNode {
    PlannedNode {
        group,
        head: false,
        life: NodeLife::New,
        fate: Fate::Stay,
        idle_ms: 0,
        amounts: NodeAmounts::default(),
        labels: Vec::new(),
        placed: [Vec::new(), Vec::new()],
        takes: Vec::new(),
        resize: None,
        class: [None; 2],
        count: 1,
        born: NodeIndex::from(0),
    }
}
