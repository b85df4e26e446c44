//! Early ends: pods that ended before Ray ran in them, until Ray runs in one that was made later.
//!
//! A single pod may end so because of its Kubernetes node, or because the head was slow. With the
//! second one in a row their group counts as blocked.

use std::collections::BTreeMap;

use crate::plan::decided::Decided;
use crate::plan::memory::started::Started;
use crate::snapshot::history::{EarlyEnds, History};

/// The most pods that are remembered of each group: enough to tell one from another that was seen
/// before.
const PODS: usize = 3;

/// Memory of early ends after a decision.
pub(crate) fn after(history: &History, decided: &Decided<'_>) -> BTreeMap<String, EarlyEnds> {
    let mut after = history.early_ends.clone();
    let mut seen = decided.evidence.early_ends.clone();
    // The order of pods in a snapshot is not to decide which of them are remembered.
    seen.sort_unstable_by_key(|pod| pod.name);
    for pod in seen {
        if decided.config.number(pod.group).is_none() {
            continue;
        }
        let ends = after.entry(pod.group.to_owned()).or_default();
        ends.at = decided.now;
        if !ends.pods.iter().any(|one| one == pod.name) {
            ends.pods.push(pod.name.to_owned());
            let surplus = ends.pods.len().saturating_sub(PODS);
            ends.pods.drain(..surplus);
        }
    }
    let started = Started::of(!after.is_empty(), &decided.state, decided.own);
    after.retain(|group, ends| ends.counts(decided.now) && !started.since(group, ends.at));
    after
}
