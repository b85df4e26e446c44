//! The improved order of packing, by which the resources that are most certain are used first.

use crate::plan::growth::resize::Resize;
use crate::plan::list::NodeIndex;
use crate::plan::nodes::node::{PlannedNode, Stage};
use crate::plan::nodes::tables::StartProspect;
use crate::plan::outcome::step::PlacementStep;
use crate::plan::packing::pack::Packing;
use crate::plan::packing::state::DecisionState;

impl Packing<'_> {
    /// Packs in the improved order: free resources, resizes in progress, pods that grow now, pending
    /// nodes, new ones, and at last what is not expected to serve anything soon.
    ///
    /// Ray moves what it picked to the front. The order here stays, so that the next round tries the
    /// nodes in the same one and decides the same.
    pub(crate) fn by_steps(&mut self) {
        let running = self.those(&self.order, |node| {
            node.stays() && node.stage() == Stage::Running
        });
        self.pick_running(&running);
        let is_crowded = |state: &DecisionState, number: &NodeIndex| {
            let resize = state
                .nodes
                .get(*number)
                .and_then(|node| node.resize.as_deref());
            let notes = resize.zip(state.tables.sizes.get(number));
            notes.is_some_and(|(resize, notes)| notes.is_crowded(resize.base.memory))
        };
        let (crowded, roomy): (Vec<_>, Vec<_>) = running
            .iter()
            .partition(|number| is_crowded(self.state, number));
        self.grow(roomy);
        let open = self.about_to_start();
        self.pick_pending(&open, |_, _| true);
        self.list_parts();
        self.launch(|_, group| group.block.is_none());
        // Crowded pods grow for what fits nowhere else, and what is left then waits for the nodes
        // and groups that cannot be served now.
        if !self.has_placed_all() {
            self.grow(crowded);
        }
        if self.state.has_blocked {
            let mut blocked = self.order.clone();
            let starts = &self.state.tables.starts;
            blocked.retain(|number| starts.get(number) == Some(&StartProspect::Blocked));
            self.pick_pending(&blocked, |_, _| true);
            self.list_parts();
            self.launch(|_, _| true);
        }
    }

    /// Picks among running nodes: free resources first, then resizes in progress.
    fn pick_running(&mut self, running: &[NodeIndex]) {
        // Resources that a resize will give are not free, whichever packing used them first, so
        // nodes that are counted at the size of a resize in progress are shown at the size that they
        // have now.
        let names = (self.state.cpu, self.state.memory);
        let mut enlarged = Vec::new();
        for number in running {
            let node = self.state.nodes.get(*number);
            if let Some(large) = node.filter(|node| node.is_enlarged(names))
                && let Some(resize) = &large.resize
            {
                let mut small = large.clone();
                small.set_size(names, resize.current);
                enlarged.push((*number, large.clone(), small.clone()));
                self.changed.insert(*number, small);
            }
        }
        self.pick_existing(Some(PlacementStep::Free), running);
        for (number, large, small) in &enlarged {
            self.change(*number, |node, names| {
                node.enlarge_again((large, small), names);
            });
        }
        let in_progress = self.those(running, |node| {
            let resize = node.resize.as_deref();
            resize.is_some_and(Resize::is_in_progress)
        });
        for number in &in_progress {
            self.change(*number, |node, names| {
                if let Some(size) = node.resize.as_deref().map(|resize| resize.desired) {
                    node.set_size(names, size);
                }
            });
        }
        // A request finds the resize that was asked for on its behalf first, as it does with pending
        // nodes.
        let (promised, others): (Vec<_>, Vec<_>) = in_progress.into_iter().partition(|number| {
            let node = self.state.nodes.get(*number);
            node.is_some_and(PlannedNode::has_promised_resources)
        });
        for part in [promised, others] {
            self.pick_existing(Some(PlacementStep::InFlight), &part);
        }
    }

    /// The nodes that would start now, or run.
    pub(crate) fn about_to_start(&self) -> Vec<NodeIndex> {
        let mut numbers = self.order.clone();
        numbers.retain(|number| !self.state.tables.starts.contains_key(number));
        numbers
    }

    /// The nodes among `numbers` that `are` is true of, as they were before this packing.
    pub(crate) fn those(
        &self,
        numbers: &[NodeIndex],
        are: impl Fn(&PlannedNode) -> bool,
    ) -> Vec<NodeIndex> {
        let are = |number: &NodeIndex| self.state.nodes.get(*number).is_some_and(&are);
        numbers.iter().copied().filter(are).collect()
    }

    /// Picks among the pending nodes of which `suits` is true, in four parts: first those that a
    /// minimum or a request served before needs, then other nodes with a pod, then other nodes
    /// without a pod, and at last pods for which the scheduler finds no room, each part sorted by
    /// group.
    pub(crate) fn pick_pending(
        &mut self,
        order: &[NodeIndex],
        suits: impl Fn(&Self, NodeIndex) -> bool,
    ) {
        let is_pending = |node: &PlannedNode| node.stays() && node.is_pending();
        let mut numbers = self.those(order, is_pending);
        if numbers.is_empty() {
            return;
        }
        numbers.sort_by_key(|number| self.state.nodes.get(*number).map(PlannedNode::group));
        let mut parts = <[Vec<NodeIndex>; 4]>::default();
        let mut lacking = (self.state).lacking(|node| node.stays() && !is_pending(node));
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
            let unschedulable_s = &self.state.tables.unschedulable_s;
            // In the round that asked for them the first part was there already and the third was
            // launched, so each request finds the node that was launched for it.
            let part = match node.stage() {
                _ if !node.is_unneeded() || needed == node.count => 0,
                Stage::Allocated if unschedulable_s.contains_key(&number) => 3,
                Stage::Allocated => 1,
                _ => 2,
            };
            if part > 0 && needed > 0 {
                parts[0].push(self.split(number, needed));
            }
            parts[part].push(number);
        }
        for mut part in parts {
            part.retain(|number| suits(self, *number));
            self.pick_existing(Some(PlacementStep::Pending), &part);
        }
    }
}
