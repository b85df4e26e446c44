//! Launching new nodes for the requests that are left.

use crate::plan::list::{ByGroup, GroupIndex};
use crate::plan::nodes::node::{Fate, PlannedNode};
use crate::plan::outcome::step::PlacementStep;
use crate::plan::packing::candidates::{Candidates, Member};
use crate::plan::packing::pack::{Packing, PackingRules};
use crate::plan::packing::state::{DecisionState, PlannedGroup};

impl Packing<'_> {
    /// Launches new nodes for the requests that are left, as many as the maxima allow, of
    /// the groups that `may` allows.
    pub(crate) fn launch(&mut self, may: impl Fn(&DecisionState, &PlannedGroup) -> bool) {
        if self.has_placed_all() {
            return;
        }
        let as_ray = self.rules == PackingRules::AsRay;
        let (mut nodes_left, mut workers_left, places) = self.room(as_ray);
        let DecisionState {
            groups, classes, ..
        } = &mut *self.state;
        let classes = groups.map(|group| classes.number(&group.template, self.source));
        let state = &*self.state;
        let node = |group: GroupIndex| &state.groups[group].template;
        // In Ray's list a picked group moves to the end.
        let end = as_ray.then_some(places.len());
        let mut pool = Candidates::new(node, self.source, state, self.batches.len(), end);
        for (number, count) in places.enumerate() {
            let group = &state.groups[number];
            let is_made = as_ray || number != GroupIndex::HEAD;
            if *count > 0 && is_made && may(state, group) {
                let member = Member {
                    position: number.into(),
                    number,
                    count: *count,
                };
                pool.add(member, classes[number], group.preference, &self.batches);
            }
        }
        while let Some(pick) = pool.pick(&mut self.batches, nodes_left.min(workers_left)) {
            let (group, count, trial) = pick;
            nodes_left -= count;
            workers_left -= count;
            let mut fresh = node(group).clone();
            fresh.fate = Fate::Launch;
            fresh.count = count;
            fresh.born = state.nodes.upcoming(self.fresh.len());
            trial.apply(
                &mut fresh,
                self.source,
                &self.batches,
                PlacementStep::Launch,
            );
            self.order.push(fresh.born);
            self.fresh.push(fresh);
        }
        let has_more = pool.has_more();
        // People are told of the maxima of the groups if these are reached as well.
        self.state.is_cut |= workers_left == 0 && nodes_left > 0 && has_more;
    }

    /// The number of nodes that the cluster may still have, that of workers, and by group that of its nodes.
    fn room(&self, as_ray: bool) -> (u64, u64, ByGroup<u64>) {
        let listed = self.order.iter().filter_map(|number| self.node(*number));
        let listed = listed.map(|node| node.count).fold(0, u64::saturating_add);
        let going = (self.state.in_order()).filter(|node| !as_ray && !node.stays());
        let going = going.map(|node| node.count).fold(0, u64::saturating_add);
        let most = self.state.max_nodes.saturating_add(going);
        let nodes_left = most.saturating_sub(listed);
        let mut workers_left = self.state.places();
        let mut places = self.state.launchable(|node| as_ray || !node.is_deleted());
        // Launches of this packing, of groups that are not blocked, are not in the state yet.
        let is_launched = |node: &&PlannedNode| self.state.nodes.behind(node.born).is_some();
        for node in self.fresh.iter().filter(is_launched) {
            workers_left = workers_left.saturating_sub(node.count);
            if let Some(group) = node.group() {
                places[group] = places[group].saturating_sub(node.count);
            }
        }
        (nodes_left, workers_left, places)
    }
}
