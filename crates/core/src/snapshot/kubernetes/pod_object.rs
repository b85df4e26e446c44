//! A pod as it is kept: the fields that decisions read, and no others.
//!
//! This is the only list of these fields. Watched pods are read into these types and kept as the
//! types write themselves. So a field that decisions read cannot have been dropped before, and what
//! may be secret (environments, commands, annotations of other tools) cannot get in.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::node_prospect::NodeProspect;
use super::pod_condition::{self, PodCondition};
use super::toleration::{self, PodToleration};
use crate::ray::resource::Amounts;
use crate::snapshot::canonical::{is_default, nullable};

/// The word in a container's command by which Ray's autoscaler is recognised, whatever the
/// container is called. (KubeRay, `common/pod.go`: `ray kuberay-autoscaler`.)
pub const AUTOSCALER_COMMAND: &str = "kuberay-autoscaler";

/// A pod, with the fields that are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PodObject {
    /// The identity of the pod.
    #[serde(deserialize_with = "nullable")]
    pub metadata: PodMetadata,
    /// The spec of the pod: what was asked for.
    #[serde(deserialize_with = "nullable")]
    pub spec: PodSpec,
    /// The status of the pod.
    #[serde(deserialize_with = "nullable")]
    pub status: PodStatus,
    /// Prospects by node autoscalers while the pod waits for a Kubernetes node. No field of
    /// Kubernetes': it is read from Events.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub node_prospects: Vec<NodeProspect>,
}

/// `metadata` of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PodMetadata {
    /// The name. An object without one is not a pod.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// The namespace; absent in snapshots that were written by hand.
    #[serde(skip_serializing_if = "is_default")]
    pub namespace: Option<String>,
    /// The UID.
    #[serde(skip_serializing_if = "is_default")]
    pub uid: Option<String>,
    /// The generation of the spec.
    #[serde(skip_serializing_if = "is_default")]
    pub generation: Option<i64>,
    /// The creation time, in RFC 3339.
    #[serde(skip_serializing_if = "is_default")]
    pub creation_timestamp: Option<String>,
    /// The time at which the pod is killed that Kubernetes was asked to delete, in RFC 3339.
    #[serde(skip_serializing_if = "is_default")]
    pub deletion_timestamp: Option<String>,
    /// The seconds before that time at which Kubernetes was asked.
    #[serde(skip_serializing_if = "is_default")]
    pub deletion_grace_period_seconds: Option<i64>,
    /// The labels by which KubeRay finds its pods.
    #[serde(deserialize_with = "nullable")]
    pub labels: PodLabels,
    /// The annotations of the autoscalers.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub annotations: PodAnnotations,
    /// The owners of the pod.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub owner_references: Vec<OwnerReference>,
}

/// The labels that KubeRay gives a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PodLabels {
    /// The name of its RayCluster. Anybody may write a label, so it proves nothing alone.
    #[serde(rename = "ray.io/cluster", skip_serializing_if = "is_default")]
    pub cluster: Option<String>,
    /// The role of the pod: `head`, `worker`, or another word.
    #[serde(rename = "ray.io/node-type", skip_serializing_if = "is_default")]
    pub node_type: Option<String>,
    /// The name of its group.
    #[serde(rename = "ray.io/group", skip_serializing_if = "is_default")]
    pub group: Option<String>,
    /// The replica of a multi-host group that it belongs to.
    #[serde(
        rename = "ray.io/worker-group-replica-name",
        skip_serializing_if = "is_default"
    )]
    pub replica: Option<String>,
}

/// The annotations of a pod that are read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PodAnnotations {
    /// Ray's note about the resizes of the pod.
    #[serde(rename = "ray.io/ippr-status", skip_serializing_if = "is_default")]
    pub resize_status: Option<String>,
    /// The annotation by which a sidecar of Rayfit marks its own pod.
    #[serde(rename = "rayfit.dev/autoscaler", skip_serializing_if = "is_default")]
    pub autoscaler: Option<String>,
    /// The annotations by which Rayfit has marked the pod for node autoscalers.
    #[serde(rename = "rayfit.dev/holds-node", skip_serializing_if = "is_default")]
    pub holds_node: Option<String>,
    /// The mark that Karpenter reads.
    #[serde(
        rename = "karpenter.sh/do-not-disrupt",
        skip_serializing_if = "is_default"
    )]
    pub do_not_disrupt: Option<String>,
    /// The mark that cluster-autoscaler reads.
    #[serde(
        rename = "cluster-autoscaler.kubernetes.io/safe-to-evict",
        skip_serializing_if = "is_default"
    )]
    pub safe_to_evict: Option<String>,
}

/// An owner of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct OwnerReference {
    /// The kind of the owner, such as `RayCluster`.
    pub kind: String,
    /// The name of the owner.
    pub name: String,
    /// The UID.
    pub uid: String,
    /// True if this owner controls the pod.
    #[serde(skip_serializing_if = "is_default")]
    pub controller: Option<bool>,
}

/// `spec` of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    /// The name of the Kubernetes node that the pod is bound to.
    #[serde(skip_serializing_if = "is_default")]
    pub node_name: Option<String>,
    /// The gates that keep the scheduler from looking at the pod.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub scheduling_gates: Vec<SchedulingGate>,
    /// The pod's tolerations of taints which say that its Kubernetes node is about to leave or does
    /// not answer.
    #[serde(
        deserialize_with = "toleration::read",
        skip_serializing_if = "is_default"
    )]
    pub tolerations: Vec<PodToleration>,
    /// The restart policy: `Always`, `OnFailure` or `Never`.
    #[serde(skip_serializing_if = "is_default")]
    pub restart_policy: Option<String>,
    /// The amounts that the pod's runtime takes besides its containers.
    #[serde(skip_serializing_if = "Amounts::is_empty")]
    pub overhead: Amounts,
    /// The resources of the pod as a whole.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub resources: Resources,
    /// The containers. Ray runs in the first one.
    #[serde(deserialize_with = "nullable")]
    pub containers: Vec<PodContainer>,
    /// The init containers, including those that go on running.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub init_containers: Vec<PodContainer>,
}

