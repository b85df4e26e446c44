//! Launching new nodes for the requests that are left.

use crate::plan::list::{ByGroup, GroupIndex, ListPosition, NodeIndex};
use crate::plan::nodes::node::{Fate, PlannedNode};
use crate::plan::outcome::step::PlacementStep;
use crate::plan::packing::allowance::{NodeCost, cost, cost_at_limits};
use crate::plan::packing::candidates::{Candidates, Member};
use crate::plan::packing::pack::Packing;
use crate::plan::packing::placing::apply;
use crate::plan::packing::state::{DecisionState, PlannedGroup};

/// What the maxima still allow.
struct Left {
    /// Nodes of each group.
    groups: ByGroup<u64>,
    /// Nodes of the cluster.
    nodes: u64,
    /// Workers.
    places: u64,
}

/// A group of which nodes may be launched.
struct Launchable {
    /// A node as it counts.
    node: PlannedNode,
    /// What it costs.
    cost: NodeCost,
    /// How many of them budgets allow.
    most: u64,
}

impl DecisionState {
    /// How many nodes of a group budgets allow at the size with which their pods start.
    pub(crate) fn affordable(&self, group: GroupIndex) -> u64 {
        let allowance = self.allowance.as_ref();
        allowance.map_or(u64::MAX, |allowance| {
            allowance.nodes(&self.node_cost(group))
        })
    }

    /// Takes what so many of them cost.
    pub(crate) fn pay(&mut self, group: GroupIndex, count: u64) {
        let cost = self.node_cost(group);
        if let Some(allowance) = &mut self.allowance {
            allowance.launch(&cost, count);
        }
    }

    fn node_cost(&self, group: GroupIndex) -> NodeCost {
        let config = &self.groups[group].config;
        NodeCost::of(group, config, cost(config))
    }
}

impl Packing<'_> {
    /// Launches new nodes for the requests that are left, as many as the maxima and budgets allow,
    /// of the groups that `may` allows.
    pub(crate) fn launch(
        &mut self,
        mut order: Vec<NodeIndex>,
        may: impl Fn(&DecisionState, &PlannedGroup) -> bool,
    ) -> Vec<NodeIndex> {
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
        // Where budgets leave little, other groups may be in reach after each launch.
        while self.batches.iter().any(|batch| batch.count > 0)
            && self.launch_some(&mut order, &mut left, &may)
        {}
        order
    }

    /// Launches nodes until budgets put a group out of reach. Returns whether more may be launched.
    fn launch_some(
        &mut self,
        order: &mut Vec<NodeIndex>,
        left: &mut Left,
        may: &impl Fn(&DecisionState, &PlannedGroup) -> bool,
    ) -> bool {
        let groups = self.state.groups.enumerate();
        let reach: ByGroup<Launchable> = groups
            .map(|(number, group)| self.reach(number, group))
            .collect();
        // Whole replicas of several groups may cost more than as many nodes of one of them.
        let is_single = self.allowance.is_some() && reach.iter().any(|one| one.cost.hosts > 1);
        let mut has_launched = false;
        let classes = reach.map(|group| self.state.classes.number(&group.node, self.source));
        let state = &*self.state;
        let node = |group: GroupIndex| &reach[group].node;
        let mut pool = Candidates::new(node, self.source, state.rules(), self.batches.len());
        // In Ray's list a picked group moves to the end, so that equally good groups take turns.
        if !state.strategy.is_rayfit() {
            pool = pool.moving(left.groups.len());
        }
        // So many picks of any group are within the budgets.
        let mut safe = u64::MAX;
        for (group, count) in left.groups.enumerate() {
            let is_allowed = state.may_launch(group) && may(state, &state.groups[group]);
            let most = reach[group].most;
            if *count > 0 && is_allowed && most > 0 {
                safe = safe.min(most);
                let member = Member {
                    position: group.number(),
                    number: group,
                    count: *count,
                };
                let preference = state.groups[group].preference;
                pool.add(member, classes[group], preference, &self.batches);
            }
        }
        while let Some(pick) = pool.pick(&mut self.batches, left.nodes.min(left.places).min(safe)) {
            left.nodes -= pick.count;
            left.places -= pick.count;
            left.groups[pick.number] = left.groups[pick.number].saturating_sub(pick.count);
            if let Some(allowance) = &mut self.allowance {
                allowance.launch(&reach[pick.number].cost, pick.count);
                safe -= pick.count;
            }
            let mut fresh = reach[pick.number].node.clone();
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
            has_launched = true;
            if is_single {
                break;
            }
        }
        let has_more = pool.has_more();
        // Where the maxima of the groups are reached as well, they are the reason that people are
        // told.
        self.state.is_cut |= left.places == 0 && left.nodes > 0 && has_more;
        let again = self.allowance.is_some() && (safe == 0 || is_single) && has_launched;
        again && has_more && left.nodes.min(left.places) > 0
    }

    /// A node of the group as large as budgets allow: as it counts otherwise, or at its base size.
    fn reach(&self, number: GroupIndex, group: &PlannedGroup) -> Launchable {
        let counted = |node: &PlannedNode, each| {
            let cost = NodeCost::of(number, &group.config, each);
            Launchable {
                node: node.clone(),
                cost,
                most: (self.allowance.as_ref())
                    .map_or(u64::MAX, |allowance| allowance.nodes(&cost)),
            }
        };
        let (small, large) = (cost(&group.config), cost_at_limits(&group.config));
        if !group.template.at_resize_limits {
            return counted(&group.template, small);
        }
        let at_limits = counted(&group.template, large);
        if at_limits.most > 0 {
            at_limits
        } else {
            counted(&group.base, small)
        }
    }
}
