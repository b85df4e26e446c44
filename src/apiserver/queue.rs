//! The queue of the requests that wait at the gate, by cluster. Pure.
//!
//! One request at a time is at the front, and may pass next. Flows (clusters) are served in turn,
//! so that a flow with a thousand requests delays another flow's single request by only one of its
//! own. A flow whose requests gave up before its turn came keeps its turn: so even if it takes very
//! long to serve every flow once, no flow always gives up too early. A flow with many requests
//! under way is passed over until one of them has ended.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// The name of a flow: the requests of one cluster belong together.
pub type Flow = Arc<str>;

/// The flow of the requests that can wait until no other request does. No cluster has this name.
pub const LAST: &str = "";

/// The most turns that are kept for flows that have no waiting requests now.
const KEPT: usize = 1024;

/// The waiting requests. A `W` is the means to tell a request that it is at the front.
#[derive(Debug)]
pub struct Queue<W> {
    /// The turn of each flow, as a number since when it waits for one: the smallest number is next.
    turns: HashMap<Flow, u64>,
    waiting: HashMap<Flow, VecDeque<(u64, W)>>,
    under_way: HashMap<Flow, usize>,
    /// Whether a request is at the front.
    is_taken: bool,
    numbers: u64,
    limits: QueueLimits,
}

/// The part of the shared capacity that one flow may use.
#[derive(Debug, Clone, Copy)]
pub struct QueueLimits {
    /// The most requests of the flow that may wait.
    pub waiting: usize,
    /// The most requests of the flow that may be under way.
    pub under_way: usize,
}

/// Identifies a waiting request, for when it gives up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ticket {
    flow: Flow,
    number: u64,
}

impl<W> Queue<W> {
    /// An empty queue.
    pub fn new(limits: QueueLimits) -> Self {
        Self {
            turns: HashMap::new(),
            waiting: HashMap::new(),
            under_way: HashMap::new(),
            is_taken: false,
            numbers: 0,
            limits,
        }
    }

    /// Adds a waiting request; `None` if too many of its flow wait already.
    pub fn join(&mut self, flow: &Flow, waiter: W) -> Option<Ticket> {
        let line = self.waiting.entry(flow.clone()).or_default();
        if line.len() >= self.limits.waiting {
            return None;
        }
        self.numbers += 1;
        self.turns.entry(flow.clone()).or_insert(self.numbers);
        line.push_back((self.numbers, waiter));
        Some(Ticket {
            flow: flow.clone(),
            number: self.numbers,
        })
    }

    /// Removes a request that waits no longer.
    pub fn leave(&mut self, ticket: &Ticket) {
        if let Some(line) = self.waiting.get_mut(&ticket.flow) {
            line.retain(|(number, _)| *number != ticket.number);
            if line.is_empty() {
                self.waiting.remove(&ticket.flow);
            }
        }
        // Clusters that are gone send no more requests, so their turns are dropped.
        if self.turns.len() > self.waiting.len() * 2 + KEPT {
            let waiting = &self.waiting;
            self.turns.retain(|flow, _| waiting.contains_key(flow));
        }
    }

    /// The request that is at the front now, if the front was free and a request may take it.
    pub fn call(&mut self) -> Option<W> {
        if self.is_taken {
            return None;
        }
        let may = |flow: &Flow| {
            let under_way = self.under_way.get(flow).copied().unwrap_or_default();
            under_way < self.limits.under_way
        };
        let turn = |flow: &&Flow| (***flow == *LAST, self.turns.get(*flow).copied());
        let next = self.waiting.keys().filter(|flow| may(flow));
        let flow = next.min_by_key(turn)?.clone();
        let line = self.waiting.get_mut(&flow)?;
        let (_, waiter) = line.pop_front()?;
        if line.is_empty() {
            self.waiting.remove(&flow);
            self.turns.remove(&flow);
        } else {
            self.numbers += 1;
            self.turns.insert(flow, self.numbers);
        }
        self.is_taken = true;
        Some(waiter)
    }

    /// The request at the front has left it.
    pub fn step_aside(&mut self) {
        self.is_taken = false;
    }

