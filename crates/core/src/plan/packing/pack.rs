//! Packing requests onto nodes: onto nodes that are there first, then onto pods that grow, then
//! onto new nodes. (Ray, `scheduler.py`, `_try_schedule`.)

use crate::hash::HashMap;
use crate::plan::demand::requests::RequestBatch;
use crate::plan::growth::headroom::NodeHeadroom;
use crate::plan::growth::resize::Resize;
use crate::plan::list::{KubeNodeIndex, List, NodeIndex};
use crate::plan::nodes::amounts::CountedAmounts;
use crate::plan::nodes::node::{Fate, PlannedNode, SizeNames, Stage};
use crate::plan::outcome::step::PlacementStep;
use crate::plan::packing::candidates::{Candidates, Member};
use crate::plan::packing::state::{DecisionState, with_parts};

/// The rules of a packing, in which strategies differ.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum PackingRules {
    /// Ray's order of the steps. Pods grow as far as they may, nodes on their way out take their places until they are
    /// gone, equally good groups take turns, and a missing head is launched.
    #[default]
    AsRay,
    /// The improved order. Pods grow as far as that is of use, nodes on their way out take no place, and of equally
    /// good groups the first one is taken. Only KubeRay makes the head.
    Steady,
}

/// One packing. Nothing of it is in effect before [`Packing::commit`].
pub(crate) struct Packing<'a> {
    pub(crate) state: &'a mut DecisionState,
    pub(crate) source: CountedAmounts,
    pub(crate) rules: PackingRules,
    /// The request batches in the order of packing, each with the number of units that are left.
    pub(crate) batches: Vec<RequestBatch>,
    /// The list of nodes in its new order.
    pub(crate) order: Vec<NodeIndex>,
    pub(crate) changed: HashMap<NodeIndex, PlannedNode>,
    /// Nodes that are new in the list: they were launched, or split off other nodes.
    pub(crate) fresh: Vec<PlannedNode>,
    /// For each entry that stands for several nodes, the entries that were split off it and are not
    /// in `order` yet.
    pub(crate) parts: HashMap<NodeIndex, Vec<NodeIndex>>,
    /// Each entry that was split, with the part that was split off.
    splits: Vec<(NodeIndex, NodeIndex)>,
    pub(crate) headrooms: List<KubeNodeIndex, NodeHeadroom>,
}

impl DecisionState {
    /// Packs requests. Changes no node of the state, except that resizes in progress may be shown
    /// at another size.
    pub(crate) fn pack(
        &mut self,
        batches: Vec<RequestBatch>,
        source: CountedAmounts,
        rules: PackingRules,
    ) -> Packing<'_> {
        let mut packing = self.packing(batches, source, rules);
        match rules {
            PackingRules::AsRay => packing.as_ray(),
            PackingRules::Steady => packing.by_steps(),
        }
        packing
    }

    /// Begins to pack requests.
    pub(crate) fn packing(
        &mut self,
        mut batches: Vec<RequestBatch>,
        source: CountedAmounts,
        rules: PackingRules,
    ) -> Packing<'_> {
        // Ray's order: the hardest to place first, and equal ones in the order in which they came.
        batches.sort_by(|left, right| {
            let (left, right) = (self.shapes.get(left.shape), self.shapes.get(right.shape));
            right.order(left)
        });
        // Every packing goes over all nodes and groups a few times, whatever is asked for.
        let passes = 4 * (self.order.len() + self.groups.len()) + batches.len();
        self.work.spend(passes);
        Packing {
            source,
            rules,
            batches,
            order: self.order.clone(),
            changed: HashMap::default(),
            fresh: Vec::new(),
            parts: HashMap::default(),
            splits: Vec::new(),
            // A copy: what a placement group took of it is given up with it, if not all of it fits.
            headrooms: self.headrooms.clone(),
            state: self,
        }
    }

    fn class(&mut self, number: NodeIndex, source: CountedAmounts) -> u32 {
        let node = &mut self.nodes[number];
        if let Some(class) = node.class[source as usize] {
            return class;
        }
        let class = self.classes.number(node, source);
        node.class[source as usize] = Some(class);
        class
    }
}

