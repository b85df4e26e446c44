//! A RayCluster whose pods run, before and after an update.

use crate::facts::{DEFAULT_NAMESPACE, RayPod};
use crate::ray::{Cluster, Kind};
use crate::rules::prelude::Subject;

/// A RayCluster whose pods run, before and after the update.
///
/// Only of a RayCluster: KubeRay ignores changes of a RayJob, and a RayService makes a new
/// cluster. Suspended clusters have no pods, and KubeRay leaves those alone that are managed by
/// something else.
pub(super) struct LiveChange<'a> {
    pub(super) old: &'a Cluster<'a>,
    pub(super) new: &'a Cluster<'a>,
}

impl<'a> LiveChange<'a> {
    pub(super) fn of(subject: &Subject<'a>) -> Option<Self> {
        if subject.object.kind != Kind::RayCluster {
            return None;
        }
        let old = subject.old?.cluster.as_ref()?;
        let new = subject.cluster()?;
        // KubeRay deletes all pods of a suspended cluster, and leaves alone one that names another
        // manager.
        let has_pods = |cluster: &Cluster<'_>| {
            let manager = cluster.spec.text("managedBy");
            !cluster.spec.is_true("suspend")
                && manager.is_none_or(|manager| manager == "ray.io/kuberay-operator")
        };
        (has_pods(old) && has_pods(new)).then_some(Self { old, new })
    }
}

/// The pods of the RayCluster that run or are to run; none if they are not known.
pub(super) fn pods<'a>(subject: &Subject<'a>) -> impl Iterator<Item = &'a RayPod> {
    let namespace = subject.object.namespace().unwrap_or(DEFAULT_NAMESPACE);
    let name = subject.object.name().unwrap_or_default();
    subject.facts.pods.of(namespace, name).iter()
}
