//! RF3xx: changes, judged on updates only.

pub mod cap_lowered;
pub mod group_removed;
pub mod max_lowered;
pub mod mode_changed;
pub mod restarts_pods;
pub mod scaling_overwritten;

use serde_json::Value;

use super::Subject;
use crate::facts::{DEFAULT_NAMESPACE, RayPod};
use crate::ray::{Cluster, Kind};

/// A RayCluster whose pods run, before and after the update.
///
/// Only of a RayCluster: KubeRay ignores changes of a RayJob, and a RayService makes a new
/// cluster. Suspended clusters have no pods, and KubeRay leaves those alone that are managed by
/// something else.
struct LiveChange<'a> {
    old: &'a Cluster<'a>,
    new: &'a Cluster<'a>,
}

impl<'a> LiveChange<'a> {
    fn of(subject: &Subject<'a>) -> Option<Self> {
        if subject.kind() != Kind::RayCluster {
            return None;
        }
        let old = subject.old?.cluster.as_ref()?;
        let new = subject.cluster()?;
        (has_pods(old) && has_pods(new)).then_some(Self { old, new })
    }
}

/// The pods of the RayCluster that run or are to run; none if they are not known.
fn pods<'a>(subject: &Subject<'a>) -> impl Iterator<Item = &'a RayPod> {
    let namespace = subject.object.namespace().unwrap_or(DEFAULT_NAMESPACE);
    let name = subject.object.name().unwrap_or_default();
    subject.facts.pods.of(namespace, name).iter()
}

fn has_pods(cluster: &Cluster<'_>) -> bool {
    let suspended = cluster.spec.get("suspend").and_then(Value::as_bool) == Some(true);
    let manager = cluster.spec.get("managedBy").and_then(Value::as_str);
    !suspended && manager.is_none_or(|manager| manager == "ray.io/kuberay-operator")
}
