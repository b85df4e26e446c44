//! The rules that every plan must satisfy before anyone acts on it.
//!
//! Strategy `Ray` mirrors Ray, faults included: it may ask for a size below the resources in use
//! ([`Violation::Shrinks`]). Nobody acts on such a plan, because the check says that it breaks a
//! rule.

use crate::hash::{HashMap, HashSet};
use crate::plan::growth::in_use::{InUse, asked};
use crate::plan::growth::size::{cores, from_cores, milli};
use crate::plan::nodes::group::{ClusterConfig, GroupConfig};
use crate::plan::outcome::plan::{GroupPlan, Plan, PodResize};
use crate::quantity::Quantity;
use crate::snapshot::Snapshot;
use crate::snapshot::gcs::NodeState;
use crate::snapshot::pod::{Pod, PodRole};

/// A rule that a plan breaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// A pod would grow beyond the resize limits of its group.
    #[error("pod {pod} would get {what}, above its resize limit of {limit}: keep to the limit")]
    AboveResizeLimit {
        /// The name of the pod.
        pod: String,
        /// The amount that it would get.
        what: String,
        /// The most that it may have.
        limit: String,
    },
    /// New pods of a group would be made beyond its resize limits, or smaller than their template.
    #[error(
        "new pods of group {group} would be made with {what}, not between {least} and {limit}: keep within these"
    )]
    InitialSize {
        /// The name of the group.
        group: String,
        /// The amount that they would get.
        what: String,
        /// The amount in the template.
        least: String,
        /// The most that they may have.
        limit: String,
    },
    /// A group would get more replicas than it may have.
    #[error("group {group} would get {replicas} replicas, above maxReplicas {max}: launch fewer")]
    AboveMax {
        /// The name of the group.
        group: String,
        /// The amount that it would get.
        replicas: i64,
        /// The most that it may have.
        max: i64,
    },
    /// The cluster would get more workers than it may have.
    #[error(
        "group {group} would be launched for, and the cluster would have {workers} workers, above \
         reconcile.maxWorkersPerCluster {max}: launch fewer"
    )]
    AboveWorkers {
        /// The name of the group.
        group: String,
        /// How many workers the cluster would have.
        workers: u64,
        /// How many workers it may have.
        max: u64,
    },
    /// A pod would shrink below its base size or below the resources in use.
    #[error("pod {pod} would shrink to {what}, below {floor}: leave it at least that")]
    Shrinks {
        /// The name of the pod.
        pod: String,
        /// The amount that it would get.
        what: String,
        /// The least that it must have.
        floor: String,
    },
    /// A group's list of pods to delete would name something that is not a worker of the group.
    /// KubeRay deletes every pod of the namespace whose name is in that list.
    #[error("{pod} would be deleted, which is not a worker of group {group}: delete own pods only")]
    DeletesForeign {
        /// The name that is not such a pod.
        pod: String,
        /// The group in whose `workersToDelete` it would be written.
        group: String,
    },
    /// A pod that is not the cluster's own would be resized.
    #[error("{pod} would be resized, which is not a pod of this cluster: resize own pods only")]
    ResizesForeign {
        /// The name that is not such a pod.
        pod: String,
    },
    /// A pod in which Ray runs would be deleted without draining it.
    #[error("pod {pod} would be deleted while Ray runs in it: drain it first")]
    DeletesRunning {
        /// The name of the pod.
        pod: String,
    },
    /// A pod would be resized twice.
    #[error("pod {pod} would be resized twice at once: send one resize")]
    ResizedTwice {
        /// The name of the pod.
        pod: String,
    },
    /// A container would be left without a request, which would change the quality-of-service class
    /// of its pod. Kubernetes forbids that in a resize.
    #[error("pod {pod} would be left without a {resource} request: leave it more")]
    LosesRequest {
        /// The name of the pod.
        pod: String,
        /// The resource, `CPU` or `memory`.
        resource: &'static str,
    },
}

/// Returns the rules that `plan`, which was made from `snapshot`, breaks.
pub fn check(snapshot: &Snapshot, plan: &Plan) -> Vec<Violation> {
    let checker = Checker {
        config: ClusterConfig::of(&snapshot.ray_cluster),
        pods: snapshot.pods.iter().map(|pod| (pod.name, pod)).collect(),
        nodes: snapshot.gcs.live(),
        now: snapshot.seconds().unwrap_or_default(),
    };
    let mut violations = Vec::new();
    checker.groups(plan, &mut violations);
    let mut seen = HashSet::default();
    for resize in &plan.resizes {
        if !seen.insert(&resize.pod) {
            violations.push(Violation::ResizedTwice {
                pod: resize.pod.clone(),
            });
        }
        checker.resize(resize, &mut violations);
    }
    violations
}

