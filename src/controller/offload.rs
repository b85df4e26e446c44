//! The blocking offload: work that could delay other clusters runs beside the async tasks.

use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use rayfit_core::snapshot::gcs::ClusterResourceState;

use crate::fair_semaphore::FairSemaphore;
use crate::gcs::aside;

/// The number of slow pieces of work that run at the same time.
// Further ones wait for a permit; small pieces of work need none and wait for nothing.
static PERMITS: LazyLock<FairSemaphore> = LazyLock::new(|| FairSemaphore::new(2));

/// The number of nodes, requests and parts of requests of a state.
pub fn parts(state: &ClusterResourceState) -> usize {
    let gangs = state.pending_gang_resource_requests.iter();
    let bundles = gangs.map(|gang| 1 + gang.requests.len() + gang.bundle_selectors.len());
    let constraints = state.cluster_resource_constraints.iter();
    let requests = constraints.map(|constraint| constraint.resource_requests.len());
    let sum = state.node_states.len() + state.pending_resource_requests.len();
    sum + bundles.sum::<usize>() + requests.sum::<usize>()
}

/// Runs `work` about a cluster of a namespace, offloaded if it is slow, so that other tasks continue. Adds how
/// long it ran to `took`, without the wait for a permit.
pub async fn offload_if<T>(
    namespace: &Arc<str>,
    is_slow: bool,
    took: &mut Duration,
    work: impl FnOnce() -> T,
) -> T {
    let timed = || {
        let began = Instant::now();
        let done = work();
        *took += began.elapsed();
        done
    };
    if !is_slow {
        return timed();
    }
    let _permit = PERMITS.acquire(namespace).await;
    aside(true, timed)
}
