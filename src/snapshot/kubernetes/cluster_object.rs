//! A RayCluster as decisions see it, read once when a snapshot is made.
//!
//! Nothing of the object has to be of the type that it should be. A part that is not reads as
//! absent, or as the error that says what is wrong with it, and concerns nothing beside it.

use serde::{Deserialize as _, Serialize, Serializer};
use serde_json::{Number, Value};

use super::pod_object::{PodObject, PodSpec, Resources};
use super::requests::requests;
use crate::path::FieldPath;
use crate::quantity::Quantity;
use crate::ray::container::MEMORY_MONITOR;
use crate::ray::initial_sizes::{self, InitialSizes};
use crate::ray::ippr::ANNOTATION;
use crate::ray::kueue::QUEUE;
use crate::ray::node_resources::{NodeResources, ResourceError};
use crate::ray::pod_size::PodLevelBound;
use crate::ray::resource::Amounts;
use crate::ray::{
    Cluster, Fields, Group, Ippr, Kind, ReconcileMode, Resource, Role, is_true, label, list_at,
    object_at, text_at,
};

/// A RayCluster.
#[derive(Debug, Clone)]
pub struct ClusterObject {
    /// The object as the API server returns it: the JSON form of all that is read from it.
    object: Value,
    /// `metadata.resourceVersion`, if it is there.
    pub resource_version: Option<String>,
    /// The annotation `ray.io/ippr`.
    pub ippr: Ippr,
    /// The annotation `rayfit.dev/initial-sizes`.
    pub initial_sizes: InitialSizes,
    /// Whether Kueue admits the cluster and its pods, by what their templates ask for.
    pub is_queued: bool,
    /// `spec`, if it is there.
    pub spec: Option<ClusterSpec>,
    /// Whether KubeRay says that it could not make a worker pod.
    pub fails_to_create: bool,
}

/// The spec of a RayCluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterSpec {
    /// The groups: the head first, then the worker groups in their order.
    pub groups: Vec<GroupSpec>,
    /// Whether `workerGroupSpecs` is there, and is a list.
    pub lists_workers: bool,
    /// Whether `autoscalerOptions` is there, and is null.
    pub has_null_options: bool,
    /// Whether `autoscalerOptions.upscalingMode` is `Conservative`.
    pub conservative: bool,
    /// `autoscalerOptions.idleTimeoutSeconds`
    pub idle_timeout: IdleTimeout,
    /// The end of the cluster when nobody uses it.
    pub idle_end: Option<IdleEnd>,
}

/// A group of a RayCluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupSpec {
    /// Whether it is the head group or a worker group.
    pub role: Role,
    /// `groupName`; `headgroup` for the head; `None` for a worker group without a name.
    pub name: Option<String>,
    /// `replicas`
    pub replicas: Option<i64>,
    /// `minReplicas`
    pub min_replicas: Option<i64>,
    /// `maxReplicas`
    pub max_replicas: Option<i64>,
    /// `numOfHosts`
    pub hosts: Option<i64>,
    /// `priority`
    pub priority: Option<i64>,
    /// Whether `suspend` is true.
    pub suspended: bool,
    /// `idleTimeoutSeconds`
    pub idle_timeout: IdleTimeout,
    /// `labels`, in their order. A value that is no text is empty.
    pub labels: Vec<(String, String)>,
    /// The key of the first label that is not in Kubernetes' syntax.
    pub bad_label: Option<String>,
    /// `nodeSelector` of the pod template, sorted by key. A value that is no text is empty.
    pub node_selector: Vec<(String, String)>,
    /// The resources of a node of the group, as Ray's autoscaler derives them.
    pub resources: Result<NodeResources, ResourceError>,
    /// The resources with which KubeRay starts a Ray node of the group, if they differ.
    pub started: Option<NodeResources>,
    /// The CPU and memory with which its ray containers start: their limits, or else their
    /// requests; `None` without requests.
    pub size: Option<(Quantity, Quantity)>,
    /// The most that its ray containers may have within their pods, where the pods have limits of
    /// their own.
    pub within_pod: Amounts,
    /// The resources of one of its pods as a whole, as the template has them.
    pub pod_level: Resources,
    /// Requests of all containers of one of its pods, or else their limits.
    pub pod_requests: Amounts,
    /// The devices of its ray containers: resources with a prefix, such as `nvidia.com/gpu`, sorted.
    pub devices: Vec<String>,
    /// The first of the start parameters by which the size of its nodes is fixed.
    pub fixed_by: Option<&'static str>,
    /// Whether a resize of CPU or memory restarts its ray containers.
    pub restarts: bool,
    /// Whether Ray's memory monitor is on in its pods, as it is unless the environment of their ray container turns it
    /// off. It goes by the memory that a pod starts with.
    pub memory_monitor: bool,
    /// `scaleStrategy.workersToDelete`, with `None` for what is no text; `None` without
    /// `scaleStrategy`.
    pub to_delete: Option<Vec<Option<String>>>,
    /// The names of the gates in `scaleStrategy.scaleGate`, by which other controllers say that the
    /// group cannot grow now.
    pub scale_gates: Vec<String>,
}