    /// A request of the flow is under way.
    pub fn begin(&mut self, flow: &Flow) {
        *self.under_way.entry(flow.clone()).or_default() += 1;
    }

    /// A request of the flow has ended.
    pub fn end(&mut self, flow: &Flow) {
        if let Some(count) = self.under_way.get_mut(flow) {
            *count -= 1;
            if *count == 0 {
                self.under_way.remove(flow);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: QueueLimits = QueueLimits {
        waiting: 3,
        under_way: 2,
    };

    fn queue(waiting: &[&'static str]) -> Queue<&'static str> {
        let mut queue = Queue::new(LIMITS);
        for one in waiting {
            queue.join(&flow(one), *one).unwrap();
        }
        queue
    }

    /// The first letter is the flow: `a1` and `a2` belong to the flow `a`.
    fn flow(waiter: &str) -> Flow {
        waiter[..1].into()
    }

    fn next(queue: &mut Queue<&'static str>) -> Option<&'static str> {
        let next = queue.call();
        queue.step_aside();
        next
    }

    #[test]
    fn flows_take_turns() {
        let mut queue = queue(&["a1", "a2", "a3", "b1", "c1", "c2"]);
        let order: Vec<_> = std::iter::from_fn(|| next(&mut queue)).collect();
        assert_eq!(order, ["a1", "b1", "c1", "a2", "c2", "a3"]);
        assert!(queue.turns.is_empty() && queue.waiting.is_empty());
    }

    #[test]
    fn one_at_a_time_is_at_the_front() {
        let mut queue = queue(&["a1", "b1"]);
        assert_eq!(queue.call(), Some("a1"));
        assert_eq!(queue.call(), None);
        queue.step_aside();
        assert_eq!(queue.call(), Some("b1"));
    }

    #[test]
    fn who_gives_up_keeps_the_turn_of_its_flow() {
        let mut queue = queue(&["a1", "b1"]);
        let ticket = queue.join(&flow("c"), "c1").unwrap();
        queue.leave(&ticket);
        queue.leave(&ticket);
        assert_eq!(next(&mut queue), Some("a1"));
        for later in ["a2", "d1", "c2"] {
            queue.join(&flow(later), later).unwrap();
        }
        let order: Vec<_> = std::iter::from_fn(|| next(&mut queue)).collect();
        assert_eq!(order, ["b1", "c2", "a2", "d1"]);
        assert!(queue.turns.is_empty() && queue.waiting.is_empty());
    }

    #[test]
    fn turns_of_flows_that_never_come_again_are_forgotten() {
        let mut queue = queue(&["a1"]);
        for number in 0..KEPT * 3 {
            let ticket = queue.join(&number.to_string().into(), "gone").unwrap();
            queue.leave(&ticket);
        }
        assert!(queue.turns.len() <= KEPT + 2, "{}", queue.turns.len());
        assert_eq!(next(&mut queue), Some("a1"));
    }

    #[test]
    fn a_flow_with_much_under_way_is_passed_over() {
        let mut queue = queue(&["a1", "a2", "b1"]);
        queue.begin(&flow("a"));
        queue.begin(&flow("a"));
        assert_eq!(next(&mut queue), Some("b1"));
        assert_eq!(next(&mut queue), None);
        queue.end(&flow("a"));
        assert_eq!(next(&mut queue), Some("a1"));
    }

    #[test]
    fn what_can_wait_comes_last() {
        let mut queue = queue(&["a1"]);
        queue.join(&LAST.into(), "event").unwrap();
        queue.join(&flow("b"), "b1").unwrap();
        let order: Vec<_> = std::iter::from_fn(|| next(&mut queue)).collect();
        assert_eq!(order, ["a1", "b1", "event"]);
    }

    #[test]
    fn a_flow_cannot_fill_the_queue() {
        let mut queue = queue(&["a1", "a2", "a3"]);
        assert_eq!(queue.join(&flow("a"), "a4"), None);
        assert!(queue.join(&flow("b"), "b1").is_some());
    }
}