/// Returns a violation for each group that the plan launches nodes for although the cluster would
/// then have more than `max` workers.
pub fn above_workers(snapshot: &Snapshot, plan: &Plan, max: u64) -> Vec<Violation> {
    let then = |group: &GroupPlan| Some(group.replicas);
    let Some(workers) = workers_above(snapshot, plan, max, then) else {
        return Vec::new();
    };
    let launching = plan
        .groups
        .iter()
        .filter(|group| group.launch_now > 0 && group.replicas > group.replicas_now.unwrap_or(0));
    let above = |group: &GroupPlan| Violation::AboveWorkers {
        group: group.name.clone(),
        workers,
        max,
    };
    launching.map(above).collect()
}

/// How many workers the cluster would have, if that is more than `max`; `then` says how many replicas a
/// group of the plan would have, if not as many as its minimum.
pub(crate) fn workers_above(
    snapshot: &Snapshot,
    plan: &Plan,
    max: u64,
    then: impl Fn(&GroupPlan) -> Option<i64>,
) -> Option<u64> {
    let config = ClusterConfig::of(&snapshot.ray_cluster);
    let wanted = plan.groups.iter().filter_map(|group| {
        let known = config.groups.get(config.number(&group.name)?)?;
        Some(known.nodes(then(group).unwrap_or(known.min_replicas)))
    });
    let workers = wanted.fold(0, u64::saturating_add);
    // KubeRay makes whole replicas: a launch may be rounded up by all hosts of a replica but one.
    let rounded = config.groups.iter();
    let rounded = rounded.map(|group| group.hosts.saturating_sub(1));
    let most = rounded.fold(max, u64::saturating_add);
    (workers > most).then_some(workers)
}

struct Checker<'a> {
    config: ClusterConfig,
    pods: HashMap<&'a str, Pod<'a>>,
    nodes: HashMap<&'a str, &'a NodeState>,
    /// Seconds since 1970.
    now: f64,
}

