//! The step of packing in which pods grow in place.

use std::collections::HashSet;

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
            let headroom = resize.headroom(&self.headrooms);
            let goal = resize.goal(headroom);
            resize.can_grow() && (headroom.is_none() || resize.current.is_below(goal))
        })
    }

    /// Takes one pod of each Kubernetes node, and leaves the others for later. Pods that share the
    /// headroom of a node grow one after the other, because each takes headroom from the next.
    fn one_per_kube_node(&self, growing: Vec<NodeIndex>) -> (Vec<NodeIndex>, Vec<NodeIndex>) {
        let mut seen = HashSet::new();
        growing.into_iter().partition(|number| {
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
        let headrooms = std::mem::take(&mut self.headrooms);
        for number in growing {
            self.change(*number, |node, names| {
                show_size(node, names, |resize| {
                    resize.goal(resize.headroom(&headrooms))
                });
            });
        }
        self.headrooms = headrooms;
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
        let mut headrooms = std::mem::take(&mut self.headrooms);
        self.change(number, |node, _| {
            if let Some(resize) = &mut node.resize {
                let goal = resize.goal(resize.headroom(&headrooms));
                if let Some(headroom) = resize.kube_node.and_then(|at| headrooms.get_mut(at)) {
                    headroom.give(resize.current, goal);
                }
                resize.ask(Some(goal.cpu), Some(goal.memory));
            }
        });
        self.headrooms = headrooms;
    }
}
