//! The gate: every request about a cluster passes it. The requests of all clusters share one rate
//! and a limit on how many are under way, the namespaces take turns and in each its clusters, and no
//! request passes while the API server asks for patience.
//!
//! A waiting request reserves no capacity, so a request that gives up gives back none. A slow API
//! server, or more work than the rate allows, therefore slows all clusters down and stops none of
//! them. What may pass is decided by [`rayfit_core::flow_control`]; here are the tasks that wait.

use std::sync::Arc;

use parking_lot::Mutex;
use rayfit_core::flow_control::Flow;
use rayfit_core::flow_control::requests::{
    LONGEST_WAIT, NotAdmitted, RequestFlows, SendDecision, Ticket,
};
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::timeout;

use super::patience::Patience;

/// Lets requests through.
#[derive(Clone)]
pub struct Gate {
    flows: Arc<Mutex<RequestFlows<oneshot::Sender<Front>>>>,
    /// Tells the request at the front that another one has ended.
    ended: Arc<Notify>,
    /// The times until which the API server has asked requests to wait.
    pub patience: Patience,
    closed: watch::Sender<bool>,
}

/// A request that was let through; dropping this ends it.
pub struct Pass {
    gate: Gate,
    flow: Flow,
}

/// The front of the queue: no other request passes while this exists.
struct Front(Gate);

/// A request that waits for the front of the queue.
struct QueuedRequest<'a> {
    gate: &'a Gate,
    ticket: Ticket,
    called: oneshot::Receiver<Front>,
}

impl Gate {
    /// A gate for at most `rate` requests a second, with `burst` of them at once after a quiet
    /// time.
    pub fn new(rate: u32, burst: u32, patience: Patience) -> Self {
        Self {
            flows: Arc::new(Mutex::new(RequestFlows::new(rate, burst))),
            ended: Arc::default(),
            patience,
            closed: watch::Sender::new(false),
        }
    }

    /// Waits until a request of `flow`, the namespace and name of a cluster, may be sent.
    pub async fn pass(&self, flow: &Flow) -> Result<Pass, NotAdmitted> {
        tokio::select! {
            biased;
            () = self.closed() => Err(NotAdmitted::Stopping),
            passed = timeout(LONGEST_WAIT, self.turn(flow)) => {
                passed.unwrap_or(Err(NotAdmitted::TooLong))
            }
        }
    }

    async fn turn(&self, flow: &Flow) -> Result<Pass, NotAdmitted> {
        // A cluster that has to wait does not do so at the front.
        self.patience.over(Some(flow)).await;
        let (call, called) = oneshot::channel();
        let ticket = self.flows.lock().join(flow, call);
        let ticket = ticket.ok_or(NotAdmitted::TooMany)?;
        let mut waiting = QueuedRequest {
            gate: self,
            ticket,
            called,
        };
        self.call();
        // The queue drops a caller only when its request leaves the queue.
        let front = (&mut waiting.called).await;
        let _front = front.map_err(|_| NotAdmitted::Stopping)?;
        drop(waiting);
        loop {
            // These two locks are always taken in this order, here and in `rate`.
            let now = self.patience.now();
            let decision = (self.flows.lock()).admit(flow, now, &self.patience.until.lock());
            match decision {
                SendDecision::Sent => {
                    return Ok(Pass {
                        gate: self.clone(),
                        flow: flow.clone(),
                    });
                }
                SendDecision::NotBefore(later) => self.patience.pass_to(later).await,
                SendDecision::WhenOneEnds => self.ended.notified().await,
            }
        }
    }

    /// Waits until the rate allows one more request, and the API server asks for no patience.
    pub async fn rate(&self) {
        loop {
            let now = self.patience.now();
            let taken = (self.flows.lock()).take_rate(now, &self.patience.until.lock());
            let Err(later) = taken else { return };
            self.patience.pass_to(later).await;
        }
    }

    /// Turns away all waiting requests, now and from now on.
    pub fn close(&self) {
        self.closed.send_replace(true);
    }

    /// Waits until the gate is closed.
    pub async fn closed(&self) {
        // The sender lives as long as `self`.
        let _ = self.closed.subscribe().wait_for(|closed| *closed).await;
    }

    /// Tells the next request that it is at the front. If the request gives up at this moment, the
    /// front is dropped, and that tells the next one.
    fn call(&self) {
        let next = self.flows.lock().call();
        if let Some(next) = next {
            drop(next.send(Front(self.clone())));
        }
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.0.flows.lock().step_aside();
        self.0.call();
    }
}

