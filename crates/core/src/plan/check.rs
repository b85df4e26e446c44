//! The rules that every plan must satisfy before anyone acts on it.
//!
//! Strategy `Ray` mirrors Ray, faults included: it may ask for a size below the resources in use
//! ([`Violation::Shrinks`]). Nobody acts on such a plan, because the check says that it breaks a
//! rule.

use crate::hash::{HashMap, HashSet};
use crate::plan::conclude::sizes::in_use;
use crate::plan::growth::pod_size::gap;
use crate::plan::growth::size::{cores, from_cores, milli};
use crate::plan::nodes::group::ClusterConfig;
use crate::plan::outcome::amounts::{cpu, memory};
use crate::plan::outcome::plan::{GroupPlan, Plan, PodResize};
use crate::plan::outcome::report::CpuAndMemory;
use crate::quantity::Quantity;
use crate::snapshot::Snapshot;
use crate::snapshot::gcs::LiveNodes;
use crate::snapshot::group_spec::GroupSpec;
use crate::snapshot::pod::{Pod, PodRole};

/// A rule that a plan breaks.
#[derive(Debug, Clone, PartialEq, Eq, derive_more::Display)]
pub enum Violation {
    /// A pod would grow beyond the resize limits of its group.
    #[display("pod {pod} would get {what}, above its resize limit of {limit}: keep to the limit")]
    AboveResizeLimit {
        /// The name of the pod.
        pod: String,
        /// The amount that it would get.
        what: String,
        /// The most that it may have.
        limit: String,
    },
    /// New pods of a group would be made beyond its resize limits, or smaller than their template.
    #[display(
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
    #[display("group {group} would get {replicas} replicas, above maxReplicas {max}: launch fewer")]
    AboveMax {
        /// The name of the group.
        group: String,
        /// The amount that it would get.
        replicas: i64,
        /// The most that it may have.
        max: i64,
    },
    /// The cluster would get more workers than it may have.
    #[display(
        "group {group} would be launched for, and the cluster would have {workers} workers, above \
         reconcile.maxWorkersPerCluster {max}: launch fewer"
    )]
    AboveWorkers {
        /// The name of the group.
        group: String,
        /// The number of workers that the cluster would have.
        workers: u64,
        /// The most workers that it may have.
        max: u64,
    },
    /// A pod would shrink below its base size or below the resources in use.
    #[display("pod {pod} would shrink to {what}, below {floor}: leave it at least that")]
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
    #[display(
        "{pod} would be deleted, which is not a worker of group {group}: delete own pods only"
    )]
    DeletesForeign {
        /// The name that is not such a pod.
        pod: String,
        /// The group in whose `workersToDelete` it would be written.
        group: String,
    },
    /// A pod that is not the cluster's own would be resized.
    #[display("{pod} would be resized, which is not a pod of this cluster: resize own pods only")]
    ResizesForeign {
        /// The name that is not such a pod.
        pod: String,
    },
    /// A pod in which Ray runs would be deleted without draining it.
    #[display("pod {pod} would be deleted while Ray runs in it: drain it first")]
    DeletesRunning {
        /// The name of the pod.
        pod: String,
        /// The group in whose `workersToDelete` it would be written.
        group: String,
    },
    /// A pod would be resized twice.
    #[display("pod {pod} would be resized twice at once: send one resize")]
    ResizedTwice {
        /// The name of the pod.
        pod: String,
    },
    /// A container would be left without a request, which would change the quality-of-service class
    /// of its pod. Kubernetes forbids that in a resize.
    #[display("pod {pod} would be left without a {resource} request: leave it more")]
    LosesRequest {
        /// The name of the pod.
        pod: String,
        /// The resource, `CPU` or `memory`.
        resource: &'static str,
    },
}

/// Returns the rules that `plan`, which was made from `snapshot`, breaks.
pub fn check(snapshot: &Snapshot, plan: &Plan) -> Vec<Violation> {
    // Read anew from the snapshot, and not taken from the decision, whose faults it is to find.
    let config = ClusterConfig::of(&snapshot.ray_cluster);
    let pods: HashMap<&str, Pod<'_>> = snapshot.pods.iter().map(|pod| (pod.name, pod)).collect();
    let nodes = snapshot.gcs.live();
    let mut violations = Vec::new();
    for group in &plan.groups {
        replicas(group, config.group(&group.name), &mut violations);
        initial_size(group, config.group(&group.name), &mut violations);
        deletions(group, &config, &pods, &nodes, &mut violations);
    }
    let mut resized = HashSet::default();
    for planned in &plan.resizes {
        let name = planned.pod.as_str();
        if !resized.insert(name) {
            let pod = name.to_owned();
            violations.push(Violation::ResizedTwice { pod });
        }
        // Kubernetes goes by the name alone, so a foreign one would resize a foreign pod.
        let Some(pod) = pods.get(name) else {
            let pod = name.to_owned();
            violations.push(Violation::ResizesForeign { pod });
            continue;
        };
        if let Some(group) = config.group(pod.group) {
            let now = snapshot.seconds().unwrap_or_default();
            let used = nodes.get(name).map(|ray| in_use(ray, now));
            let used = used.unwrap_or_default();
            resize(planned, pod, group, used, &mut violations);
        }
    }
    violations
}

/// No launch takes a group above its maximum.
fn replicas(plan: &GroupPlan, group: Option<&GroupSpec>, violations: &mut Vec<Violation>) {
    let (replicas, now) = (plan.replicas, plan.replicas_now.unwrap_or(0));
    let max = group.and_then(|group| group.max_replicas).unwrap_or(0);
    // Above a maximum that was lowered, pods are there until they have drained: only a
    // launch breaks the rule.
    if replicas > now && replicas > max && plan.launch_now > 0 {
        violations.push(Violation::AboveMax {
            group: plan.name.clone(),
            replicas,
            max,
        });
    }
}

