//! The blocking offload: work that could delay other clusters runs beside the async tasks.

use tokio::sync::Semaphore;

use crate::controller::observe::ClusterTexts;
use crate::gcs::aside;
use crate::snapshot::gcs::ClusterResourceState;

/// From this number of pods, Ray nodes, requests and so on, a decision may take so long that other
/// tasks must not wait for it.
const MANY: usize = 100;

/// The number of such pieces of work that run at the same time. Further ones wait for a place;
/// small pieces of work need none and wait for nothing.
static PLACES: Semaphore = Semaphore::const_new(2);

/// Whether reading these objects takes so long that other tasks must not wait for it.
pub fn is_slow_to_read(texts: &ClusterTexts) -> bool {
    texts.pods() >= MANY || texts.is_long()
}

/// Whether deciding on these objects takes so long.
pub fn is_slow_to_plan(texts: &ClusterTexts, state: &ClusterResourceState) -> bool {
    let gangs = state.pending_gang_resource_requests.iter();
    let bundles = gangs.map(|gang| 1 + gang.requests.len() + gang.bundle_selectors.len());
    let constraints = state.cluster_resource_constraints.iter();
    let asked = constraints.map(|constraint| constraint.resource_requests.len());
    let sum = state.node_states.len() + state.pending_resource_requests.len();
    is_slow_to_read(texts) || sum + bundles.sum::<usize>() + asked.sum::<usize>() >= MANY
}

/// Runs `work`, offloaded if it is slow, so that other tasks continue.
pub async fn offload_if<T>(is_slow: bool, work: impl FnOnce() -> T) -> T {
    if !is_slow {
        return work();
    }
    // The semaphore is never closed, so this always gets a place.
    let _place = PLACES.acquire().await;
    aside(true, work)
}
