//! Packing requests onto nodes: onto nodes that are there first, then onto pods that grow, then
//! onto new nodes. (Ray, `scheduler.py`, `_try_schedule`.)

use std::collections::HashMap;

use crate::plan::demand::batch::RequestBatch;
use crate::plan::growth::headroom::NodeHeadroom;
use crate::plan::nodes::life::Stage;
use crate::plan::nodes::node::{DemandSource, Fate, PlannedNode, SizeNames};
use crate::plan::outcome::step::PlacementStep;
use crate::plan::packing::candidates::{Candidates, Member, Pick};
use crate::plan::packing::placing::{apply, show_resize, step_of};
use crate::plan::packing::state::{PlannedGroup, World, with_parts};

/// The result of packing. Nothing of it is in effect before [`World::commit`].
pub(crate) struct Packed {
    order: Vec<usize>,
    changed: HashMap<usize, PlannedNode>,
    fresh: Vec<PlannedNode>,
    rooms: Vec<NodeHeadroom>,
    /// The request batches that could not be placed, in the order of packing.
    pub(crate) left: Vec<RequestBatch>,
}

impl World {
    /// Packs requests. Changes no node of the world, except that resizes in progress may be shown
    /// at another size.
    pub(crate) fn pack(&mut self, runs: Vec<RequestBatch>, source: DemandSource) -> Packed {
        let mut packing = self.packing(runs, source);
        let order = if packing.world.strategy.is_rayfit() {
            packing.by_steps()
        } else {
            packing.as_ray()
        };
        let order = packing.launch(order, |_, _| true);
        packing.done(order)
    }

    /// Begins to pack requests.
    pub(crate) fn packing(
        &mut self,
        mut runs: Vec<RequestBatch>,
        source: DemandSource,
    ) -> Packing<'_> {
        self.sort(&mut runs);
        // Every packing goes over all nodes and groups a few times, whatever is asked for.
        let passes = 4 * (self.order.len() + self.groups.len()) + runs.len();
        self.work.spend(passes);
        let rooms = self.rooms.clone();
        Packing {
            world: self,
            source,
            runs,
            changed: HashMap::new(),
            fresh: Vec::new(),
            parts: HashMap::new(),
            rooms,
        }
    }

    /// Puts the result into effect.
    pub(crate) fn commit(&mut self, packed: Packed) {
        for (number, node) in packed.changed {
            if let Some(place) = self.nodes.get_mut(number) {
                *place = node;
            }
        }
        self.nodes.extend(packed.fresh);
        self.order = packed.order;
        self.rooms = packed.rooms;
    }

    fn class(&mut self, number: usize, source: DemandSource) -> u32 {
        let Some(node) = self.nodes.get_mut(number) else {
            return u32::MAX;
        };
        if let Some(class) = node.class[source as usize] {
            return class;
        }
        let class = self.states.number(node, source);
        node.class[source as usize] = Some(class);
        class
    }
}

/// Which nodes take part in a step of packing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StepNodes {
    /// Ray's first step: all existing nodes, as they are.
    Existing,
    /// One step of the improved order.
    Only(PlacementStep),
}

/// One packing while it is under way.
pub(crate) struct Packing<'a> {
    pub(crate) world: &'a mut World,
    pub(crate) source: DemandSource,
    pub(crate) runs: Vec<RequestBatch>,
    pub(crate) changed: HashMap<usize, PlannedNode>,
    /// Nodes that are new in the list: they were launched, or split off other nodes.
    pub(crate) fresh: Vec<PlannedNode>,
    /// For each entry that stands for several nodes, the entries that were split off it.
    pub(crate) parts: HashMap<usize, Vec<usize>>,
    pub(crate) rooms: Vec<NodeHeadroom>,
}

