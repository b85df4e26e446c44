//! A group of a RayCluster: one type for all that plan, simulate, write or show it.

use serde::Deserialize as _;
use serde_json::Value;

use super::pod_object::{PodObject, PodSpec, Resources};
use super::requests::requests;
use crate::hash::HashSet;
use crate::json::{Fields, Json};
use crate::path::FieldPath;
use crate::ray::container::MEMORY_MONITOR;
use crate::ray::group::HEAD_NAME;
use crate::ray::node_resources::{NodeResources, ResourceError};
use crate::ray::pod_size::PodLevelBound;
use crate::ray::resource::{Amounts, Size, bytes, cores};
use crate::ray::{Cluster, Container, Group, Ippr, Kind, ReconcileMode, Resource, Role, label};

/// More nodes than any cluster has. Numbers above it, which KubeRay's own types cannot hold, are
/// read as this number, so that sums of them stay in range.
pub(crate) const MOST_NODES: u64 = 1 << 40;

/// The most scale gates of a group that are read: one is enough to know that there are any.
const SCALE_GATES: usize = 8;

/// A group of a RayCluster.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupSpec {
    /// The role: head group or worker group.
    pub role: Role,
    /// `groupName`; `headgroup` for the head; empty for a worker group without a name.
    pub name: String,
    /// `replicas`
    pub replicas: Option<i64>,
    /// `minReplicas`; 0 for the head.
    pub min_replicas: Option<i64>,
    /// `maxReplicas`; 0 for the head.
    pub max_replicas: Option<i64>,
    /// The pods of each replica, at least one.
    pub hosts: u64,
    /// `numOfHosts`, if it is below one.
    pub bad_hosts: Option<i64>,
    /// The minimum, counted in nodes and not in replicas.
    pub min: u64,
    /// The maximum, counted in nodes and not in replicas.
    pub max: u64,
    /// `priority`
    pub priority: i64,
    /// `suspend`
    pub suspended: bool,
    /// `idleTimeoutSeconds`, a number or null; `None` for an absent one and for one of another type.
    pub idle_timeout: Option<Value>,
    /// `labels`, in their order. A value that is no text is empty.
    pub labels: Vec<(String, String)>,
    /// The key of the first label that is not in Kubernetes' syntax.
    pub bad_label: Option<String>,
    /// `nodeSelector` of the pod template, sorted by key. A value that is no text is empty.
    pub node_selector: Vec<(String, String)>,
    /// The resources of a node of the group in Ray's order, as Ray's autoscaler derives them.
    pub resources: Result<Vec<(String, f64)>, ResourceError>,
    /// The resources with which KubeRay starts a Ray node of the group, if they differ.
    pub started: Option<Vec<(String, f64)>>,
    /// The base size, with which its ray containers start: their limits, or else their requests;
    /// `None` without requests.
    pub base: Option<Size>,
    /// The sizes up to which its ray containers may grow, by `ray.io/ippr`; `None` if they may not.
    pub resize_limits: Option<Size>,
    /// The longest time that one resize may take, in seconds, by `ray.io/ippr`.
    pub resize_timeout_s: i64,
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
    /// A resize of CPU or memory restarts its ray containers.
    pub restarts: bool,
    /// Ray's memory monitor is on in its pods, as it is unless the environment of their ray container turns it
    /// off. It goes by the memory that a pod starts with.
    pub memory_monitor: bool,
    /// `scaleStrategy.workersToDelete`, with `None` for what is no text; `None` without
    /// `scaleStrategy`.
    pub to_delete: Option<Vec<Option<String>>>,
    /// The names in `scaleStrategy.workersToDelete`.
    pub listed: HashSet<String>,
    /// The names of the gates in `scaleStrategy.scaleGate`, by which other controllers say that the
    /// group cannot grow now.
    pub scale_gates: Vec<String>,
}

/// `idleTimeoutSeconds`, if it is a number or null.
pub(super) fn idle_timeout(fields: Option<Fields<'_>>) -> Option<Value> {
    let timeout = fields?.get("idleTimeoutSeconds")?;
    matches!(timeout, Json::Number(_) | Json::Null).then(|| timeout.to_value())
}

