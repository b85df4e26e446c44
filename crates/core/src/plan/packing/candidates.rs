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

use std::cmp::{Ordering, Reverse};
use std::collections::hash_map::Entry;
use std::collections::{BinaryHeap, VecDeque};
use std::rc::Rc;

use crate::hash::HashMap;
use crate::plan::demand::requests::RequestBatch;
use crate::plan::nodes::amounts::CountedAmounts;
use crate::plan::nodes::node::PlannedNode;
use crate::plan::nodes::preference::Preference;
use crate::plan::packing::fit::{FitTrial, Score};
use crate::plan::packing::state::DecisionState;

/// A candidate: one node, or several nodes that are alike and next to each other in the list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Member<P> {
    /// Its position in the list.
    pub(crate) position: usize,
    pub(crate) number: P,
    /// The number of nodes that it stands for.
    pub(crate) count: u64,
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

/// A class, ranked by its first node. The class with the greatest rank is picked.
#[derive(Debug, Clone, Copy)]
struct Ranked {
    score: Score,
    preference: Preference,
    /// The position in the list, where the earlier node wins.
    position: Reverse<usize>,
    class: usize,
    version: u32,
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        let (score, than) = (&self.score, &other.score);
        let (ours, theirs) = (&self.preference, &other.preference);
        let counts = |score: &Score| (score.label, score.gpu_ok, score.kinds);
        counts(score)
            .cmp(&counts(than))
            .then_with(|| score.least.total_cmp(&than.least))
            .then_with(|| score.mean.total_cmp(&than.mean))
            .then_with(|| ours.recoverable.total_cmp(&theirs.recoverable))
            // As in Ray, a priority decides between equal scores only, and never lets a worse node
            // win.
            .then(ours.priority.cmp(&theirs.priority))
            .then_with(|| ours.available.total_cmp(&theirs.available))
            .then(self.position.cmp(&other.position))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ranked {}

/// The nodes to pick from, by class. They have numbers of type `P`.
pub(crate) struct Candidates<'a, P, N> {
    node: N,
    source: CountedAmounts,
    state: &'a DecisionState,
    classes: Vec<Class<P>>,
    /// The class of each node state.
    of_state: HashMap<u32, usize>,
    best: BinaryHeap<Ranked>,
    /// For each request batch, how many units of it each class would take, with the version of the
    /// class.
    watch: Vec<BinaryHeap<(u64, usize, u32)>>,
    /// The position at which a picked member goes on, if any of its nodes are left: the end of the
    /// list. `None` if it keeps its position.
    end: Option<usize>,
}