impl Packing<'_> {
    /// The result, with the list of nodes in its new order.
    pub(crate) fn done(self, order: Vec<usize>) -> Packed {
        let left = self.runs.into_iter().filter(|run| run.count > 0);
        Packed {
            order,
            changed: self.changed,
            fresh: self.fresh,
            rooms: self.rooms,
            left: left.collect(),
        }
    }

    /// Packs in Ray's order. The list is then: nodes that were picked, nodes that were not, nodes
    /// on which nothing fits, and at last the pods that may grow.
    fn as_ray(&mut self) -> Vec<usize> {
        for node in &mut self.world.nodes {
            show_resize(node, (self.world.cpu, self.world.memory), |resize| {
                resize.desired
            });
        }
        let (open, exhausted) = self.split_exhausted();
        let (mut order, rest) = self.pick_existing(StepNodes::Existing, &open);
        order.extend(rest);
        order.extend(exhausted);
        self.grow(order)
    }

    /// Sets aside the running nodes on which no request fits, whatever their labels are.
    fn split_exhausted(&mut self) -> (Vec<usize>, Vec<usize>) {
        let mut known: HashMap<u32, bool> = HashMap::new();
        let order = self.world.order.clone();
        order.into_iter().partition(|number| {
            let running = |node: &PlannedNode| node.stage() == Stage::Running;
            if !self.world.nodes.get(*number).is_some_and(running) {
                return true;
            }
            let class = self.world.class(*number, self.source);
            *known.entry(class).or_insert_with(|| self.has_room(*number))
        })
    }

    fn has_room(&self, number: usize) -> bool {
        let Some(node) = self.world.nodes.get(number) else {
            return false;
        };
        let fits = |run: &RequestBatch| {
            self.world
                .shapes
                .get(run.shape)
                .positive()
                .all(|(name, needed)| {
                    let free = node
                        .amount(name)
                        .and_then(|amount| amount.free[self.source as usize]);
                    let implied = if self.world.names.is_implicit(name) {
                        1.0
                    } else {
                        0.0
                    };
                    free.unwrap_or(implied) >= needed
                })
        };
        self.runs.is_empty() || self.runs.iter().any(fits)
    }

    /// Picks among nodes as they are now. Returns the nodes that were picked, and those that were
    /// not.
    pub(crate) fn pick_existing(
        &mut self,
        part: StepNodes,
        numbers: &[usize],
    ) -> (Vec<usize>, Vec<usize>) {
        if self.runs.iter().all(|run| run.count == 0) {
            return (Vec::new(), numbers.to_vec());
        }
        let changed = std::mem::take(&mut self.changed);
        let fresh = std::mem::take(&mut self.fresh);
        let known = self.world.nodes.len();
        let states: Vec<u32> = numbers
            .iter()
            .map(|number| match changed.get(number) {
                Some(node) => self.world.states.number(node, self.source),
                None if *number >= known => {
                    let states = &mut self.world.states;
                    states.number(&fresh[*number - known], self.source)
                }
                None => self.world.class(*number, self.source),
            })
            .collect();
        let world = &*self.world;
        let node = |number: usize| match changed.get(&number) {
            Some(node) => node,
            None if number >= known => &fresh[number - known],
            None => &world.nodes[number],
        };
        let mut candidates = Candidates::new(node, self.source, world.rules(), self.runs.len());
        for (position, (number, state)) in numbers.iter().zip(states).enumerate() {
            let member = Member {
                position,
                number: *number,
                count: node(*number).count,
            };
            if let Some(group) = world.group(node(*number)) {
                candidates.add(member, state, group.preference, &self.runs);
            }
        }
        let mut picks = Vec::new();
        while let Some(pick) = candidates.pick(&mut self.runs, u64::MAX) {
            picks.push(pick);
        }
        let rest = candidates.rest();
        self.changed = changed;
        self.fresh = fresh;
        let picked = picks.iter().map(|pick| self.place(pick, part)).collect();
        (picked, rest)
    }

    /// Places what a picked node takes. Returns the number of the entry that has it now.
    fn place(&mut self, pick: &Pick, part: StepNodes) -> usize {
        let number = self.split(pick.number, pick.count);
        let (source, runs) = (self.source, std::mem::take(&mut self.runs));
        self.change(number, |node, _| {
            let step = match part {
                StepNodes::Existing => step_of(node),
                StepNodes::Only(step) => step,
            };
            apply(node, &pick.trial, source, &runs, step);
        });
        self.runs = runs;
        number
    }

    /// A node with the changes of this packing.
    pub(crate) fn node(&self, number: usize) -> Option<&PlannedNode> {
        let fresh = || self.fresh.get(number.checked_sub(self.world.nodes.len())?);
        let known = || self.world.nodes.get(number).or_else(fresh);
        self.changed.get(&number).or_else(known)
    }

    /// Splits the first `count` nodes off an entry that stands for several. Returns the number of
    /// their own entry, which is `number` itself if they are all of its nodes.
    pub(crate) fn split(&mut self, number: usize, count: u64) -> usize {
        let Some(node) = self.node(number).filter(|node| count < node.count) else {
            return number;
        };
        let mut first = node.clone();
        first.count = count;
        self.change(number, |node, _| {
            node.count = node.count.saturating_sub(count);
        });
        let part = self.world.nodes.len() + self.fresh.len();
        self.fresh.push(first);
        self.parts.entry(number).or_default().push(part);
        part
    }

    /// The list with the entries that were split off in this packing.
    pub(crate) fn with_parts(&self, order: Vec<usize>) -> Vec<usize> {
        with_parts(order, &self.parts)
    }

    /// Changes a node in this packing only, not in the world.
    pub(crate) fn change(
        &mut self,
        number: usize,
        change: impl FnOnce(&mut PlannedNode, SizeNames),
    ) {
        let names = (self.world.cpu, self.world.memory);
        let Some(original) = self.world.nodes.get(number) else {
            let fresh = number.checked_sub(self.world.nodes.len());
            if let Some(node) = fresh.and_then(|at| self.fresh.get_mut(at)) {
                change(node, names);
            }
            return;
        };
        change(
            self.changed
                .entry(number)
                .or_insert_with(|| original.clone()),
            names,
        );
    }

    /// Launches new nodes for the requests that are left, as many as the maxima allow, of the groups
    /// that `may` allows.
    pub(crate) fn launch(
        &mut self,
        mut order: Vec<usize>,
        may: impl Fn(&World, &PlannedGroup) -> bool,
    ) -> Vec<usize> {
        if self.runs.iter().all(|run| run.count == 0) {
            return order;
        }
        let launchable = self.world.launchable();
        let states: Vec<u32> = (self.world.groups.iter())
            .map(|group| self.world.states.number(&group.template, self.source))
            .collect();
        let listed = order.iter().filter_map(|number| self.node(*number));
        let listed = listed.fold(0, |sum: u64, node| sum.saturating_add(node.count));
        let world = &*self.world;
        let node = |group: usize| &world.groups[group].template;
        let mut pool = Candidates::new(node, self.source, world.rules(), self.runs.len());
        // In Ray's list a picked group moves to the end, so that equally good groups take turns.
        if !world.strategy.is_rayfit() {
            pool = pool.moving(launchable.len());
        }
        for (group, left) in launchable.iter().enumerate() {
            let is_allowed = world.may_launch(group) && may(world, &world.groups[group]);
            if *left > 0 && is_allowed {
                let member = Member {
                    position: group,
                    number: group,
                    count: *left,
                };
                let preference = world.groups[group].preference;
                pool.add(member, states[group], preference, &self.runs);
            }
        }
        let within_maxima = world.max_nodes.saturating_add(world.outside_max());
        let (mut left, mut places) = (within_maxima.saturating_sub(listed), world.places());
        while let Some(pick) = pool.pick(&mut self.runs, left.min(places)) {
            left -= pick.count;
            places -= pick.count;
            let mut fresh = world.groups[pick.number].template.clone();
            fresh.fate = Fate::Launch;
            fresh.count = pick.count;
            fresh.born = world.nodes.len() + self.fresh.len();
            apply(
                &mut fresh,
                &pick.trial,
                self.source,
                &self.runs,
                PlacementStep::Launch,
            );
            order.push(fresh.born);
            self.fresh.push(fresh);
        }
        let is_cut = places == 0 && left > 0 && pool.has_more();
        self.world.is_cut |= is_cut;
        order
    }
}
