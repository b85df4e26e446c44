//! The groups of the RayCluster, as KubeRay reads them.

use std::rc::Rc;

use serde::Deserialize as _;
use serde_json::Value;

use super::pod_level::fill_in;
use crate::plan::GroupError;
use crate::ray::container::MEMORY_MONITOR;
use crate::ray::{Fields, Role};
use crate::snapshot::cluster_object::{ClusterObject, GroupSpec};
use crate::snapshot::pod_object::PodSpec;
use crate::text::is_obeyed;

/// The head group or a worker group.
#[derive(Debug, Clone, Default)]
pub struct SimulatedGroup {
    /// The name; `headgroup` for the head.
    pub name: String,
    /// The wanted replicas, within the minimum and the maximum.
    pub replicas: i64,
    /// The pods of each replica.
    pub hosts: i64,
    /// The pods that are to be deleted.
    pub to_delete: Vec<String>,
    /// Whether the group has no pods at all.
    pub is_suspended: bool,
    /// The spec of its pods.
    pub pod: PodSpec,
    /// The fields of the pod's template that decide on which Kubernetes nodes it may be.
    pub placement: Rc<Fields>,
    /// The GPUs of a pod.
    pub gpus: i64,
    /// The resources with which its Ray nodes start.
    pub resources: Vec<(String, f64)>,
    /// The share of a pod's initial memory at which its memory monitor kills; `None` where that is off.
    pub monitor: Option<f64>,
    /// The labels of its Ray nodes.
    pub labels: Vec<(String, String)>,
}

impl SimulatedGroup {
    /// Whether it is the head group.
    pub fn is_head(&self) -> bool {
        self.name == crate::ray::group::HEAD_NAME
    }

    /// The replicas that there should be now.
    pub fn replicas_wanted(&self) -> i64 {
        if self.is_suspended { 0 } else { self.replicas }
    }
}

/// A group that Ray could not start from.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{group}: {why}")]
pub struct SimulatedGroupError {
    /// The group.
    pub group: String,
    /// The fault.
    pub why: String,
}

/// The groups of a RayCluster, the head group first.
///
/// # Errors
///
/// The amounts of a group's Ray nodes cannot be read.
pub fn groups(cluster: &ClusterObject) -> Result<Vec<SimulatedGroup>, SimulatedGroupError> {
    let groups = cluster.spec.iter().flat_map(|spec| &spec.groups);
    groups.map(|group| read(group, cluster.object())).collect()
}

/// Most pods of a group at the beginning. More would only take the memory of this machine.
const MOST_PODS: i64 = 100_000;

fn read(group: &GroupSpec, object: &Value) -> Result<SimulatedGroup, SimulatedGroupError> {
    let fault = |why: String| SimulatedGroupError {
        group: group.title(),
        why,
    };
    let resources = group
        .resources
        .as_ref()
        .map_err(|error| fault(error.to_string()))?;
    if (group.name.as_deref()).is_some_and(|name| name.contains(is_obeyed)) {
        return Err(fault(GroupError::BadName.to_string()));
    }
    let hosts = group.hosts.unwrap_or(1);
    if hosts < 1 {
        return Err(fault(GroupError::NoHosts(hosts).to_string()));
    }
    let replicas = wanted(group.replicas, group.min_replicas, group.max_replicas);
    let pods = replicas.max(1).saturating_mul(hosts);
    if pods > MOST_PODS {
        return Err(fault(format!(
            "it has {pods} pods at first, or in one replica, and a simulation holds {MOST_PODS}: lower replicas, \
             minReplicas or numOfHosts"
        )));
    }
    let (template, is_head) = match group.role {
        Role::Head => (object.pointer("/spec/headGroupSpec/template/spec"), true),
        Role::Worker { index } => {
            let at = format!("/spec/workerGroupSpecs/{index}/template/spec");
            (object.pointer(&at), false)
        }
    };
    // A spec that the API server would refuse is left out: rules say what is wrong with it.
    let mut pod = template
        .and_then(|spec| PodSpec::deserialize(spec).ok())
        .unwrap_or_default();
    fill_in(&mut pod);
    #[expect(clippy::cast_precision_loss, reason = "Ray counts in floats too")]
    let resources = (group.started.as_ref().unwrap_or(resources))
        .iter()
        .map(|(name, amount)| (name.to_owned(), amount as f64));
    Ok(SimulatedGroup {
        name: group.name.clone().unwrap_or_default(),
        replicas: if is_head { 1 } else { replicas },
        hosts,
        to_delete: group.listed().map(str::to_owned).collect(),
        is_suspended: group.suspended,
        pod,
        placement: Rc::new(placement(template)),
        gpus: gpus(template),
        monitor: monitor(template),
        resources: resources.collect(),
        labels: group.labels.clone(),
    })
}

/// The replicas that KubeRay makes.
fn wanted(replicas: Option<i64>, min: Option<i64>, max: Option<i64>) -> i64 {
    let (min, max) = (min.unwrap_or(0), max.unwrap_or(i64::MAX));
    let replicas = replicas.unwrap_or(min);
    // KubeRay asks for the minimum first, even where it is above the maximum. (KubeRay,
    // `GetWorkerGroupDesiredReplicas`.)
    if replicas < min {
        min
    } else {
        replicas.min(max)
    }
}

/// The share of the memory from which on Ray's monitor kills. It keeps what it begins with, up to Ray 2.60.
/// (`threshold_memory_monitor.cc`, `ray_config_def.h`)
fn monitor(template: Option<&Value>) -> Option<f64> {
    let entries = template.and_then(|spec| spec.pointer("/containers/0/env"));
    let entries = entries.and_then(Value::as_array).into_iter().flatten();
    let value = |name: &str| {
        let mut entries = entries.clone();
        let entry = entries.find(|entry| entry["name"] == name)?;
        entry["value"].as_str()?.trim().parse().ok()
    };
    let is_off = value(MEMORY_MONITOR) == Some(0.0);
    let share = value("RAY_memory_usage_threshold").unwrap_or(0.95);
    (!is_off).then_some(share)
}

/// The fields by which the scheduler chooses among nodes, whatever room they have. A pod that names its node
/// (`nodeName`) is not left to the scheduler, and is not simulated.
fn placement(template: Option<&Value>) -> Fields {
    let given = |key: &str| Some((key.to_owned(), template?.get(key)?.clone()));
    let keys = ["nodeSelector", "affinity", "tolerations"];
    keys.into_iter().filter_map(given).collect()
}

/// The GPUs that the limits of a pod's first container name, whoever makes them.
fn gpus(template: Option<&Value>) -> i64 {
    let limits = template.and_then(|spec| spec.pointer("/containers/0/resources/limits"));
    let limits = limits.and_then(Value::as_object).into_iter().flatten();
    let gpus = |(name, amount): (&String, &Value)| {
        let amount = amount.as_i64().or_else(|| amount.as_str()?.parse().ok());
        amount.filter(|_| name.ends_with("/gpu"))
    };
    limits.filter_map(gpus).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_are_bounded_as_by_kuberay() {
        for (replicas, min, max, expected) in [
            (Some(3), Some(1), Some(5), 3),
            (Some(0), Some(1), Some(5), 1),
            (Some(9), Some(1), Some(5), 5),
            (None, Some(2), None, 2),
            (None, None, None, 0),
            // A minimum above the maximum.
            (Some(1), Some(5), Some(2), 5),
            (Some(6), Some(5), Some(2), 2),
        ] {
            assert_eq!(
                wanted(replicas, min, max),
                expected,
                "{replicas:?}, {min:?} to {max:?}"
            );
        }
    }
}
