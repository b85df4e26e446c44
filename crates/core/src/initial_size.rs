//! New pods that are made larger than the template of their group.
//!
//! A pod that is resized in place starts with the size of its template, and grows once it runs. Where
//! Kubernetes nodes have little room, the scheduler puts the small pod where it fits, and there it
//! cannot grow to what a single large request asks for. So what scales the cluster can say how large
//! new pods of a group are to be made: with `replicas` it writes the annotation
//! [`ANNOTATION`](crate::ray::initial_sizes::ANNOTATION), and a
//! mutating webhook gives pods that size as KubeRay makes them.
//!
//! # Invariants
//!
//! - A pod is never made smaller than its template, nor larger than `ray.io/ippr` lets its group grow.
//! - The gap between limits and requests stays, and with it the quality-of-service class.
//! - Whatever is not as expected leaves the pod as it is.

use json_patch::Patch;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::json::Fields;
use crate::quantity::Quantity;
use crate::ray::container::gap;
use crate::ray::initial_sizes::InitialSizes;
use crate::ray::ippr::GroupResizeLimits;
use crate::ray::resource::CpuAndMemory;
use crate::ray::{Ippr, Kind};
use crate::snapshot::pod_object::Resources;

/// The label by which KubeRay says what a pod is for.
const NODE_TYPE: &str = "ray.io/node-type";

/// The label by which KubeRay says which group a pod is of.
const GROUP: &str = "ray.io/group";

/// A worker pod that is being made.
#[derive(Debug, Clone, PartialEq)]
pub struct NewPod {
    /// The name of the RayCluster that owns it.
    pub cluster: String,
    /// The UID of that.
    pub cluster_uid: String,
    /// The name of its group.
    pub group: String,
    /// The resources of its ray container.
    resources: Resources,
}

/// The reason for which a pod stays as KubeRay makes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, derive_more::Display)]
pub enum LeftAsMade {
    /// It is no worker that a RayCluster owns.
    #[display("it is no worker pod that a RayCluster owns")]
    NoWorker,
    /// It has resources as a whole, of which its container is a part.
    #[display("it has resources as a whole")]
    HasPodLevelResources,
    /// Another controller has it wait, and counts it as its template asks.
    #[display("it has scheduling gates")]
    IsGated,
    /// Its ray container asks for no CPU or memory.
    #[display("its ray container does not ask for both CPU and memory")]
    HasNoSize,
    /// The RayCluster of that name is another one, or is being deleted.
    #[display("the RayCluster that owns it is gone or being deleted")]
    AnotherOwner,
    /// The RayCluster says no size for pods of its group that are made now.
    #[display("nothing is said now about new pods of its group")]
    NoSizeSaid,
    /// Its group may not grow.
    #[display("the annotation ray.io/ippr does not list its group")]
    MayNotGrow,
    /// It is as large already.
    #[display("its template is as large as that")]
    IsLargeEnough,
}

/// The longest name, in bytes: what is longer is not made by KubeRay, and would be held while the RayCluster is read.
const LONGEST_NAME: usize = 253;

impl NewPod {
    /// Reads a pod that is being made.
    pub fn read(pod: Fields<'_>) -> Result<Self, LeftAsMade> {
        let metadata = pod.object("metadata").ok_or(LeftAsMade::NoWorker)?;
        let (cluster, cluster_uid) = owner(metadata).ok_or(LeftAsMade::NoWorker)?;
        let labels = metadata.object("labels").ok_or(LeftAsMade::NoWorker)?;
        let is_worker = labels.text(NODE_TYPE) == Some("worker");
        let group = labels.text(GROUP).filter(|_| is_worker);
        let group = group.ok_or(LeftAsMade::NoWorker)?;
        let spec = pod.object("spec").ok_or(LeftAsMade::HasNoSize)?;
        if spec.get("resources").is_some_and(|all| !all.is_null()) {
            return Err(LeftAsMade::HasPodLevelResources);
        }
        if !spec.list("schedulingGates").is_empty() {
            return Err(LeftAsMade::IsGated);
        }
        // KubeRay takes the first container for Ray's.
        let container = spec.list("containers").get(0);
        let resources = container.and_then(|container| container.get("resources"));
        let resources = resources.and_then(|all| Resources::deserialize(all.to_value()).ok());
        let mut names = [cluster, cluster_uid, group].into_iter();
        if names.any(|name| name.len() > LONGEST_NAME) {
            return Err(LeftAsMade::NoWorker);
        }
        Ok(Self {
            cluster: cluster.to_owned(),
            cluster_uid: cluster_uid.to_owned(),
            group: group.to_owned(),
            resources: resources.ok_or(LeftAsMade::HasNoSize)?,
        })
    }
}

