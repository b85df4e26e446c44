//! From a snapshot to the nodes that are packed.
//!
//! Ray keeps a table of instances in memory; here the same list is derived anew from the objects:
//! first the instances that are remembered, then the Ray nodes in the order in which Ray reports
//! them, then the pods without a Ray node. (Ray, `reconciler.py`, `_sync_from`, in the state that
//! it settles in.)

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::group::{ClusterConfig, GroupConfig};
use super::names::{Name, Names};
use super::node::{Amount, Fate, Node, Stage};
use crate::snapshot::Snapshot;
use crate::snapshot::gcs::{NodeState, NodeStatus};
use crate::snapshot::history::InstanceStatus;
use crate::snapshot::pod::{Pod, PodRole};

/// A row of the list: a pod, a launch without one, or a pod that was asked to stop.
#[derive(Debug, Clone)]
pub(crate) struct Row<'a> {
    pub(crate) group: &'a str,
    pub(crate) pod: Option<&'a Pod<'a>>,
    pub(crate) ray: Option<&'a NodeState>,
    pub(crate) stage: Stage,
    pub(crate) head: bool,
    pub(crate) since: Option<f64>,
}

/// What of the snapshot's list is no row.
#[derive(Debug, Default)]
pub(crate) struct Leftovers<'a> {
    /// Pods whose Ray node has stopped.
    pub(crate) stopped: Vec<&'a Pod<'a>>,
    /// Pods whose Ray node is leaving.
    pub(crate) draining: Vec<&'a Pod<'a>>,
}

/// The list.
pub(crate) fn rows<'a>(
    snapshot: &'a Snapshot,
    pods: &'a [Pod<'a>],
) -> (Vec<Row<'a>>, Leftovers<'a>) {
    let live: Vec<&Pod<'_>> = pods
        .iter()
        .filter(|pod| !pod.deleting && pod.role != PodRole::Other)
        .collect();
    let mut builder = Builder {
        rows: Vec::new(),
        seen: HashSet::new(),
        live,
        snapshot,
    };
    builder.remembered();
    builder.reported();
    builder.others();
    builder.settle()
}

/// Adds the pods that KubeRay was asked for and has not made yet, as `replicas` tells: launches
/// survive a restart of the controller that way.
pub(crate) fn add_awaited<'a>(
    rows: &mut Vec<Row<'a>>,
    config: &'a ClusterConfig,
    pods: &[Pod<'_>],
) {
    for group in config.groups.iter().filter(|group| group.index.is_some()) {
        let asked = group
            .replicas
            .unwrap_or(0)
            .max(group.min_replicas)
            .clamp(0, group.max_replicas.max(0));
        let asked = asked.unsigned_abs().saturating_mul(group.hosts);
        let there = pods.iter().filter(|pod| {
            let leaves = pod.deleting || group.to_delete.iter().any(|name| name == pod.name);
            pod.group == group.name && pod.role == PodRole::Worker && !leaves
        });
        let awaited = |row: &&Row<'_>| {
            row.group == group.name && row.pod.is_none() && row.stage == Stage::Requested
        };
        let known = there.count() + rows.iter().filter(awaited).count();
        let row = Row {
            group: &group.name,
            pod: None,
            ray: None,
            stage: Stage::Requested,
            head: false,
            since: None,
        };
        let missing = asked.saturating_sub(known as u64);
        rows.extend((0..missing).map(|_| row.clone()));
    }
}

struct Builder<'a> {
    rows: Vec<Row<'a>>,
    seen: HashSet<&'a str>,
    live: Vec<&'a Pod<'a>>,
    snapshot: &'a Snapshot,
}

impl<'a> Builder<'a> {
    fn remembered(&mut self) {
        let instances = &self.snapshot.history.instances;
        let known: HashSet<&str> = instances.iter().filter_map(|i| i.pod.as_deref()).collect();
        let mut spare = self.unassigned(&known);
        for instance in instances {
            let asked = instance.status == InstanceStatus::Requested && instance.pod.is_none();
            let found = if asked {
                spare.get_mut(instance.group.as_str()).and_then(Vec::pop)
            } else {
                None
            };
            let pod = match &instance.pod {
                Some(name) => match self.live.iter().find(|pod| pod.name == name) {
                    Some(pod) => Some(*pod),
                    None => continue,
                },
                None => found,
            };
            let stage = match (instance.status, pod) {
                (InstanceStatus::StopRequested, Some(_)) => Stage::Stopping,
                (_, Some(_)) => Stage::Allocated,
                (InstanceStatus::Queued, None) => Stage::Queued,
                (_, None) => Stage::Requested,
            };
            self.row(
                pod.map_or(instance.group.as_str(), |pod| pod.group),
                pod,
                stage,
                instance.since,
            );
        }
    }