impl Checker<'_> {
    fn groups(&self, plan: &Plan, violations: &mut Vec<Violation>) {
        for group in &plan.groups {
            let max = self
                .group(&group.name)
                .map_or(0, |config| config.max_replicas);
            let grows = group.replicas > group.replicas_now.unwrap_or(0);
            // Above a maximum that was lowered, pods are there until they have drained: only a
            // launch breaks the rule.
            if grows && group.replicas > max && group.launch_now > 0 {
                let (group, replicas) = (group.name.clone(), group.replicas);
                violations.push(Violation::AboveMax {
                    group,
                    replicas,
                    max,
                });
            }
            self.initial_size(group, violations);
            for deletion in group.deletions() {
                if !self.may_go_by(&group.name, &deletion.pod) {
                    violations.push(Violation::DeletesForeign {
                        pod: deletion.pod.clone(),
                        group: group.name.clone(),
                    });
                }
                // KubeRay deletes the pods in `workersToDelete` at once, whatever runs in them.
                if self.nodes.contains_key(deletion.pod.as_str()) {
                    violations.push(Violation::DeletesRunning {
                        pod: deletion.pod.clone(),
                    });
                }
            }
        }
    }

    /// The size of new pods is between that of their template and the resize limits.
    fn initial_size(&self, group: &GroupPlan, violations: &mut Vec<Violation>) {
        let Some(size) = group.initial_size else {
            return;
        };
        let known = self.group(&group.name);
        let base = known.and_then(|known| known.base);
        let limits = known.and_then(|known| known.resize_limits);
        let base = base.map_or((0, 0), |base| (milli(base.cpu), base.memory));
        let limits = limits.map_or((0, 0), |limits| (milli(limits.cpu), limits.memory));
        for (text, (least, then, limit)) in [
            (
                cpu_text as fn(i64) -> String,
                (base.0, size.cpu_milli, limits.0),
            ),
            (memory_text, (base.1, size.memory_bytes, limits.1)),
        ] {
            // Limits may be below what the template has; then pods keep to the template.
            if then < least || then > limit.max(least) {
                let (what, least, limit) = (text(then), text(least), text(limit));
                let group = group.name.clone();
                violations.push(Violation::InitialSize {
                    group,
                    what,
                    least,
                    limit,
                });
            }
        }
    }

    /// Whether a group's list may name the pod: a pod is deleted through the list of its own group
    /// or, if its group is gone, through the list of another group.
    fn may_go_by(&self, group: &str, pod: &str) -> bool {
        self.pods.get(pod).is_some_and(|pod| {
            pod.role == PodRole::Worker && (pod.group == group || self.group(pod.group).is_none())
        })
    }

    fn group(&self, name: &str) -> Option<&GroupConfig> {
        let number = self.config.number(name)?;
        self.config.groups.get(number)
    }

    fn resize(&self, resize: &PodResize, violations: &mut Vec<Violation>) {
        let pod = self.pods.get(resize.pod.as_str());
        if pod.is_none() {
            violations.push(Violation::ResizesForeign {
                pod: resize.pod.clone(),
            });
        }
        let Some(group) = pod.and_then(|pod| self.group(pod.group)) else {
            return;
        };
        if let Some(resize_limits) = group.resize_limits {
            let cpu = (
                resize.cpu_milli,
                resize.cpu_milli_now,
                milli(resize_limits.cpu),
            );
            let memory = (
                resize.memory_bytes,
                resize.memory_bytes_now,
                resize_limits.memory,
            );
            for (text, (then, now, limit)) in
                [(cpu_text as fn(i64) -> String, cpu), (memory_text, memory)]
            {
                // A pod may be above the limits already, if they were lowered: only growing breaks
                // the rule.
                if then > now && then > limit {
                    let (what, limit) = (text(then), text(limit));
                    violations.push(Violation::AboveResizeLimit {
                        pod: resize.pod.clone(),
                        what,
                        limit,
                    });
                }
            }
        }
        self.shrink(resize, group, violations);
        if let Some(pod) = pod {
            requests(pod, resize, violations);
        }
    }

    fn shrink(&self, resize: &PodResize, group: &GroupConfig, violations: &mut Vec<Violation>) {
        let node = self.nodes.get(resize.pod.as_str());
        let asked = node.map(|node| asked(node)).unwrap_or_default();
        let base = group
            .base
            .map_or((0, 0), |base| (milli(base.cpu), base.memory));
        let in_use = node.and_then(|node| node.memory_in_use);
        let in_use = in_use.and_then(|told| InUse::of(told, self.now));
        let used_memory = asked.memory.max(in_use.map_or(0, |used| used.bytes));
        let cpu = (
            resize.cpu_milli,
            resize.cpu_milli_now,
            base.0.max(milli(asked.cpu)),
        );
        let memory = (
            resize.memory_bytes,
            resize.memory_bytes_now,
            base.1.max(used_memory),
        );
        for (text, (then, now, floor)) in
            [(cpu_text as fn(i64) -> String, cpu), (memory_text, memory)]
        {
            // A pod that was made from an earlier template may be below today's base size already:
            // only shrinking breaks the rule.
            if then < now && then < floor {
                let (what, floor) = (text(then), text(floor));
                violations.push(Violation::Shrinks {
                    pod: resize.pod.clone(),
                    what,
                    floor,
                });
            }
        }
    }
}

fn cpu_text(milli: i64) -> String {
    format!("{} CPU", Quantity::from_milli(milli).display_cpu())
}

fn memory_text(bytes: i64) -> String {
    format!("{} memory", Quantity::from_units(bytes).display_memory())
}

/// Whether something is left of the requests of a resized pod.
fn requests(pod: &Pod<'_>, resize: &PodResize, violations: &mut Vec<Violation>) {
    // A resize keeps the gap between limit and request.
    let gap = crate::plan::growth::pod_size::gap(pod);
    #[expect(clippy::cast_precision_loss, reason = "exact up to nine million cores")]
    let cpu_left =
        from_cores(resize.cpu_milli as f64 / 1000.0).nanos() - from_cores(cores(gap.0)).nanos();
    let memory_left = Quantity::from_units(resize.memory_bytes).nanos() - gap.1.nanos();
    for (resource, left) in [("CPU", cpu_left), ("memory", memory_left)] {
        if left <= 0 {
            violations.push(Violation::LosesRequest {
                pod: resize.pod.clone(),
                resource,
            });
        }
    }
}
