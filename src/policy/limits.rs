//! Limits on what Ray objects may request, each with the policy that sets it.

use std::sync::Arc;

use crate::quantity::Quantity;

/// The limits for one object (rules RF501 to RF506).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Limits {
    /// Workers of all groups together.
    pub workers_per_cluster: Option<Limit<i64>>,
    /// Workers of one group.
    pub workers_per_group: Option<Limit<i64>>,
    /// CPU of a pod at its resize limit, in cores.
    pub cpu_per_pod: Option<Limit<Quantity>>,
    /// Memory of a pod at its resize limit, in bytes.
    pub memory_per_pod: Option<Limit<Quantity>>,
    /// GPUs of a cluster with all its workers.
    pub gpus_per_cluster: Option<Limit<i64>>,
    /// Seconds for which an idle worker may be kept.
    pub idle_timeout_seconds: Option<Limit<i64>>,
    /// CPU of a cluster with all its workers at their resize limits, in cores.
    pub cpu_per_cluster: Option<Limit<Quantity>>,
    /// Memory of a cluster with all its workers at their resize limits, in bytes.
    pub memory_per_cluster: Option<Limit<Quantity>>,
}

/// One limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit<T> {
    /// The most that is allowed.
    pub most: T,
    /// The policy that sets it.
    pub policy: Arc<str>,
}

impl Limits {
    /// The limits that are set: the name of each under `spec.limits`, and the most that is allowed.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, Quantity)> {
        let amount = |limit: &Option<Limit<Quantity>>| limit.as_ref().map(|limit| limit.most);
        let count = |limit: &Option<Limit<i64>>| {
            limit.as_ref().map(|limit| Quantity::from_units(limit.most))
        };
        [
            ("maxWorkersPerCluster", count(&self.workers_per_cluster)),
            ("maxWorkersPerGroup", count(&self.workers_per_group)),
            ("maxCpuPerPod", amount(&self.cpu_per_pod)),
            ("maxMemoryPerPod", amount(&self.memory_per_pod)),
            ("maxGpusPerCluster", count(&self.gpus_per_cluster)),
            ("maxIdleTimeoutSeconds", count(&self.idle_timeout_seconds)),
            ("maxCpuPerCluster", amount(&self.cpu_per_cluster)),
            ("maxMemoryPerCluster", amount(&self.memory_per_cluster)),
        ]
        .into_iter()
        .filter_map(|(name, most)| Some((name, most?)))
    }

    /// Takes those limits of `others` that are not set yet, and with `or_less` also those that allow less.
    pub fn take(&mut self, others: &Self, or_less: bool) {
        fn take<T: PartialOrd>(own: &mut Option<Limit<T>>, other: Option<Limit<T>>, or_less: bool) {
            let Some(other) = other else { return };
            let is_taken = |own: &Limit<T>| or_less && other.most < own.most;
            if own.as_ref().is_none_or(is_taken) {
                *own = Some(other);
            }
        }
        let Self {
            workers_per_cluster,
            workers_per_group,
            cpu_per_pod,
            memory_per_pod,
            gpus_per_cluster,
            idle_timeout_seconds,
            cpu_per_cluster,
            memory_per_cluster,
        } = others.clone();
        take(&mut self.workers_per_cluster, workers_per_cluster, or_less);
        take(&mut self.workers_per_group, workers_per_group, or_less);
        take(&mut self.cpu_per_pod, cpu_per_pod, or_less);
        take(&mut self.memory_per_pod, memory_per_pod, or_less);
        take(&mut self.gpus_per_cluster, gpus_per_cluster, or_less);
        take(
            &mut self.idle_timeout_seconds,
            idle_timeout_seconds,
            or_less,
        );
        take(&mut self.cpu_per_cluster, cpu_per_cluster, or_less);
        take(&mut self.memory_per_cluster, memory_per_cluster, or_less);
    }

    /// The rules whose limits are set.
    pub fn rules(&self) -> impl Iterator<Item = u16> {
        [
            (501, self.workers_per_cluster.is_some()),
            (502, self.workers_per_group.is_some()),
            (
                503,
                self.cpu_per_pod.is_some() || self.memory_per_pod.is_some(),
            ),
            (504, self.gpus_per_cluster.is_some()),
            (505, self.idle_timeout_seconds.is_some()),
            (
                506,
                self.cpu_per_cluster.is_some() || self.memory_per_cluster.is_some(),
            ),
        ]
        .into_iter()
        .filter_map(|(rule, is_set)| is_set.then_some(rule))
    }
}