/// The reason of KubeRay's condition for worker pods that could not be made.
const CREATE_FAILED: &str = "FailedCreateWorkerPod";

/// The most scale gates of a group that are read: one is enough to know that there are any.
const SCALE_GATES: usize = 8;

/// The default idle timeout of nodes, in seconds (Ray's `kuberay_provider`).
pub const DEFAULT_IDLE_TIMEOUT_S: f64 = 60.0;

/// The end of a cluster when nobody uses it (`idleTerminationOptions`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdleEnd {
    /// `timeoutSeconds`
    pub timeout: Number,
    /// `policy`; `Suspend` if it is absent.
    pub policy: String,
    /// Whether it is suspended already (`idleSuspend`).
    pub is_suspended: bool,
}

/// The idle timeout of nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdleTimeout {
    /// It is not there, or is neither a number nor null.
    Absent,
    /// It is null.
    Null,
    /// A number of seconds.
    Seconds(Number),
}

impl Default for ClusterObject {
    fn default() -> Self {
        Self::from(Value::Null)
    }
}

impl From<Value> for ClusterObject {
    fn from(object: Value) -> Self {
        let part = |key| object.as_object().and_then(|root| object_at(root, key));
        let metadata = part("metadata");
        let annotations = metadata.and_then(|metadata| object_at(metadata, "annotations"));
        let ippr = annotations.and_then(|annotations| text_at(annotations, ANNOTATION));
        let sizes =
            annotations.and_then(|annotations| text_at(annotations, initial_sizes::ANNOTATION));
        let labels = metadata.and_then(|metadata| object_at(metadata, "labels"));
        let queue = labels.and_then(|labels| text_at(labels, QUEUE));
        let version = metadata.and_then(|metadata| text_at(metadata, "resourceVersion"));
        // KubeRay removes the condition as soon as it has made all pods. (KubeRay, `ReplicaFailure`
        // in `raycluster_types.go`.)
        let conditions = part("status").map_or(&[][..], |status| list_at(status, "conditions"));
        let mut conditions = conditions.iter().filter_map(Value::as_object);
        let fails_to_create = conditions.any(|condition| {
            let is = |key, value| text_at(condition, key) == Some(value);
            is("type", "ReplicaFailure") && is("status", "True") && is("reason", CREATE_FAILED)
        });
        Self {
            resource_version: version.map(str::to_owned),
            ippr: Ippr::parse(ippr.unwrap_or_default()),
            initial_sizes: sizes.map(InitialSizes::parse).unwrap_or_default(),
            is_queued: queue.is_some_and(|queue| !queue.is_empty()),
            spec: part("spec").map(ClusterSpec::of),
            fails_to_create,
            object,
        }
    }
}

impl Serialize for ClusterObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.object.serialize(serializer)
    }
}

impl ClusterObject {
    /// The object as the API server returns it.
    pub fn object(&self) -> &Value {
        &self.object
    }

    /// Changes the object, and reads it anew.
    pub fn edit(&mut self, change: impl FnOnce(&mut Value)) {
        let mut object = std::mem::take(&mut self.object);
        change(&mut object);
        *self = Self::from(object);
    }
}

impl ClusterSpec {
    fn of(spec: &Fields) -> Self {
        let cluster = Cluster::parse(Kind::RayCluster, spec);
        let upscaling = cluster.autoscaler_option("upscalingMode");
        // Without `timeoutSeconds` a cluster does not end. (Ray, `cloud_provider.py`,
        // `_refresh_idle_termination_config`.)
        let end = object_at(spec, "idleTerminationOptions");
        let timeout = end.and_then(|end| end.get("timeoutSeconds")?.as_number());
        let idle_end = end.zip(timeout).map(|(end, timeout)| IdleEnd {
            timeout: timeout.clone(),
            policy: text_at(end, "policy").unwrap_or("Suspend").to_owned(),
            is_suspended: is_true(spec, "idleSuspend"),
        });
        Self {
            groups: (cluster.groups())
                .map(|group| GroupSpec::of(&cluster, group))
                .collect(),
            // Ray reads this key without checking that it is there, and takes null options for no
            // map: it fails on both, in every round (RF226).
            lists_workers: spec.get("workerGroupSpecs").is_some_and(Value::is_array),
            has_null_options: spec.get("autoscalerOptions").is_some_and(Value::is_null),
            conservative: upscaling.and_then(Value::as_str) == Some("Conservative"),
            idle_timeout: IdleTimeout::of(cluster.autoscaler_options()),
            idle_end,
        }
    }

