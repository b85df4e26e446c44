//! The requests of all flows: who is next, and whether that request may be sent now.

//!
//! One request at a time is at the front, and may pass next; namespaces take turns, and in each its
//! clusters. A cluster with many requests under way is passed over until one of them has ended.

use std::collections::HashMap;
use std::time::Duration;

use super::patience::{Flow, PatienceUntil};
use super::rate::RequestRate;
use crate::fair_queue::FairQueue;

/// The flow of the requests that can wait until no other request does. No cluster has this name.
pub const LAST: &str = "";

/// The most requests that are under way. A slow API server would not answer more of them sooner,
/// and the renewal of Leases, which does not pass here, would wait behind them in its queue.
pub const AT_ONCE: usize = 16;

/// The part of that which one flow may use, so that a cluster whose requests hang does not take
/// all places.
pub const UNDER_WAY_OF_ONE: usize = AT_ONCE / 2;

/// The most requests of a flow that wait.
pub const WAITING_OF_ONE: usize = 64;

/// The longest time that a request waits. Waiting costs the API server nothing, but the decision
/// behind the request grows stale.
pub const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// The requests that wait and that are under way. A `W` is the means to tell a request that it is at
/// the front.
#[derive(Debug)]
pub struct RequestFlows<W> {
    waiting: FairQueue<Flow, (u64, W)>,
    under_way: HashMap<Flow, usize>,
    /// A request is at the front.
    is_taken: bool,
    numbers: u64,
    rate: RequestRate,
}

/// Identifies a waiting request, for when it gives up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ticket {
    flow: Flow,
    number: u64,
}

/// The decision about the request at the front.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendDecision {
    /// The request may be sent, and is under way now.
    Sent,
    /// The request may be sent no sooner than at this moment.
    NotBefore(Duration),
    /// Too many requests are under way: one of them has to end.
    WhenOneEnds,
}

/// The reason why a request was not let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotAdmitted {
    /// The request has waited for the longest time.
    #[error("it was not sent within {} seconds: too many requests wait for the API server, or the API server asked clients to wait", LONGEST_WAIT.as_secs())]
    TooLong,
    /// Too many requests about the same cluster wait already.
    #[error("{} requests about the same cluster wait already", WAITING_OF_ONE)]
    TooMany,
    /// The process stops.
    #[error("the process stops")]
    Stopping,
}

