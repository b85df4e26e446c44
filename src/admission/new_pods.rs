//! New worker pods, which get the initial size that their RayCluster says.
//!
//! KubeRay makes a pod as the template of its group says. What scales the cluster may have written a larger size into
//! the RayCluster a moment before, and so that is read from the API server while the review waits. [`OwnerReads`] says
//! how many are read at a time, for how long, and in which order.
//!
//! In: a review of a pod that is created. Out: a patch, or that the pod stays as KubeRay makes it. Invariants: no pod is ever
//! refused; while one waits for its RayCluster, it takes no place of reviews of Ray objects, and the pods of one
//! namespace delay those of another by one read.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use rayfit_core::dns_name::Key;
use rayfit_core::initial_size::{LeftAsMade, NewPod, OwnerCluster};
use tokio::time::{Instant, timeout_at};

use super::review::{Review, ReviewError};
use super::tree::{self, Detail, TreeArena};
use crate::fair_semaphore::FairSemaphore;

/// The reason for which a RayCluster was not read. The pod is then made as its template says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OwnerUnread {
    /// The process has no client of an API server, or not yet.
    #[error("no API server is known")]
    NoApiServer,
    /// Too many pods wait for theirs.
    #[error("too many pods wait for their RayClusters to be read")]
    TooMany,
    /// It took too long, the wait for a turn included.
    #[error("the RayCluster was not read within {} ms", .0.as_millis())]
    TooSlow(Duration),
    /// The API server refused, or its answer cannot be used.
    #[error("the RayCluster cannot be read: {0}")]
    Failed(String),
}

/// Reads RayClusters.
pub trait OwnerReader: Send + Sync {
    /// The RayCluster as it is stored now; `None` if there is none. Dropping the future ends the request.
    fn read(&self, owner: Key) -> BoxFuture<'static, Result<Option<OwnerCluster>, OwnerUnread>>;

    /// The time in seconds since 1970, by the clock by which sizes are written.
    fn now(&self) -> f64;
}

/// The longest UID of a review, in bytes: API servers send 36.
const LONGEST_UID: usize = 128;

/// The new pod of a review and its RayCluster, or why it stays as it is made, whatever that says.
pub fn new_pod(
    review: &Review<'_>,
    arena: &TreeArena,
) -> Result<Result<(NewPod, Key), LeftAsMade>, ReviewError> {
    let (object, _) = review.objects()?;
    let pod = tree::read_fields(object, "object", Detail::Whole, arena)?;
    Ok(NewPod::read(pod).and_then(|pod| {
        // The namespace is the request's: a pod is in that one whatever it says itself. Anybody can write an owner
        // reference into a pod, with a name that no object can have.
        let owner = Key::new(&review.namespace, &pod.cluster).ok();
        // The UID is held while the RayCluster is read, as the names are.
        let owner = owner.filter(|_| review.uid.len() <= LONGEST_UID);
        Ok((pod, owner.ok_or(LeftAsMade::NoWorker)?))
    }))
}

/// The most reads under way. Each holds an answer of the API server, and a connection to it.
const UNDER_WAY: usize = 8;

/// The most pods that wait for a read or for its answer.
const WAITING: usize = 256;

/// The most of them that are of one namespace. KubeRay makes the pods of a cluster one after the other, so that a
/// namespace has about as many as it has clusters that grow at the moment.
const WAITING_EACH: usize = 32;

/// The longest wait of a pod.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// The time after a failure in which no further ones are logged.
const SILENCE: Duration = Duration::from_mins(5);

/// Reads RayClusters within the limits. Namespaces take turns.
pub struct OwnerReads {
    /// The reader, and the clock by which sizes are written.
    pub reader: Arc<dyn OwnerReader>,
    turns: FairSemaphore,
    /// Of each namespace, the value that each of its waiting pods holds a clone of, so that the clones are their number.
    waiting: Mutex<HashMap<Arc<str>, Weak<()>>>,
    warned: Mutex<Option<Instant>>,
}

impl OwnerReads {
    /// Reads by `reader`.
    pub fn new(reader: Arc<dyn OwnerReader>) -> Self {
        Self {
            reader,
            turns: FairSemaphore::new(UNDER_WAY),
            waiting: Mutex::default(),
            warned: Mutex::default(),
        }
    }

    /// The RayCluster, if it is read before `deadline`.
    pub async fn read(
        &self,
        owner: Key,
        deadline: Instant,
    ) -> Result<Option<OwnerCluster>, OwnerUnread> {
        let start = Instant::now();
        let until = deadline.min(start + LONGEST_WAIT);
        let read = match self.place(&owner.namespace) {
            None => Err(OwnerUnread::TooMany),
            Some(_place) => {
                let too_slow = OwnerUnread::TooSlow(until.saturating_duration_since(start));
                let read = async {
                    let _turn = self.turns.acquire(&owner.namespace).await;
                    self.reader.read(owner).await
                };
                timeout_at(until, read).await.unwrap_or(Err(too_slow))
            }
        };
        if let Err(unread) = &read
            && self.is_to_warn()
        {
            tracing::warn!(%unread, "new pods are made as their templates say, and grow later");
        }
        read
    }