/// A gate that keeps the scheduler from looking at a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SchedulingGate {
    /// The name of the gate.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
}

/// A container of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PodContainer {
    /// The name of the container.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// The image of the container.
    #[serde(skip_serializing_if = "is_default")]
    pub image: Option<String>,
    /// `Always` makes an init container one that goes on running.
    #[serde(skip_serializing_if = "is_default")]
    pub restart_policy: Option<String>,
    /// The requests and limits of the container.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub resources: Resources,
    /// The command of the container, of which only the word that shows Ray's autoscaler is kept.
    #[serde(
        deserialize_with = "autoscaler_words",
        skip_serializing_if = "is_default"
    )]
    pub command: Vec<String>,
    /// The arguments of the command, of which as little is kept.
    #[serde(
        deserialize_with = "autoscaler_words",
        skip_serializing_if = "is_default"
    )]
    pub args: Vec<String>,
}

/// The requests and limits of a container or a pod.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Resources {
    /// The amounts that are reserved on the node.
    #[serde(skip_serializing_if = "Amounts::is_empty")]
    pub requests: Amounts,
    /// The amounts that must not be exceeded.
    #[serde(skip_serializing_if = "Amounts::is_empty")]
    pub limits: Amounts,
}

impl Resources {
    /// True with neither requests nor limits of CPU or memory.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.limits.is_empty()
    }
}

/// `status` of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PodStatus {
    /// The phase: `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    #[serde(skip_serializing_if = "is_default")]
    pub phase: Option<String>,
    /// The Kubernetes node on which the scheduler makes room for the pod.
    #[serde(skip_serializing_if = "is_default")]
    pub nominated_node_name: Option<String>,
    /// The address of the pod.
    #[serde(rename = "podIP", skip_serializing_if = "is_default")]
    pub pod_ip: Option<String>,
    /// The conditions that are kept: whether the pod is scheduled and ready, and how its resizes
    /// are.
    #[serde(
        deserialize_with = "pod_condition::read",
        skip_serializing_if = "is_default"
    )]
    pub conditions: Vec<PodCondition>,
    /// The resources that the pod as a whole was given, where Kubernetes says so.
    #[serde(skip_serializing_if = "is_default")]
    pub resources: Option<Resources>,
    /// The requests that the kubelet has allocated to the pod as a whole.
    #[serde(skip_serializing_if = "is_default")]
    pub allocated_resources: Option<Amounts>,
    /// The statuses of its containers.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub container_statuses: Vec<ContainerStatus>,
    /// The statuses of its init containers.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub init_container_statuses: Vec<ContainerStatus>,
}

/// The status of a container.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerStatus {
    /// The name of the container.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// True if its readiness probe succeeds, or it has none.
    #[serde(deserialize_with = "nullable")]
    pub ready: bool,
    /// The state: the container waits, runs or has ended.
    #[serde(deserialize_with = "nullable")]
    pub state: ContainerState,
    /// The resources that the container was given.
    #[serde(skip_serializing_if = "is_default")]
    pub resources: Option<Resources>,
    /// The requests that the kubelet has allocated to the container.
    #[serde(skip_serializing_if = "is_default")]
    pub allocated_resources: Option<Amounts>,
}

/// The state of a container: it waits, runs or has ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ContainerState {
    /// The container waits.
    #[serde(skip_serializing_if = "is_default")]
    pub waiting: Option<ContainerWaiting>,
    /// The container runs.
    #[serde(skip_serializing_if = "is_default")]
    pub running: Option<ContainerRunning>,
    /// The container has ended.
    #[serde(skip_serializing_if = "is_default")]
    pub terminated: Option<ContainerTerminated>,
}

/// The reason why a container waits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ContainerWaiting {
    /// The reason in one word, such as `ImagePullBackOff`.
    #[serde(skip_serializing_if = "is_default")]
    pub reason: Option<String>,
}

/// The state of a container that runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerRunning {
    /// The start time, in RFC 3339.
    #[serde(skip_serializing_if = "is_default")]
    pub started_at: Option<String>,
}

/// The state of a container that has ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerTerminated {
    /// The exit code.
    #[serde(skip_serializing_if = "is_default")]
    pub exit_code: Option<i32>,
    /// The end, in RFC 3339.
    #[serde(skip_serializing_if = "is_default")]
    pub finished_at: Option<String>,
}

/// Reads only the words by which Ray's autoscaler is recognised. The rest of a command line may
/// hold secrets.
fn autoscaler_words<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let words: Vec<Value> = nullable(deserializer)?;
    let texts = words.iter().filter_map(Value::as_str);
    let telling = texts.filter(|word| word.contains(AUTOSCALER_COMMAND));
    // The constant stands for the word, which may be a whole script with secrets in it.
    Ok(telling.map(|_| AUTOSCALER_COMMAND.to_owned()).collect())
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
                "tolerations": [
                    {"key": "team", "operator": "Equal", "value": "s3cret"},
                    {"key": "karpenter.sh/disrupted", "operator": "Exists"}
                ],
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
        assert_eq!(pod.spec.tolerations.len(), 1);
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