impl Packing<'_> {
    /// Packs in Ray's order. The list is then: nodes that were picked, nodes that were not, nodes
    /// on which nothing fits, the pods that may grow, and at last new nodes.
    pub(crate) fn as_ray(&mut self) {
        let names = (self.state.cpu, self.state.memory);
        for node in self.state.nodes.iter_mut() {
            let resize = node.resize.as_deref().filter(|one| one.is_in_progress());
            if let Some(size) = resize.map(|resize| resize.desired) {
                node.set_size(names, size);
            }
        }
        // Ray sets aside the running nodes on which no request fits, whatever their labels are.
        // Without requests it sets none aside.
        let mut fits_any: HashMap<u32, bool> = HashMap::default();
        let order = std::mem::take(&mut self.order);
        let (open, exhausted): (Vec<_>, Vec<_>) = order.into_iter().partition(|number| {
            let is_running = |node: &PlannedNode| node.stage() == Stage::Running;
            if !is_running(&self.state.nodes[*number]) {
                return true;
            }
            let class = self.state.class(*number, self.source);
            let (state, source) = (&*self.state, self.source as usize);
            let fits = |batch: &RequestBatch| {
                let node = &state.nodes[*number];
                let mut needs = state.shapes.get(batch.shape).positive();
                needs.all(|(name, needed)| {
                    let free = node
                        .amounts
                        .get(name)
                        .and_then(|amount| amount.free[source]);
                    free.unwrap_or(state.names.implied(name)) >= needed
                })
            };
            let batches = &self.batches;
            let fits_any = fits_any.entry(class);
            *fits_any.or_insert_with(|| batches.is_empty() || batches.iter().any(fits))
        });
        let (mut order, rest) = self.pick_existing(None, &open);
        order.extend(rest);
        order.extend(exhausted);
        self.order = self.grow(order);
        self.launch(|_, _| true);
    }

    /// Puts the result into effect. Returns the request batches that could not be placed, in the
    /// order of packing.
    pub(crate) fn commit(self) -> Vec<RequestBatch> {
        for (number, node) in self.changed {
            self.state.nodes[number] = node;
        }
        for node in self.fresh {
            self.state.nodes.push(node);
        }
        for (entry, part) in self.splits {
            self.state.tables.split(entry, part);
        }
        self.state.order = self.order;
        self.state.headrooms = self.headrooms;
        let remainder = self.batches.into_iter().filter(|batch| batch.count > 0);
        remainder.collect()
    }

    /// True once no unit of any request is left.
    pub(crate) fn has_placed_all(&self) -> bool {
        self.batches.iter().all(|batch| batch.count == 0)
    }

    /// Picks among nodes as they are now, in a step of the improved order, or `None` for Ray's first
    /// step. Returns the nodes that were picked, and those that were not.
    pub(crate) fn pick_existing(
        &mut self,
        step: Option<PlacementStep>,
        numbers: &[NodeIndex],
    ) -> (Vec<NodeIndex>, Vec<NodeIndex>) {
        if self.has_placed_all() {
            return (Vec::new(), numbers.to_vec());
        }
        let classes = self.classes(numbers);
        // Taken out while the candidates borrow from them, because picking changes `self.batches`.
        let changed = std::mem::take(&mut self.changed);
        let fresh = std::mem::take(&mut self.fresh);
        let state = &*self.state;
        let node = |number: NodeIndex| match changed.get(&number) {
            Some(node) => node,
            None => match state.nodes.behind(number) {
                Some(at) => &fresh[at],
                None => &state.nodes[number],
            },
        };
        let mut candidates = Candidates::new(node, self.source, state, self.batches.len(), None);
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
        let (source, batches) = (self.source, std::mem::take(&mut self.batches));
        let picks = picks.into_iter().map(|(number, count, trial)| {
            let number = self.split(number, count);
            self.change(number, |node, _| {
                let step = step.unwrap_or_else(|| step_of(node));
                trial.apply(node, source, &batches, step);
            });
            number
        });
        let picked = picks.collect();
        self.batches = batches;
        (picked, rest)
    }

    /// The classes of nodes with the changes of this packing.
    fn classes(&mut self, numbers: &[NodeIndex]) -> Vec<u32> {
        let (state, source) = (&mut *self.state, self.source);
        let mut classes = Vec::with_capacity(numbers.len());
        for number in numbers {
            let fresh = || Some(&self.fresh[state.nodes.behind(*number)?]);
            classes.push(match self.changed.get(number).or_else(fresh) {
                Some(node) => state.classes.number(node, source),
                None => state.class(*number, source),
            });
        }
        classes
    }

    /// A node with the changes of this packing.
    pub(crate) fn node(&self, number: NodeIndex) -> Option<&PlannedNode> {
        let fresh = || self.fresh.get(self.state.nodes.behind(number)?);
        let unchanged = || self.state.nodes.get(number).or_else(fresh);
        self.changed.get(&number).or_else(unchanged)
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
        self.splits.push((number, part));
        part
    }

    /// Takes the entries that were split off into the list.
    pub(crate) fn list_parts(&mut self) {
        let parts = std::mem::take(&mut self.parts);
        self.order = with_parts(std::mem::take(&mut self.order), &parts);
    }

    /// Changes a node in this packing only, not in the state.
    pub(crate) fn change(
        &mut self,
        number: NodeIndex,
        change: impl FnOnce(&mut PlannedNode, SizeNames),
    ) {
        let names = (self.state.cpu, self.state.memory);
        let node = match self.state.nodes.get(number) {
            Some(original) => {
                let changed = self.changed.entry(number);
                Some(changed.or_insert_with(|| original.clone()))
            }
            None => (self.state.nodes.behind(number)).and_then(|at| self.fresh.get_mut(at)),
        };
        if let Some(node) = node {
            change(node, names);
        }
    }
}

/// The step of packing that placing a request on the node, as it is now, belongs to.
fn step_of(node: &PlannedNode) -> PlacementStep {
    let in_progress = node.resize.as_deref().is_some_and(Resize::is_in_progress);
    match node.stage() {
        Stage::Running if in_progress => PlacementStep::InFlight,
        Stage::Running => PlacementStep::Free,
        _ if node.fate == Fate::Launch => PlacementStep::Launch,
        _ => PlacementStep::Pending,
    }
}
