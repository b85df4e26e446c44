//! Picking the best node again and again, without trying every node every time.
//!
//! Nodes in the same state are one class: what one of them would take, all of them would, so only
//! the first node of a class is tried. A trial stays valid while the remaining requests cover what
//! it took: placing is greedy and in a fixed order, so with `left` units of a request batch a node
//! takes `min(left, what fits)` of it, and that only changes when `left` falls below what was
//! taken. So after a pick only the classes that wanted more than is left are tried again. The
//! result is that of Ray's loop over all nodes (`scheduler.py`, `_sched_best_node`), which tries
//! every node for every pick.
//!
//! A member may stand for many nodes. As long as the trial of every class stays valid and no other
//! class ranks first, the next pick is the same again, so that many nodes are picked at once.

use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{BinaryHeap, VecDeque};
use std::rc::Rc;

use crate::hash::HashMap;
use crate::plan::demand::batch::RequestBatch;
use crate::plan::demand::shape::ShapeId;
use crate::plan::nodes::node::{CountedAmounts, PlannedNode};
use crate::plan::packing::fit::{FitContext, FitTrial};
use crate::plan::packing::rank::{Preference, Rank, Ranked};

/// A candidate: one node, or several nodes that are alike and next to each other in the list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Member<P> {
    /// Its position in the list.
    pub(crate) position: usize,
    pub(crate) number: P,
    /// The number of nodes that it stands for.
    pub(crate) count: u64,
}

/// Nodes that were picked together.
#[derive(Debug, Clone)]
pub(crate) struct Pick<P> {
    pub(crate) number: P,
    /// The number of its nodes that were picked, from the first on.
    pub(crate) count: u64,
    /// The requests that each of them takes.
    pub(crate) trial: Rc<FitTrial>,
}

#[derive(Debug)]
struct Class<P> {
    /// Its nodes, in the order of the list.
    members: VecDeque<Member<P>>,
    preference: Preference,
    trial: Option<Rc<FitTrial>>,
    /// The trial of the node that was picked last, which holds for the next node in the same state.
    spare: Option<Rc<FitTrial>>,
    /// The version of the class. Entries of other versions in the heaps are out of date.
    version: u32,
}

/// The nodes to pick from, by class. They have numbers of type `P`.
pub(crate) struct Candidates<'a, P, N> {
    node: N,
    source: CountedAmounts,
    rules: FitContext<'a>,
    classes: Vec<Class<P>>,
    /// The class of each node state.
    of_state: HashMap<u32, usize>,
    best: BinaryHeap<Ranked>,
    /// For each request batch, how many units of it each class would take, with the version of the
    /// class.
    watch: Vec<BinaryHeap<(u64, usize, u32)>>,
    /// The position at which a picked member goes on, if any of its nodes are left: the end of the
    /// list. `None` if it keeps its position.
    last: Option<usize>,
}

