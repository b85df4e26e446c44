//! A RayCluster as decisions see it, read once when a snapshot is made.
//!
//! Nothing of the object has to be of the type that it should be. A part that is not reads as
//! absent, or as the error that says what is wrong with it, and concerns nothing beside it.

use serde::{Serialize, Serializer};
use serde_json::{Number, Value};

use super::group_spec::{GroupSpec, idle_timeout};
use crate::json::{Fields, Json};
use crate::ray::initial_sizes::{self, InitialSizes};
use crate::ray::ippr::ANNOTATION;
use crate::ray::kueue::QUEUE;
use crate::ray::{Cluster, Ippr, Kind, Role};

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
    /// Kueue admits the cluster and its pods, by what their templates ask for.
    pub is_queued: bool,
    /// `spec`, if it is there.
    pub spec: Option<ClusterSpec>,
    /// KubeRay says that it could not make a worker pod.
    pub fails_to_create: bool,
}

/// The spec of a RayCluster.
#[derive(Debug, Clone, PartialEq)]
pub struct ClusterSpec {
    /// The groups: the head first, then the worker groups in their order.
    pub groups: Vec<GroupSpec>,
    /// `workerGroupSpecs` is a list, and not absent.
    pub lists_workers: bool,
    /// `autoscalerOptions` is null, and not absent.
    pub has_null_options: bool,
    /// `autoscalerOptions.upscalingMode` is `Conservative`.
    pub conservative: bool,
    /// `autoscalerOptions.idleTimeoutSeconds`, a number or null; `None` for an absent one and for one of another type.
    pub idle_timeout: Option<Value>,
    /// The end of the cluster when nobody uses it.
    pub idle_end: Option<IdleEnd>,
}

/// The reason of KubeRay's condition for worker pods that could not be made.
const CREATE_FAILED: &str = "FailedCreateWorkerPod";

/// The default idle timeout of nodes, in seconds (Ray's `kuberay_provider`).
pub const DEFAULT_IDLE_TIMEOUT_S: f64 = 60.0;

/// The end of a cluster when nobody uses it (`idleTerminationOptions`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdleEnd {
    /// `timeoutSeconds`
    pub timeout: Number,
    /// `policy`; `Suspend` if it is absent.
    pub policy: String,
    /// It is suspended already (`idleSuspend`).
    pub is_suspended: bool,
}

impl Default for ClusterObject {
    fn default() -> Self {
        Self::from(Value::Null)
    }
}

impl From<Value> for ClusterObject {
    fn from(object: Value) -> Self {
        let root = Fields::from(&object);
        let metadata = root.below("metadata");
        let annotations = metadata.below("annotations");
        let sizes = annotations.text(initial_sizes::ANNOTATION);
        // KubeRay removes the condition as soon as it has made all pods. (KubeRay, `ReplicaFailure`
        // in `raycluster_types.go`.)
        let conditions = root.below("status").list("conditions");
        let fails_to_create = conditions.objects().any(|condition| {
            let is = |key, value| condition.text(key) == Some(value);
            is("type", "ReplicaFailure") && is("status", "True") && is("reason", CREATE_FAILED)
        });
        let ippr = Ippr::parse(annotations.text(ANNOTATION).unwrap_or_default());
        Self {
            resource_version: metadata.text("resourceVersion").map(str::to_owned),
            initial_sizes: sizes.map(InitialSizes::parse).unwrap_or_default(),
            is_queued: metadata.below("labels").filled(QUEUE).is_some(),
            spec: root.object("spec").map(|spec| ClusterSpec::of(spec, &ippr)),
            ippr,
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
    fn of(spec: Fields<'_>, ippr: &Ippr) -> Self {
        let cluster = Cluster::parse(Kind::RayCluster, spec);
        let upscaling = cluster.autoscaler_option("upscalingMode");
        // Without `timeoutSeconds` a cluster does not end. (Ray, `cloud_provider.py`,
        // `_refresh_idle_termination_config`.)
        let end = spec.object("idleTerminationOptions");
        let timeout = end.and_then(|end| end.get("timeoutSeconds")?.as_number());
        let idle_end = end.zip(timeout).map(|(end, timeout)| IdleEnd {
            timeout: timeout.clone(),
            policy: end.text("policy").unwrap_or("Suspend").to_owned(),
            is_suspended: spec.is_true("idleSuspend"),
        });
        Self {
            groups: (cluster.groups())
                .map(|group| GroupSpec::of(&cluster, group, ippr))
                .collect(),
            // Ray reads this key without checking that it is there, and takes null options for no
            // map: it fails on both, in every round (RF226).
            lists_workers: spec
                .get("workerGroupSpecs")
                .and_then(Json::as_array)
                .is_some(),
            has_null_options: spec.get("autoscalerOptions").is_some_and(Json::is_null),
            conservative: upscaling.and_then(Json::as_str) == Some("Conservative"),
            idle_timeout: idle_timeout(cluster.autoscaler_options()),
            idle_end,
        }
    }

    /// The idle timeout of nodes whose group has none, in seconds.
    pub fn idle_timeout_s(&self) -> Option<f64> {
        self.idle_timeout.as_ref()?.as_f64()
    }

    /// The worker group of that name. Of several groups of one name the last one counts, as for
    /// Ray.
    pub fn worker_group(&self, name: &str) -> Option<(usize, &GroupSpec)> {
        self.groups.iter().rev().find_map(|group| match group.role {
            Role::Worker { index } if group.name == name => Some((index, group)),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::quantity::Quantity;
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
        assert_eq!((bad.name.as_str(), bad.min_replicas), ("", None));
        assert_eq!(bad.bad_label.as_deref(), Some("team"));
        assert_eq!((&bad.idle_timeout, &bad.to_delete), (&None, &None));
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
