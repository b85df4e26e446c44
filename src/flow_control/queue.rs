//! The queue of the requests that wait, by cluster.
//!
//! One request at a time is at the front, and may pass next; namespaces take turns, and in each its
//! clusters. A cluster with many requests under way is passed over until one of them has ended.

use std::collections::HashMap;
use std::sync::Arc;

use crate::fair_queue::{FairQueue, FlowOfGroup as _};

/// The name of a flow, `NAMESPACE/NAME`: the requests of one cluster belong together.
pub type Flow = Arc<str>;

/// The flow of the requests that can wait until no other request does. No cluster has this name.
pub const LAST: &str = "";

/// The namespace of a flow's cluster.
pub fn namespace(flow: &Flow) -> &str {
    flow.group()
}

/// The waiting requests. A `W` is the means to tell a request that it is at the front.
#[derive(Debug)]
pub struct Queue<W> {
    waiting: FairQueue<Flow, (u64, W)>,
    under_way: HashMap<Flow, usize>,
    /// Whether a request is at the front.
    is_taken: bool,
    numbers: u64,
    most_under_way: usize,
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
            waiting: FairQueue::new(limits.waiting),
            under_way: HashMap::new(),
            is_taken: false,
            numbers: 0,
            most_under_way: limits.under_way,
        }
    }

    /// Adds a waiting request; `None` if too many of its flow wait already.
    pub fn join(&mut self, flow: &Flow, waiter: W) -> Option<Ticket> {
        self.numbers += 1;
        let number = self.numbers;
        self.waiting.push(flow.clone(), (number, waiter)).ok()?;
        Some(Ticket {
            flow: flow.clone(),
            number,
        })
    }

    /// Removes a request that waits no longer.
    pub fn leave(&mut self, ticket: &Ticket) {
        self.waiting
            .retain(&ticket.flow, |(number, _)| *number != ticket.number);
    }

    /// The request that is at the front now, if the front was free and a request may take it.
    pub fn call(&mut self) -> Option<W> {
        if self.is_taken {
            return None;
        }
        let next = self.waiting.pop_by(|flow| {
            let under_way = self.under_way.get(flow).copied().unwrap_or_default();
            // `false` comes before `true`: the flow that can wait is served when no other one can
            // be.
            (under_way < self.most_under_way).then_some(**flow == *LAST)
        });
        self.is_taken = next.is_some();
        next.map(|(_, waiter)| waiter)
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
    fn one_at_a_time_is_at_the_front() {
        let mut queue = queue(&["a1", "b1"]);
        assert_eq!(queue.call(), Some("a1"));
        assert_eq!(queue.call(), None);
        queue.step_aside();
        assert_eq!(queue.call(), Some("b1"));
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
}
