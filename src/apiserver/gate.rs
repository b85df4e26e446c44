//! Through here goes every request about a cluster: at one rate for all of them, so many at once,
//! each cluster in its turn, and none while the API server asks for patience.
//!
//! Nobody reserves anything: who gives up waiting takes nothing along. So an API server that is slow,
//! or more work than the rate allows, makes everybody slower and stops nobody.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};
use tokio::time::{Instant, sleep, timeout};

use super::patience::Patience;
use super::queue::{Flow, Queue, QueueLimits, Ticket};

/// How long a request waits at the most. It costs the API server nothing meanwhile; but what it was
/// decided on grows old.
pub const QUEUE: Duration = Duration::from_secs(10);

/// Requests at once. More would not be done sooner by an API server that is slow.
pub const AT_ONCE: usize = 16;

/// What one cluster may take of that, so that one whose requests hang does not hold all places.
const OF_ONE: QueueLimits = QueueLimits {
    waiting: 64,
    under_way: AT_ONCE / 2,
};

/// Lets requests through.
#[derive(Clone)]
pub struct Gate(Arc<Inner>);

struct Inner {
    queue: Mutex<Queue<oneshot::Sender<Front>>>,
    rate: RateLimiter<NotKeyed, InMemoryState, Steady, NoOpMiddleware<Duration>>,
    clock: Steady,
    places: Arc<Semaphore>,
    patience: Patience,
    closed: watch::Sender<bool>,
}

/// Why a request was not let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotAdmitted {
    /// It has waited for long enough.
    #[error("{} seconds were not enough to get its turn: too many requests wait for the API server, or it asks for patience", QUEUE.as_secs())]
    TooLong,
    /// Too many of the same cluster wait already.
    #[error("{} requests about the same cluster wait already", OF_ONE.waiting)]
    TooMany,
    /// The process stops.
    #[error("the process stops")]
    Stopping,
}

/// A request that was let through, until it has ended.
#[derive(Debug)]
pub struct Pass {
    gate: Gate,
    flow: Flow,
    _place: OwnedSemaphorePermit,
}

/// Who is at the front: nobody else goes before it.
struct Front(Gate);

/// Who waits for it.
struct Waiting<'a> {
    gate: &'a Gate,
    ticket: Ticket,
    called: oneshot::Receiver<Front>,
}

impl Gate {
    /// At most `rate` requests a second, `burst` at once after a quiet time.
    pub fn new(rate: u32, burst: u32, patience: Patience) -> Self {
        let number = |number| NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
        let quota = Quota::per_second(number(rate)).allow_burst(number(burst));
        let clock = Steady(Instant::now());
        Self(Arc::new(Inner {
            queue: Mutex::new(Queue::new(OF_ONE)),
            rate: RateLimiter::direct_with_clock(quota, clock),
            clock,
            places: Arc::new(Semaphore::new(AT_ONCE)),
            patience,
            closed: watch::Sender::new(false),
        }))
    }

    /// Waits for the turn of a request that belongs to `flow`: the namespace and name of a cluster.
    pub async fn pass(&self, flow: &Flow) -> Result<Pass, NotAdmitted> {
        tokio::select! {
            biased;
            () = self.closed() => Err(NotAdmitted::Stopping),
            passed = timeout(QUEUE, self.turn(flow)) => passed.unwrap_or(Err(NotAdmitted::TooLong)),
        }
    }

    async fn turn(&self, flow: &Flow) -> Result<Pass, NotAdmitted> {
        let _front = self.front(flow).await?;
        // It is never closed.
        let place = self.0.places.clone().acquire_owned().await;
        let place = place.map_err(|_| NotAdmitted::Stopping)?;
        // Last, so that whoever gives up has taken nothing of the rate.
        self.rate().await;
        self.lock().begin(flow);
        Ok(Pass {
            gate: self.clone(),
            flow: flow.clone(),
            _place: place,
        })
    }

    /// Waits until the rate has room for one more request and the API server asks for no patience.
    pub async fn rate(&self) {
        loop {
            self.0.patience.over().await;
            match self.0.rate.check() {
                Ok(()) => return,
                Err(later) => sleep(later.wait_time_from(self.0.clock.now())).await,
            }
        }
    }

    /// The API server asked one request for patience: all wait.
    pub fn ask_patience(&self, time: Option<Duration>) {
        self.0.patience.ask(time);
    }

    /// Whoever waits is turned away from now on, at once.
    pub fn close(&self) {
        self.0.closed.send_replace(true);
    }

    /// Waits until it is closed.
    pub async fn closed(&self) {
        // The sender lives as long as `self`.
        let _ = self.0.closed.subscribe().wait_for(|closed| *closed).await;
    }

    async fn front(&self, flow: &Flow) -> Result<Front, NotAdmitted> {
        let (call, called) = oneshot::channel();
        let ticket = self.lock().join(flow, call).ok_or(NotAdmitted::TooMany)?;
        let mut waiting = Waiting {
            gate: self,
            ticket,
            called,
        };
        self.call();
        // The queue drops no caller but that of one who leaves.
        let front = (&mut waiting.called).await;
        front.map_err(|_| NotAdmitted::Stopping)
    }

    /// Tells whoever is next that it is at the front. If it gives up in this moment, the front is
    /// dropped, and the next one is told.
    fn call(&self) {
        let next = self.lock().call();
        if let Some(next) = next {
            drop(next.send(Front(self.clone())));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue<oneshot::Sender<Front>>> {
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gate").finish_non_exhaustive()
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.0.lock().step_aside();
        self.0.call();
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.gate.lock().leave(&self.ticket);
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.gate.lock().end(&self.flow);
        self.gate.call();
    }
}

/// Tokio's clock, since some moment.
#[derive(Debug, Clone, Copy)]
struct Steady(Instant);

impl Clock for Steady {
    type Instant = Duration;

    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;

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
    async fn patience_holds_for_everybody() {
        let gate = gate(10, 5);
        gate.ask_patience(Some(Duration::from_secs(3)));
        let start = Instant::now();
        drop(gate.pass(&flow("other")).await.unwrap());
        assert!(start.elapsed() >= Duration::from_secs(3));
    }

    /// Three hundred clusters with sixteen requests each, five times what the rate allows in the time
    /// that a request waits: what is let through is what the rate allows, again and again, and a
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
        assert_eq!(hanging.len(), OF_ONE.under_way);
        let slow = flow("slow");
        let waits = gate.pass(&slow);
        let neighbour = async {
            let asked = Instant::now();
            drop(gate.pass(&flow("neighbour")).await.unwrap());
            asked.elapsed()
        };
        let (waited, neighbour) = tokio::join!(waits, neighbour);
        assert_eq!(waited.unwrap_err(), NotAdmitted::TooLong);
        assert!(neighbour < Duration::from_secs(1), "{neighbour:?}");
        hanging.pop();
        assert!(gate.pass(&flow("slow")).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_is_turned_away_when_it_closes() {
        let gate = gate(1, 1);
        drop(gate.pass(&flow("a")).await.unwrap());
        gate.ask_patience(Some(Duration::from_secs(8)));
        let start = Instant::now();
        let flows = [flow("a"), flow("b")];
        let (a, b, ()) = tokio::join!(gate.pass(&flows[0]), gate.pass(&flows[1]), async {
            sleep(Duration::from_millis(10)).await;
            gate.close();
        });
        assert_eq!(a.unwrap_err(), NotAdmitted::Stopping);
        assert_eq!(b.unwrap_err(), NotAdmitted::Stopping);
        assert!(start.elapsed() < Duration::from_secs(1));
    }
}