impl<W> RequestFlows<W> {
    /// No requests yet, of which at most `rate` are sent in a second, with `burst` of them at once after
    /// a quiet time.
    pub fn new(rate: u32, burst: u32) -> Self {
        Self {
            waiting: FairQueue::new(WAITING_OF_ONE),
            under_way: HashMap::new(),
            is_taken: false,
            numbers: 0,
            rate: RequestRate::new(rate, burst),
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
            (under_way < UNDER_WAY_OF_ONE).then_some(**flow == *LAST)
        });
        self.is_taken = next.is_some();
        next.map(|(_, waiter)| waiter)
    }

    /// The request at the front has left it, sent or not.
    pub fn step_aside(&mut self) {
        self.is_taken = false;
    }

    /// Decides whether the request at the front, of this flow, may be sent now.
    pub fn admit(&mut self, flow: &Flow, now: Duration, patience: &PatienceUntil) -> SendDecision {
        if self.under_way() >= AT_ONCE {
            return SendDecision::WhenOneEnds;
        }
        // The rate is asked last, so that a request that gives up before has used up none of it.
        match self.take_rate(now, patience) {
            Ok(()) => {
                *self.under_way.entry(flow.clone()).or_default() += 1;
                SendDecision::Sent
            }
            Err(later) => SendDecision::NotBefore(later),
        }
    }

    /// Takes one request from the rate, for one that is sent again.
    ///
    /// # Errors
    ///
    /// None may be sent now: the moment from which on it is worth asking again.
    pub fn take_rate(&mut self, now: Duration, patience: &PatienceUntil) -> Result<(), Duration> {
        match patience.until(now) {
            Some(until) => Err(until),
            None => self.rate.take(now),
        }
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

    /// The number of requests under way.
    pub fn under_way(&self) -> usize {
        self.under_way.values().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(100);

    fn flow(name: &str) -> Flow {
        name.into()
    }

    fn waiting(names: &[&'static str]) -> RequestFlows<&'static str> {
        let mut flows = RequestFlows::new(1000, 1000);
        for name in names {
            flows.join(&flow(&name[..1]), *name).unwrap();
        }
        flows
    }

    fn next(flows: &mut RequestFlows<&'static str>) -> Option<&'static str> {
        let next = flows.call();
        flows.step_aside();
        next
    }

    #[test]
    fn one_at_a_time_is_at_the_front() {
        let mut flows = waiting(&["a1", "b1"]);
        assert_eq!(flows.call(), Some("a1"));
        assert_eq!(flows.call(), None);
        flows.step_aside();
        assert_eq!(flows.call(), Some("b1"));
    }

    #[test]
    fn a_flow_with_much_under_way_is_passed_over() {
        let mut flows = waiting(&["a1", "a2", "b1"]);
        for _ in 0..UNDER_WAY_OF_ONE {
            let sent = flows.admit(&flow("a"), NOW, &PatienceUntil::default());
            assert_eq!(sent, SendDecision::Sent);
        }
        assert_eq!(next(&mut flows), Some("b1"));
        assert_eq!(next(&mut flows), None);
        flows.end(&flow("a"));
        assert_eq!(next(&mut flows), Some("a1"));
    }

    #[test]
    fn what_can_wait_comes_last() {
        let mut flows = waiting(&["a1"]);
        flows.join(&LAST.into(), "event").unwrap();
        flows.join(&flow("b"), "b1").unwrap();
        let order: Vec<_> = std::iter::from_fn(|| next(&mut flows)).collect();
        assert_eq!(order, ["a1", "b1", "event"]);
    }

    #[test]
    fn one_flow_has_a_part_of_the_places_and_all_flows_have_all() {
        let mut flows = RequestFlows::new(1000, 1000);
        for number in 0..AT_ONCE {
            flows.join(&flow("many"), number).unwrap();
        }
        let patience = PatienceUntil::default();
        let mut sent = 0;
        while flows.call().is_some() {
            assert_eq!(
                flows.admit(&flow("many"), NOW, &patience),
                SendDecision::Sent
            );
            flows.step_aside();
            sent += 1;
        }
        assert_eq!(sent, UNDER_WAY_OF_ONE);
        for number in 0..UNDER_WAY_OF_ONE {
            assert_eq!(
                flows.admit(&flow(&number.to_string()), NOW, &patience),
                SendDecision::Sent
            );
        }
        assert_eq!(
            flows.admit(&flow("one more"), NOW, &patience),
            SendDecision::WhenOneEnds
        );
        flows.end(&flow("0"));
        assert_eq!(
            flows.admit(&flow("one more"), NOW, &patience),
            SendDecision::Sent
        );
    }

    #[test]
    fn patience_uses_up_nothing_of_the_rate() {
        let mut flows = RequestFlows::<()>::new(1, 1);
        let mut patience = PatienceUntil::default();
        patience.ask(NOW, None, Some(Duration::from_secs(3)));
        let later = NOW + Duration::from_secs(3);
        let not_before = SendDecision::NotBefore(later);
        assert_eq!(flows.admit(&flow("a"), NOW, &patience), not_before);
        assert_eq!(
            flows.admit(&flow("a"), later, &patience),
            SendDecision::Sent
        );
        let rate = SendDecision::NotBefore(later + Duration::from_secs(1));
        assert_eq!(flows.admit(&flow("b"), later, &patience), rate);
        assert_eq!(flows.under_way(), 1);
    }
}
