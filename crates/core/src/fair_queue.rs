//! A fair queue: what waits belongs to flows, such as clients, clusters or namespaces, and flows are
//! served in turn. Pure.
//!
//! A flow with a thousand items delays another flow's single item by only one of its own. Where flows
//! belong to groups, as clusters do to namespaces, the groups take turns, and in each its flows: so a
//! group with a thousand flows delays another one by one item, too. A flow whose items gave up before
//! its turn came keeps its turn: so even if it takes very long to serve every flow once, no flow
//! always gives up too early.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

/// A flow that belongs to a group.
pub trait FlowOfGroup: Hash + Eq + Clone {
    /// The identity of a group.
    type Group: ?Sized + Hash + Eq + fmt::Debug + ToOwned<Owned: Hash + Eq + fmt::Debug>;

    /// The group of the flow; it may be alone there.
    fn group(&self) -> &Self::Group;
}

/// A namespace, or a cluster, `NAMESPACE/NAME`, in the group of its namespace.
impl FlowOfGroup for Arc<str> {
    type Group = str;

    fn group(&self) -> &str {
        self.split_once('/')
            .map_or(&**self, |(namespace, _)| namespace)
    }
}

/// The flow of a source about a namespace, in the group of the source.
impl<S: Hash + Eq + Clone + fmt::Debug> FlowOfGroup for (S, Arc<str>) {
    type Group = S;

    fn group(&self) -> &S {
        &self.0
    }
}

/// The most turns that are kept for flows of which nothing waits now.
// Clusters and clients come and go under new names.
const KEPT: usize = 1024;

/// Items that wait, by flow.
#[derive(Debug)]
pub struct FairQueue<F: FlowOfGroup, T> {
    /// The most items of one flow.
    each: usize,
    /// The turn of each flow, as a number since when it waits for one: the smallest number is next.
    turns: HashMap<F, u64>,
    /// The turn of each group, likewise.
    groups: HashMap<<F::Group as ToOwned>::Owned, u64>,
    waiting: HashMap<F, VecDeque<T>>,
    numbers: u64,
}

impl<F: FlowOfGroup, T> FairQueue<F, T> {
    /// An empty queue, in which at most `each` items of a flow wait.
    pub fn new(each: usize) -> Self {
        Self {
            each,
            turns: HashMap::new(),
            groups: HashMap::new(),
            waiting: HashMap::new(),
            numbers: 0,
        }
    }

    /// Returns whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The number of items that wait.
    pub fn len(&self) -> usize {
        self.waiting.values().map(VecDeque::len).sum()
    }

    /// The number of items of a flow that wait.
    pub fn len_of(&self, flow: &F) -> usize {
        self.waiting.get(flow).map_or(0, VecDeque::len)
    }

    /// The number of items of a group that wait.
    pub fn len_of_group(&self, group: &F::Group) -> usize {
        let lines = self.waiting.iter();
        let lines = lines.filter(|(flow, _)| flow.group() == group);
        lines.map(|(_, line)| line.len()).sum()
    }

    /// Adds an item, or gives it back if too many of its flow wait already.
    pub fn push(&mut self, flow: F, item: T) -> Result<(), T> {
        if self.len_of(&flow) >= self.each {
            return Err(item);
        }
        self.numbers += 1;
        self.turns.entry(flow.clone()).or_insert(self.numbers);
        if !self.groups.contains_key(flow.group()) {
            self.groups.insert(flow.group().to_owned(), self.numbers);
        }
        self.waiting.entry(flow).or_default().push_back(item);
        Ok(())
    }

    /// The next item of the flow whose turn it is.
    pub fn pop(&mut self) -> Option<T> {
        self.pop_by(|_| Some(()))
    }

    /// The next item of the flow of the lowest rank; groups, and in them flows, of equal rank take turns,
    /// and a flow without a rank is passed over.
    pub fn pop_by<R: Ord>(&mut self, rank: impl Fn(&F) -> Option<R>) -> Option<T> {
        let turn = |flow: &F| {
            let group = self.groups.get(flow.group()).copied();
            (group, self.turns.get(flow).copied())
        };
        let ranked = self.waiting.keys();
        let ranked = ranked.filter_map(|flow| Some((rank(flow)?, turn(flow), flow)));
        let (.., flow) = ranked.min_by(|one, other| (&one.0, one.1).cmp(&(&other.0, other.1)))?;
        let flow = flow.clone();
        let line = self.waiting.get_mut(&flow)?;
        let item = line.pop_front();
        self.numbers += 1;
        if line.is_empty() {
            self.waiting.remove(&flow);
            self.turns.remove(&flow);
        } else {
            self.turns.insert(flow.clone(), self.numbers);
        }
        if self
            .waiting
            .keys()
            .any(|other| other.group() == flow.group())
        {
            self.groups.insert(flow.group().to_owned(), self.numbers);
        } else {
            self.groups.remove(flow.group());
        }
        item
    }