/// The name and UID of the RayCluster that controls an object.
fn owner(metadata: Fields<'_>) -> Option<(&str, &str)> {
    let mut owners = metadata.list("ownerReferences").objects();
    let owner = owners.find(|owner| owner.is_true("controller"))?;
    let version = owner.text("apiVersion").unwrap_or_default();
    let is_cluster =
        owner.text("kind") == Some(Kind::RayCluster.name()) && version.starts_with("ray.io/");
    let named = owner.text("name").zip(owner.text("uid"));
    named.filter(|_| is_cluster)
}

/// The fields of a RayCluster's `metadata` that size the pods it owns. All else there is skipped
/// and never held.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnerCluster {
    uid: String,
    deletion_timestamp: Option<String>,
    annotations: Option<OwnerAnnotations>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
struct OwnerAnnotations {
    #[serde(rename = "rayfit.dev/initial-sizes", default)]
    sizes: String,
    #[serde(rename = "ray.io/ippr", default)]
    ippr: String,
}

/// A pod that is made larger than its template.
#[derive(Debug, Clone, PartialEq)]
pub struct Enlarged {
    /// The patch of the pod.
    pub patch: Patch,
    /// The size that it gets.
    pub size: CpuAndMemory,
}

/// The enlarged pod, as it is made at `now`, in seconds since 1970.
pub fn enlarged(pod: &NewPod, cluster: &OwnerCluster, now: f64) -> Result<Enlarged, LeftAsMade> {
    // Another RayCluster of the same name may have been made since the pod was.
    if cluster.uid != pod.cluster_uid || cluster.deletion_timestamp.is_some() {
        return Err(LeftAsMade::AnotherOwner);
    }
    let annotations = cluster.annotations.as_ref();
    let annotations = annotations.ok_or(LeftAsMade::NoSizeSaid)?;
    let size = InitialSizes::parse(&annotations.sizes).of_group(&pod.group, now);
    let size = size.ok_or(LeftAsMade::NoSizeSaid)?;
    let ippr = Ippr::parse(&annotations.ippr);
    let resources = resized(pod.resources, &pod.group, size, &ippr)?;
    let mut operations = Vec::new();
    for (part, made, enlarged) in [
        ("limits", pod.resources.limits, resources.limits),
        ("requests", pod.resources.requests, resources.requests),
    ] {
        for name in ["cpu", "memory"] {
            if let Some(amount) = enlarged
                .get(name)
                .filter(|amount| made.get(name) != Some(*amount))
            {
                let path = format!("/spec/containers/0/resources/{part}/{name}");
                operations
                    .push(json!({"op": "replace", "path": path, "value": amount.to_string()}));
            }
        }
    }
    let size = resources.limits.or(resources.requests);
    let whole = |amount: Option<i128>| amount.and_then(|amount| i64::try_from(amount).ok());
    Ok(Enlarged {
        patch: serde_json::from_value(Value::Array(operations))
            .map_err(|_| LeftAsMade::HasNoSize)?,
        size: CpuAndMemory {
            cpu_milli: whole(size.cpu.map(Quantity::ceil_milli)).unwrap_or_default(),
            memory_bytes: whole(size.memory.map(Quantity::ceil_units)).unwrap_or_default(),
        },
    })
}

