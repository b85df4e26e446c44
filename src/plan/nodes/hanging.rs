//! Pods that hang in termination: they were to be gone, and are still there, as on a Kubernetes node that is
//! lost, or with a volume that nobody can detach.
//!
//! KubeRay counts them as replicas, so what `replicas` ask for does not come in their place.

use std::collections::BTreeMap;

use crate::plan::nodes::group::ClusterConfig;
use crate::plan::outcome::problem::{Problem, ProblemEffect, ProblemPlace};
use crate::plan::outcome::problem_reason::ProblemReason;
use crate::seconds::second_of;
use crate::snapshot::pod::{Pod, PodRole};

/// For how many seconds a pod may be there after it was to be killed: its kubelet still removes what
/// belongs to it.
const LATE_S: f64 = 30.0;

/// How many of these pods a problem names.
const NAMED: usize = 3;

/// Worker pods that hang in termination, by group, in the order of their names.
#[derive(Debug, Default)]
pub(crate) struct HangingPods<'a>(BTreeMap<&'a str, Vec<&'a Pod<'a>>>);

impl<'a> HangingPods<'a> {
    /// Those that KubeRay counts: pods that it was asked to delete it does not.
    pub(crate) fn of(own: &'a [Pod<'a>], config: &ClusterConfig, now: f64) -> Self {
        let mut found = Self::default();
        let hanging = own.iter().filter(|pod| hangs(pod, now));
        for pod in hanging.filter(|pod| !config.is_listed(pod.group, pod.name)) {
            found.0.entry(pod.group).or_default().push(pod);
        }
        for pods in found.0.values_mut() {
            pods.sort_unstable_by_key(|pod| pod.name);
        }
        found
    }

    /// All of them.
    pub(crate) fn pods(&self) -> impl Iterator<Item = &&'a Pod<'a>> {
        self.0.values().flatten()
    }

    /// Whether a pod is one of them.
    pub(crate) fn holds(&self, pod: &Pod<'_>) -> bool {
        let of_group = self.0.get(pod.group);
        of_group.is_some_and(|pods| {
            let found = pods.binary_search_by_key(&pod.name, |one| one.name);
            found.is_ok()
        })
    }

    /// How many a group has.
    pub(crate) fn count(&self, group: &str) -> u64 {
        self.0.get(group).map_or(0, |pods| pods.len() as u64)
    }

    /// What is to be reported of them, by group.
    pub(crate) fn problems(&self) -> impl Iterator<Item = Problem> {
        self.0.iter().map(|(group, pods)| {
            let names: Vec<&str> = pods.iter().take(NAMED).map(|pod| pod.name).collect();
            let more = match pods.len().saturating_sub(NAMED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let since = pods.iter().filter_map(|pod| pod.killed_at());
            let since = since.fold(f64::INFINITY, f64::min);
            Problem {
                at: ProblemPlace::Group((*group).to_owned()),
                reason: ProblemReason::Hanging {
                    pods: format!("{}{more}", names.join(", ")),
                    since: second_of(since),
                },
                effect: ProblemEffect::ReplicasRaised,
            }
        })
    }
}

/// Whether a worker pod hangs in termination.
pub(crate) fn hangs(pod: &Pod<'_>, now: f64) -> bool {
    pod.role == PodRole::Worker && pod.killed_at().is_some_and(|at| now - at >= LATE_S)
}
