//! A semaphore for what only a few may do or hold at a time, such as answers that take much memory:
//! groups of flows take turns, as the clusters of namespaces or the reviews of a client, so that one tenant delays
//! another by one permit, and not by all that it waits for.
//!
//! In: the flow for which a permit is needed. Out: a permit, until it is dropped. Invariant:
//! no more permits are given than there are, and one for a task that has given up goes to the next.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use rayfit_core::fair_queue::{FairQueue, FlowOfGroup};

/// A number of permits. Clones share them.
#[derive(Debug, Clone)]
pub struct FairSemaphore<F: FlowOfGroup = Arc<str>>(Arc<Mutex<SemaphoreState<F>>>);

#[derive(Debug)]
struct SemaphoreState<F: FlowOfGroup> {
    free: usize,
    waiting: WaitingTasks<F>,
}

type WaitingTasks<F> = FairQueue<F, oneshot::Sender<FairPermit<F>>>;

/// A permit. It is free again once this is dropped.
#[derive(Debug)]
pub struct FairPermit<F: FlowOfGroup = Arc<str>>(FairSemaphore<F>);

/// The ratio of the tasks of a group that can wait to those of one flow.
const FLOWS: usize = 4;

impl<F: FlowOfGroup> FairSemaphore<F> {
    /// A semaphore with so many permits.
    pub fn new(number: usize) -> Self {
        Self(Arc::new(Mutex::new(SemaphoreState {
            free: number,
            waiting: FairQueue::new(usize::MAX),
        })))
    }

    /// A permit, once it is the turn of this flow, however many wait: each cluster waits for one permit at a time, so
    /// that clusters are all that bounds it.
    pub async fn acquire(&self, flow: &F) -> FairPermit<F> {
        loop {
            // Nothing drops a task from the queue. One that was dropped would join it again.
            if let Some(permit) = self.acquire_within(flow, usize::MAX).await {
                return permit;
            }
        }
    }

    /// A permit, once it is the turn of this flow; `None` if `each` of it, or four times as many of its group, wait
    /// already.
    pub async fn acquire_within(&self, flow: &F, each: usize) -> Option<FairPermit<F>> {
        let is_full = |waiting: &WaitingTasks<F>| {
            waiting.len_of(flow) >= each
                || waiting.len_of_group(flow.group()) >= each.saturating_mul(FLOWS)
        };
        let given = {
            let mut state = self.0.lock();
            if state.free > 0 {
                state.free -= 1;
                return Some(FairPermit(self.clone()));
            }
            if is_full(&state.waiting) {
                // Tasks that have gone away meanwhile are still in the queue.
                state.waiting.retain(flow, |next| !next.is_closed());
                if is_full(&state.waiting) {
                    return None;
                }
            }
            let (give, given) = oneshot::channel();
            drop(state.waiting.push(flow.clone(), give));
            given
        };
        given.await.ok()
    }
}

