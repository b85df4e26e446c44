//! The requests of all flows: who is next, and whether that request may be sent now.

use std::time::Duration;

use super::patience::PatienceUntil;
use super::queue::{Flow, Queue, QueueLimits, Ticket};
use super::rate::RequestRate;

/// The most requests that are under way. A slow API server would not answer more of them sooner,
/// and the renewal of Leases, which does not pass here, would wait behind them in its queue.
pub const AT_ONCE: usize = 16;

/// The part of that which one flow may use, so that a cluster whose requests hang does not take
/// all places.
pub const OF_ONE: QueueLimits = QueueLimits {
    waiting: 64,
    under_way: AT_ONCE / 2,
};

/// The longest time that a request waits. Waiting costs the API server nothing, but the decision
/// behind the request grows stale.
pub const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// The requests that wait and that are under way. A `W` is the means to tell a request that it is at
/// the front.
#[derive(Debug)]
pub struct RequestFlows<W> {
    queue: Queue<W>,
    rate: RequestRate,
    under_way: usize,
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
    #[error("{} requests about the same cluster wait already", OF_ONE.waiting)]
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
            queue: Queue::new(OF_ONE),
            rate: RequestRate::new(rate, burst),
            under_way: 0,
        }
    }

    /// Adds a waiting request; `None` if too many of its flow wait already.
    pub fn join(&mut self, flow: &Flow, waiter: W) -> Option<Ticket> {
        self.queue.join(flow, waiter)
    }

    /// Removes a request that waits no longer.
    pub fn leave(&mut self, ticket: &Ticket) {
        self.queue.leave(ticket);
    }

    /// The request that is at the front now, if the front was free and a request may take it.
    pub fn call(&mut self) -> Option<W> {
        self.queue.call()
    }

    /// The request at the front has left it, sent or not.
    pub fn step_aside(&mut self) {
        self.queue.step_aside();
    }

    /// Whether the request at the front, of this flow, may be sent now.
    pub fn admit(&mut self, flow: &Flow, now: Duration, patience: &PatienceUntil) -> SendDecision {
        if self.is_full() {
            return SendDecision::WhenOneEnds;
        }
        // The rate is asked last, so that a request that gives up before has used up none of it.
        match self.take_rate(now, patience) {
            Ok(()) => {
                self.under_way += 1;
                self.queue.begin(flow);
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
        self.under_way = self.under_way.saturating_sub(1);
        self.queue.end(flow);
    }

    /// Whether no further request may be sent until one has ended.
    pub fn is_full(&self) -> bool {
        self.under_way >= AT_ONCE
    }

    /// The number of requests under way.
    pub fn under_way(&self) -> usize {
        self.under_way
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(100);

    fn flow(name: &str) -> Flow {
        name.into()
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
        assert_eq!(sent, OF_ONE.under_way);
        for number in 0..OF_ONE.under_way {
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