impl GroupSpec {
    pub(super) fn of(cluster: &Cluster<'_>, group: &Group<'_>, ippr: &Ippr) -> Self {
        let labels = group.spec.object("labels");
        let strategy = group.spec.object("scaleStrategy");
        let to_delete = to_delete(strategy);
        let selector = (group.pod_spec).and_then(|spec| spec.object("nodeSelector"));
        let pod = pod(group);
        let container = group.ray_container;
        let resources = NodeResources::of(group);
        let started = resources.as_ref().ok().and_then(|derived| {
            let started = derived.started(group).ok();
            started.filter(|started| started != derived)
        });
        let hosts = group.integer("numOfHosts");
        // The head has 0 to 0 workers in Ray's configuration, whatever its group says.
        let replicas = |key| match group.role {
            Role::Head => Some(0),
            Role::Worker { .. } => group.integer(key),
        };
        let mut spec = Self {
            role: group.role,
            name: group.name.unwrap_or_default().to_owned(),
            replicas: group.integer("replicas"),
            min_replicas: replicas("minReplicas"),
            max_replicas: replicas("maxReplicas"),
            // KubeRay takes a `numOfHosts` of 0 for 1.
            hosts: hosts.unwrap_or(1).max(1).unsigned_abs().min(MOST_NODES),
            bad_hosts: hosts.filter(|hosts| *hosts < 1),
            min: 0,
            max: 0,
            priority: group.integer("priority").unwrap_or(0),
            suspended: group.spec.is_true("suspend"),
            idle_timeout: idle_timeout(Some(group.spec)),
            labels: texts(labels),
            bad_label: bad_label(labels),
            node_selector: sorted(texts(selector)),
            devices: container.map(devices).unwrap_or_default(),
            resources: resources.as_ref().map(amounts).map_err(Clone::clone),
            started: started.as_ref().map(amounts),
            base: container.and_then(base),
            resize_limits: None,
            resize_timeout_s: 0,
            within_pod: within_pod(cluster, group),
            pod_level: pod.spec.resources,
            // As the scheduler counts the pod that is made from the template.
            pod_requests: requests(&pod),
            fixed_by: ["num-cpus", "memory"]
                .into_iter()
                .find(|param| group.start_param(param).is_some()),
            restarts: container.is_some_and(restarts),
            // Ray's monitor looks every so many milliseconds, and 0 turns it off.
            memory_monitor: container
                .and_then(|container| container.env(MEMORY_MONITOR))
                .is_none_or(|every_ms| every_ms.trim() != "0"),
            listed: to_delete.iter().flatten().flatten().cloned().collect(),
            to_delete,
            scale_gates: scale_gates(strategy.unwrap_or_default()),
        };
        spec.derive(ippr);
        spec
    }

    /// Sets what follows from several fields, and from the annotation `ray.io/ippr`.
    fn derive(&mut self, ippr: &Ippr) {
        self.min = self.nodes(self.min_replicas.unwrap_or(0));
        // Ray adds one to the maximum of the group with the head's name.
        self.max = self.nodes(self.max_replicas.unwrap_or(0)) + u64::from(self.name == HEAD_NAME);
        // The conditions under which a group may grow at all. (Ray, `ippr_provider.py`,
        // `_build_ippr_group_spec`.)
        if self.fixed_by.is_none()
            && self.base.is_some()
            && !self.restarts
            && let Some(entry) = ippr.resize_limits(&self.name)
            && let Some(((cpu, memory), timeout)) = entry.most().zip(entry.resize_timeout)
        {
            self.resize_limits = Some(Size {
                cpu: cores(cpu),
                memory: bytes(memory),
            });
            self.resize_timeout_s = timeout;
        }
    }

    /// The name by which messages call the group.
    pub fn title(&self) -> String {
        self.role
            .title(Some(self.name.as_str()).filter(|name| !name.is_empty()))
    }

    /// The path of the group.
    pub fn path(&self) -> FieldPath {
        let name = Some(self.name.as_str()).filter(|name| !name.is_empty());
        self.role.path(Kind::RayCluster, name)
    }

    /// True for the head group.
    pub fn is_head(&self) -> bool {
        self.role == Role::Head
    }