/// Only workers of the group are deleted, in which Ray does not run.
fn deletions(
    plan: &GroupPlan,
    config: &ClusterConfig,
    pods: &HashMap<&str, Pod<'_>>,
    nodes: &LiveNodes<'_>,
    violations: &mut Vec<Violation>,
) {
    for deletion in plan.deletions() {
        let (pod, group) = (deletion.pod.clone(), plan.name.clone());
        // A pod is deleted through the list of its own group or, if its group is gone, through
        // the list of another group.
        let may_go = pods.get(pod.as_str()).is_some_and(|pod| {
            let is_of_group = pod.group == group || config.group(pod.group).is_none();
            pod.role == PodRole::Worker && is_of_group
        });
        // KubeRay deletes the pods in `workersToDelete` at once, whatever runs in them.
        let runs = nodes.contains_key(pod.as_str());
        if !may_go {
            let (pod, group) = (pod.clone(), group.clone());
            violations.push(Violation::DeletesForeign { pod, group });
        }
        if runs {
            violations.push(Violation::DeletesRunning { pod, group });
        }
    }
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

/// The number of workers that the cluster would have, if above `max`; `then` gives the replicas
/// that a group of the plan would have, if other than its minimum.
pub(crate) fn workers_above(
    snapshot: &Snapshot,
    plan: &Plan,
    max: u64,
    then: impl Fn(&GroupPlan) -> Option<i64>,
) -> Option<u64> {
    let config = ClusterConfig::of(&snapshot.ray_cluster);
    let nodes = plan.groups.iter().filter_map(|group| {
        let config_group = config.group(&group.name)?;
        Some(config_group.nodes(then(group).or(config_group.min_replicas).unwrap_or(0)))
    });
    let workers = nodes.fold(0, u64::saturating_add);
    // KubeRay makes whole replicas: a launch may be rounded up by all hosts of a replica but one.
    let rounded = config.groups.iter();
    let rounded = rounded.map(|group| group.hosts.saturating_sub(1));
    let most = rounded.fold(max, u64::saturating_add);
    (workers > most).then_some(workers)
}

/// The size of new pods is between that of their template and the resize limits.
fn initial_size(plan: &GroupPlan, group: Option<&GroupSpec>, violations: &mut Vec<Violation>) {
    let Some(size) = plan.initial_size else {
        return;
    };
    let base = group.and_then(|group| group.base);
    let limits = group.and_then(|group| group.resize_limits);
    let base = base.map_or((0, 0), |base| (milli(base.cpu), base.memory));
    let limits = limits.map_or((0, 0), |limits| (milli(limits.cpu), limits.memory));
    for (text, least, then, limit) in [
        (
            cpu_text as fn(i64) -> String,
            base.0,
            size.cpu_milli,
            limits.0,
        ),
        (memory_text, base.1, size.memory_bytes, limits.1),
    ] {
        // Limits may be below what the template has; then pods keep to the template.
        if then < least || then > limit.max(least) {
            violations.push(Violation::InitialSize {
                group: plan.name.clone(),
                what: text(then),
                least: text(least),
                limit: text(limit),
            });
        }
    }
}

/// A pod grows within its resize limits, keeps its base size and what is in use, and something of its requests.
fn resize(
    resize: &PodResize,
    pod: &Pod<'_>,
    group: &GroupSpec,
    in_use: CpuAndMemory,
    violations: &mut Vec<Violation>,
) {
    let base = group.base.unwrap_or_default();
    let limits = group.resize_limits;
    // A resize keeps the gap between limit and request.
    let gap = gap(pod);
    #[expect(clippy::cast_precision_loss, reason = "exact up to nine million cores")]
    let cpu_then = from_cores(resize.cpu_milli as f64 / 1000.0);
    let cpu_left = cpu_then.nanos() - from_cores(cores(gap.0)).nanos();
    let memory_left = Quantity::from_units(resize.memory_bytes).nanos() - gap.1.nanos();
    let cpu = (
        resize.cpu_milli_now,
        resize.cpu_milli,
        milli(base.cpu).max(in_use.cpu_milli),
        limits.map(|limits| milli(limits.cpu)),
        cpu_left,
    );
    let memory = (
        resize.memory_bytes_now,
        resize.memory_bytes,
        base.memory.max(in_use.memory_bytes),
        limits.map(|limits| limits.memory),
        memory_left,
    );
    for (resource, text, (now, then, floor, limit, request)) in [
        ("CPU", cpu_text as fn(i64) -> String, cpu),
        ("memory", memory_text, memory),
    ] {
        let (pod, what) = (resize.pod.clone(), text(then));
        // A pod may be above the limits or below its base size already, if its template or these were changed: only
        // growing, or only shrinking, breaks the rule.
        if let Some(limit) = limit.filter(|limit| then > now && then > *limit) {
            let limit = text(limit);
            violations.push(Violation::AboveResizeLimit { pod, what, limit });
        } else if then < now && then < floor {
            let floor = text(floor);
            violations.push(Violation::Shrinks { pod, what, floor });
        }
        if request <= 0 {
            let pod = resize.pod.clone();
            violations.push(Violation::LosesRequest { pod, resource });
        }
    }
}

fn cpu_text(milli: i64) -> String {
    format!("{} CPU", cpu(milli))
}

fn memory_text(bytes: i64) -> String {
    format!("{} memory", memory(bytes))
}
