//! A pod as it is kept: the fields that decisions read, and no others.
//!
//! This is the one list of them. What is watched is read into these types and kept as they write
//! themselves, so a field that decisions can read cannot be one that was dropped before, and what
//! may be secret (environments, commands, other tools' annotations) cannot get in.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::snapshot::amounts::Amounts;
use crate::snapshot::canonical::nullable;

/// By this word in what a container runs, Ray's autoscaler is known whatever the container is
/// called. (KubeRay, `common/pod.go`: `ray kuberay-autoscaler`.)
pub const AUTOSCALER_COMMAND: &str = "kuberay-autoscaler";

/// Most characters of a condition's message that are kept: a kubelet's are below 200.
const MESSAGE: usize = 1024;

/// The conditions that are kept; all others are dropped.
const CONDITIONS: [&str; 4] = [
    "PodScheduled",
    "PodResizePending",
    "PodResizeInProgress",
    "Ready",
];

/// A pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PodObject {
    /// Who it is.
    #[serde(deserialize_with = "nullable")]
    pub metadata: PodMetadata,
    /// What was asked for.
    #[serde(deserialize_with = "nullable")]
    pub spec: PodSpec,
    /// How it is.
    #[serde(deserialize_with = "nullable")]
    pub status: PodStatus,
}

/// `metadata`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PodMetadata {
    /// The name; a pod without one is none.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// The namespace; absent in snapshots that were written by hand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The UID.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// The generation of the spec.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// When it was created, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<String>,
    /// When Kubernetes was asked to delete it, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<String>,
    /// The labels by which KubeRay sorts its pods.
    #[serde(deserialize_with = "nullable")]
    pub labels: PodLabels,
    /// The annotations of those who scale it.
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "PodAnnotations::is_empty"
    )]
    pub annotations: PodAnnotations,
    /// Its owners.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub owner_references: Vec<OwnerReference>,
}

/// KubeRay's labels of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PodLabels {
    /// The name of its RayCluster. Anybody may write a label: alone it proves nothing.
    #[serde(rename = "ray.io/cluster", skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// `head`, `worker`, or another word.
    #[serde(rename = "ray.io/node-type", skip_serializing_if = "Option::is_none")]
    pub node_type: Option<String>,
    /// Its group.
    #[serde(rename = "ray.io/group", skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The replica of a multi-host group that it belongs to.
    #[serde(
        rename = "ray.io/worker-group-replica-name",
        skip_serializing_if = "Option::is_none"
    )]
    pub replica: Option<String>,
}

/// The annotations that are read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PodAnnotations {
    /// Ray's record of its resizes.
    #[serde(rename = "ray.io/ippr-status", skip_serializing_if = "Option::is_none")]
    pub resize_status: Option<String>,
    /// By which a sidecar of Rayfit marks its own pod.
    #[serde(
        rename = "rayfit.dev/autoscaler",
        skip_serializing_if = "Option::is_none"
    )]
    pub autoscaler: Option<String>,
}

impl PodAnnotations {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// An owner.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct OwnerReference {
    /// The kind, such as `RayCluster`.
    pub kind: String,
    /// The name.
    pub name: String,
    /// The UID.
    pub uid: String,
    /// It is the one that controls the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<bool>,
}

/// `spec`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    /// The Kubernetes node it runs on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    /// `Always`, `OnFailure` or `Never`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart_policy: Option<String>,
    /// What its runtime takes besides.
    #[serde(skip_serializing_if = "Amounts::is_empty")]
    pub overhead: Amounts,
    /// Resources of the pod as a whole.
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "Resources::is_empty"
    )]
    pub resources: Resources,
    /// The containers; Ray runs in the first.
    #[serde(deserialize_with = "nullable")]
    pub containers: Vec<Container>,
    /// The init containers, those included that go on running.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub init_containers: Vec<Container>,
}

/// A container.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Container {
    /// Its name.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// Its image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// `Always` makes an init container one that goes on running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart_policy: Option<String>,
    /// What it may use.
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "Resources::is_empty"
    )]
    pub resources: Resources,
    /// Of what it runs only the word that tells Ray's autoscaler.
    #[serde(
        deserialize_with = "autoscaler_words",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub command: Vec<String>,
    /// As `command`.
    #[serde(
        deserialize_with = "autoscaler_words",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub args: Vec<String>,
}

/// `resources`
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Resources {
    /// What is kept free for it.
    #[serde(skip_serializing_if = "Amounts::is_empty")]
    pub requests: Amounts,
    /// What it may not exceed.
    #[serde(skip_serializing_if = "Amounts::is_empty")]
    pub limits: Amounts,
}

impl Resources {
    /// Neither requests nor limits of CPU or memory.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.limits.is_empty()
    }
}

