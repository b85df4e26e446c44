//! The improved order of packing, by which the resources that are most certain are used first.

use crate::plan::growth::resize::Resize;
use crate::plan::list::NodeIndex;
use crate::plan::nodes::life::Stage;
use crate::plan::nodes::node::{PlannedNode, StartProspect};
use crate::plan::outcome::step::PlacementStep;
use crate::plan::packing::pack::{Packing, StepNodes};
use crate::plan::packing::placing::{show_resize, show_size};

impl Packing<'_> {
    /// Packs in the improved order: free resources, resizes in progress, pods that grow now, and
    /// pending nodes. Returns the list of nodes in their old order.
    pub(crate) fn by_steps(&mut self) -> Vec<NodeIndex> {
        let order = self.state.order.clone();
        let running = self.those(&order, |node| {
            node.stays() && node.stage() == Stage::Running
        });
        let enlarged = self.as_they_are(&running);
        self.pick_existing(StepNodes::Only(PlacementStep::Free), &running);
        for (number, large, small) in &enlarged {
            self.change(*number, |node, names| {
                node.enlarge_again((large, small), names);
            });
        }
        self.in_progress(&running);
        let roomy = self.those(&running, |node| !is_crowded(node));
        self.grow(roomy);
        let open = self.those(&order, |node| !node.is_blocked());
        for part in self.pending(&open) {
            self.pick_existing(StepNodes::Only(PlacementStep::Pending), &part);
        }
        // Ray moves what it picked to the front. The order here stays, so that the next round tries
        // the nodes in the same one and decides the same.
        self.with_parts(order)
    }

    /// Lets crowded pods grow for what fits nowhere else.
    pub(crate) fn grow_crowded(&mut self) {
        if self.batches.iter().all(|batch| batch.count == 0) {
            return;
        }
        let crowded = self.those(&self.state.order, |node| {
            node.stays() && node.stage() == Stage::Running && is_crowded(node)
        });
        self.grow(crowded);
    }

    /// Packs onto pending nodes that would not start now. Returns the list of nodes with those that
    /// were split off since.
    pub(crate) fn onto_blocked(&mut self, order: Vec<NodeIndex>) -> Vec<NodeIndex> {
        // The list has the nodes that were split off before.
        self.parts.clear();
        let blocked = self.those(&order, |node| node.start == StartProspect::Blocked);
        for part in self.pending(&blocked) {
            self.pick_existing(StepNodes::Only(PlacementStep::Pending), &part);
        }
        self.with_parts(order)
    }

    /// Packs onto resizes in progress. A request finds the resize that was asked for on its behalf
    /// first, as it does with pending nodes.
    fn in_progress(&mut self, running: &[NodeIndex]) {
        let in_progress = self.those(running, |node| {
            let resize = node.resize.as_deref();
            resize.is_some_and(Resize::is_in_progress)
        });
        for number in &in_progress {
            self.change(*number, |node, names| {
                show_resize(node, names, |resize| resize.desired);
            });
        }
        let (own, others): (Vec<_>, Vec<_>) = in_progress.into_iter().partition(|number| {
            let node = self.state.nodes.get(*number);
            node.is_some_and(PlannedNode::has_promised_resources)
        });
        for part in [own, others] {
            self.pick_existing(StepNodes::Only(PlacementStep::InFlight), &part);
        }
    }

    pub(crate) fn those(
        &self,
        numbers: &[NodeIndex],
        are: impl Fn(&PlannedNode) -> bool,
    ) -> Vec<NodeIndex> {
        let are = |number: &NodeIndex| self.state.nodes.get(*number).is_some_and(&are);
        numbers.iter().copied().filter(are).collect()
    }

    /// The pending nodes in four parts: first those that a minimum or a request served before
    /// needs, then other nodes with a pod, then other nodes without a pod, and at last pods for
    /// which the scheduler finds no room, each part sorted by group.
    pub(crate) fn pending(&mut self, order: &[NodeIndex]) -> [Vec<NodeIndex>; 4] {
        let mut parts = <[Vec<NodeIndex>; 4]>::default();
        let mut numbers = self.those(order, is_pending);
        if numbers.is_empty() {
            return parts;
        }
        numbers.sort_by_key(|number| self.state.nodes.get(*number).map(PlannedNode::group));
        let there = |node: &PlannedNode| node.stays() && !is_pending(node);
        let mut lacking = self.state.lacking(there);
        for number in numbers {
            let Some(node) = self.state.nodes.get(number) else {
                continue;
            };
            let needed = node.group().and_then(|group| lacking.get_mut(group));
            let needed = needed.map_or(0, |lacking| {
                let needed = node.count.min(*lacking);
                *lacking -= needed;
                needed
            });
            // In the round that asked for them the first part was there already and the third was
            // launched, so each request finds the node that was launched for it.
            let part = match node.stage() {
                _ if !node.is_unneeded() || needed == node.count => 0,
                Stage::Allocated if node.unschedulable_s.is_some() => 3,
                Stage::Allocated => 1,
                _ => 2,
            };
            if part > 0 && needed > 0 {
                parts[0].push(self.split(number, needed));
            }
            parts[part].push(number);
        }
        parts
    }

    /// Shows nodes that are counted at the size of a resize in progress at the size that they have
    /// now: resources that a resize will give are not free, whichever packing used them first.
    /// Returns each such node at both sizes.
    fn as_they_are(&mut self, running: &[NodeIndex]) -> Vec<(NodeIndex, PlannedNode, PlannedNode)> {
        let names = (self.state.cpu, self.state.memory);
        let mut shown = Vec::new();
        for number in running {
            let node = self.state.nodes.get(*number);
            let Some(large) = node.filter(|node| node.is_enlarged(names)) else {
                continue;
            };
            let mut small = large.clone();
            show_size(&mut small, names, |resize| resize.current);
            shown.push((*number, large.clone(), small.clone()));
            self.changed.insert(*number, small);
        }
        shown
    }
}

fn is_crowded(node: &PlannedNode) -> bool {
    node.resize.as_deref().is_some_and(Resize::is_crowded)
}

fn is_pending(node: &PlannedNode) -> bool {
    node.stays() && !matches!(node.stage(), Stage::Running | Stage::Stopping)
}
