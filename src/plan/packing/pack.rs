//! Packing requests onto nodes: onto nodes that are there first, then onto pods that grow, then
//! onto new nodes. (Ray, `scheduler.py`, `_try_schedule`.)

use crate::hash::HashMap;
use crate::plan::demand::batch::RequestBatch;
use crate::plan::growth::headroom::NodeHeadroom;
use crate::plan::list::{KubeNodeIndex, List, NodeIndex};
use crate::plan::nodes::life::Stage;
use crate::plan::nodes::node::{CountedAmounts, PlannedNode, SizeNames};
use crate::plan::outcome::step::PlacementStep;
use crate::plan::packing::candidates::{Candidates, Member, Pick};
use crate::plan::packing::placing::{apply, show_resize, step_of};
use crate::plan::packing::state::{DecisionState, with_parts};

/// The result of packing. Nothing of it is in effect before [`DecisionState::commit`].
pub(crate) struct Packed {
    order: Vec<NodeIndex>,
    changed: HashMap<NodeIndex, PlannedNode>,
    fresh: Vec<PlannedNode>,
    headrooms: List<KubeNodeIndex, NodeHeadroom>,
    /// The request batches that could not be placed, in the order of packing.
    pub(crate) left: Vec<RequestBatch>,
}

impl DecisionState {
    /// Packs requests. Changes no node of the state, except that resizes in progress may be shown
    /// at another size.
    pub(crate) fn pack(&mut self, batches: Vec<RequestBatch>, source: CountedAmounts) -> Packed {
        let mut packing = self.packing(batches, source);
        if !packing.state.strategy.is_rayfit() {
            let order = packing.as_ray();
            let order = packing.launch(order, |_, _| true);
            return packing.done(order);
        }
        let order = packing.by_steps();
        let order = packing.launch(order, |_, group| group.block.is_none());
        packing.grow_crowded();
        if !packing.state.has_blocked {
            return packing.done(order);
        }
        // Requests that fit nowhere else wait for the groups that cannot be served now.
        let order = packing.onto_blocked(order);
        let order = packing.launch(order, |_, _| true);
        packing.done(order)
    }

    /// Begins to pack requests.
    pub(crate) fn packing(
        &mut self,
        mut batches: Vec<RequestBatch>,
        source: CountedAmounts,
    ) -> Packing<'_> {
        self.sort(&mut batches);
        // Every packing goes over all nodes and groups a few times, whatever is asked for.
        let passes = 4 * (self.order.len() + self.groups.len()) + batches.len();
        self.work.spend(passes);
        // A copy: what a placement group took of it is given up with it, if not all of it fits.
        let headrooms = self.headrooms.clone();
        Packing {
            state: self,
            source,
            batches,
            changed: HashMap::default(),
            fresh: Vec::new(),
            parts: HashMap::default(),
            headrooms,
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
        self.headrooms = packed.headrooms;
    }

    fn class(&mut self, number: NodeIndex, source: CountedAmounts) -> u32 {
        let Some(node) = self.nodes.get_mut(number) else {
            return u32::MAX;
        };
        if let Some(class) = node.class[source as usize] {
            return class;
        }
        let class = self.classes.number(node, source);
        node.class[source as usize] = Some(class);
        class
    }
}

/// The nodes that take part in a step of packing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StepNodes {
    /// Ray's first step: all existing nodes, as they are.
    Existing,
    /// One step of the improved order.
    Only(PlacementStep),
}

/// One packing while it is under way.
pub(crate) struct Packing<'a> {
    pub(crate) state: &'a mut DecisionState,
    pub(crate) source: CountedAmounts,
    pub(crate) batches: Vec<RequestBatch>,
    pub(crate) changed: HashMap<NodeIndex, PlannedNode>,
    /// Nodes that are new in the list: they were launched, or split off other nodes.
    pub(crate) fresh: Vec<PlannedNode>,
    /// For each entry that stands for several nodes, the entries that were split off it.
    pub(crate) parts: HashMap<NodeIndex, Vec<NodeIndex>>,
    pub(crate) headrooms: List<KubeNodeIndex, NodeHeadroom>,
}

