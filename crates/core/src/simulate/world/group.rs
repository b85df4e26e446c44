//! The groups of the RayCluster, as KubeRay reads them.

use std::rc::Rc;

use serde::Deserialize as _;
use serde_json::{Map, Value};

use super::pod_level::fill_in;
use crate::plan::ProblemReason;
use crate::ray::Role;
use crate::ray::container::MEMORY_MONITOR;
use crate::snapshot::cluster_object::ClusterObject;
use crate::snapshot::group_spec::GroupSpec;
use crate::snapshot::pod_object::PodSpec;
use crate::text::is_obeyed;

/// The head group or a worker group.
#[derive(Debug, Clone, Default)]
pub struct SimulatedGroup {
    /// The name; `headgroup` for the head.
    pub name: String,
    /// The wanted replicas, within the minimum and the maximum.
    pub replicas: i64,
    /// The fewest replicas.
    pub least: i64,
    /// The pods of each replica.
    pub hosts: i64,
    /// The pods that are to be deleted.
    pub to_delete: Vec<String>,
    /// True if the group has no pods at all, because it is suspended.
    pub is_suspended: bool,
    /// The spec of its pods.
    pub pod: PodSpec,
    /// The fields of the pod's template that decide on which Kubernetes nodes it may be.
    pub placement: Rc<Map<String, Value>>,
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
    /// Checks whether it is the head group.
    pub fn is_head(&self) -> bool {
        self.name == crate::ray::group::HEAD_NAME
    }
}

/// Most pods of a group at the beginning. More would only take the memory of this machine.
const MOST_PODS: i64 = 100_000;

/// The groups of a RayCluster, the head group first.
///
/// # Errors
///
/// The amounts of a group's Ray nodes cannot be read.
pub fn groups(cluster: &ClusterObject) -> Result<Vec<SimulatedGroup>, String> {
    let groups = cluster.spec.iter().flat_map(|spec| &spec.groups);
    groups.map(|group| read(group, cluster.object())).collect()
}

fn read(group: &GroupSpec, object: &Value) -> Result<SimulatedGroup, String> {
    let fault = |why: String| format!("{}: {why}", group.title());
    let resources = group
        .resources
        .as_ref()
        .map_err(|error| fault(error.to_string()))?;
    if group.name.contains(is_obeyed) {
        return Err(fault(ProblemReason::BadName.to_string()));
    }
    if let Some(hosts) = group.bad_hosts {
        return Err(fault(ProblemReason::NoHosts(hosts).to_string()));
    }
    let hosts = i64::try_from(group.hosts).unwrap_or(i64::MAX);
    let replicas = replica_count(group.replicas, group.min_replicas, group.max_replicas);
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
    let resources = group.started.as_ref().unwrap_or(resources);
    // The scheduler chooses among nodes by these fields, whatever room they have. A pod that names its node
    // (`nodeName`) is not left to the scheduler, and is not simulated.
    let placement = ["nodeSelector", "affinity", "tolerations"]
        .into_iter()
        .filter_map(|key| Some((key.to_owned(), template?.get(key)?.clone())));
    let container = |pointer: &str| template?.pointer(&format!("/containers/0/{pointer}"));
    let gpus = gpus(container("resources/limits").and_then(Value::as_object));
    let monitor = monitor(container("env").and_then(Value::as_array));
    Ok(SimulatedGroup {
        name: group.name.clone(),
        replicas: if is_head { 1 } else { replicas },
        least: group.min_replicas.unwrap_or_default(),
        hosts,
        to_delete: (group.to_delete.iter().flatten().flatten().cloned()).collect(),
        is_suspended: group.suspended,
        pod,
        placement: Rc::new(placement.collect()),
        gpus,
        monitor,
        resources: resources.clone(),
        labels: group.labels.clone(),
    })
}

/// The GPUs of a container by its limits, whoever makes them.
fn gpus(limits: Option<&Map<String, Value>>) -> i64 {
    let gpus = limits.into_iter().flatten().filter_map(|(name, amount)| {
        let amount = amount.as_i64().or_else(|| amount.as_str()?.parse().ok());
        amount.filter(|_| name.ends_with("/gpu"))
    });
    gpus.sum()
}

/// The share of a pod's initial memory at which its memory monitor kills, by the environment of its container; `None`
/// where that is off. The monitor keeps the share that it begins with, up to Ray 2.60.
/// (`threshold_memory_monitor.cc`, `ray_config_def.h`)
fn monitor(env: Option<&Vec<Value>>) -> Option<f64> {
    let variable = |name: &str| -> Option<f64> {
        let entry = env?.iter().find(|entry| entry["name"] == name)?;
        entry["value"].as_str()?.trim().parse().ok()
    };
    let is_monitored = variable(MEMORY_MONITOR) != Some(0.0);
    is_monitored.then(|| variable("RAY_memory_usage_threshold").unwrap_or(0.95))
}

/// The replicas that KubeRay makes.
fn replica_count(replicas: Option<i64>, min: Option<i64>, max: Option<i64>) -> i64 {
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
                replica_count(replicas, min, max),
                expected,
                "{replicas:?}, {min:?} to {max:?}"
            );
        }
    }
}
