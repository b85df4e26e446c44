//! From rows to nodes as packing sees them: as Ray reports them, or as their group starts them.

use std::collections::{BTreeMap, BTreeSet};

use crate::plan::demand::names::{Name, Names};
use crate::plan::nodes::group::{ClusterConfig, GroupConfig};
use crate::plan::nodes::node::{Fate, NodeResource, PlannedNode, Stage};
use crate::plan::nodes::rows::Row;
use crate::snapshot::Snapshot;
use crate::snapshot::gcs::NodeState;

/// Builds planned nodes from rows.
pub(crate) struct NodeReader<'a> {
    pub(crate) names: &'a Names,
    /// The resources that requests name, and CPU, memory and GPU.
    pub(crate) wanted: BTreeSet<Name>,
    /// The labels that requests name.
    pub(crate) labels: BTreeSet<Name>,
}

impl NodeReader<'_> {
    /// The node of a row. Its group is `config`, which has the number `group`.
    pub(crate) fn node(
        &self,
        row: &Row<'_>,
        group: usize,
        config: Option<&GroupConfig>,
    ) -> PlannedNode {
        let mut node = match (row.stage, row.ray, config) {
            (Stage::Running, Some(ray), _) => self.running(ray, group),
            (_, _, Some(config)) => self.template(config, group),
            _ => empty(group),
        };
        node.pod = row.pod.map(|pod| pod.name.to_owned()).unwrap_or_default();
        node.replica = row.pod.and_then(|pod| pod.replica).map(str::to_owned);
        node.head = row.head;
        node.stage = row.stage;
        node.fate = Fate::Stay;
        node.since = row.since;
        node.count = row.count;
        node
    }

    /// A node as its group starts it, at its base size.
    pub(crate) fn template(&self, config: &GroupConfig, group: usize) -> PlannedNode {
        let mut node = empty(group);
        for (name, total) in &config.resources {
            self.add(&mut node, name, Some(*total), Some(*total));
        }
        let labels = config.labels.iter().map(|(label, value)| (label, value));
        node.labels = self.known_labels(labels);
        node
    }

    /// A node as Ray reports it.
    fn running(&self, ray: &NodeState, group: usize) -> PlannedNode {
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
        labels.extend(&ray.dynamic_labels);
        node.labels = self.known_labels(labels.into_iter());
        node.ray_id.clone_from(&ray.node_id);
        node.idle_ms = ray.idle_duration_ms;
        let total = |name: &str| ray.total_resources.get(name).copied();
        node.raylet_size = Some((total("CPU").unwrap_or(0.0), total("memory").unwrap_or(0.0)));
        node
    }

    /// Adds a resource, or only counts it if it makes no difference except in means.
    fn add(&self, node: &mut PlannedNode, name: &str, total: Option<f64>, free: Option<f64>) {
        let Some(known) = self.names.get(name) else {
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
                Some((label, self.names.get(value).unwrap_or(Name(u32::MAX))))
            })
            .collect();
        known.sort_unstable();
        known
    }
}

fn empty(group: usize) -> PlannedNode {
    PlannedNode {
        pod: String::new(),
        group,
        gone_group: None,
        head: false,
        stage: Stage::New,
        fate: Fate::Stay,
        ray_id: String::new(),
        idle_ms: 0,
        amounts: Vec::new(),
        untouched: 0,
        labels: Vec::new(),
        placed: [Vec::new(), Vec::new()],
        takes: Vec::new(),
        resize: None,
        raylet_size: None,
        at_cap: false,
        since: None,
        replica: None,
        class: [None; 2],
        held: false,
        count: 1,
        born: 0,
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
