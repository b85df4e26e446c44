//! Everything that a decision works on.

use super::candidates::{Preference, States};
use super::fit::{Rules, Run};
use super::group::GroupConfig;
use super::improvements::Improvements;
use super::names::{Name, Names};
use super::node::{Fate, Node, Stage};
use super::room::Room;
use super::shape::Shapes;

/// The nodes, the groups and the requests, as texts turned into numbers.
pub(crate) struct World {
    pub(crate) names: Names,
    pub(crate) cpu: Option<Name>,
    pub(crate) memory: Option<Name>,
    pub(crate) gpu: Option<Name>,
    pub(crate) shapes: Shapes,
    pub(crate) states: States,
    pub(crate) groups: Vec<GroupConfig>,
    /// By group.
    pub(crate) preferences: Vec<Preference>,
    /// A node of each group as it starts, in the order of the groups.
    pub(crate) bases: Vec<Node>,
    /// The same, as large as it may become.
    pub(crate) templates: Vec<Node>,
    /// Every node, in no order that means anything.
    pub(crate) nodes: Vec<Node>,
    /// The nodes as Ray's list has them: earlier wins among equals.
    pub(crate) order: Vec<usize>,
    /// What the Kubernetes nodes have left.
    pub(crate) rooms: Vec<Room>,
    /// By group, pods that leave and still take a place.
    pub(crate) leaving: Vec<u64>,
    /// Head included.
    pub(crate) max_nodes: u64,
    pub(crate) conserve_gpus: bool,
    pub(crate) improvements: Improvements,
}

impl World {
    /// What fitting needs to know.
    pub(crate) fn rules(&self) -> Rules<'_> {
        Rules {
            names: &self.names,
            shapes: &self.shapes,
            gpu: self.gpu,
            conserve_gpus: self.conserve_gpus,
        }
    }

    /// The name of a node's group.
    pub(crate) fn group_name<'a>(&'a self, node: &'a Node) -> &'a str {
        let known = self.groups.get(node.group).map(|group| group.name.as_str());
        known.or(node.gone_group.as_deref()).unwrap_or_default()
    }

    /// The nodes in order.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = &Node> {
        self.order
            .iter()
            .filter_map(|number| self.nodes.get(*number))
    }

    /// How many nodes each group has, those that are to go included or not.
    pub(crate) fn count(&self, counts: impl Fn(&Node) -> bool) -> Vec<u64> {
        let mut count = vec![0; self.groups.len()];
        for node in self.in_order().filter(|node| counts(node)) {
            if let Some(count) = count.get_mut(node.group) {
                *count += 1;
            }
        }
        count
    }

    /// How many nodes each group may still launch.
    pub(crate) fn launchable(&self) -> Vec<u64> {
        let present = self.count(|_| true);
        let leaving = self.leaving.iter().copied().chain(std::iter::repeat(0));
        let taken = present
            .into_iter()
            .zip(leaving)
            .map(|(present, leaving)| present + leaving);
        let groups = self.groups.iter().zip(taken);
        groups
            .map(|(group, present)| group.max.saturating_sub(present))
            .collect()
    }

    /// By group, how many nodes its minimum lacks if only some count.
    pub(crate) fn lacking(&self, counts: impl Fn(&Node) -> bool) -> Vec<u64> {
        let groups = self.groups.iter().zip(self.count(counts));
        groups
            .map(|(group, present)| group.min.saturating_sub(present))
            .collect()
    }

    /// A host of a multi-host replica goes only together with the others, because KubeRay deletes
    /// the whole replica.
    pub(crate) fn leaves_whole(&self, node: &Node) -> bool {
        let group = self.groups.get(node.group);
        if !self.improvements.settled_replicas || group.is_none_or(|group| group.hosts <= 1) {
            return true;
        }
        node.replica.is_some()
            && self.in_order().all(|other| {
                other.group != node.group || other.replica != node.replica || !other.stays()
            })
    }

    /// Its pod goes at once: Ray does not run in it.
    pub(crate) fn deletes(&self, node: &Node) -> bool {
        !node.stays() && node.stage == Stage::Allocated && self.leaves_whole(node)
    }

    /// The head is never launched: it is KubeRay's alone. (Ray would, if it were missing.)
    pub(crate) fn may_launch(&self, group: usize) -> bool {
        !self.improvements.isolated_faults || group != 0
    }

    /// Nodes in the list that do not count towards the maximum, because they are on their way out.
    pub(crate) fn outside_max(&self) -> u64 {
        let leaving = self.in_order().filter(|node| !node.stays()).count() as u64;
        if self.improvements.gentle_removal {
            leaving
        } else {
            0
        }
    }

    /// A fresh node of a group, to be launched for its minimum; its number. Ray counts it at base
    /// size, though other new nodes at their caps.
    pub(crate) fn launch(&mut self, group: usize) -> Option<usize> {
        let likeness = if self.improvements.settled_first {
            &self.templates
        } else {
            &self.bases
        };
        let mut node = likeness.get(group)?.clone();
        node.fate = Fate::Launch;
        self.nodes.push(node);
        Some(self.nodes.len() - 1)
    }

    /// Sorts requests as Ray packs them: the hardest to place first, equals as they came.
    pub(crate) fn sort(&self, runs: &mut [Run]) {
        runs.sort_by(|left, right| {
            let (left, right) = (self.shapes.get(left.shape), self.shapes.get(right.shape));
            right.order(left)
        });
    }
}
