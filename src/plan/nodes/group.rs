//! The groups of a RayCluster, as the autoscaler reads them. (Ray,
//! `autoscaler/_private/kuberay/autoscaling_config.py`.)

use crate::hash::{HashMap, HashSet};
use crate::plan::growth::size::{Size, bytes, cores};
use crate::plan::list::{ByGroup, GroupIndex};
use crate::plan::outcome::problem::{Problem, ProblemEffect, ProblemPlace};
use crate::plan::outcome::problem_reason::{GroupError, ProblemReason, ResizeLimitsError};
use crate::plan::strategy::Strategy;
use crate::ray::group::HEAD_NAME;
use crate::ray::node_resources::NodeResources;
use crate::ray::resource::Amounts;
use crate::ray::{Ippr, Role};
use crate::snapshot::cluster_object::{
    ClusterObject, ClusterSpec, DEFAULT_IDLE_TIMEOUT_S, GroupSpec,
};
use crate::snapshot::pod_object::Resources;
use crate::text::is_obeyed;

/// More nodes than any cluster has. Numbers above it, which KubeRay's own types cannot hold, are
/// read as this number, so that sums of them stay in range.
pub(crate) const MOST_NODES: u64 = 1 << 40;

/// The head group or a worker group.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct GroupConfig {
    pub(crate) name: String,
    pub(crate) is_head: bool,
    /// The minimum, counted in nodes and not in replicas.
    pub(crate) min: u64,
    pub(crate) max: u64,
    /// The nodes of each replica (`numOfHosts`).
    pub(crate) hosts: u64,
    /// `replicas`, as it is written in the RayCluster.
    pub(crate) replicas: Option<i64>,
    pub(crate) max_replicas: i64,
    pub(crate) min_replicas: i64,
    /// The amount of each resource that a node starts with, in Ray's order.
    pub(crate) resources: Vec<(String, f64)>,
    pub(crate) labels: Vec<(String, String)>,
    /// `nodeSelector` of its pods.
    pub(crate) node_selector: Vec<(String, String)>,
    pub(crate) idle_timeout_s: Option<f64>,
    pub(crate) priority: i64,
    /// The sizes up to which its pods may grow.
    pub(crate) resize_limits: Option<Size>,
    /// The longest time that one resize may take, in seconds.
    pub(crate) resize_timeout_s: i64,
    /// Whether Ray's memory monitor is on in its pods.
    pub(crate) memory_monitor: bool,
    /// The base size, with which its pods start; `None` without requests.
    pub(crate) base: Option<Size>,
    /// Pod-level resources of its pods, by the template.
    pub(crate) pod_level: Resources,
    /// Amounts that one of its pods requests when it starts.
    pub(crate) pod_requests: Amounts,
    /// The devices of its ray containers, such as `nvidia.com/gpu`.
    pub(crate) devices: Vec<String>,
    /// The pods in `scaleStrategy.workersToDelete`.
    pub(crate) to_delete: HashSet<String>,
    /// Whether the group is suspended (`suspend`).
    pub(crate) suspended: bool,
    /// The gates by which other controllers say that the group cannot grow now.
    pub(crate) scale_gates: Vec<String>,
}

impl GroupConfig {
    /// The number of nodes of so many replicas.
    pub(crate) fn nodes(&self, replicas: i64) -> u64 {
        nodes(replicas, self.hosts)
    }

    /// Whether a pod of this group can run where a pod of the other group runs, as far as is known.
    pub(crate) fn suits_room_of(&self, other: &Self) -> bool {
        let is_plain = |group: &Self| {
            let mut resources = group.resources.iter();
            resources
                .all(|(name, amount)| matches!(name.as_str(), "CPU" | "memory") || *amount == 0.0)
        };
        self.name == other.name
            || self.node_selector == other.node_selector && is_plain(self) && is_plain(other)
    }
}

/// All groups, and the settings of the whole cluster.
#[derive(Debug, Default)]
pub(crate) struct ClusterConfig {
    /// The head group first, then the worker groups in their order.
    pub(crate) groups: ByGroup<GroupConfig>,
    /// The most nodes that the cluster may have, the head included.
    pub(crate) max_nodes: u64,
    pub(crate) idle_timeout_s: f64,
    /// Whether `upscalingMode` is `Conservative`.
    pub(crate) conservative: bool,
    /// The position of each name in `groups`.
    positions: HashMap<String, GroupIndex>,
    /// The names of the groups that are in the RayCluster and cannot be read.
    pub(crate) unread: HashSet<String>,
    /// The number of nodes of those groups, as far as they say so.
    pub(crate) unread_nodes: u64,
    /// Problems that keep Ray from reading the configuration. Ray would do nothing at all.
    pub(crate) problems: Vec<Problem>,
}