    /// Removes the items of a flow that wait no longer.
    pub fn retain(&mut self, flow: &F, keep: impl FnMut(&T) -> bool) {
        if let Some(line) = self.waiting.get_mut(flow) {
            line.retain(keep);
            if line.is_empty() {
                self.waiting.remove(flow);
            }
        }
        // Flows that are gone add no more items, so their turns are dropped.
        if self.turns.len() > self.waiting.len() * 2 + KEPT {
            let waiting = &self.waiting;
            self.turns.retain(|flow, _| waiting.contains_key(flow));
            self.groups = (self.turns.keys())
                .filter_map(|flow| Some((flow.group().to_owned(), *self.groups.get(flow.group())?)))
                .collect();
        }
    }

    /// Removes the latest item of the flow with the most items, if that has more than `least`, which
    /// is at least one.
    pub fn shorten_longest(&mut self, least: usize) -> Option<T> {
        let longest = self.waiting.values_mut().max_by_key(|line| line.len());
        longest
            .filter(|line| line.len() > least.max(1))
            .and_then(VecDeque::pop_back)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl FlowOfGroup for char {
        type Group = Self;

        fn group(&self) -> &Self {
            self
        }
    }

    impl FlowOfGroup for usize {
        type Group = Self;

        fn group(&self) -> &Self {
            self
        }
    }

    /// The first letter is the flow: `a1` and `a2` belong to the flow `a`.
    fn queue(waiting: &[&'static str]) -> FairQueue<char, &'static str> {
        let mut queue = FairQueue::new(3);
        for item in waiting {
            queue.push(flow(item), *item).unwrap();
        }
        queue
    }

    fn flow(item: &str) -> char {
        item.chars().next().unwrap()
    }

    fn rest(queue: &mut FairQueue<char, &'static str>) -> Vec<&'static str> {
        std::iter::from_fn(|| queue.pop()).collect()
    }

    #[test]
    fn flows_take_turns() {
        let mut queue = queue(&["a1", "a2", "a3", "b1", "c1", "c2"]);
        assert_eq!(rest(&mut queue), ["a1", "b1", "c1", "a2", "c2", "a3"]);
        assert!(queue.turns.is_empty() && queue.is_empty());
    }

    #[test]
    fn a_group_with_many_flows_delays_another_by_one_item() {
        let mut queue = FairQueue::new(3);
        for flow in ["many/a", "many/b", "many/c", "many/a", "one/a", "one/a"] {
            queue.push(Arc::<str>::from(flow), flow).unwrap();
        }
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        let turns = ["many/a", "one/a", "many/b", "one/a", "many/c", "many/a"];
        assert_eq!(order, turns);
        assert!(queue.turns.is_empty() && queue.groups.is_empty());
    }

    #[test]
    fn who_gives_up_keeps_the_turn_of_its_flow() {
        let mut queue = queue(&["a1", "b1", "c1"]);
        queue.retain(&'c', |_| false);
        queue.retain(&'c', |_| false);
        assert_eq!(queue.pop(), Some("a1"));
        for later in ["a2", "d1", "c2"] {
            queue.push(flow(later), later).unwrap();
        }
        assert_eq!(rest(&mut queue), ["b1", "c2", "a2", "d1"]);
        assert!(queue.turns.is_empty() && queue.is_empty());
    }

    #[test]
    fn turns_of_flows_that_never_come_again_are_forgotten() {
        let mut queue = FairQueue::<usize, _>::new(3);
        queue.push(0, "first").unwrap();
        for flow in 1..KEPT * 3 {
            queue.push(flow, "gone").unwrap();
            queue.retain(&flow, |_| false);
        }
        let (turns, groups) = (queue.turns.len(), queue.groups.len());
        assert!(turns.max(groups) <= KEPT + 2, "{turns}, {groups}");
        assert_eq!(queue.pop(), Some("first"));
    }

    #[test]
    fn ranks_come_before_turns() {
        let mut queue = queue(&["z1", "a1", "b1", "c1"]);
        let rank = |flow: &char| (*flow != 'b').then_some(*flow == 'z');
        let order: Vec<_> = std::iter::from_fn(|| queue.pop_by(rank)).collect();
        assert_eq!(order, ["a1", "c1", "z1"]);
        assert_eq!(rest(&mut queue), ["b1"]);
    }

    #[test]
    fn a_flow_cannot_fill_the_queue_and_the_longest_gives_way() {
        let mut queue = queue(&["a1", "a2", "a3", "b1"]);
        assert_eq!(queue.push('a', "a4"), Err("a4"));
        assert_eq!((queue.len(), queue.len_of(&'a')), (4, 3));
        assert_eq!(queue.shorten_longest(3), None);
        assert_eq!(queue.shorten_longest(2), Some("a3"));
        assert_eq!(rest(&mut queue), ["a1", "b1", "a2"]);
    }
}
