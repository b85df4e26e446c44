//! The state that the phases of a decision work on.

use std::collections::BTreeMap;

use crate::hash::HashMap;
use crate::plan::demand::names::{Name, Names};
use crate::plan::demand::shape::Shapes;
use crate::plan::growth::headroom::NodeHeadroom;
use crate::plan::list::{ByGroup, GroupIndex, KubeNodeIndex, List, NodeIndex};
use crate::plan::nodes::node::{Fate, NodeClasses, NodeGroup, PlannedNode};
use crate::plan::nodes::preference::Preference;
use crate::plan::nodes::tables::SliceTables;
use crate::plan::outcome::problem::{Problem, ProblemPlace, ProblemReason};
use crate::plan::packing::budget::WorkBudget;
use crate::plan::slices::blocked::reason::BlockReason;
use crate::plan::slices::growth_backoff::reason::CountedAtBase;
use crate::snapshot::group_spec::GroupSpec;

/// The nodes, the groups and the requests of one decision, with all texts turned into numbers.
pub(crate) struct DecisionState {
    pub(crate) names: Names,
    pub(crate) cpu: Name,
    pub(crate) memory: Name,
    pub(crate) gpu: Name,
    pub(crate) shapes: Shapes,
    pub(crate) classes: NodeClasses,
    pub(crate) groups: ByGroup<PlannedGroup>,
    /// Every node. The order has no meaning: `order` has the nodes in Ray's order.
    pub(crate) nodes: List<NodeIndex, PlannedNode>,
    /// The numbers of the nodes in the order of Ray's list. Among equally good nodes the earlier
    /// one wins.
    pub(crate) order: Vec<NodeIndex>,
    /// A group is blocked, or a pending node would not start now.
    pub(crate) has_blocked: bool,
    pub(crate) tables: SliceTables,
    /// The headroom of the Kubernetes nodes.
    pub(crate) headrooms: List<KubeNodeIndex, NodeHeadroom>,
    /// The most nodes that the cluster may have, the head included.
    pub(crate) max_nodes: u64,
    /// No launch takes the number of workers above this.
    pub(crate) max_workers: u64,
    /// The number of nodes of the groups that cannot be read, whether they are in `nodes` or not.
    pub(crate) unread_nodes: u64,
    /// A launch was cut short by `max_workers`.
    pub(crate) is_cut: bool,
    /// By group, since when its pending nodes have been of no use, in seconds since 1970; empty where that is not asked
    /// for.
    pub(crate) unneeded_since: BTreeMap<String, Vec<f64>>,
    pub(crate) conserve_gpus: bool,
    pub(crate) work: WorkBudget,
}

/// A group, with what packing is to know of it.
#[derive(Debug)]
pub(crate) struct PlannedGroup {
    pub(crate) config: GroupSpec,
    /// The preference between equally good nodes.
    pub(crate) preference: Preference,
    /// The reason why the group cannot be served now; `None` if it can.
    pub(crate) block: Option<BlockReason>,
    /// A node of the group at its base size.
    pub(crate) base: PlannedNode,
    /// A node of the group at the largest size that the group's resize limits allow.
    pub(crate) template: PlannedNode,
    /// The reason why new nodes count at their base size, if they do.
    pub(crate) at_base: Option<CountedAtBase>,
    /// The number of draining pods that still count towards the group's maximum.
    pub(crate) draining: u64,
}

impl DecisionState {
    /// The name of a node's group.
    pub(crate) fn group_name<'a>(&'a self, node: &'a PlannedNode) -> &'a str {
        match &node.group {
            NodeGroup::Known(number) => self.name(*number),
            NodeGroup::Gone(name) => name,
        }
    }

    /// The name of a group.
    pub(crate) fn name(&self, group: GroupIndex) -> &str {
        &self.groups[group].config.name
    }

    /// The number of nodes of a replica of a group.
    pub(crate) fn hosts(&self, group: GroupIndex) -> u64 {
        self.groups[group].config.hosts.max(1)
    }

    /// A node's group, unless that is gone.
    pub(crate) fn group(&self, node: &PlannedNode) -> Option<&PlannedGroup> {
        Some(&self.groups[node.group()?])
    }