impl ClusterConfig {
    /// The groups of a RayCluster as Ray reads them. A group that cannot be read is left out, and a problem
    /// says so.
    pub(crate) fn of(cluster: &ClusterObject) -> Self {
        let mut config = Self::default();
        let Some(spec) = &cluster.spec else {
            return config;
        };
        for group in &spec.groups {
            match read_group(group) {
                // A group with the name of an earlier one takes its place, as a key of a Python dict
                // does.
                Ok(read) => {
                    if let Some(at) = config.number(&read.name) {
                        config.groups[at] = read;
                    } else {
                        let name = read.name.clone();
                        let at = config.groups.push(read);
                        config.positions.insert(name, at);
                    }
                }
                Err(fault) => {
                    config.unread.extend(group.name.clone());
                    let replicas = group.replicas.max(group.min_replicas);
                    config.unread_nodes += nodes(replicas.unwrap_or(0), hosts(group));
                    config.problems.push(Problem {
                        at: ProblemPlace::Field(group.path().to_string()),
                        reason: fault.into(),
                        effect: ProblemEffect::GroupLeft(group.title()),
                    });
                }
            }
        }
        // A worker group with the head group's name has taken the head's place, together with the
        // one node more that Ray adds to the maximum of that name.
        let most = |group: &GroupConfig| group.max - u64::from(group.name == HEAD_NAME);
        config.max_nodes = 1 + config.groups.iter().map(most).sum::<u64>();
        config.conservative = spec.conservative;
        // Ray turns seconds into minutes and back. The same arithmetic gives the same number to the
        // last bit.
        let idle = spec.idle_timeout.seconds();
        config.idle_timeout_s =
            idle.map_or(DEFAULT_IDLE_TIMEOUT_S, |seconds| seconds / 60.0 * 60.0);
        config.read_resize_limits(spec, &cluster.ippr);
        config
    }

    /// The groups as a strategy reads them. Strategy `Rayfit` takes in what Ray does not look at: with what
    /// KubeRay starts Ray, and what pods as a whole allow of resizes.
    pub(crate) fn read(cluster: &ClusterObject, strategy: Strategy) -> Self {
        let mut config = Self::of(cluster);
        let groups = cluster.spec.iter().flat_map(|spec| &spec.groups);
        for group in groups.filter(|_| strategy.is_rayfit()) {
            let number = config.number(group.name.as_deref().unwrap_or_default());
            let Some(config) = number.and_then(|number| config.groups.get_mut(number)) else {
                continue;
            };
            if let Some(started) = &group.started {
                config.resources = amounts(started);
            }
            let Some((limits, base)) = config.resize_limits.as_mut().zip(config.base) else {
                continue;
            };
            // Not below the base size, with which a pod starts whatever the pod as a whole may
            // have.
            let Amounts { cpu, memory } = group.within_pod;
            if let Some(cpu) = cpu {
                limits.cpu = limits.cpu.min(cores(cpu).max(base.cpu));
            }
            if let Some(memory) = memory {
                limits.memory = limits.memory.min(bytes(memory).max(base.memory));
            }
        }
        config
    }

    /// The number of the group with that name.
    pub(crate) fn number(&self, name: &str) -> Option<GroupIndex> {
        self.positions.get(name).copied()
    }

    /// Whether the pod is in the `workersToDelete` of the group with that name.
    pub(crate) fn is_listed(&self, group: &str, pod: &str) -> bool {
        let group = self.number(group).and_then(|at| self.groups.get(at));
        group.is_some_and(|group| group.to_delete.contains(pod))
    }

    /// Whether no group of that name is in the RayCluster any more. A group that is there and
    /// cannot be read is not lost: its nodes are left as they are.
    pub(crate) fn has_lost(&self, name: &str) -> bool {
        !name.is_empty() && self.number(name).is_none() && !self.unread.contains(name)
    }

