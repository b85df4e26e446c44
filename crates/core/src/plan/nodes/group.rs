//! The groups of a RayCluster, as the autoscaler reads them. (Ray,
//! `autoscaler/_private/kuberay/autoscaling_config.py`.)

use crate::hash::{HashMap, HashSet};
use crate::plan::list::{ByGroup, GroupIndex};
use crate::plan::outcome::problem::{Problem, ProblemPlace, ProblemReason};
use crate::ray::Ippr;
use crate::ray::group::HEAD_NAME;
use crate::snapshot::cluster_object::{ClusterObject, ClusterSpec, DEFAULT_IDLE_TIMEOUT_S};
use crate::snapshot::group_spec::GroupSpec;
use crate::snapshot::pod::Pod;
use crate::text::is_obeyed;

/// All groups, and the settings of the whole cluster.
#[derive(Debug, Default)]
pub(crate) struct ClusterConfig {
    /// The head group first, then the worker groups in their order.
    pub(crate) groups: ByGroup<GroupSpec>,
    /// The most nodes that the cluster may have, the head included.
    pub(crate) max_nodes: u64,
    pub(crate) idle_timeout_s: f64,
    /// `upscalingMode` is `Conservative`.
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
            if let Some(fault) = group_fault(group) {
                if !group.name.is_empty() {
                    config.unread.insert(group.name.clone());
                }
                config.unread_nodes += group.nodes(group.asked_for());
                config.problems.push(Problem {
                    at: ProblemPlace::Field(group.path().to_string()),
                    reason: fault,
                    effect: format!("{} is left as it is", group.title()).into(),
                });
            } else if let Some(at) = config.number(&group.name) {
                // A group with the name of an earlier one takes its place, as a key of a Python dict
                // does.
                config.groups[at] = group.clone();
            } else {
                let at = config.groups.push(group.clone());
                config.positions.insert(group.name.clone(), at);
            }
        }
        // A worker group with the head group's name has taken the head's place, together with the
        // one node more that Ray adds to the maximum of that name.
        let most = |group: &GroupSpec| group.max - u64::from(group.name == HEAD_NAME);
        config.max_nodes = 1 + config.groups.iter().map(most).sum::<u64>();
        config.conservative = spec.conservative;
        // Ray turns seconds into minutes and back. The same arithmetic gives the same number to the
        // last bit.
        let idle = spec.idle_timeout_s();
        config.idle_timeout_s =
            idle.map_or(DEFAULT_IDLE_TIMEOUT_S, |seconds| seconds / 60.0 * 60.0);
        config.read_resize_limits(spec, &cluster.ippr);
        config
    }

    /// The number of the group with that name.
    pub(crate) fn number(&self, name: &str) -> Option<GroupIndex> {
        self.positions.get(name).copied()
    }

    /// The group with that name.
    pub(crate) fn group(&self, name: &str) -> Option<&GroupSpec> {
        Some(&self.groups[self.number(name)?])
    }

    /// The number of these pods in each group.
    pub(crate) fn count<'p>(&self, pods: impl Iterator<Item = &'p Pod<'p>>) -> ByGroup<u64> {
        let mut counts = self.groups.map(|_| 0);
        for group in pods.filter_map(|pod| self.number(pod.group)) {
            counts[group] += 1;
        }
        counts
    }

    /// True for a pod in the `workersToDelete` of the group with that name.
    pub(crate) fn is_listed(&self, group: &str, pod: &str) -> bool {
        self.group(group)
            .is_some_and(|group| group.listed.contains(pod))
    }

    /// True if no group of that name is in the RayCluster any more. A group that is there and
    /// cannot be read is not lost: its nodes are left as they are.
    pub(crate) fn has_lost(&self, name: &str) -> bool {
        !name.is_empty() && self.number(name).is_none() && !self.unread.contains(name)
    }

    fn read_resize_limits(&mut self, spec: &ClusterSpec, ippr: &Ippr) {
        for problem in &ippr.problems {
            self.problems.push(Problem {
                at: ProblemPlace::Ippr { group: None },
                reason: ProblemReason::Ippr(problem.clone()),
                effect: "the groups concerned do not grow in place".into(),
            });
        }
        let mut first: HashMap<&str, &GroupSpec> = HashMap::default();
        for group in spec.groups.iter().filter(|group| ippr.lists(&group.name)) {
            first.entry(&group.name).or_insert(group);
        }
        for config in self.groups.iter_mut() {
            let Some(group) = first.get(config.name.as_str()) else {
                continue;
            };
            // Of several groups of one name, Ray takes the limits by the first one and all else by the last one.
            config.resize_limits = group.resize_limits;
            config.resize_timeout_s = group.resize_timeout_s;
            if group.resize_limits.is_none() {
                self.problems.push(Problem {
                    at: ProblemPlace::Ippr {
                        group: Some(config.name.clone()),
                    },
                    // In the order in which Ray looks. (`ippr_provider.py`, `_build_ippr_group_spec`.)
                    reason: match group.fixed_by {
                        Some(param) => ProblemReason::SizeFixed(param),
                        None if group.base.is_none() => ProblemReason::NoRequests,
                        None if group.restarts => ProblemReason::Restarts,
                        None => ProblemReason::IncompleteLimits,
                    },
                    effect: format!("{} does not grow in place", group.title()).into(),
                });
            }
        }
    }
}

/// The fault of a group that Ray cannot read.
fn group_fault(group: &GroupSpec) -> Option<ProblemReason> {
    if group.name.is_empty() {
        Some(ProblemReason::NoName)
    } else if group.name.contains(is_obeyed) {
        Some(ProblemReason::BadName)
    } else if let Err(error) = &group.resources {
        Some(error.clone().into())
    } else if let Some(hosts) = group.bad_hosts {
        Some(ProblemReason::NoHosts(hosts))
    } else {
        match (group.min_replicas, group.max_replicas) {
            (None, _) => Some(ProblemReason::NoMinReplicas),
            (_, None) => Some(ProblemReason::NoMaxReplicas),
            (Some(min), Some(max)) if min > max => Some(ProblemReason::MinAboveMax { min, max }),
            _ => None,
        }
    }
}

/// True if a pod of one group can run where a pod of the other group runs, as far as is known.
pub(crate) fn suits_room_of(group: &GroupSpec, other: &GroupSpec) -> bool {
    let is_plain = |group: &GroupSpec| {
        let mut resources = group.resources.iter().flatten();
        resources.all(|(name, amount)| matches!(name.as_str(), "CPU" | "memory") || *amount == 0.0)
    };
    group.name == other.name
        || group.node_selector == other.node_selector && is_plain(group) && is_plain(other)
}