    /// The worker group of that name. Of several groups of one name the last one counts, as for
    /// Ray.
    pub fn worker_group(&self, name: &str) -> Option<(usize, &GroupSpec)> {
        self.groups.iter().rev().find_map(|group| match group.role {
            Role::Worker { index } if group.name.as_deref() == Some(name) => Some((index, group)),
            _ => None,
        })
    }
}

impl GroupSpec {
    /// The names of the pods that are to be deleted.
    pub fn listed(&self) -> impl Iterator<Item = &str> {
        let pods = self.to_delete.iter().flatten();
        pods.filter_map(Option::as_deref)
    }

    fn of(cluster: &Cluster<'_>, group: &Group<'_>) -> Self {
        let template = object_at(group.spec, "template").and_then(|template| template.get("spec"));
        let pod = template.and_then(|spec| PodSpec::deserialize(spec).ok());
        let pod = PodObject {
            spec: pod.unwrap_or_default(),
            ..PodObject::default()
        };
        let within_pod = |resource| {
            let mode = ReconcileMode::Central;
            Some(PodLevelBound::of(cluster, group, resource, mode)?.highest)
        };
        let labels = || object_at(group.spec, "labels").into_iter().flatten();
        let is_good = |(key, value): &(&String, &Value)| {
            label::is_key(key) && value.as_str().is_some_and(label::is_value)
        };
        let strategy = object_at(group.spec, "scaleStrategy");
        let to_delete = strategy.map(|strategy| list_at(strategy, "workersToDelete").iter());
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let texts =
            |(key, value): (&String, &Value)| (key.clone(), text(value).unwrap_or_default());
        let selector = group
            .pod_spec()
            .and_then(|spec| object_at(spec, "nodeSelector"));
        let mut node_selector: Vec<_> = selector.into_iter().flatten().map(texts).collect();
        node_selector.sort();
        let limits = group
            .ray_container()
            .and_then(|container| container.limits());
        let names = limits.into_iter().flat_map(|limits| limits.keys());
        let mut devices: Vec<_> = names.filter(|name| name.contains('/')).cloned().collect();
        devices.sort();
        let gates = strategy.map_or(&[][..], |strategy| list_at(strategy, "scaleGate"));
        let gates = gates.iter().take(SCALE_GATES);
        let gates = gates.filter_map(|gate| text_at(gate.as_object()?, "name"));
        let resources = NodeResources::of(group);
        Self {
            role: group.role,
            name: group.name.map(str::to_owned),
            replicas: group.integer("replicas"),
            min_replicas: group.integer("minReplicas"),
            max_replicas: group.integer("maxReplicas"),
            hosts: group.integer("numOfHosts"),
            priority: group.integer("priority"),
            suspended: is_true(group.spec, "suspend"),
            idle_timeout: IdleTimeout::of(Some(group.spec)),
            labels: labels().map(texts).collect(),
            bad_label: labels()
                .find(|label| !is_good(label))
                .map(|(key, _)| key.clone()),
            node_selector,
            devices,
            started: resources.as_ref().ok().and_then(|derived| {
                let started = derived.started(group).ok();
                started.filter(|started| started != derived)
            }),
            resources,
            size: size(group),
            within_pod: Amounts {
                cpu: within_pod(Resource::Cpu),
                memory: within_pod(Resource::Memory),
            },
            pod_level: pod.spec.resources,
            // As the scheduler counts the pod that is made from the template.
            pod_requests: requests(&pod),
            fixed_by: ["num-cpus", "memory"]
                .into_iter()
                .find(|param| group.start_param(param).is_some()),
            restarts: restarts(group),
            memory_monitor: memory_monitor(group),
            to_delete: to_delete.map(|pods| pods.map(text).collect()),
            scale_gates: gates.map(str::to_owned).collect(),
        }
    }

    /// The name by which messages call the group.
    pub fn title(&self) -> String {
        self.role.title(self.name.as_deref())
    }

    /// The path of the group.
    pub fn path(&self) -> FieldPath {
        self.role.path(Kind::RayCluster, self.name.as_deref())
    }
}

impl IdleTimeout {
    fn of(fields: Option<&Fields>) -> Self {
        match fields.and_then(|fields| fields.get("idleTimeoutSeconds")) {
            Some(Value::Null) => Self::Null,
            Some(Value::Number(seconds)) => Self::Seconds(seconds.clone()),
            _ => Self::Absent,
        }
    }

