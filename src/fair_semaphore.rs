//! A semaphore for what only a few may do or hold at a time, such as answers that take much memory:
//! namespaces take turns, so that the clusters of one tenant delay those of another by one permit of
//! theirs, and not by all that they wait for.
//!
//! In: the namespace for which a permit is needed. Out: a permit, until it is dropped. Invariant:
//! no more permits are given than there are, and one for a task that has given up goes to the next.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::fair_queue::FairQueue;

/// A number of permits. Clones share them.
#[derive(Debug, Clone)]
pub struct FairSemaphore(Arc<Mutex<SemaphoreState>>);

#[derive(Debug)]
struct SemaphoreState {
    free: usize,
    waiting: FairQueue<Arc<str>, oneshot::Sender<FairPermit>>,
}

/// A permit. It is free again once this is dropped.
#[derive(Debug)]
pub struct FairPermit(FairSemaphore);

impl FairSemaphore {
    /// A semaphore with so many permits.
    pub fn new(number: usize) -> Self {
        Self(Arc::new(Mutex::new(SemaphoreState {
            free: number,
            // Each cluster waits for one permit at a time, so that clusters are all that bounds it.
            waiting: FairQueue::new(usize::MAX),
        })))
    }

    /// A permit, once it is the turn of this namespace.
    pub async fn acquire(&self, namespace: &Arc<str>) -> FairPermit {
        loop {
            let given = {
                let mut state = self.lock();
                if state.free > 0 {
                    state.free -= 1;
                    return FairPermit(self.clone());
                }
                let (give, given) = oneshot::channel();
                drop(state.waiting.push(Arc::clone(namespace), give));
                given
            };
            // Nothing drops a task from the queue. One that was dropped would join it again.
            if let Ok(permit) = given.await {
                return permit;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, SemaphoreState> {
        // No code panics while it holds the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for FairPermit {
    fn drop(&mut self) {
        let next = {
            let mut state = self.0.lock();
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
            drop(next.send(FairPermit(self.0.clone())));
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::task::yield_now;

    use super::*;

    /// Waits until so many wait.
    async fn until_waiting(semaphore: &FairSemaphore, number: usize) {
        while semaphore.lock().waiting.len() < number {
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
                order.lock().unwrap().push(namespace);
            }));
            until_waiting(&waiting, number).await;
        }
        drop(held);
        for task in tasks {
            task.await.unwrap();
        }
        let order: Vec<String> = (order.lock().unwrap().iter())
            .map(ToString::to_string)
            .collect();
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
        assert_eq!(semaphore.lock().free, 0);
        drop(again);
        assert_eq!(semaphore.lock().free, 1, "as many as before");
    }
}
