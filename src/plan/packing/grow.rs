//! The step of packing in which pods grow in place.

use std::collections::HashSet;

use crate::plan::growth::headroom::NodeHeadroom;
use crate::plan::growth::resize::Resize;
use crate::plan::list::NodeIndex;
use crate::plan::nodes::node::PlannedNode;
use crate::plan::outcome::step::PlacementStep;
use crate::plan::packing::pack::{Packing, StepNodes};
use crate::plan::packing::placing::show_size;

impl Packing<'_> {
    /// Lets pods grow towards their resize limits for the requests that are left. Every pod that
    /// was considered moves to the end of the order: first the pods that were picked, then the
    /// others.
    pub(crate) fn grow(&mut self, order: Vec<NodeIndex>) -> Vec<NodeIndex> {
        let (mut growing, mut order): (Vec<_>, Vec<_>) =
            order.into_iter().partition(|number| self.can_grow(*number));
        loop {
            let (batch, later) = self.one_per_kube_node(growing);
            let (picked, rest) = self.pick_growing(&batch);
            let done = picked.is_empty() || later.is_empty();
            order.extend(picked);
            growing = rest.into_iter().chain(later).collect();
            if done {
                order.extend(growing);
                return order;
            }
            growing.retain(|number| self.can_grow(*number));
        }
    }

    fn can_grow(&self, number: NodeIndex) -> bool {
        let resize = self.node(number).and_then(|node| node.resize.as_ref());
        resize.is_some_and(|resize| {
            let room = self.room(resize);
            let goal = resize.goal(room.as_ref());
            resize.can_grow() && (room.is_none() || resize.current.is_below(goal))
        })
    }

    /// How far a pod may grow: what its Kubernetes node has left, if that is known, and what budgets
    /// leave for the cluster, if that is little.
    fn room(&self, resize: &Resize) -> Option<NodeHeadroom> {
        let headroom = resize.headroom(&self.headrooms);
        match &self.allowance {
            Some(allowance) => Some(allowance.within(headroom)),
            None => headroom.cloned(),
        }
    }

    /// Takes one pod of each Kubernetes node, and leaves the others for later. Pods that share the
    /// headroom of a node grow one after the other, because each takes headroom from the next. So do
    /// all pods, where budgets leave little for the cluster.
    fn one_per_kube_node(&self, growing: Vec<NodeIndex>) -> (Vec<NodeIndex>, Vec<NodeIndex>) {
        let mut seen = HashSet::new();
        let shared = self.allowance.is_some();
        growing.into_iter().partition(|number| {
            if shared {
                return seen.insert(None);
            }
            let resize = self.node(*number).and_then(|node| node.resize.as_ref());
            let headroom = resize.filter(|resize| resize.headroom(&self.headrooms).is_some());
            headroom.is_none_or(|resize| seen.insert(resize.kube_node))
        })
    }

    /// Picks among pods as they would be at the size that they can grow to, and asks the picked
    /// ones to grow. Returns the pods that were picked, and those that were not.
    fn pick_growing(&mut self, growing: &[NodeIndex]) -> (Vec<NodeIndex>, Vec<NodeIndex>) {
        let before: Vec<(NodeIndex, Option<PlannedNode>)> = growing
            .iter()
            .map(|number| (*number, self.changed.get(number).cloned()))
            .collect();
        for number in growing {
            let room = self
                .node(*number)
                .and_then(|node| self.room(node.resize.as_ref()?));
            self.change(*number, |node, names| {
                show_size(node, names, |resize| resize.goal(room.as_ref()));
            });
        }
        let (picked, rest) = self.pick_existing(StepNodes::Only(PlacementStep::Grow), growing);
        let grown: HashSet<NodeIndex> = picked.iter().copied().collect();
        for (number, node) in before
            .into_iter()
            .filter(|(number, _)| !grown.contains(number))
        {
            match node {
                Some(node) => self.changed.insert(number, node),
                None => self.changed.remove(&number),
            };
        }
        for number in &picked {
            self.ask(*number);
        }
        (picked, rest)
    }

    fn ask(&mut self, number: NodeIndex) {
        let room = self
            .node(number)
            .and_then(|node| self.room(node.resize.as_ref()?));
        let mut headrooms = std::mem::take(&mut self.headrooms);
        let mut allowance = self.allowance.take();
        self.change(number, |node, _| {
            if let Some(resize) = &mut node.resize {
                let goal = resize.goal(room.as_ref());
                if let Some(headroom) = resize.kube_node.and_then(|at| headrooms.get_mut(at)) {
                    headroom.give(resize.current, goal);
                }
                if let Some(allowance) = &mut allowance {
                    allowance.grow(resize, goal);
                }
                resize.ask(Some(goal.cpu), Some(goal.memory));
            }
        });
        self.headrooms = headrooms;
        self.allowance = allowance;
    }
}