impl<'a, P: Copy + Ord, N: Fn(P) -> &'a PlannedNode> Candidates<'a, P, N> {
    /// No candidates yet. `node` gives the node of a number. A member that was picked moves to the end
    /// of the list, if that is given.
    pub(crate) fn new(
        node: N,
        source: CountedAmounts,
        state: &'a DecisionState,
        batches: usize,
        end: Option<usize>,
    ) -> Self {
        Self {
            node,
            source,
            state,
            classes: Vec::new(),
            of_state: HashMap::default(),
            best: BinaryHeap::new(),
            watch: std::iter::repeat_with(BinaryHeap::new)
                .take(batches)
                .collect(),
            end,
        }
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
                let class = *entry.get();
                let members = &mut self.classes[class].members;
                members.push_back(member);
                // The class had run out of nodes, and no heap had a valid entry for it.
                if members.len() == 1 {
                    self.revive(class, batches);
                }
            }
            Entry::Vacant(entry) => {
                entry.insert(self.classes.len());
                self.classes.push(Class {
                    members: VecDeque::from([member]),
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
    /// and would be picked next, and takes the units that they take off `batches`. Returns the
    /// number of the node, how many of its nodes were picked from the first on, and the requests
    /// that each of them takes.
    pub(crate) fn pick(
        &mut self,
        batches: &mut [RequestBatch],
        most: u64,
    ) -> Option<(P, u64, Rc<FitTrial>)> {
        if most == 0 || self.state.work.is_over() {
            return None;
        }
        self.top()?;
        let best = self.best.pop()?;
        let trial = self.classes[best.class].trial.take()?;
        let Member { number, count, .. } = *self.classes[best.class].members.front()?;
        // In Ray's list the picked group is now behind another class that is as good, so that the two
        // classes take turns. Positions always differ, so they are left out here.
        let position = best.position;
        let is_rival = |rival: &Ranked| Ranked { position, ..*rival } == best;
        let alternates = self.end.is_some() && self.top().is_some_and(is_rival);
        let repeats = if alternates {
            1
        } else {
            self.repeats(&trial, batches)
        };
        let count = repeats.min(count).min(most);
        for (batch, taken) in &trial.taken {
            if let Some(batch) = batches.get_mut(*batch) {
                batch.count = batch.count.saturating_sub(taken.saturating_mul(count));
            }
        }
        self.advance(best.class, count, &trial, batches);
        // Classes are tried again that would take more units of a batch than are left.
        for (batch, _) in &trial.taken {
            let units = batches.get(*batch).map_or(0, |batch| batch.count);
            let pop_above = |heap: &mut BinaryHeap<(u64, usize, u32)>| {
                heap.peek().filter(|(count, ..)| *count > units)?;
                heap.pop()
            };
            while let Some((_, class, version)) = self.watch.get_mut(*batch).and_then(pop_above) {
                if self.classes[class].version == version {
                    self.try_first(class, batches);
                }
            }
        }
        self.state.work.spend(trial.taken.len());
        Some((number, count, trial))
    }

    /// True while more nodes could be picked.
    pub(crate) fn has_more(&mut self) -> bool {
        self.top().is_some()
    }

    /// The nodes that were not picked, in the order of the list.
    pub(crate) fn rest(self) -> Vec<P> {
        let members = self.classes.into_iter().flat_map(|class| class.members);
        let rest = members.map(|member| (member.position, member.number));
        let mut rest: Vec<(usize, P)> = rest.collect();
        rest.sort_unstable();
        rest.into_iter().map(|(_, number)| number).collect()
    }

    /// The best entry of the heap that is up to date.
    fn top(&mut self) -> Option<&Ranked> {
        while let Some(top) = self.best.peek() {
            if self.classes[top.class].version == top.version {
                break;
            }
            self.best.pop();
        }
        self.best.peek()
    }

    /// The number of times that the trial can be picked in a row until a class has to be tried again.
    fn repeats(&mut self, trial: &FitTrial, batches: &[RequestBatch]) -> u64 {
        let mut repeats = u64::MAX;
        for (batch, taken) in &trial.taken {
            // The most units of the batch that any class would take.
            let mut most = *taken;
            while let Some(heap) = self.watch.get_mut(*batch)
                && let Some((count, class, version)) = heap.peek()
            {
                if self.classes[*class].version == *version {
                    most = most.max(*count);
                    break;
                }
                heap.pop();
            }
            let units = batches.get(*batch).map_or(0, |batch| batch.count);
            let more = units.saturating_sub(most).checked_div(*taken);
            repeats = repeats.min(more.unwrap_or(0).saturating_add(1));
        }
        repeats
    }

    /// Takes nodes off the first member of a class, and goes on to the next node of the class. A trial
    /// that is still valid for that is kept.
    fn advance(
        &mut self,
        index: usize,
        count: u64,
        trial: &Rc<FitTrial>,
        batches: &[RequestBatch],
    ) {
        let class = &mut self.classes[index];
        class.version += 1;
        class.spare = Some(Rc::clone(trial));
        let Some(front) = class.members.front_mut() else {
            return;
        };
        let picked = front.number;
        front.count = front.count.saturating_sub(count);
        // The rest of the member stays first, or moves to the end of the list: Ray appends a fresh
        // node for each node that it picks.
        if let Some(end) = &mut self.end {
            *end = end.saturating_add(usize::try_from(count).unwrap_or(usize::MAX));
            front.position = *end;
        }
        if front.count == 0 {
            class.members.pop_front();
        }
        let Some(next) = class.members.front().map(|member| member.number) else {
            return;
        };
        // Nodes that do not run are one class whatever was placed on them, but that counts in the
        // score.
        let placed = |number: P| &(self.node)(number).placed[self.source as usize];
        if placed(next) == placed(picked) {
            self.revive(index, batches);
        } else {
            self.try_first(index, batches);
        }
    }

    /// Reuses the last trial of the class, because its first node is in the state of the node that
    /// was picked last. Tries that node again if the requests that are left no longer cover the
    /// trial.
    fn revive(&mut self, index: usize, batches: &[RequestBatch]) {
        let units = |batch: usize| batches.get(batch).map_or(0, |batch| batch.count);
        let is_covered = |trial: &Rc<FitTrial>| {
            let mut taken = trial.taken.iter();
            taken.all(|(batch, count)| *count <= units(*batch))
        };
        match self.classes[index].spare.clone().filter(is_covered) {
            Some(trial) => self.enter(index, trial),
            None => self.try_first(index, batches),
        }
    }

    fn try_first(&mut self, index: usize, batches: &[RequestBatch]) {
        let class = &mut self.classes[index];
        class.version += 1;
        class.trial = None;
        let first = class
            .members
            .front()
            .map(|member| (self.node)(member.number));
        let trial = first.and_then(|node| FitTrial::of(node, batches, self.source, self.state));
        if let Some(trial) = trial {
            self.enter(index, Rc::new(trial));
        }
    }

    fn enter(&mut self, index: usize, trial: Rc<FitTrial>) {
        let class = &mut self.classes[index];
        let Some(first) = class.members.front() else {
            return;
        };
        self.best.push(Ranked {
            score: trial.score,
            preference: class.preference,
            position: Reverse(first.position),
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
