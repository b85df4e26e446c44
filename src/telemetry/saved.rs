//! Savings of resizing in place: the time for which pods are below their resize limits, where Ray's
//! autoscaler would leave them.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;

use crate::plan::CpuAndMemory;

/// A counter of amounts that are not whole.
type Amount = Counter<f64, AtomicU64>;

/// The sums over all clusters.
#[derive(Debug, Default)]
pub(super) struct SavedInPlace {
    cpu_seconds: Amount,
    memory_byte_seconds: Amount,
    /// The CPU and memory by which pods are below their limits, and since when, by cluster.
    clusters: Mutex<HashMap<String, (f64, f64, Instant)>>,
}

impl SavedInPlace {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "saved_in_place_cpu_seconds",
            "CPU that pods did not take of their resize limits after they had shrunk, times seconds; \
             counted when a cluster is next decided on",
            self.cpu_seconds.clone(),
        );
        registry.register(
            "saved_in_place_memory_byte_seconds",
            "The same of memory, in bytes times seconds",
            self.memory_byte_seconds.clone(),
        );
    }

    /// Adds what a cluster has saved until now, and remembers what it saves from now on.
    pub(super) fn note(
        &self,
        cluster: &str,
        groups: impl Iterator<Item = CpuAndMemory>,
        now: Instant,
    ) {
        #[expect(clippy::cast_precision_loss, reason = "a sum for people")]
        let (cores, bytes) = groups.fold((0.0, 0.0), |(cores, bytes), below| {
            (
                cores + below.cpu_milli as f64 / 1000.0,
                bytes + below.memory_bytes as f64,
            )
        });
        let mut clusters = (self.clusters.lock()).unwrap_or_else(PoisonError::into_inner);
        let previous = if cores + bytes > 0.0 {
            clusters.insert(cluster.to_owned(), (cores, bytes, now))
        } else {
            clusters.remove(cluster)
        };
        if let Some((cores, bytes, since)) = previous {
            let seconds = now.saturating_duration_since(since).as_secs_f64();
            self.cpu_seconds.inc_by(cores * seconds);
            self.memory_byte_seconds.inc_by(bytes * seconds);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_pods_are_below_their_limits_counts_for_as_long_as_it_is_so() {
        let saved = SavedInPlace::default();
        let begin = Instant::now();
        let note = |cluster: &str, cpu_milli: i64, seconds| {
            let below = CpuAndMemory {
                cpu_milli,
                memory_bytes: cpu_milli / 1000,
            };
            let groups = (cpu_milli > 0).then_some([below, below]);
            let now = begin + Duration::from_secs(seconds);
            saved.note(cluster, groups.into_iter().flatten(), now);
        };
        note("a", 3000, 0);
        note("b", 1000, 5);
        assert!(saved.cpu_seconds.get().abs() < 1e-9, "not yet");
        note("a", 1000, 10);
        assert!((saved.cpu_seconds.get() - 60.0).abs() < 1e-9);
        note("a", 0, 20);
        note("a", 0, 90);
        assert!(
            (saved.cpu_seconds.get() - 80.0).abs() < 1e-9,
            "it has grown"
        );
        note("b", 0, 15);
        assert!((saved.cpu_seconds.get() - 100.0).abs() < 1e-9);
        assert!((saved.memory_byte_seconds.get() - 100.0).abs() < 1e-9);
    }
}
