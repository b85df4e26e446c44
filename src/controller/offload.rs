//! Work that may take so long that other clusters would wait for it.

use tokio::sync::Semaphore;

use crate::controller::observe::ClusterTexts;
use crate::gcs::aside;
use crate::snapshot::gcs::ClusterResourceState;

/// From so many pods, nodes, requests and so on, deciding may take so long that other tasks must not
/// wait for it.
const MANY: usize = 100;

/// So many pieces of such work are done at once. Who comes next waits for a place, and nobody else
/// does: light work needs none.
static PLACES: Semaphore = Semaphore::const_new(2);

/// Reading it takes so long that other tasks must not wait for it.
pub fn is_heavy(texts: &ClusterTexts) -> bool {
    texts.pods() >= MANY || texts.is_long()
}

/// Deciding on it does.
pub fn is_much(texts: &ClusterTexts, state: &ClusterResourceState) -> bool {
    let gangs = state.pending_gang_resource_requests.iter();
    let bundles = gangs.map(|gang| 1 + gang.requests.len() + gang.bundle_selectors.len());
    let constraints = state.cluster_resource_constraints.iter();
    let asked = constraints.map(|constraint| constraint.resource_requests.len());
    let sum = state.node_states.len() + state.pending_resource_requests.len();
    is_heavy(texts) || sum + bundles.sum::<usize>() + asked.sum::<usize>() >= MANY
}

/// Runs what may take long, if it is heavy, so that other tasks go on.
pub async fn apart<T>(is_heavy: bool, work: impl FnOnce() -> T) -> T {
    if !is_heavy {
        return work();
    }
    // Nobody closes it.
    let _place = PLACES.acquire().await;
    aside(true, work)
}
