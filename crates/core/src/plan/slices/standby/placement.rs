//! Packing for standby: finding room for requests that nobody has made yet.
//!
//! Room that costs nothing is used first: that of nodes that stay anyway, into which they may also
//! grow. Then come idle nodes, those first that are small and may grow, then pending and at last
//! new ones. No pod is asked to grow.

use crate::plan::demand::requests::RequestBatch;
use crate::plan::list::{List, NodeIndex};
use crate::plan::nodes::amounts::CountedAmounts;
use crate::plan::nodes::node::{PlannedNode, Stage};
use crate::plan::outcome::step::PlacementStep;
use crate::plan::packing::pack::{Packing, PackingRules};
use crate::plan::packing::state::DecisionState;

impl DecisionState {
    /// Finds room for requests that nobody has made yet, on nodes that stay whatever is kept ready
    /// (`needed`), on others, and if `launches` on new ones. GPU nodes that would otherwise go are kept
    /// only for requests that name a GPU (`gpus`). The nodes are shown at the sizes to which they could
    /// grow, so the result is in effect only while more of standby is packed.
    pub(crate) fn pack_standby(
        &mut self,
        batches: Vec<RequestBatch>,
        needed: &List<NodeIndex, bool>,
        gpus: bool,
        launches: bool,
    ) -> Packing<'_> {
        let suits = |state: &Self, node: &PlannedNode| {
            let amount = node.amounts.total(state.gpu);
            gpus || !state.conserve_gpus || amount.is_none_or(|total| total <= 0.0)
        };
        let usable = |packing: &Packing<'_>, number: NodeIndex| {
            let node = packing.state.nodes.get(number);
            needed.holds(number) || node.is_some_and(|node| suits(packing.state, node))
        };
        let mut packing = self.packing(batches, CountedAmounts::Free, PackingRules::Steady);
        let mut running = packing.those(&packing.order, |node| {
            node.stays() && node.stage() == Stage::Running
        });
        running.retain(|number| usable(&packing, *number));
        let parts: (Vec<_>, Vec<_>) = (running.into_iter()).partition(|one| needed.holds(*one));
        // Room on nodes that stay anyway keeps no other node, so they come first.
        for part in [parts.0, parts.1] {
            let (small, others) = packing.at_most(part);
            // Room to grow costs nothing until it is used; what is free could serve demand now.
            packing.pick_existing(Some(PlacementStep::RoomToGrow), &small);
            packing.pick_existing(Some(PlacementStep::Free), &others);
        }
        // A pod that would not start keeps nothing ready.
        let open = packing.about_to_start();
        packing.pick_pending(&open, usable);
        packing.list_parts();
        if launches {
            packing.launch(|state, group| group.block.is_none() && suits(state, &group.template));
        }
        packing
    }
}

impl Packing<'_> {
    /// Shows nodes at the size to which they could grow. Pods that share a Kubernetes node take its
    /// headroom one after the other. Returns the nodes that could grow, and the others.
    fn at_most(&mut self, numbers: Vec<NodeIndex>) -> (Vec<NodeIndex>, Vec<NodeIndex>) {
        numbers.into_iter().partition(|number| {
            let resize = self.node(*number).and_then(|node| node.resize.as_deref());
            let Some((place, has, most)) = resize.map(|resize| {
                let most = resize.most(resize.headroom(&self.headrooms));
                (resize.kube_node, resize.has(), most)
            }) else {
                return false;
            };
            if let Some(place) = place {
                self.headrooms[place].give(has, most);
            }
            self.change(*number, |node, names| node.set_size(names, most));
            has.is_below(most)
        })
    }
}
