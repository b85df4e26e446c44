//! From a snapshot to the rows that nodes are made of.
//!
//! Ray keeps a table of instances in memory. Here the same list is derived from the objects in
//! every round: first the instances that are remembered, then the Ray nodes in the order in which
//! Ray reports them, then the pods without a Ray node. (Ray, `reconciler.py`, `_sync_from`, in the
//! state that it settles in.)

use crate::hash::{HashMap, HashSet};
use crate::plan::nodes::group::ClusterConfig;
use crate::plan::nodes::node::Stage;
use crate::plan::outcome::problem::{Problem, ProblemPlace, ProblemReason};
use crate::plan::situation::Situation;
use crate::snapshot::Snapshot;
use crate::snapshot::gcs::{NodeState, NodeStatus};
use crate::snapshot::group_spec::MOST_NODES;
use crate::snapshot::history::InstanceStatus;
use crate::snapshot::pod::{Pod, PodRole};

/// Seconds for which a node that was asked to stop is expected to drain. If it still runs after
/// that, the request was lost or refused. (Ray, `InstanceReconcileConfig`.)
const STOP_TIMEOUT_S: f64 = 300.0;

/// Seconds for which Ray waits for the Ray node of a pod that runs
/// (`allocate_status_timeout_s`).
const ALLOCATE_TIMEOUT_S: f64 = 3600.0;

/// A row of the list: a pod, or launches that have no pod yet.
#[derive(Debug, Clone)]
pub(crate) struct NodeRow<'a> {
    pub(crate) group: &'a str,
    pub(crate) pod: Option<&'a Pod<'a>>,
    pub(crate) ray: Option<&'a NodeState>,
    pub(crate) stage: Stage,
    pub(crate) head: bool,
    pub(crate) since: Option<f64>,
    /// The number of equal launches that it stands for; a row with a pod stands for one.
    pub(crate) count: u64,
}

/// The pods of the snapshot on which nothing is placed any more.
#[derive(Debug, Default)]
pub(crate) struct Leftovers<'a> {
    /// Pods whose Ray node has stopped.
    pub(crate) stopped: Vec<&'a Pod<'a>>,
    /// Pods whose Ray node is draining.
    pub(crate) draining: Vec<&'a Pod<'a>>,
    /// Pods that Ray gives up, because their raylets never joined.
    pub(crate) never_joined: Vec<&'a Pod<'a>>,
}

/// Returns the rows of a snapshot, and the pods without a row.
pub(crate) fn rows<'a>(situation: &Situation<'a>) -> (Vec<NodeRow<'a>>, Leftovers<'a>) {
    let snapshot = situation.snapshot;
    let live: Vec<&Pod<'_>> = (situation.own_pods.iter())
        // Ray ignores pods that are being deleted: their Ray nodes take no more work.
        .filter(|pod| !pod.deleting && pod.role != PodRole::Other)
        .collect();
    let by_name: HashMap<&str, &'a Pod<'a>> = live.iter().map(|pod| (pod.name, *pod)).collect();
    let mut rows = remembered(snapshot, &live, &by_name);
    let mut names: HashSet<&str> = HashSet::default();
    rows.retain(|row| row.pod.is_none_or(|pod| names.insert(pod.name)));
    let reported = snapshot.gcs.node_states.iter().filter_map(|ray| {
        // A Ray node without its pod is as good as gone.
        let pod = by_name
            .get(ray.instance_id.as_str())
            .filter(|_| ray.is_alive())?;
        Some((ray.ray_node_type_name.as_str(), *pod))
    });
    for (group, pod) in reported.chain(live.iter().map(|pod| (pod.group, *pod))) {
        if names.insert(pod.name) {
            rows.push(NodeRow::of(group, pod, Stage::Allocated, None));
        }
    }
    let leftovers = settle(&mut rows, situation);
    (rows, leftovers)
}

/// Takes out the rows of groups that are not known. Where Ray runs in such a pod, Ray's loop aborts.
pub(crate) fn take_out_unknown(
    rows: &mut Vec<NodeRow<'_>>,
    config: &ClusterConfig,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    rows.retain(|row| {
        let is_known = config.number(row.group).is_some();
        if !is_known && row.stage == Stage::Running {
            problems.push(Problem {
                at: ProblemPlace::Pod(row.pod.map_or("", |pod| pod.name).to_owned()),
                reason: ProblemReason::UnknownGroup(row.group.to_owned()),
                effect: "it is left as it is".into(),
            });
        }
        is_known
    });
    problems
}