    /// The idle timeout of its nodes, in seconds.
    pub fn idle_timeout_s(&self) -> Option<f64> {
        self.idle_timeout.as_ref()?.as_f64()
    }

    /// The replicas that KubeRay is asked for: `replicas`, or `minReplicas` if they are more; 0 without either.
    pub fn asked_for(&self) -> i64 {
        self.replicas.max(self.min_replicas).unwrap_or(0)
    }

    /// The number of nodes of so many replicas.
    pub fn nodes(&self, replicas: i64) -> u64 {
        let replicas = replicas.max(0).unsigned_abs();
        replicas.saturating_mul(self.hosts).min(MOST_NODES)
    }
}

/// The key of the first label that Kubernetes would not take.
fn bad_label(labels: Option<Fields<'_>>) -> Option<String> {
    let mut labels = labels.unwrap_or_default().iter();
    let (key, _) = labels
        .find(|(key, value)| !label::is_key(key) || !value.as_str().is_some_and(label::is_value))?;
    Some(key.to_owned())
}

/// The pods that KubeRay is asked to delete; one that is no text is `None`.
fn to_delete(strategy: Option<Fields<'_>>) -> Option<Vec<Option<String>>> {
    let pods = strategy?.list("workersToDelete").iter();
    Some(pods.map(|pod| pod.as_str().map(str::to_owned)).collect())
}

/// The names of the gates that keep the group from growing.
fn scale_gates(strategy: Fields<'_>) -> Vec<String> {
    let gates = strategy.list("scaleGate").iter().take(SCALE_GATES);
    let names = gates.filter_map(|gate| gate.as_object()?.text("name"));
    names.map(str::to_owned).collect()
}

/// A pod of the group, as its template has it.
fn pod(group: &Group<'_>) -> PodObject {
    let spec = group.pod_spec;
    let spec = spec.and_then(|spec| PodSpec::deserialize(&*spec.to_map()).ok());
    PodObject {
        spec: spec.unwrap_or_default(),
        ..PodObject::default()
    }
}

/// The most that a ray container of the group may have within its pod.
fn within_pod(cluster: &Cluster<'_>, group: &Group<'_>) -> Amounts {
    let bound = |resource| PodLevelBound::of(cluster, group, resource, ReconcileMode::Central);
    Amounts {
        cpu: bound(Resource::Cpu).map(|bound| bound.highest),
        memory: bound(Resource::Memory).map(|bound| bound.highest),
    }
}

/// The limits of a container whose names have a prefix.
fn devices(container: Container<'_>) -> Vec<String> {
    let limits = container.limits.unwrap_or_default().iter();
    let names = limits.map(|(name, _)| name.to_owned());
    sorted(names.filter(|name| name.contains('/')).collect())
}

/// The entries of an object. A value that is no text is empty.
fn texts(fields: Option<Fields<'_>>) -> Vec<(String, String)> {
    let entries = fields.unwrap_or_default().iter();
    entries
        .map(|(key, value)| {
            (
                key.to_owned(),
                value.as_str().unwrap_or_default().to_owned(),
            )
        })
        .collect()
}

fn sorted<T: Ord>(mut items: Vec<T>) -> Vec<T> {
    items.sort();
    items
}

#[expect(clippy::cast_precision_loss, reason = "Ray counts in f64 too")]
fn amounts(resources: &NodeResources) -> Vec<(String, f64)> {
    let amounts = resources.iter();
    amounts
        .map(|(name, amount)| (name.to_owned(), amount as f64))
        .collect()
}

fn base(container: Container<'_>) -> Option<Size> {
    let requests = container.requests?;
    let size = |resource| {
        // Ray grows pods that have both requests only, and takes the limits for their size where
        // there are any.
        requests.get(resource)?;
        container.size(resource)
    };
    Some(Size {
        cpu: cores(size("cpu")?),
        memory: bytes(size("memory")?),
    })
}

fn restarts(container: Container<'_>) -> bool {
    container.resize_policy().any(|policy| {
        matches!(policy.text("resourceName"), Some("cpu" | "memory"))
            && !matches!(policy.text("restartPolicy"), None | Some("NotRequired"))
    })
}