    /// The seconds, if there are any.
    pub fn seconds(&self) -> Option<f64> {
        match self {
            Self::Seconds(seconds) => seconds.as_f64(),
            Self::Absent | Self::Null => None,
        }
    }
}

fn size(group: &Group<'_>) -> Option<(Quantity, Quantity)> {
    let container = group.ray_container()?;
    let requests = container.requests()?;
    let size = |resource| {
        // Ray grows pods that have both requests only, and takes the limits for their size where
        // there are any.
        requests.get(resource)?;
        container.size(resource)
    };
    Some((size("cpu")?, size("memory")?))
}

fn restarts(group: &Group<'_>) -> bool {
    let container = group.ray_container();
    let policies = container.map_or(&[][..], |container| list_at(container.spec, "resizePolicy"));
    policies.iter().filter_map(Value::as_object).any(|policy| {
        matches!(text_at(policy, "resourceName"), Some("cpu" | "memory"))
            && !matches!(text_at(policy, "restartPolicy"), None | Some("NotRequired"))
    })
}

fn memory_monitor(group: &Group<'_>) -> bool {
    let container = group.ray_container();
    let every_ms = container.and_then(|container| container.env(MEMORY_MONITOR));
    // Ray's monitor looks every so many milliseconds, and 0 turns it off.
    every_ms.is_none_or(|every_ms| every_ms.trim() != "0")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::snapshot::kubernetes::cluster_object::*;

    #[test]
    fn a_malformed_part_spoils_nothing_beside_it() {
        let good = json!({"groupName": "good", "minReplicas": 1, "maxReplicas": 2,
            "scaleStrategy": {"workersToDelete": ["a", 1]}});
        let bad = json!({"groupName": 1, "minReplicas": "1", "labels": {"team": 1},
            "idleTimeoutSeconds": [], "scaleStrategy": []});
        let object = json!({
            "metadata": {"resourceVersion": 7, "annotations": []},
            "spec": {"headGroupSpec": "none", "autoscalerOptions": null,
                "workerGroupSpecs": [bad, 3, good]},
        });
        let cluster = ClusterObject::from(object.clone());
        assert_eq!(cluster.resource_version, None);
        assert_eq!(cluster.ippr, Ippr::default());
        let spec = cluster.spec.as_ref().unwrap();
        assert!(spec.lists_workers && spec.has_null_options);
        let [bad, good] = &spec.groups[..] else {
            panic!("{spec:?}");
        };
        assert_eq!((&bad.name, bad.min_replicas), (&None, None));
        assert_eq!(bad.bad_label.as_deref(), Some("team"));
        assert_eq!(
            (&bad.idle_timeout, &bad.to_delete),
            (&IdleTimeout::Absent, &None)
        );
        assert_eq!((good.min_replicas, good.max_replicas), (Some(1), Some(2)));
        assert_eq!(good.to_delete, Some(vec![Some("a".to_owned()), None]));
        assert_eq!(spec.worker_group("good"), Some((2, good)));
        assert_eq!(serde_json::to_value(&cluster).unwrap(), object);
    }

    #[test]
    fn what_is_no_object_has_nothing() {
        for object in [json!(null), json!([]), json!({"metadata": 1, "spec": []})] {
            assert_eq!(ClusterObject::from(object).spec, None);
        }
    }

    #[test]
    fn a_pod_that_is_to_come_asks_for_what_the_scheduler_will_count() {
        let amounts = |cpu: i64| json!({"requests": {"cpu": cpu, "memory": "1Gi"}});
        let pod = json!({
            "containers": [{"name": "ray", "resources": amounts(2)}],
            "initContainers": [
                {"name": "proxy", "restartPolicy": "Always", "resources": amounts(1)},
                {"name": "once", "resources": amounts(2)},
            ],
            "overhead": {"cpu": "250m"},
        });
        // As Go writes a template without a creation time.
        let template = json!({"metadata": {"creationTimestamp": null}, "spec": pod});
        let group = json!({"groupName": "a", "template": template});
        let cluster = ClusterObject::from(json!({"spec": {"workerGroupSpecs": [group]}}));
        let asked = cluster.spec.unwrap().groups[0].pod_requests;
        assert_eq!(asked.cpu, Some(Quantity::from_milli(3250)));
        assert_eq!(asked.memory, Some(Quantity::from_units(2 << 30)));
    }

    #[test]
    fn a_change_is_read() {
        let mut cluster = ClusterObject::from(json!({"spec": {"workerGroupSpecs": []}}));
        cluster.edit(|object| {
            object["spec"]["workerGroupSpecs"] = json!([{"groupName": "a"}]);
        });
        assert_eq!(cluster.spec.unwrap().groups.len(), 1);
    }
}
