//! Pods that hang in termination: they were to be gone, and are still there, as on a Kubernetes node that is
//! lost, or with a volume that nobody can detach.
//!
//! KubeRay counts them as replicas, so what `replicas` ask for does not come in their place.

use std::collections::BTreeMap;

use crate::plan::nodes::group::ClusterConfig;
use crate::plan::outcome::problem::{Problem, ProblemPlace, ProblemReason};
use crate::seconds::second_of;
use crate::snapshot::pod::{Pod, PodRole};
use crate::text::first_of;

/// Seconds for which a pod may be there after it was to be killed: its kubelet still removes what
/// belongs to it.
const LATE_S: f64 = 30.0;

/// The most of these pods that a problem names.
const NAMED: usize = 3;

/// Worker pods that hang in termination, by group, in the order of their names.
#[derive(Debug, Default)]
pub(crate) struct HangingPods<'a>(BTreeMap<&'a str, Vec<&'a Pod<'a>>>);

impl<'a> HangingPods<'a> {
    /// The pods that KubeRay counts: all but those that it was asked to delete.
    pub(crate) fn of(own_pods: &'a [Pod<'a>], config: &ClusterConfig, now: f64) -> Self {
        let mut hanging = Self::default();
        let pods = own_pods.iter().filter(|pod| hangs(pod, now));
        for pod in pods.filter(|pod| !config.is_listed(pod.group, pod.name)) {
            hanging.0.entry(pod.group).or_default().push(pod);
        }
        // By name, whatever the order of the snapshot is: problems name the first of them, and `holds` searches by it.
        for pods in hanging.0.values_mut() {
            pods.sort_unstable_by_key(|pod| pod.name);
        }
        hanging
    }

    /// All of them.
    pub(crate) fn pods(&self) -> impl Iterator<Item = &&'a Pod<'a>> {
        self.0.values().flatten()
    }

    /// True for one of these pods.
    pub(crate) fn holds(&self, pod: &Pod<'_>) -> bool {
        let of_group = self.0.get(pod.group);
        let place = of_group.map(|pods| pods.binary_search_by_key(&pod.name, |one| one.name));
        place.is_some_and(|place| place.is_ok())
    }

    /// The number of them in a group.
    pub(crate) fn count(&self, group: &str) -> u64 {
        self.0.get(group).map_or(0, |pods| pods.len() as u64)
    }

    /// Problems to report about them, by group.
    pub(crate) fn problems(&self) -> impl Iterator<Item = Problem> {
        self.0.iter().map(|(group, pods)| {
            let names: Vec<&str> = pods.iter().take(NAMED).map(|pod| pod.name).collect();
            let since = pods.iter().filter_map(|pod| pod.killed_at());
            let since = since.fold(f64::INFINITY, f64::min);
            Problem {
                at: ProblemPlace::Group((*group).to_owned()),
                reason: ProblemReason::Hanging {
                    pods: first_of(&names, pods.len() as u64),
                    since: second_of(since),
                },
                effect: "replicas are raised within maxReplicas, and other groups are used".into(),
            }
        })
    }
}

/// True for a worker pod that hangs in termination.
pub(crate) fn hangs(pod: &Pod<'_>, now: f64) -> bool {
    pod.role == PodRole::Worker && pod.killed_at().is_some_and(|at| now - at >= LATE_S)
}
