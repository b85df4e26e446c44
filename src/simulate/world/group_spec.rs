//! The groups of the RayCluster, as KubeRay reads them.

use serde_json::Value;

use crate::ray::node_resources::NodeResources;
use crate::ray::{Cluster, Container, Group, Kind, list_at, object_at};
use crate::snapshot::pod_object::PodSpec;

/// The head group or a worker group.
#[derive(Debug, Clone, Default)]
pub struct GroupSpec {
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
    /// The GPUs of a pod.
    pub gpus: i64,
    /// The resources with which its Ray nodes start.
    pub resources: Vec<(String, f64)>,
    /// The labels of its Ray nodes.
    pub labels: Vec<(String, String)>,
}

impl GroupSpec {
    /// How many replicas there should be now.
    pub fn replicas_wanted(&self) -> i64 {
        if self.is_suspended { 0 } else { self.replicas }
    }
}

/// A group that Ray could not start from.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{group}: {why}")]
pub struct GroupError {
    /// The group.
    pub group: String,
    /// What is wrong with it.
    pub why: String,
}

/// The groups of a RayCluster, the head group first.
///
/// # Errors
///
/// The amounts of a group's Ray nodes cannot be read.
pub fn groups(cluster: &Value) -> Result<Vec<GroupSpec>, GroupError> {
    let Some(spec) = cluster.get("spec").and_then(Value::as_object) else {
        return Ok(Vec::new());
    };
    Cluster::parse(Kind::RayCluster, spec)
        .groups()
        .map(read)
        .collect()
}

fn read(group: &Group<'_>) -> Result<GroupSpec, GroupError> {
    let resources = NodeResources::of(group).map_err(|error| GroupError {
        group: group.title(),
        why: error.to_string(),
    })?;
    let amount = |key: &str, otherwise: i64| group.integer(key).unwrap_or(otherwise);
    let (min, max) = (
        amount("minReplicas", 0),
        amount("maxReplicas", i64::from(i32::MAX)),
    );
    let replicas = amount("replicas", min);
    let listed = object_at(group.spec, "scaleStrategy");
    let listed = listed.map_or(&[][..], |strategy| list_at(strategy, "workersToDelete"));
    let container = group.ray_container();
    let limits = container.as_ref().and_then(Container::limits);
    let gpus = |(name, amount): (&String, &Value)| {
        let amount = amount.as_i64().or_else(|| amount.as_str()?.parse().ok());
        amount.filter(|_| name.ends_with("/gpu"))
    };
    let pod = group
        .pod_spec()
        .cloned()
        .map(Value::Object)
        .unwrap_or_default();
    #[expect(clippy::cast_precision_loss, reason = "Ray counts in floats too")]
    let resources = resources
        .iter()
        .map(|(name, amount)| (name.to_owned(), amount as f64));
    Ok(GroupSpec {
        name: if group.is_head() {
            crate::ray::group::HEAD_NAME.to_owned()
        } else {
            group.name.unwrap_or_default().to_owned()
        },
        replicas: if group.is_head() {
            1
        } else {
            replicas.max(min).min(max)
        },
        hosts: amount("numOfHosts", 1).max(1),
        to_delete: listed
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        is_suspended: group.spec.get("suspend").and_then(Value::as_bool) == Some(true),
        pod: serde_json::from_value(pod).unwrap_or_default(),
        gpus: limits.into_iter().flatten().filter_map(gpus).sum(),
        resources: resources.collect(),
        labels: object_at(group.spec, "labels")
            .into_iter()
            .flatten()
            .map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()))
            .collect(),
    })
}