    fn read_resize_limits(&mut self, spec: &ClusterSpec, ippr: &Ippr) {
        for problem in &ippr.problems {
            self.problems.push(Problem {
                at: ProblemPlace::Ippr { group: None },
                reason: ProblemReason::Ippr(problem.clone()),
                effect: ProblemEffect::GroupsNotGrown,
            });
        }
        let mut written: HashMap<&str, &GroupSpec> = HashMap::default();
        for group in &spec.groups {
            if let Some(name) = group.name.as_deref().filter(|name| ippr.lists(name)) {
                written.entry(name).or_insert(group);
            }
        }
        for config in self.groups.iter_mut() {
            let Some(group) = written.get(config.name.as_str()) else {
                continue;
            };
            match resize_limits(group, ippr, &config.name) {
                Ok(None) => {}
                Ok(Some((limits, timeout))) => {
                    config.resize_limits = Some(limits);
                    config.resize_timeout_s = timeout;
                }
                Err(fault) => self.problems.push(Problem {
                    at: ProblemPlace::Ippr {
                        group: Some(config.name.clone()),
                    },
                    reason: fault.into(),
                    effect: ProblemEffect::GroupNotGrown(group.title()),
                }),
            }
        }
    }
}

fn read_group(group: &GroupSpec) -> Result<GroupConfig, GroupError> {
    let name = group.name.as_deref().ok_or(GroupError::NoName)?;
    if name.contains(is_obeyed) {
        return Err(GroupError::BadName);
    }
    let resources = group.resources.as_ref().map_err(Clone::clone)?;
    if let Some(hosts) = group.hosts.filter(|hosts| *hosts < 1) {
        return Err(GroupError::NoHosts(hosts));
    }
    let hosts = hosts(group);
    let (min_replicas, max_replicas) = match group.role {
        Role::Head => (0, 0),
        Role::Worker { .. } => (
            group.min_replicas.ok_or(GroupError::NoMinReplicas)?,
            group.max_replicas.ok_or(GroupError::NoMaxReplicas)?,
        ),
    };
    if min_replicas > max_replicas {
        return Err(GroupError::MinAboveMax {
            min: min_replicas,
            max: max_replicas,
        });
    }
    let nodes = |replicas: i64| nodes(replicas, hosts);
    Ok(GroupConfig {
        name: name.to_owned(),
        is_head: group.role == Role::Head,
        min: nodes(min_replicas),
        // The head has 0 to 0 workers in the configuration, and Ray adds one to the maximum of the
        // group with that name.
        max: nodes(max_replicas) + u64::from(name == HEAD_NAME),
        hosts,
        replicas: group.replicas,
        max_replicas,
        min_replicas,
        resources: amounts(resources),
        labels: group.labels.clone(),
        node_selector: group.node_selector.clone(),
        idle_timeout_s: group.idle_timeout.seconds(),
        priority: group.priority.unwrap_or(0),
        resize_limits: None,
        resize_timeout_s: 0,
        memory_monitor: group.memory_monitor,
        base: group.size.map(|(cpu, memory)| Size {
            cpu: cores(cpu),
            memory: bytes(memory),
        }),
        pod_level: group.pod_level,
        pod_requests: group.pod_requests,
        devices: group.devices.clone(),
        to_delete: group.listed().map(str::to_owned).collect(),
        suspended: group.suspended,
        scale_gates: group.scale_gates.clone(),
    })
}

#[expect(clippy::cast_precision_loss, reason = "Ray counts in f64 too")]
fn amounts(resources: &NodeResources) -> Vec<(String, f64)> {
    let amounts = resources.iter();
    amounts
        .map(|(name, amount)| (name.to_owned(), amount as f64))
        .collect()
}

fn hosts(group: &GroupSpec) -> u64 {
    // KubeRay takes a `numOfHosts` of 0 for 1.
    let hosts = group.hosts.unwrap_or(1).max(1).unsigned_abs();
    hosts.min(MOST_NODES)
}

fn nodes(replicas: i64, hosts: u64) -> u64 {
    let replicas = replicas.max(0).unsigned_abs();
    replicas.saturating_mul(hosts).min(MOST_NODES)
}

/// The resize limits and the timeout of a group that the annotation lists, if the group may grow at all. (Ray,
/// `ippr_provider.py`, `_build_ippr_group_spec`.)
fn resize_limits(
    group: &GroupSpec,
    ippr: &Ippr,
    name: &str,
) -> Result<Option<(Size, i64)>, ResizeLimitsError> {
    if let Some(param) = group.fixed_by {
        return Err(ResizeLimitsError::StartParam(param));
    }
    group.size.ok_or(ResizeLimitsError::NoRequests)?;
    if group.restarts {
        return Err(ResizeLimitsError::Restarts);
    }
    let Some(entry) = ippr.resize_limits(name) else {
        return Ok(None);
    };
    let complete = entry.most().zip(entry.resize_timeout);
    let ((cpu, memory), timeout) = complete.ok_or(ResizeLimitsError::Incomplete)?;
    let limits = Size {
        cpu: cores(cpu),
        memory: bytes(memory),
    };
    Ok(Some((limits, timeout)))
}