impl<F: FlowOfGroup> Drop for FairPermit<F> {
    fn drop(&mut self) {
        let next = {
            let mut state = self.0.0.lock();
            let mut all = std::iter::from_fn(|| state.waiting.pop());
            let next = all.find(|next| !next.is_closed());
            if next.is_none() {
                state.free += 1;
            }
            next
        };
        if let Some(next) = next {
            // A task that gives up at this moment drops the permit, which then goes to the next
            // one.
            drop(next.send(Self(self.0.clone())));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    use tokio::task::yield_now;

    use super::*;

    type ClientFlow = (u8, Arc<str>);
    type Waiting = Pin<Box<dyn Future<Output = Option<FairPermit<ClientFlow>>>>>;

    fn wait(
        semaphore: &FairSemaphore<ClientFlow>,
        each: usize,
        client: u8,
        namespace: &str,
    ) -> Waiting {
        let (semaphore, flow) = (semaphore.clone(), (client, namespace.into()));
        let mut waiting: Waiting =
            Box::pin(async move { semaphore.acquire_within(&flow, each).await });
        assert!(poll(&mut waiting).is_pending());
        waiting
    }

    fn poll(waiting: &mut Waiting) -> Poll<Option<FairPermit<ClientFlow>>> {
        let mut context = Context::from_waker(Waker::noop());
        waiting.as_mut().poll(&mut context)
    }

    fn granted(waiting: &mut Waiting) -> FairPermit<ClientFlow> {
        let Poll::Ready(Some(permit)) = poll(waiting) else {
            panic!("it is the turn of another one")
        };
        permit
    }

    #[tokio::test]
    async fn groups_take_turns_however_many_one_of_them_sends() {
        let semaphore = FairSemaphore::new(1);
        let flow = |client| (client, Arc::from("ray"));
        let first = semaphore.acquire_within(&flow(1), 3).await.unwrap();
        let mut flood: Vec<Waiting> = (0..3).map(|_| wait(&semaphore, 3, 1, "ray")).collect();
        assert!(semaphore.acquire_within(&flow(1), 3).await.is_none());
        let mut neighbour = wait(&semaphore, 3, 2, "ray");
        drop(first);
        let second = granted(&mut flood[0]);
        assert!(poll(&mut neighbour).is_pending(), "one at a time");
        drop(second);
        assert!(poll(&mut flood[1]).is_pending());
        let third = granted(&mut neighbour);
        // A task that has gone away is passed over, and so is a permit that nobody took.
        drop(flood.remove(1));
        drop(third);
        drop(flood);
        drop(semaphore.acquire_within(&flow(3), 3).await.unwrap());
        let state = semaphore.0.lock();
        assert!(state.free == 1 && state.waiting.is_empty());
    }

    #[tokio::test]
    async fn the_flows_of_a_group_take_turns() {
        let semaphore = FairSemaphore::new(1);
        let first = semaphore.acquire_within(&(0, "many".into()), 9).await;
        let mut waiting = ["many", "many", "one"].map(|name| wait(&semaphore, 9, 0, name));
        drop(first);
        drop(granted(&mut waiting[0]));
        assert!(
            poll(&mut waiting[1]).is_pending(),
            "it is the turn of the other namespace"
        );
        drop(granted(&mut waiting[2]));
        drop(granted(&mut waiting[1]));
    }

    /// Waits until so many wait.
    async fn until_waiting(semaphore: &FairSemaphore, number: usize) {
        while semaphore.0.lock().waiting.len() < number {
            yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_namespace_with_many_clusters_delays_another_by_one_permit() {
        let semaphore = FairSemaphore::new(1);
        let (many, one): (Arc<str>, Arc<str>) = ("many".into(), "one".into());
        let held = semaphore.acquire(&many).await;
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = Vec::new();
        for namespace in [&many, &many, &many, &many, &one] {
            let (semaphore, order) = (semaphore.clone(), Arc::clone(&order));
            let namespace = Arc::clone(namespace);
            let number = tasks.len() + 1;
            let waiting = semaphore.clone();
            tasks.push(tokio::spawn(async move {
                let _permit = semaphore.acquire(&namespace).await;
                order.lock().push(namespace);
            }));
            until_waiting(&waiting, number).await;
        }
        drop(held);
        for task in tasks {
            task.await.unwrap();
        }
        let order: Vec<String> = (order.lock().iter()).map(ToString::to_string).collect();
        assert_eq!(order, ["many", "one", "many", "many", "many"]);
    }

    #[tokio::test]
    async fn the_permit_of_who_waits_no_longer_goes_to_the_next_one() {
        let semaphore = FairSemaphore::new(1);
        let namespace: Arc<str> = "a".into();
        let held = semaphore.acquire(&namespace).await;
        let (gone, waiting) = (semaphore.clone(), Arc::clone(&namespace));
        let gone = tokio::spawn(async move { drop(gone.acquire(&waiting).await) });
        until_waiting(&semaphore, 1).await;
        gone.abort();
        assert!(gone.await.unwrap_err().is_cancelled());
        drop(held);
        let again = semaphore.acquire(&namespace).await;
        assert_eq!(semaphore.0.lock().free, 0);
        drop(again);
        assert_eq!(semaphore.0.lock().free, 1, "as many as before");
    }
}