/// `status`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PodStatus {
    /// `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Its address.
    #[serde(rename = "podIP", skip_serializing_if = "Option::is_none")]
    pub pod_ip: Option<String>,
    /// What holds of it: scheduled, ready, and its resizes.
    #[serde(deserialize_with = "conditions", skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// What was given to the pod as a whole, where Kubernetes says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// What the kubelet has promised to the pod as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocated_resources: Option<Amounts>,
    /// How its containers are.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub container_statuses: Vec<ContainerStatus>,
    /// How its init containers are.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub init_container_statuses: Vec<ContainerStatus>,
}

/// A condition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    /// Its type.
    #[serde(rename = "type", deserialize_with = "nullable")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    #[serde(deserialize_with = "nullable")]
    pub status: String,
    /// Why, in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why, for people; of a very long one the beginning.
    #[serde(
        deserialize_with = "short_text",
        skip_serializing_if = "Option::is_none"
    )]
    pub message: Option<String>,
    /// The generation of the spec that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

impl Condition {
    /// It holds.
    pub fn is_true(&self) -> bool {
        self.status == "True"
    }
}

/// How a container is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerStatus {
    /// The container.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// Its readiness probe succeeds, or it has none.
    #[serde(deserialize_with = "nullable")]
    pub ready: bool,
    /// How often it was started again.
    #[serde(deserialize_with = "nullable")]
    pub restart_count: i64,
    /// Whether it runs.
    #[serde(deserialize_with = "nullable")]
    pub state: ContainerState,
    /// What it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// What the kubelet has promised it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocated_resources: Option<Amounts>,
}

/// Whether a container waits, runs or has ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ContainerState {
    /// It waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting>,
    /// It has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminated: Option<Terminated>,
}

/// Why a container waits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Waiting {
    /// In one word, such as `ImagePullBackOff`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// That a container has ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Terminated {}

/// The words by which Ray's autoscaler is known. The rest of a command line may hold secrets.
fn autoscaler_words<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let words = Option::<Vec<Value>>::deserialize(deserializer)?.unwrap_or_default();
    let telling = |word: &Value| {
        word.as_str()
            .is_some_and(|word| word.contains(AUTOSCALER_COMMAND))
    };
    Ok(words
        .iter()
        .filter(|word| telling(word))
        .map(|_| AUTOSCALER_COMMAND.to_owned())
        .collect())
}

fn conditions<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Condition>, D::Error> {
    let mut all = Option::<Vec<Condition>>::deserialize(deserializer)?.unwrap_or_default();
    all.retain(|condition| CONDITIONS.contains(&condition.kind.as_str()));
    Ok(all)
}

fn short_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.map(|mut text| {
        text.truncate(text.floor_char_boundary(MESSAGE));
        text
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_kept_is_what_is_read() {
        let pod: PodObject = serde_json::from_value(json!({
            "metadata": {
                "name": "w", "namespace": "ray", "uid": "1", "managedFields": [{"manager": "s3cret"}],
                "labels": {"ray.io/cluster": "demo", "team": "s3cret"},
                "annotations": {"ray.io/ippr-status": "{}", "vault": "s3cret"},
                "ownerReferences": [{"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "demo", "uid": "u", "controller": true}]
            },
            "spec": {
                "nodeName": "n", "restartPolicy": "Never", "volumes": ["s3cret"],
                "containers": [{
                    "name": "ray-worker", "image": "rayproject/ray:2.60.0",
                    "command": ["/bin/bash"], "args": ["ray start --redis-password=s3cret"],
                    "env": [{"name": "TOKEN", "value": "s3cret"}],
                    "resources": {"limits": {"cpu": "1", "nvidia.com/gpu": "1"}}
                }, {
                    "name": "other", "args": ["ray kuberay-autoscaler --password s3cret"]
                }]
            },
            "status": {
                "phase": "Running", "podIP": "10.0.0.1", "hostIP": "s3cret",
                "conditions": [
                    {"type": "PodResizePending", "status": "True", "reason": "Deferred", "message": "é".repeat(2000)},
                    {"type": "example.com/other", "status": "True", "message": "s3cret"}
                ],
                "containerStatuses": [{"name": "ray-worker", "containerID": "s3cret", "resources": {"limits": {"cpu": "1"}}}]
            }
        }))
        .unwrap();
        let text = serde_json::to_string(&pod).unwrap();
        assert!(!text.contains("s3cret"), "{text}");
        assert_eq!(pod.spec.restart_policy.as_deref(), Some("Never"));
        assert_eq!(pod.spec.containers[1].args, [AUTOSCALER_COMMAND]);
        assert_eq!(pod.status.conditions.len(), 1);
        assert!(text.len() < 3000, "{text}");
        assert_eq!(serde_json::from_str::<PodObject>(&text).unwrap(), pod);
    }

    #[test]
    fn parts_that_are_missing_or_null_are_no_trouble() {
        for value in [
            json!({}),
            json!({"metadata": null, "spec": null, "status": null}),
            json!({"spec": {"containers": null, "overhead": null}, "status": {"conditions": null}}),
        ] {
            assert_eq!(
                serde_json::from_value::<PodObject>(value).unwrap(),
                PodObject::default()
            );
        }
    }
}