    /// Allows one warning of failures in a while, and not one for each pod.
    fn is_to_warn(&self) -> bool {
        let now = Instant::now();
        let mut warned = self.warned.lock();
        let is_due = warned.is_none_or(|at| now.saturating_duration_since(at) >= SILENCE);
        if is_due {
            *warned = Some(now);
        }
        is_due
    }

    /// A place among the pods that wait, until dropped.
    fn place(&self, namespace: &Arc<str>) -> Option<Arc<()>> {
        let mut waiting = self.waiting.lock();
        waiting.retain(|_, pods| pods.strong_count() > 0);
        let all: usize = waiting.values().map(Weak::strong_count).sum();
        let place = waiting.get(namespace).and_then(Weak::upgrade);
        let place = place.unwrap_or_default();
        // The place itself counts already.
        if all >= WAITING || Arc::strong_count(&place) > WAITING_EACH {
            return None;
        }
        waiting.insert(namespace.clone(), Arc::downgrade(&place));
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use futures_util::future::{BoxFuture, join_all};

    use super::*;

    /// Each read takes so long.
    #[derive(Debug)]
    struct Slow(Duration);

    impl OwnerReader for Slow {
        fn read(&self, _: Key) -> BoxFuture<'static, Result<Option<OwnerCluster>, OwnerUnread>> {
            tokio::time::sleep(self.0).map(|()| Ok(None)).boxed()
        }

        fn now(&self) -> f64 {
            0.0
        }
    }

    fn reads(takes_ms: u64) -> OwnerReads {
        let reader = Slow(Duration::from_millis(takes_ms));
        OwnerReads::new(Arc::new(reader))
    }

    fn owner(namespace: &str) -> Key {
        Key::new(namespace, "demo").unwrap()
    }

    fn far() -> Instant {
        Instant::now() + Duration::from_mins(1)
    }

    #[tokio::test(start_paused = true)]
    async fn the_flood_of_one_namespace_delays_another_by_one_read() {
        let reads = reads(100);
        let flood = join_all((0..1000).map(|_| reads.read(owner("many"), far())));
        let neighbour = async {
            // The flood is there first.
            tokio::time::sleep(Duration::from_millis(10)).await;
            let start = Instant::now();
            assert_eq!(reads.read(owner("one"), far()).await, Ok(None));
            start.elapsed()
        };
        let (flood, took) = tokio::join!(flood, neighbour);
        assert!(took < Duration::from_millis(201), "{took:?}");
        let refused = |read: &&_| **read == Err(OwnerUnread::TooMany);
        assert_eq!(flood.iter().filter(refused).count(), 1000 - 32);
        let waiting = reads.waiting.lock();
        assert!(waiting.values().all(|pods| pods.strong_count() == 0));
    }

    #[tokio::test(start_paused = true)]
    async fn many_namespaces_together_hold_what_is_there() {
        let reads = reads(10);
        let owners = (0..1000).map(|number| owner(&format!("n{number}")));
        let all = join_all(owners.map(|owner| reads.read(owner, far()))).await;
        assert_eq!(all.iter().filter(|read| read.is_ok()).count(), 256);
        assert_eq!(
            reads.read(owner("one"), far()).await,
            Ok(None),
            "free again"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_that_hangs_ends_before_the_request_does() {
        let reads = reads(3_600_000);
        for (left_ms, expected_ms) in [(60_000, 1000), (300, 300), (0, 0)] {
            let start = Instant::now();
            let left = Duration::from_millis(left_ms);
            let expected = Duration::from_millis(expected_ms);
            let read = reads.read(owner("a"), start + left).await;
            assert_eq!(read, Err(OwnerUnread::TooSlow(expected)));
            assert!(start.elapsed() <= expected + Duration::from_millis(2));
        }
        // And so do those that wait for their turn meanwhile.
        let start = Instant::now();
        let all = join_all((0..20).map(|_| reads.read(owner("a"), far()))).await;
        assert!(all.iter().all(Result::is_err));
        assert!(start.elapsed() < Duration::from_millis(1010));
    }

    #[tokio::test(start_paused = true)]
    async fn failures_are_warned_of_once_in_a_while() {
        let reads = reads(0);
        let warned: Vec<bool> = (0..3).map(|_| reads.is_to_warn()).collect();
        assert_eq!(warned, [true, false, false]);
        tokio::time::advance(SILENCE).await;
        assert!(reads.is_to_warn());
    }
}