    /// Pods that nobody remembers, by group; launches take the last first.
    fn unassigned(&self, known: &HashSet<&str>) -> HashMap<&'a str, Vec<&'a Pod<'a>>> {
        let mut spare: HashMap<&str, Vec<&Pod<'_>>> = HashMap::new();
        for pod in self.live.iter().filter(|pod| !known.contains(pod.name)) {
            spare.entry(pod.group).or_default().push(pod);
        }
        spare
    }

    fn row(&mut self, group: &'a str, pod: Option<&'a Pod<'a>>, stage: Stage, since: Option<f64>) {
        if let Some(pod) = pod
            && !self.seen.insert(pod.name)
        {
            return;
        }
        let head = pod.is_some_and(|pod| pod.role == PodRole::Head);
        self.rows.push(Row {
            group,
            pod,
            ray: None,
            stage,
            head,
            since,
        });
    }

    /// Ray nodes that belong to a pod. A node without its pod is as good as gone.
    fn reported(&mut self) {
        let pods: HashMap<&str, &'a Pod<'a>> =
            self.live.iter().map(|pod| (pod.name, *pod)).collect();
        for ray in &self.snapshot.gcs.node_states {
            let Some(pod) = pods.get(ray.instance_id.as_str()).copied() else {
                continue;
            };
            if ray.status == NodeStatus::Dead || ray.status == NodeStatus::Unspecified {
                continue;
            }
            self.row(&ray.ray_node_type_name, Some(pod), Stage::Allocated, None);
        }
    }

    fn others(&mut self) {
        for pod in self.live.clone() {
            self.row(pod.group, Some(pod), Stage::Allocated, None);
        }
    }

    /// Joins rows and Ray nodes: the row's stage follows from the node's status.
    fn settle(self) -> (Vec<Row<'a>>, Leftovers<'a>) {
        let mut alive: HashMap<&str, &NodeState> = HashMap::new();
        let mut dead: HashSet<&str> = HashSet::new();
        for ray in &self.snapshot.gcs.node_states {
            match ray.status {
                NodeStatus::Dead => {
                    dead.insert(&ray.instance_id);
                }
                NodeStatus::Unspecified => {}
                _ => {
                    alive.insert(&ray.instance_id, ray);
                }
            }
        }
        let mut left = Leftovers::default();
        let mut rows = self.rows;
        rows.retain_mut(|row| {
            let Some(pod) = row.pod else { return true };
            row.ray = alive.get(pod.name).copied();
            match row.ray {
                None if dead.contains(pod.name) || row.stage == Stage::Stopping => {
                    left.stopped.push(pod);
                }
                Some(ray) if ray.status == NodeStatus::Draining => left.draining.push(pod),
                Some(ray) => {
                    row.head |= ray.is_head();
                    if row.stage == Stage::Allocated {
                        row.stage = Stage::Running;
                    }
                    return true;
                }
                None => return true,
            }
            false
        });
        (rows, left)
    }
}

/// Builds nodes from rows.
pub(crate) struct Sight<'a> {
    pub(crate) names: &'a Names,
    /// Resources that requests name, and CPU and memory.
    pub(crate) wanted: BTreeSet<Name>,
    /// Labels that requests name.
    pub(crate) labels: BTreeSet<Name>,
}

impl Sight<'_> {
    /// The node of a row whose group is `config`, number `group`.
    pub(crate) fn node(&self, row: &Row<'_>, group: usize, config: Option<&GroupConfig>) -> Node {
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
        node
    }

    /// A node as its group starts it.
    pub(crate) fn template(&self, config: &GroupConfig, group: usize) -> Node {
        let mut node = empty(group);
        for (name, total) in &config.resources {
            self.add(&mut node, name, Some(*total), Some(*total));
        }
        let labels = config.labels.iter().map(|(label, value)| (label, value));
        node.labels = self.known_labels(labels);
        node
    }

    /// A node as Ray reports it.
    fn running(&self, ray: &NodeState, group: usize) -> Node {
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

    /// Adds a resource, or only counts it if it can make no difference but in means.
    fn add(&self, node: &mut Node, name: &str, total: Option<f64>, free: Option<f64>) {
        let Some(known) = self.names.get(name) else {
            if total.is_some_and(|total| total > 0.0) {
                node.untouched += 1;
            }
            return;
        };
        if self.wanted.contains(&known)
            || (total != free && total.is_some_and(|total| total != 0.0))
        {
            node.amounts.push(Amount {
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
                // A value that no request names equals none of those that are named.
                Some((label, self.names.get(value).unwrap_or(Name(u32::MAX))))
            })
            .collect();
        known.sort_unstable();
        known
    }
}

fn empty(group: usize) -> Node {
    Node {
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
    }
}

/// The texts that nodes are looked at by: those of the requests, CPU, memory and GPU, and
/// resources in use. Everything else only needs counting.
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
    // Groups are few; their resources keep their places among the summands.
    texts.extend(
        config
            .groups
            .iter()
            .flat_map(|group| &group.resources)
            .map(|(name, _)| name.as_str()),
    );
}