    /// The nodes in the order of the list.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = &PlannedNode> {
        self.entries().map(|(_, node)| node)
    }

    /// The nodes in the order of the list, with their numbers.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (NodeIndex, &PlannedNode)> {
        let numbers = self.order.iter();
        numbers.map(|number| (*number, &self.nodes[*number]))
    }

    /// By group, how many nodes `counts` is true of. Nodes that are to be removed are in the list
    /// too.
    pub(crate) fn count(&self, counts: impl Fn(&PlannedNode) -> bool) -> ByGroup<u64> {
        let mut count = self.groups.map(|_| 0);
        for node in self.in_order().filter(|node| counts(node)) {
            if let Some(group) = node.group() {
                count[group] = node.count.saturating_add(count[group]);
            }
        }
        count
    }

    /// The number of nodes that several entries stand for.
    pub(crate) fn sum(&self, numbers: &[NodeIndex]) -> u64 {
        let sizes = numbers.iter().map(|number| self.nodes[*number].count);
        sizes.fold(0, u64::saturating_add)
    }

    /// Splits the first `count` nodes off an entry that stands for more. Returns the number of
    /// their own entry, which is not in `order` yet.
    pub(crate) fn split(&mut self, number: NodeIndex, count: u64) -> NodeIndex {
        let node = &mut self.nodes[number];
        let mut first = node.clone();
        node.count = node.count.saturating_sub(count);
        first.count = count;
        let part = self.nodes.push(first);
        self.tables.split(number, part);
        part
    }

    /// The number of further workers that may be launched, in all groups.
    pub(crate) fn places(&self) -> u64 {
        let (mut readable, mut unread) = (0_u64, 0_u64);
        for node in self.in_order().filter(|node| node.stays() && !node.head) {
            let sum = match node.group() {
                Some(_) => &mut readable,
                None => &mut unread,
            };
            *sum = sum.saturating_add(node.count);
        }
        // KubeRay can read such a group, and makes as many pods as its `replicas` say, seen or not.
        unread = unread.max(self.unread_nodes);
        self.max_workers
            .saturating_sub(readable.saturating_add(unread))
    }

    /// The number of further workers that KubeRay may be asked for now, where each group has
    /// `present` pods.
    pub(crate) fn places_beside(&self, present: &ByGroup<u64>) -> u64 {
        let workers = self.groups.iter().zip(present.iter());
        let workers = workers.filter(|(group, _)| !group.config.is_head());
        // A pod that drains is there until it is gone.
        let taken = workers.map(|(group, present)| group.draining.saturating_add(*present));
        let taken = taken.fold(self.unread_nodes, u64::saturating_add);
        self.max_workers.saturating_sub(taken)
    }

    /// True for a node with room that is kept ready, or that a schedule may keep.
    pub(crate) fn is_on_standby(&self, number: NodeIndex) -> bool {
        let group = self.nodes[number].group();
        let has_floor = group.is_some_and(|group| self.tables.floors.contains_key(&group));
        has_floor || self.tables.needed_for(number).is_some()
    }

    /// By number, the nodes that demand or the minimum of their group needs.
    pub(crate) fn required(&self) -> List<NodeIndex, bool> {
        let staying = self.count(PlannedNode::stays);
        let at_minimum = |node: &PlannedNode| {
            let is_at = |group: GroupIndex| staying[group] <= self.groups[group].config.min;
            node.group().is_some_and(is_at)
        };
        let is_required = |node: &PlannedNode| {
            node.stays() && (node.head || !node.is_unneeded() || at_minimum(node))
        };
        self.nodes.map(is_required)
    }

    /// The number of further nodes that the cluster may have, the head included.
    pub(crate) fn nodes_left(&self) -> u64 {
        let listed = self.in_order().filter(|node| node.stays());
        let listed = listed.fold(0, |sum: u64, node| sum.saturating_add(node.count));
        self.max_nodes.saturating_sub(listed)
    }

    /// The number of nodes that each group may still launch, where the nodes take a place of which `takes_place` is
    /// true.
    pub(crate) fn launchable(&self, takes_place: impl Fn(&PlannedNode) -> bool) -> ByGroup<u64> {
        let present = self.count(takes_place);
        let places = |(group, present): (&PlannedGroup, u64)| {
            let taken = present.saturating_add(group.draining);
            group.config.max.saturating_sub(taken)
        };
        self.groups.iter().zip(present).map(places).collect()
    }

    /// By group, how many nodes are missing for its minimum, if only the nodes that `counts` is
    /// true of are counted.
    pub(crate) fn lacking(&self, counts: impl Fn(&PlannedNode) -> bool) -> ByGroup<u64> {
        let groups = self.groups.iter().zip(self.count(counts));
        groups
            .map(|(group, present)| group.config.min.saturating_sub(present))
            .collect()
    }

    /// The problem that a launch was cut short, if one was.
    pub(crate) fn cut(&self) -> Option<Problem> {
        self.is_cut.then_some(Problem {
            at: ProblemPlace::Workers,
            reason: ProblemReason::TooManyWorkers(self.max_workers),
            effect:
                "no more are launched; set reconcile.maxWorkersPerCluster in a RayPolicy if so \
                     many are meant"
                    .into(),
        })
    }

    /// True while KubeRay leaves the cluster alone, because a group is suspended.
    pub(crate) fn is_left_alone(&self) -> bool {
        self.groups.iter().any(|group| group.config.suspended)
    }

    /// Adds new nodes of a group, which are launched for its minimum and count as the node that `likeness` takes of
    /// the group. Returns the number of their entry.
    pub(crate) fn launch(
        &mut self,
        group: GroupIndex,
        count: u64,
        likeness: fn(&PlannedGroup) -> &PlannedNode,
    ) -> NodeIndex {
        let mut node = likeness(&self.groups[group]).clone();
        node.fate = Fate::Launch;
        node.count = count;
        node.born = self.nodes.upcoming(0);
        self.nodes.push(node)
    }
}

/// The list, with the entries that were split off each entry in front of it.
pub(crate) fn with_parts(
    order: Vec<NodeIndex>,
    parts: &HashMap<NodeIndex, Vec<NodeIndex>>,
) -> Vec<NodeIndex> {
    if parts.is_empty() {
        return order;
    }
    let mut whole = Vec::with_capacity(order.len() + parts.len());
    // A stack and no recursion: parts are split off parts, as often as a hostile demand has
    // requests.
    let mut open: Vec<(NodeIndex, bool)> = order.into_iter().rev().map(|at| (at, false)).collect();
    while let Some((number, is_done)) = open.pop() {
        match parts.get(&number).filter(|_| !is_done) {
            Some(split) => {
                open.push((number, true));
                open.extend(split.iter().rev().map(|part| (*part, false)));
            }
            None => whole.push(number),
        }
    }
    whole
}