impl Drop for QueuedRequest<'_> {
    fn drop(&mut self) {
        self.gate.flows.lock().leave(&self.ticket);
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.gate.flows.lock().end(&self.flow);
        // Unlike notify_waiters this is kept for a request that is only about to wait.
        self.gate.ended.notify_one();
        self.gate.call();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;
    use rayfit_core::flow_control::requests::UNDER_WAY_OF_ONE;
    use tokio::time::{Duration, Instant, sleep};

    use super::*;

    fn gate(rate: u32, burst: u32) -> Gate {
        Gate::new(rate, burst, Patience::default())
    }

    fn flow(name: &(impl ToString + ?Sized)) -> Flow {
        name.to_string().into()
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_passes_and_then_the_rate_holds() {
        let gate = gate(10, 5);
        let start = Instant::now();
        for _ in 0..5 {
            drop(gate.pass(&flow("a")).await.unwrap());
        }
        assert_eq!(start.elapsed(), Duration::ZERO);
        for _ in 0..20 {
            drop(gate.pass(&flow("a")).await.unwrap());
        }
        let took = start.elapsed().as_millis();
        assert!((1_900..=2_100).contains(&took), "{took} ms");
    }

    #[tokio::test(start_paused = true)]
    async fn patience_holds_for_who_was_asked_and_for_all_if_several_were() {
        let gate = gate(10, 5);
        let start = Instant::now();
        gate.patience
            .ask(Some(&flow("a/one")), Some(Duration::from_secs(3)));
        drop(gate.pass(&flow("b/other")).await.unwrap());
        assert_eq!(start.elapsed(), Duration::ZERO);
        gate.patience
            .ask(Some(&flow("c/another")), Some(Duration::from_secs(3)));
        drop(gate.pass(&flow("b/other")).await.unwrap());
        assert!(start.elapsed() >= Duration::from_secs(3));
    }

    /// Three hundred clusters with sixteen requests each are five times what the rate allows in the
    /// time that a request waits. What passes is again and again what the rate allows, and a
    /// neighbour with one request waits for one turn of the others.
    #[tokio::test(start_paused = true)]
    async fn overload_makes_slower_and_stops_nobody() {
        let gate = gate(200, 400);
        let ends = Instant::now() + Duration::from_mins(2);
        let busy = (0..300 * 16).map(|number| {
            let (gate, flow) = (gate.clone(), flow(&(number % 300)));
            async move {
                let mut passed = 0_u32;
                while Instant::now() < ends {
                    if let Ok(pass) = gate.pass(&flow).await {
                        sleep(Duration::from_millis(20)).await;
                        drop(pass);
                        passed += 1;
                    }
                }
                passed
            }
        });
        let neighbour = async {
            let mut longest = Duration::ZERO;
            while Instant::now() < ends {
                let asked = Instant::now();
                drop(gate.pass(&flow("neighbour")).await.unwrap());
                longest = longest.max(asked.elapsed());
                sleep(Duration::from_secs(1)).await;
            }
            longest
        };
        let (passed, longest) = tokio::join!(join_all(busy), neighbour);
        let all: u32 = passed.iter().sum();
        assert!(all > 115 * 200, "{all} in two minutes");
        assert!(longest < Duration::from_secs(4), "{longest:?}");
        let by_flow = |flow: usize| passed.iter().skip(flow).step_by(300).sum::<u32>();
        let (least, most) = ((0..300).map(by_flow).min(), (0..300).map(by_flow).max());
        assert!(least.unwrap() * 2 > most.unwrap(), "{least:?} to {most:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn requests_of_one_cluster_that_hang_leave_places_for_others() {
        let gate = gate(1000, 1000);
        let mut hanging = Vec::new();
        while let Ok(Ok(pass)) = timeout(Duration::from_secs(1), gate.pass(&flow("slow"))).await {
            hanging.push(pass);
        }
        assert_eq!(hanging.len(), UNDER_WAY_OF_ONE);
        let slow = flow("slow");
        let waits = gate.pass(&slow);
        let neighbour = async {
            let asked = Instant::now();
            drop(gate.pass(&flow("neighbour")).await.unwrap());
            asked.elapsed()
        };
        let (waited, neighbour) = tokio::join!(waits, neighbour);
        assert_eq!(waited.err(), Some(NotAdmitted::TooLong));
        assert!(neighbour < Duration::from_secs(1), "{neighbour:?}");
        hanging.pop();
        assert!(gate.pass(&flow("slow")).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_is_turned_away_when_it_closes() {
        let gate = gate(1, 1);
        drop(gate.pass(&flow("a")).await.unwrap());
        gate.patience.ask(None, Some(Duration::from_secs(8)));
        let start = Instant::now();
        let flows = [flow("a"), flow("b")];
        let (a, b, ()) = tokio::join!(gate.pass(&flows[0]), gate.pass(&flows[1]), async {
            sleep(Duration::from_millis(10)).await;
            gate.close();
        });
        assert_eq!(a.err(), Some(NotAdmitted::Stopping));
        assert_eq!(b.err(), Some(NotAdmitted::Stopping));
        assert!(start.elapsed() < Duration::from_secs(1));
    }
}
