//! A worker pod that is being made.

use serde::Deserialize as _;
use serde_json::Value;

use crate::ray::{Fields, Kind, list_at, object_at, text_at};
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
    pub(super) resources: Resources,
}

/// The reason for which a pod stays as KubeRay makes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LeftAsMade {
    /// It is no worker that a RayCluster owns.
    #[error("it is no worker pod that a RayCluster owns")]
    NoWorker,
    /// It has resources as a whole, of which its container is a part.
    #[error("it has resources as a whole")]
    HasPodLevelResources,
    /// Another controller has it wait, and counts it as its template asks.
    #[error("it has scheduling gates")]
    IsGated,
    /// Its ray container asks for no CPU or memory.
    #[error("its ray container does not ask for both CPU and memory")]
    HasNoSize,
    /// The RayCluster of that name is another one, or is being deleted.
    #[error("the RayCluster that owns it is gone or being deleted")]
    AnotherOwner,
    /// The RayCluster says no size for pods of its group that are made now.
    #[error("nothing is said now about new pods of its group")]
    NoSizeSaid,
    /// Its group may not grow.
    #[error("the annotation ray.io/ippr does not list its group")]
    MayNotGrow,
    /// It is as large already.
    #[error("its template is as large as that")]
    IsLargeEnough,
}

/// The longest name, in bytes: what is longer is not made by KubeRay, and would be held while the RayCluster is read.
const LONGEST_NAME: usize = 253;

impl NewPod {
    /// Reads a pod that is being made.
    pub fn read(pod: &Fields) -> Result<Self, LeftAsMade> {
        let metadata = object_at(pod, "metadata").ok_or(LeftAsMade::NoWorker)?;
        let (cluster, cluster_uid) = owner(metadata).ok_or(LeftAsMade::NoWorker)?;
        let labels = object_at(metadata, "labels").ok_or(LeftAsMade::NoWorker)?;
        let is_worker = text_at(labels, NODE_TYPE) == Some("worker");
        let group = text_at(labels, GROUP).filter(|_| is_worker);
        let group = group.ok_or(LeftAsMade::NoWorker)?;
        let spec = object_at(pod, "spec").ok_or(LeftAsMade::HasNoSize)?;
        if spec.get("resources").is_some_and(|all| !all.is_null()) {
            return Err(LeftAsMade::HasPodLevelResources);
        }
        if !list_at(spec, "schedulingGates").is_empty() {
            return Err(LeftAsMade::IsGated);
        }
        // KubeRay takes the first container for Ray's.
        let container = list_at(spec, "containers").first();
        let resources = container.and_then(|container| container.get("resources"));
        let resources = resources.and_then(|all| Resources::deserialize(all).ok());
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
fn owner(metadata: &Fields) -> Option<(&str, &str)> {
    let owners = list_at(metadata, "ownerReferences").iter();
    let mut owners = owners.filter_map(Value::as_object);
    let owner = owners.find(|owner| owner.get("controller") == Some(&Value::Bool(true)))?;
    let is_cluster = text_at(owner, "kind") == Some(Kind::RayCluster.name())
        && text_at(owner, "apiVersion").is_some_and(|version| version.starts_with("ray.io/"));
    let named = text_at(owner, "name").zip(text_at(owner, "uid"));
    named.filter(|_| is_cluster)
}