/// The resources of a container that is made with a size, within what `ippr` lets pods of its group
/// grow to. What it has more of already stays.
pub(crate) fn resized(
    container: Resources,
    group: &str,
    size: CpuAndMemory,
    ippr: &Ippr,
) -> Result<Resources, LeftAsMade> {
    // Whoever may change the RayCluster may have written the size, so it counts within the limits of the group only.
    let limits = ippr.resize_limits(group).filter(|_| ippr.is_well_formed());
    let most = limits.and_then(GroupResizeLimits::most);
    let most = most.ok_or(LeftAsMade::MayNotGrow)?;
    let mut then = container;
    let cpu = Quantity::from_milli(size.cpu_milli).min(most.0);
    let memory = Quantity::from_units(size.memory_bytes).min(most.1);
    for (name, size) in [("cpu", cpu), ("memory", memory)] {
        let (limit, request) = (container.limits.get(name), container.requests.get(name));
        let now = limit.or(request).ok_or(LeftAsMade::HasNoSize)?;
        if size > now {
            then.limits.set(name, limit.map(|_| size));
            // The API server takes a limit without a request for the request too.
            let requested = size.checked_sub(gap(limit, request)).unwrap_or(size);
            then.requests.set(name, request.map(|_| requested));
        }
    }
    (then != container)
        .then_some(then)
        .ok_or(LeftAsMade::IsLargeEnough)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ray::initial_sizes::ANNOTATION;
    use crate::ray::ippr;

    const NOW: f64 = 1_764_243_000.0;

    fn pod(change: impl FnOnce(&mut Value)) -> Value {
        let mut pod = json!({
            "metadata": {
                "labels": {"ray.io/node-type": "worker", "ray.io/group": "a", "ray.io/cluster": "c"},
                "ownerReferences": [{"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "c",
                    "uid": "u", "controller": true}],
            },
            "spec": {"containers": [{"name": "ray", "resources": {
                "limits": {"cpu": "2", "memory": "8Gi", "nvidia.com/gpu": "1"},
                "requests": {"cpu": "1500m", "memory": "8Gi"},
            }}]},
        });
        change(&mut pod);
        pod
    }

    fn cluster(sizes: &str, change: impl FnOnce(&mut Value)) -> OwnerCluster {
        let limits = r#"{"groups":{"a":{"max-cpu":"8","max-memory":"32Gi","resize-timeout":60}}}"#;
        let mut metadata = json!({"name": "c", "uid": "u", "annotations": {
            ANNOTATION: sizes, ippr::ANNOTATION: limits}});
        change(&mut metadata);
        serde_json::from_value(metadata).unwrap()
    }

    fn sizes(cores: i64, gibibytes: i64) -> String {
        let size = CpuAndMemory {
            cpu_milli: cores * 1000,
            memory_bytes: gibibytes << 30,
        };
        let mut sizes = InitialSizes::default();
        sizes.set("a", Some(size), NOW);
        sizes.text().unwrap()
    }

    fn made(pod: &Value, cluster: &OwnerCluster) -> Result<Value, LeftAsMade> {
        let read = NewPod::read(pod.into())?;
        let enlarged = enlarged(&read, cluster, NOW)?;
        let mut pod = pod.clone();
        json_patch::patch(&mut pod, &enlarged.patch).unwrap();
        Ok(pod["spec"]["containers"][0]["resources"].clone())
    }

    #[test]
    fn a_pod_gets_the_size_and_keeps_its_gap_and_what_else_it_has() {
        let resources = made(&pod(|_| {}), &cluster(&sizes(6, 8), |_| {}));
        let limits = json!({"cpu": "6", "memory": "8Gi", "nvidia.com/gpu": "1"});
        let requests = json!({"cpu": "5.5", "memory": "8Gi"});
        assert_eq!(
            resources,
            Ok(json!({"limits": limits, "requests": requests}))
        );
    }

    #[test]
    fn no_pod_gets_more_than_its_group_may_grow_to() {
        let resources = made(&pod(|_| {}), &cluster(&sizes(600, 800), |_| {})).unwrap();
        assert_eq!(resources["limits"]["cpu"], "8");
        assert_eq!(resources["limits"]["memory"], (32_i64 << 30).to_string());
    }

    #[test]
    fn a_pod_without_limits_gets_requests_only() {
        let bare = pod(|pod| {
            let container = &mut pod["spec"]["containers"][0];
            container["resources"] = json!({"requests": {"cpu": "2", "memory": "8Gi"}});
        });
        let resources = made(&bare, &cluster(&sizes(6, 8), |_| {}));
        assert_eq!(
            resources,
            Ok(json!({"requests": {"cpu": "6", "memory": "8Gi"}}))
        );
    }

    #[test]
    fn whatever_is_not_as_expected_leaves_the_pod_as_it_is() {
        let fine = || cluster(&sizes(6, 8), |_| {});
        let changed = |pointer: &'static str, value: Value| {
            pod(move |pod| *pod.pointer_mut(pointer).unwrap() = value)
        };
        let with = |key: &'static str, value: Value| pod(move |pod| pod["spec"][key] = value);
        let owned = |key: &'static str, value: Value| {
            pod(move |pod| pod["metadata"]["ownerReferences"][0][key] = value)
        };
        let pods = [
            (
                changed("/metadata/labels/ray.io~1node-type", json!("head")),
                LeftAsMade::NoWorker,
            ),
            (owned("controller", json!(false)), LeftAsMade::NoWorker),
            (owned("kind", json!("RayJob")), LeftAsMade::NoWorker),
            (owned("apiVersion", json!("x/v1")), LeftAsMade::NoWorker),
            (owned("uid", json!("v")), LeftAsMade::AnotherOwner),
            (owned("name", json!("n".repeat(254))), LeftAsMade::NoWorker),
            (
                changed("/metadata/labels/ray.io~1group", json!("b")),
                LeftAsMade::NoSizeSaid,
            ),
            (
                with("resources", json!({"limits": {"cpu": "9"}})),
                LeftAsMade::HasPodLevelResources,
            ),
            (
                with("schedulingGates", json!([{"name": "g"}])),
                LeftAsMade::IsGated,
            ),
            (with("containers", json!([])), LeftAsMade::HasNoSize),
            (
                with(
                    "containers",
                    json!([{"resources": {"limits": {"cpu": "1"}}}]),
                ),
                LeftAsMade::HasNoSize,
            ),
        ];
        for (pod, why) in pods {
            assert_eq!(made(&pod, &fine()), Err(why), "{pod:?}");
        }
        let clusters = [
            (cluster(&sizes(2, 8), |_| {}), LeftAsMade::IsLargeEnough),
            (cluster("", |_| {}), LeftAsMade::NoSizeSaid),
            (
                cluster(&sizes(6, 8), |all| all["deletionTimestamp"] = json!("now")),
                LeftAsMade::AnotherOwner,
            ),
            (
                cluster(&sizes(6, 8), |all| all["uid"] = json!("v")),
                LeftAsMade::AnotherOwner,
            ),
            (
                cluster(&sizes(6, 8), |all| {
                    all["annotations"][ippr::ANNOTATION] = json!("{}");
                }),
                LeftAsMade::MayNotGrow,
            ),
            (
                cluster(&sizes(6, 8), |all| {
                    all["annotations"][ippr::ANNOTATION] = json!("{");
                }),
                LeftAsMade::MayNotGrow,
            ),
        ];
        for (cluster, why) in clusters {
            assert_eq!(made(&pod(|_| {}), &cluster), Err(why), "{cluster:?}");
        }
    }
}
