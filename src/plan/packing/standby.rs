//! Packing for standby: finding room for requests that nobody has made yet.
//!
//! Room that costs nothing is used first: that of nodes that stay anyway, into which they may also
//! grow. Then come idle nodes, those first that are small and may grow, then pending and at last
//! new ones. No pod is asked to grow.

use crate::plan::demand::batch::RequestBatch;
use crate::plan::list::{List, NodeIndex};
use crate::plan::nodes::life::Stage;
use crate::plan::nodes::node::{CountedAmounts, PlannedNode};
use crate::plan::outcome::step::PlacementStep;
use crate::plan::packing::pack::{Packed, Packing, StepNodes};
use crate::plan::packing::placing::show_size;
use crate::plan::packing::state::DecisionState;

/// The nodes on which room may be kept ready.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StandbyNodes<'a> {
    /// By its number, whether a node stays whatever is kept ready.
    pub(crate) needed: &'a List<NodeIndex, bool>,
    /// Whether the requests name a GPU, so that GPU nodes may be kept or launched for them.
    pub(crate) gpus: bool,
    /// Whether nodes may be launched.
    pub(crate) launch: bool,
}

impl DecisionState {
    /// Finds room for requests that nobody has made yet. The nodes are shown at the sizes to which
    /// they could grow, so the result is in effect only while more of standby is packed.
    pub(crate) fn pack_standby(
        &mut self,
        batches: Vec<RequestBatch>,
        nodes: StandbyNodes<'_>,
    ) -> Packed {
        let mut packing = self.packing(batches, CountedAmounts::Free);
        let order = packing.on_standby(nodes);
        let order = if nodes.launch {
            packing.launch(order, |state, group| {
                group.block.is_none() && nodes.suits(state, &group.template)
            })
        } else {
            order
        };
        packing.done(order)
    }

    fn has_gpus(&self, node: &PlannedNode) -> bool {
        let amount = self.gpu.and_then(|gpu| node.amount(gpu));
        amount.is_some_and(|amount| amount.total.is_some_and(|total| total > 0.0))
    }
}

impl StandbyNodes<'_> {
    /// Whether a node may be kept for the requests that would otherwise go.
    fn suits(&self, state: &DecisionState, node: &PlannedNode) -> bool {
        self.gpus || !state.conserve_gpus || !state.has_gpus(node)
    }
}

impl Packing<'_> {
    fn on_standby(&mut self, nodes: StandbyNodes<'_>) -> Vec<NodeIndex> {
        let order = self.state.order.clone();
        let running = self.those(&order, |node| {
            node.stays() && node.stage() == Stage::Running
        });
        let usable = |packing: &Self, number: NodeIndex| {
            let node = packing.state.nodes.get(number);
            nodes.needed.holds(number) || node.is_some_and(|node| nodes.suits(packing.state, node))
        };
        let (needed, idle): (Vec<_>, Vec<_>) = running
            .into_iter()
            .filter(|number| usable(self, *number))
            .partition(|number| nodes.needed.holds(*number));
        for part in [needed, idle] {
            let (small, others) = self.at_most(part);
            self.pick_existing(StepNodes::Only(PlacementStep::RoomToGrow), &small);
            self.pick_existing(StepNodes::Only(PlacementStep::Free), &others);
        }
        let open = self.those(&order, |node| !node.is_blocked());
        for mut part in self.pending(&open) {
            part.retain(|number| usable(self, *number));
            self.pick_existing(StepNodes::Only(PlacementStep::Pending), &part);
        }
        self.with_parts(order)
    }

    /// Shows nodes at the size to which they could grow. Pods that share a Kubernetes node take its
    /// headroom one after the other. Returns the nodes that could grow, and the others.
    fn at_most(&mut self, numbers: Vec<NodeIndex>) -> (Vec<NodeIndex>, Vec<NodeIndex>) {
        let mut headrooms = std::mem::take(&mut self.headrooms);
        let mut grows = |packing: &mut Self, number: NodeIndex| {
            let resize = packing.node(number).and_then(|node| node.resize.as_deref());
            let Some((place, has, most)) = resize.map(|resize| {
                let most = resize.most(resize.headroom(&headrooms));
                (resize.kube_node, resize.has(), most)
            }) else {
                return false;
            };
            if let Some(headroom) = place.and_then(|place| headrooms.get_mut(place)) {
                headroom.give(has, most);
            }
            packing.change(number, |node, names| show_size(node, names, |_| most));
            has.is_below(most)
        };
        let parts = numbers.into_iter().partition(|number| grows(self, *number));
        self.headrooms = headrooms;
        parts
    }
}
