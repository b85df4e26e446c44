//! Sizes of worker pods: the present ones, the part in use, and the largest possible ones.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};

use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::labels::SeriesLabels;
use crate::plan::GroupSizes;

/// The sums over all clusters: one series of each metric for CPU and one for memory, however many
/// clusters there are.
#[derive(Debug, Default)]
pub(super) struct WorkerSizes {
    has: Family<SeriesLabels<1>, Amount>,
    in_use: Family<SeriesLabels<1>, Amount>,
    up_to: Family<SeriesLabels<1>, Amount>,
    clusters: Mutex<HashMap<String, GroupSizes>>,
}

type Amount = Gauge<f64, AtomicU64>;

impl WorkerSizes {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "worker_size",
            "Limits of the worker pods of all clusters that have a Kubernetes node: CPUs, bytes of memory",
            self.has.clone(),
        );
        registry.register(
            "worker_in_use",
            "What of it is in use: what work has asked Ray for, or the memory that Ray says is really \
             in use, where that is more",
            self.in_use.clone(),
        );
        registry.register(
            "worker_resize_limits",
            "What these pods would have at their resize limits; their size, if they cannot grow",
            self.up_to.clone(),
        );
        // The series exist from the start, so that a process without clusters shows 0.
        self.sum(&HashMap::new());
    }

    /// Records how large the worker groups of a cluster are now.
    pub(super) fn note(&self, cluster: &str, groups: impl Iterator<Item = GroupSizes>) {
        let sizes = groups.fold(GroupSizes::default(), GroupSizes::plus);
        let mut clusters = (self.clusters.lock()).unwrap_or_else(PoisonError::into_inner);
        if sizes == GroupSizes::default() {
            clusters.remove(cluster);
        } else {
            clusters.insert(cluster.to_owned(), sizes);
        }
        self.sum(&clusters);
    }

    #[expect(clippy::cast_precision_loss, reason = "a gauge for people")]
    fn sum(&self, clusters: &HashMap<String, GroupSizes>) {
        let sum = clusters.values().copied();
        let sum = sum.fold(GroupSizes::default(), GroupSizes::plus);
        for (family, amounts) in [
            (&self.has, sum.has),
            (&self.in_use, sum.in_use),
            (&self.up_to, sum.up_to),
        ] {
            let (cpus, bytes) = (
                amounts.cpu_milli as f64 / 1000.0,
                amounts.memory_bytes as f64,
            );
            for (resource, amount) in [("cpu", cpus), ("memory", bytes)] {
                family.get_or_create(&[("resource", resource)]).set(amount);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;
    use crate::plan::CpuAndMemory;

    #[test]
    fn the_sums_are_those_of_the_clusters_that_are_scaled_now() {
        let sizes = WorkerSizes::default();
        let mut registry = Registry::default();
        sizes.register(&mut registry);
        let shows = |line: &str| {
            let mut text = String::new();
            encode(&mut text, &registry).unwrap();
            assert!(text.lines().any(|one| one == line), "{line}: {text}");
            assert_eq!(
                text.lines().filter(|line| !line.starts_with('#')).count(),
                6
            );
        };
        shows("worker_size{resource=\"cpu\"} 0.0");
        let group = |cpu_milli: i64| {
            let has = CpuAndMemory {
                cpu_milli,
                memory_bytes: cpu_milli << 20,
            };
            GroupSizes {
                has,
                in_use: CpuAndMemory::default(),
                up_to: has.join(has, i64::saturating_add),
            }
        };
        sizes.note("a", [group(1500), group(500)].into_iter());
        sizes.note("b", [group(4000)].into_iter());
        shows("worker_size{resource=\"cpu\"} 6.0");
        shows("worker_resize_limits{resource=\"cpu\"} 12.0");
        shows("worker_in_use{resource=\"memory\"} 0.0");
        sizes.note("a", [group(1000)].into_iter());
        shows("worker_size{resource=\"cpu\"} 5.0");
        shows("worker_size{resource=\"memory\"} 5242880000.0");
        sizes.note("b", std::iter::empty());
        shows("worker_size{resource=\"cpu\"} 1.0");
    }
}
