//! Launching new nodes for the requests that are left.

use crate::plan::list::{ByGroup, GroupIndex, ListPosition, NodeIndex};
use crate::plan::nodes::node::{Fate, PlannedNode};
use crate::plan::outcome::step::PlacementStep;
use crate::plan::packing::candidates::{Candidates, Member};
use crate::plan::packing::pack::Packing;
use crate::plan::packing::placing::apply;
use crate::plan::packing::state::{DecisionState, PlannedGroup};

/// The nodes and workers that the maxima still allow.
struct Left {
    /// Nodes of each group.
    groups: ByGroup<u64>,
    /// Nodes of the cluster.
    nodes: u64,
    /// Workers.
    places: u64,
}

impl Packing<'_> {
    /// Launches new nodes for the requests that are left, as many as the maxima allow, of
    /// the groups that `may` allows.
    pub(crate) fn launch(
        &mut self,
        mut order: Vec<NodeIndex>,
        may: impl Fn(&DecisionState, &PlannedGroup) -> bool,
    ) -> Vec<NodeIndex> {
        if self.batches.iter().all(|batch| batch.count == 0) {
            return order;
        }
        let listed = order.iter().filter_map(|number| self.node(*number));
        let listed = listed.fold(0, |sum: u64, node| sum.saturating_add(node.count));
        let within_maxima = self
            .state
            .max_nodes
            .saturating_add(self.state.outside_max());
        let mut left = Left {
            groups: self.state.launchable(),
            nodes: within_maxima.saturating_sub(listed),
            places: self.state.places(),
        };
        // Launches of this packing, of groups that are not blocked, are not in the state yet.
        let is_launched = |node: &&PlannedNode| self.state.nodes.behind(node.born).is_some();
        for node in self.fresh.iter().filter(is_launched) {
            left.places = left.places.saturating_sub(node.count);
            if let Some(places) = node.group().and_then(|group| left.groups.get_mut(group)) {
                *places = places.saturating_sub(node.count);
            }
        }
        let DecisionState {
            groups, classes, ..
        } = &mut *self.state;
        let classes = groups.map(|group| classes.number(&group.template, self.source));
        let state = &*self.state;
        let node = |group: GroupIndex| &state.groups[group].template;
        let mut pool = Candidates::new(node, self.source, state.rules(), self.batches.len());
        // In Ray's list a picked group moves to the end, so that equally good groups take turns.
        if !state.strategy.is_rayfit() {
            pool = pool.moving(left.groups.len());
        }
        for (group, count) in left.groups.enumerate() {
            let is_allowed = state.may_launch(group) && may(state, &state.groups[group]);
            if *count > 0 && is_allowed {
                let member = Member {
                    position: group.number(),
                    number: group,
                    count: *count,
                };
                let preference = state.groups[group].preference;
                pool.add(member, classes[group], preference, &self.batches);
            }
        }
        while let Some(pick) = pool.pick(&mut self.batches, left.nodes.min(left.places)) {
            left.nodes -= pick.count;
            left.places -= pick.count;
            left.groups[pick.number] = left.groups[pick.number].saturating_sub(pick.count);
            let mut fresh = node(pick.number).clone();
            fresh.fate = Fate::Launch;
            fresh.count = pick.count;
            fresh.born = state.nodes.upcoming(self.fresh.len());
            apply(
                &mut fresh,
                &pick.trial,
                self.source,
                &self.batches,
                PlacementStep::Launch,
            );
            order.push(fresh.born);
            self.fresh.push(fresh);
        }
        let has_more = pool.has_more();
        // People are told of the maxima of the groups if these are reached as well.
        self.state.is_cut |= left.places == 0 && left.nodes > 0 && has_more;
        order
    }
}