impl<'a> NodeRow<'a> {
    pub(crate) fn of(group: &'a str, pod: &'a Pod<'a>, stage: Stage, since: Option<f64>) -> Self {
        Self {
            group,
            pod: Some(pod),
            ray: None,
            stage,
            head: pod.role == PodRole::Head,
            since,
            count: 1,
        }
    }
}

/// The rows of the instances that are remembered.
fn remembered<'a>(
    snapshot: &'a Snapshot,
    live: &[&'a Pod<'a>],
    by_name: &HashMap<&str, &'a Pod<'a>>,
) -> Vec<NodeRow<'a>> {
    let instances = &snapshot.history.instances;
    let mut rows = Vec::new();
    // Of a cluster at rest nothing is remembered, and the tables below would be for nothing.
    if instances.is_empty() {
        return rows;
    }
    let named: HashSet<&str> = instances.iter().filter_map(|i| i.pod.as_deref()).collect();
    // Pods that are not remembered, by group. Launches take the last pod of a group first.
    let mut spare: HashMap<&str, Vec<&'a Pod<'a>>> = HashMap::default();
    for pod in live.iter().filter(|pod| !named.contains(pod.name)) {
        spare.entry(pod.group).or_default().push(pod);
    }
    for instance in instances {
        let stage = match instance.status {
            InstanceStatus::StopRequested => Stage::Stopping,
            _ => Stage::Allocated,
        };
        if let Some(name) = &instance.pod {
            let pod = by_name.get(name.as_str());
            rows.extend(pod.map(|pod| NodeRow::of(pod.group, pod, stage, instance.since)));
            continue;
        }
        let mut rest = instance.count;
        if instance.status == InstanceStatus::Requested
            && let Some(spare) = spare.get_mut(instance.group.as_str())
        {
            while rest > 0
                && let Some(pod) = spare.pop()
            {
                rows.push(NodeRow::of(pod.group, pod, stage, instance.since));
                rest -= 1;
            }
        }
        if rest > 0 {
            rows.push(NodeRow {
                group: &instance.group,
                pod: None,
                ray: None,
                stage: match instance.status {
                    InstanceStatus::Queued => Stage::Queued,
                    _ => Stage::Requested,
                },
                head: false,
                since: instance.since,
                // A snapshot in a file may have any number here.
                count: rest.min(MOST_NODES),
            });
        }
    }
    rows
}

/// Joins rows and Ray nodes. The row's stage follows from the status of its Ray node.
fn settle<'a>(rows: &mut Vec<NodeRow<'a>>, situation: &Situation<'a>) -> Leftovers<'a> {
    let (rays, now) = (situation.live, situation.now);
    let stopped = situation.snapshot.gcs.node_states.iter();
    let stopped = stopped.filter(|ray| ray.status == NodeStatus::Dead);
    let dead: HashSet<&str> = stopped.map(|ray| ray.instance_id.as_str()).collect();
    // Ray gives up a worker pod whose container runs, and that has not become a Ray node.
    let is_given_up = |pod: &Pod<'_>| {
        let started = pod.started().filter(|_| pod.role == PodRole::Worker);
        started.is_some_and(|started| now - started > ALLOCATE_TIMEOUT_S)
    };
    let mut leftovers = Leftovers::default();
    rows.retain_mut(|row| {
        let Some(pod) = row.pod else { return true };
        row.ray = rays.get(pod.name).copied();
        match row.ray {
            // A Ray node that was asked to stop and is no longer reported has stopped, however long ago
            // that was.
            None if dead.contains(pod.name) || row.stage == Stage::Stopping => {
                leftovers.stopped.push(pod);
            }
            None if is_given_up(pod) => leftovers.never_joined.push(pod),
            Some(ray) if ray.status == NodeStatus::Draining => leftovers.draining.push(pod),
            Some(ray) => {
                row.head |= ray.is_head();
                // One that was asked to stop is reported as running until it begins to drain.
                let waited = row.since.map_or(0.0, |since| now - since);
                if row.stage == Stage::Allocated || waited > STOP_TIMEOUT_S {
                    row.stage = Stage::Running;
                }
                return true;
            }
            None => return true,
        }
        false
    });
    leftovers
}