impl Packing<'_> {
    /// The result, with the list of nodes in its new order.
    pub(crate) fn done(self, order: Vec<NodeIndex>) -> Packed {
        let left = self.batches.into_iter().filter(|batch| batch.count > 0);
        Packed {
            order,
            changed: self.changed,
            fresh: self.fresh,
            headrooms: self.headrooms,
            left: left.collect(),
        }
    }

    /// Packs in Ray's order. The list is then: nodes that were picked, nodes that were not, nodes
    /// on which nothing fits, and at last the pods that may grow.
    fn as_ray(&mut self) -> Vec<NodeIndex> {
        for node in self.state.nodes.iter_mut() {
            show_resize(node, (self.state.cpu, self.state.memory), |resize| {
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
    fn split_exhausted(&mut self) -> (Vec<NodeIndex>, Vec<NodeIndex>) {
        let mut known: HashMap<u32, bool> = HashMap::default();
        let order = self.state.order.clone();
        order.into_iter().partition(|number| {
            let running = |node: &PlannedNode| node.stage() == Stage::Running;
            if !self.state.nodes.get(*number).is_some_and(running) {
                return true;
            }
            let class = self.state.class(*number, self.source);
            *known.entry(class).or_insert_with(|| self.fits_any(*number))
        })
    }

    fn fits_any(&self, number: NodeIndex) -> bool {
        let Some(node) = self.state.nodes.get(number) else {
            return false;
        };
        let fits = |batch: &RequestBatch| {
            self.state
                .shapes
                .get(batch.shape)
                .positive()
                .all(|(name, needed)| {
                    let free = node
                        .amount(name)
                        .and_then(|amount| amount.free[self.source as usize]);
                    let implied = if self.state.names.is_implicit(name) {
                        1.0
                    } else {
                        0.0
                    };
                    free.unwrap_or(implied) >= needed
                })
        };
        // Without requests Ray sets no node aside.
        self.batches.is_empty() || self.batches.iter().any(fits)
    }

    /// Picks among nodes as they are now. Returns the nodes that were picked, and those that were
    /// not.
    pub(crate) fn pick_existing(
        &mut self,
        part: StepNodes,
        numbers: &[NodeIndex],
    ) -> (Vec<NodeIndex>, Vec<NodeIndex>) {
        if self.batches.iter().all(|batch| batch.count == 0) {
            return (Vec::new(), numbers.to_vec());
        }
        // Taken out while the candidates borrow from them, because picking changes `self.batches`.
        let changed = std::mem::take(&mut self.changed);
        let fresh = std::mem::take(&mut self.fresh);
        let classes: Vec<u32> = numbers
            .iter()
            .map(|number| match changed.get(number) {
                Some(node) => self.state.classes.number(node, self.source),
                None => match self.state.nodes.behind(*number) {
                    Some(at) => self.state.classes.number(&fresh[at], self.source),
                    None => self.state.class(*number, self.source),
                },
            })
            .collect();
        let state = &*self.state;
        let node = |number: NodeIndex| match changed.get(&number) {
            Some(node) => node,
            None => match state.nodes.behind(number) {
                Some(at) => &fresh[at],
                None => &state.nodes[number],
            },
        };
        let mut candidates = Candidates::new(node, self.source, state.rules(), self.batches.len());
        for (position, (number, class)) in numbers.iter().zip(classes).enumerate() {
            let member = Member {
                position,
                number: *number,
                count: node(*number).count,
            };
            // A node whose group is gone is on its way out, and takes nothing.
            if let Some(group) = state.group(node(*number)) {
                candidates.add(member, class, group.preference, &self.batches);
            }
        }
        let mut picks = Vec::new();
        while let Some(pick) = candidates.pick(&mut self.batches, u64::MAX) {
            picks.push(pick);
        }
        let rest = candidates.rest();
        self.changed = changed;
        self.fresh = fresh;
        let picked = picks.iter().map(|pick| self.place(pick, part)).collect();
        (picked, rest)
    }

    /// Places what a picked node takes. Returns the number of the entry that has it now.
    fn place(&mut self, pick: &Pick<NodeIndex>, part: StepNodes) -> NodeIndex {
        let number = self.split(pick.number, pick.count);
        let (source, batches) = (self.source, std::mem::take(&mut self.batches));
        self.change(number, |node, _| {
            let step = match part {
                StepNodes::Existing => step_of(node),
                StepNodes::Only(step) => step,
            };
            apply(node, &pick.trial, source, &batches, step);
        });
        self.batches = batches;
        number
    }

    /// A node with the changes of this packing.
    pub(crate) fn node(&self, number: NodeIndex) -> Option<&PlannedNode> {
        let fresh = || self.fresh.get(self.state.nodes.behind(number)?);
        let known = || self.state.nodes.get(number).or_else(fresh);
        self.changed.get(&number).or_else(known)
    }

    /// Splits the first `count` nodes off an entry that stands for several. Returns the number of
    /// their own entry, which is `number` itself if they are all of its nodes.
    pub(crate) fn split(&mut self, number: NodeIndex, count: u64) -> NodeIndex {
        let Some(node) = self.node(number).filter(|node| count < node.count) else {
            return number;
        };
        let mut first = node.clone();
        first.count = count;
        self.change(number, |node, _| {
            node.count = node.count.saturating_sub(count);
        });
        let part = self.state.nodes.upcoming(self.fresh.len());
        self.fresh.push(first);
        self.parts.entry(number).or_default().push(part);
        part
    }

    /// The list with the entries that were split off in this packing.
    pub(crate) fn with_parts(&self, order: Vec<NodeIndex>) -> Vec<NodeIndex> {
        with_parts(order, &self.parts)
    }

    /// Changes a node in this packing only, not in the state.
    pub(crate) fn change(
        &mut self,
        number: NodeIndex,
        change: impl FnOnce(&mut PlannedNode, SizeNames),
    ) {
        let names = (self.state.cpu, self.state.memory);
        let Some(original) = self.state.nodes.get(number) else {
            let fresh = self.state.nodes.behind(number);
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
}