impl<'a, P: Copy + Ord, N: Fn(P) -> &'a PlannedNode> Candidates<'a, P, N> {
    /// No candidates yet. `node` gives the node of a number.
    pub(crate) fn new(
        node: N,
        source: CountedAmounts,
        rules: FitContext<'a>,
        batches: usize,
    ) -> Self {
        Self {
            node,
            source,
            rules,
            classes: Vec::new(),
            of_state: HashMap::default(),
            best: BinaryHeap::new(),
            watch: std::iter::repeat_with(BinaryHeap::new)
                .take(batches)
                .collect(),
            last: None,
        }
    }

    /// The same candidates, but a member that was picked moves to the end of the list.
    pub(crate) fn moving(mut self, end: usize) -> Self {
        self.last = Some(end);
        self
    }

    /// Adds a member. It comes after all other members of its state.
    pub(crate) fn add(
        &mut self,
        member: Member<P>,
        state: u32,
        preference: Preference,
        batches: &[RequestBatch],
    ) {
        match self.of_state.entry(state) {
            Entry::Occupied(entry) => {
                if let Some(class) = self.classes.get_mut(*entry.get()) {
                    class.members.push_back(member);
                    // The class had run out of nodes, and no heap had a valid entry for it.
                    if class.members.len() == 1 {
                        let class = *entry.get();
                        self.revive(class, batches);
                    }
                }
            }
            Entry::Vacant(entry) => {
                entry.insert(self.classes.len());
                let members = VecDeque::from([member]);
                self.classes.push(Class {
                    members,
                    preference,
                    trial: None,
                    spare: None,
                    version: 0,
                });
                self.try_first(self.classes.len() - 1, batches);
            }
        }
    }

    /// Takes the best node off the list, together with up to `most` nodes in all that are like it
    /// and would be picked next, and takes the units that they take off `batches`.
    pub(crate) fn pick(&mut self, batches: &mut [RequestBatch], most: u64) -> Option<Pick<P>> {
        if most == 0 || self.rules.work.is_over() {
            return None;
        }
        let rank = self.top()?.rank;
        let index = self.best.pop()?.class;
        let class = self.classes.get_mut(index)?;
        let trial = class.trial.take()?;
        let Member { number, count, .. } = *class.members.front()?;
        // In Ray's list the picked group is now behind the other class, which is picked next.
        let alternates = self.last.is_some() && self.has_rival(rank);
        let repeats = if alternates {
            1
        } else {
            self.repeats(&trial, batches)
        };
        let count = repeats.min(count).min(most);
        self.take_off(index, count);
        for (batch, taken) in &trial.taken {
            if let Some(batch) = batches.get_mut(*batch) {
                batch.count = batch.count.saturating_sub(taken.saturating_mul(count));
            }
        }
        self.advance(index, number, &trial, batches);
        for (batch, _) in &trial.taken {
            self.retry(*batch, batches);
        }
        self.rules.work.spend(trial.taken.len());
        Some(Pick {
            number,
            count,
            trial,
        })
    }

    /// Whether any more nodes could be picked.
    pub(crate) fn has_more(&mut self) -> bool {
        self.top().is_some()
    }

    /// The best entry of the heap that is up to date.
    fn top(&mut self) -> Option<&Ranked> {
        while let Some(top) = self.best.peek() {
            let class = self.classes.get(top.class);
            if class.is_some_and(|class| class.version == top.version) {
                break;
            }
            self.best.pop();
        }
        self.best.peek()
    }

    /// Whether another class is as good, so that the two classes take turns.
    fn has_rival(&mut self, rank: Rank) -> bool {
        // Positions always differ, and equal classes take turns by them, so they are left out here.
        let position = rank.position;
        let rival = self.top().map(|top| Rank {
            position,
            ..top.rank
        });
        rival.is_some_and(|rival| rival.order(&rank).is_eq())
    }

    /// The number of times that the trial can be picked in a row until a class has to be tried again.
    fn repeats(&mut self, trial: &FitTrial, batches: &[RequestBatch]) -> u64 {
        let mut repeats = u64::MAX;
        for (batch, taken) in &trial.taken {
            let left = batches.get(*batch).map_or(0, |batch| batch.count);
            let watched = self.most_watched(*batch).max(*taken);
            let more = left.saturating_sub(watched).checked_div(*taken);
            repeats = repeats.min(more.unwrap_or(0).saturating_add(1));
        }
        repeats
    }

    /// The most units of a request batch that any class would take.
    fn most_watched(&mut self, batch: usize) -> u64 {
        let Some(heap) = self.watch.get_mut(batch) else {
            return 0;
        };
        while let Some((count, class, version)) = heap.peek() {
            let class = self.classes.get(*class);
            if class.is_some_and(|class| class.version == *version) {
                return *count;
            }
            heap.pop();
        }
        0
    }

    /// Takes nodes off the first member of a class. The rest of that member stays first, or moves
    /// to the end of the list.
    fn take_off(&mut self, index: usize, count: u64) {
        let Some(class) = self.classes.get_mut(index) else {
            return;
        };
        class.version += 1;
        let Some(front) = class.members.front_mut() else {
            return;
        };
        front.count = front.count.saturating_sub(count);
        if let Some(last) = &mut self.last {
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            // Ray appends a fresh node for each node that it picks.
            *last = last.saturating_add(count);
            front.position = *last;
        }
        if front.count == 0 {
            class.members.pop_front();
        }
    }

    /// The nodes that were not picked, in the order of the list.
    pub(crate) fn rest(self) -> Vec<P> {
        let mut rest: Vec<(usize, P)> = self
            .classes
            .into_iter()
            .flat_map(|class| class.members)
            .map(|member| (member.position, member.number))
            .collect();
        rest.sort_unstable();
        rest.into_iter().map(|(_, number)| number).collect()
    }

    /// Goes on to the next node of the class. A trial that is still valid for it is kept.
    fn advance(&mut self, index: usize, picked: P, trial: &Rc<FitTrial>, batches: &[RequestBatch]) {
        let Some(class) = self.classes.get_mut(index) else {
            return;
        };
        class.spare = Some(Rc::clone(trial));
        let Some(next) = class.members.front().map(|member| member.number) else {
            return;
        };
        // Nodes that do not run are one class whatever was placed on them, but that counts in the
        // score.
        if self.placed(next) == self.placed(picked) {
            self.revive(index, batches);
        } else {
            self.try_first(index, batches);
        }
    }

    /// Reuses the last trial of the class, because its first node is in the state of the node that
    /// was picked last. Tries that node again if the requests that are left no longer cover the
    /// trial.
    fn revive(&mut self, index: usize, batches: &[RequestBatch]) {
        let spare = self
            .classes
            .get(index)
            .and_then(|class| class.spare.clone());
        let left = |batch: usize| batches.get(batch).map_or(0, |batch| batch.count);
        match spare {
            Some(trial)
                if trial
                    .taken
                    .iter()
                    .all(|(batch, count)| *count <= left(*batch)) =>
            {
                self.enter(index, trial);
            }
            _ => self.try_first(index, batches),
        }
    }

    fn placed(&self, number: P) -> &[ShapeId] {
        &(self.node)(number).placed[self.source as usize]
    }

    /// Tries the classes again that would take more units of a request batch than are left.
    fn retry(&mut self, batch: usize, batches: &[RequestBatch]) {
        let left = batches.get(batch).map_or(0, |batch| batch.count);
        while let Some((_, class, version)) = self
            .watch
            .get_mut(batch)
            .and_then(|heap| heap.pop_if_above(left))
        {
            if self
                .classes
                .get(class)
                .is_some_and(|class| class.version == version)
            {
                self.try_first(class, batches);
            }
        }
    }

    fn try_first(&mut self, index: usize, batches: &[RequestBatch]) {
        let Some(class) = self.classes.get_mut(index) else {
            return;
        };
        class.version += 1;
        class.trial = None;
        let Some(number) = class.members.front().map(|member| member.number) else {
            return;
        };
        if let Some(trial) = FitTrial::of((self.node)(number), batches, self.source, self.rules) {
            self.enter(index, Rc::new(trial));
        }
    }

    fn enter(&mut self, index: usize, trial: Rc<FitTrial>) {
        let Some(class) = self.classes.get_mut(index) else {
            return;
        };
        let Some(position) = class.members.front().map(|member| member.position) else {
            return;
        };
        let (preference, position) = (class.preference, Reverse(position));
        let rank = Rank {
            score: trial.score,
            preference,
            position,
        };
        self.best.push(Ranked {
            rank,
            class: index,
            version: class.version,
        });
        for (batch, count) in &trial.taken {
            if let Some(heap) = self.watch.get_mut(*batch) {
                heap.push((*count, index, class.version));
            }
        }
        class.trial = Some(trial);
    }
}

trait PopAbove {
    fn pop_if_above(&mut self, left: u64) -> Option<(u64, usize, u32)>;
}

impl PopAbove for BinaryHeap<(u64, usize, u32)> {
    fn pop_if_above(&mut self, left: u64) -> Option<(u64, usize, u32)> {
        self.peek().filter(|(count, ..)| *count > left)?;
        self.pop()
    }
}
