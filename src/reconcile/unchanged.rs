//! The unchanged check: whether a look shows the same state as the one before, so that no round has
//! to be made.
//!
//! Most clusters do nothing most of the time. After a round that found nothing to do or to
//! announce, and that would find nothing either if only time passed, the next looks compare the
//! GCS's state with that round's and make no plan. This is bounded: after [`REST_S`] a round is
//! made in any case.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::reconcile::decide::round;
use crate::reconcile::memory::RoundMemory;
use crate::reconcile::round::Round;
use crate::reconcile::settings::ReconcilerSettings;
use crate::snapshot::Snapshot;
use crate::snapshot::gcs::{ClusterResourceState, NodeState, NodeStatus};

/// For how many seconds at most no round is made while looks show the same state.
pub const REST_S: f64 = 10.0;

/// The state of a Ray cluster in which there is nothing to do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UnchangedCheck {
    sum: u64,
    /// When that state was observed, in seconds since 1970.
    at: f64,
}

impl UnchangedCheck {
    /// The check that follows from a round, if nothing is to be done until [`REST_S`] later: the
    /// round had nothing to do, and a round of the same state that much later has nothing to do
    /// either. `snapshot` is the round's, and `memory` is the memory after the round.
    pub fn of(
        round_made: &Round,
        mut snapshot: Snapshot,
        memory: &RoundMemory,
        settings: &ReconcilerSettings,
    ) -> Option<Self> {
        if !is_idle(round_made) {
            return None;
        }
        let found = Self {
            sum: sum(&snapshot.gcs),
            at: round_made.at,
        };
        snapshot.history.clone_from(&memory.history);
        age(&mut snapshot)?;
        is_idle(&round(&snapshot, memory, settings)).then_some(found)
    }

    /// Whether the state is the same, and the check not too old. `now` is in seconds since 1970.
    pub fn holds(&self, state: &ClusterResourceState, now: f64) -> bool {
        self.is_fresh(now) && self.sum == sum(state)
    }

    /// Whether the check is not too old: for who knows in another way that the state is the same.
    pub fn is_fresh(&self, now: f64) -> bool {
        (self.at..self.at + REST_S).contains(&now)
    }
}

/// Whether two states are the same, but for how long Ray nodes have been idle.
pub fn is_same(one: &ClusterResourceState, other: &ClusterResourceState) -> bool {
    sum(one) == sum(other)
}

fn is_idle(round: &Round) -> bool {
    !round.busy && round.chains.is_empty() && round.skipped.is_empty()
}

/// The snapshot as it would be if only time passed.
fn age(snapshot: &mut Snapshot) -> Option<()> {
    let time: k8s_openapi::jiff::Timestamp = snapshot.time.parse().ok()?;
    let later = k8s_openapi::jiff::SignedDuration::from_secs_f64(REST_S);
    snapshot.time = time.checked_add(later).ok()?.to_string();
    #[expect(clippy::cast_possible_truncation, reason = "some seconds")]
    let passed = (REST_S * 1000.0) as i64;
    for node in &mut snapshot.gcs.node_states {
        if node.status == NodeStatus::Idle {
            node.idle_duration_ms += passed;
        }
    }
    Some(())
}

/// A hash of everything that the GCS reports, except for how long Ray nodes have been idle.
fn sum(state: &ClusterResourceState) -> u64 {
    let ClusterResourceState {
        node_states,
        pending_resource_requests: tasks,
        pending_gang_resource_requests: gangs,
        cluster_resource_constraints: constraints,
    } = state;
    let mut hasher = DefaultHasher::new();
    node_states.len().hash(&mut hasher);
    // The nodes' hashes are added up, so that their order does not matter: the GCS keeps nodes in a
    // hash table. With a GCS that reported them in another order each time, hardly a round was
    // spared, and a thousand clusters at rest took twice the CPU time.
    let nodes = node_states.iter().map(of_node).fold(0, u64::wrapping_add);
    nodes.hash(&mut hasher);
    // These lists are empty or short wherever nothing is to be done, so formatting them is cheap.
    format!("{tasks:?}{gangs:?}{constraints:?}").hash(&mut hasher);
    hasher.finish()
}

fn of_node(node: &NodeState) -> u64 {
    let NodeState {
        node_id,
        instance_id,
        ray_node_type_name,
        available_resources,
        total_resources,
        dynamic_labels,
        status,
        idle_duration_ms: _,
        labels,
    } = node;
    let mut hasher = DefaultHasher::new();
    (node_id, instance_id, ray_node_type_name).hash(&mut hasher);
    (dynamic_labels, labels, std::mem::discriminant(status)).hash(&mut hasher);
    for amounts in [available_resources, total_resources] {
        amounts.len().hash(&mut hasher);
        for (name, amount) in amounts {
            (name, amount.to_bits()).hash(&mut hasher);
        }
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::reconcile::unchanged::*;
    use crate::reconcile::{Done, Reply};
    use crate::snapshot::gcs::{ClusterResourceConstraint, ResourceRequestByCount};

    /// A head, and a worker that has been idle for so many seconds of its sixty.
    fn snapshot(idle_s: u32) -> Snapshot {
        let pod = |name: &str, kind: &str, group: &str| {
            json!({
                "metadata": { "name": name, "labels": {
                    "ray.io/cluster": "demo", "ray.io/node-type": kind, "ray.io/group": group
                } },
                "status": { "phase": "Running" }
            })
        };
        let node = |name: &str, group: &str, idle_s: u32| {
            json!({
                "nodeId": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==", "instanceId": name,
                "rayNodeTypeName": group, "status": "IDLE", "idleDurationMs": idle_s * 1000,
                "totalResources": { "CPU": 1 }, "availableResources": { "CPU": 1 }
            })
        };
        let container =
            json!({ "name": "ray", "resources": { "limits": { "cpu": "1", "memory": "1Gi" } } });
        let template = json!({ "spec": { "containers": [container] } });
        serde_json::from_value(json!({
            "apiVersion": "rayfit.dev/v1alpha1", "kind": "Snapshot", "time": "2026-01-14T12:00:00Z",
            "rayCluster": { "metadata": { "name": "demo" }, "spec": {
                "headGroupSpec": { "rayStartParams": {}, "template": template },
                "workerGroupSpecs": [{
                    "groupName": "cpu", "replicas": 1, "minReplicas": 0, "maxReplicas": 3,
                    "rayStartParams": {}, "template": template
                }]
            } },
            "pods": [pod("h", "head", "headgroup"), pod("w", "worker", "cpu")],
            "gcs": { "nodeStates": [node("h", "headgroup", 9999), node("w", "cpu", idle_s)] },
        }))
        .unwrap()
    }

    /// The check after rounds whose effects all succeeded.
    fn check_after_reports(snapshot: &Snapshot) -> Option<UnchangedCheck> {
        let settings = ReconcilerSettings::default();
        let mut memory = RoundMemory::default();
        let mut made = round(snapshot, &memory, &settings);
        for _ in 0..2 {
            let chains = std::mem::take(&mut made.chains).into_iter();
            let sent = chains.filter_map(|chain| {
                Some(Done {
                    about: chain.about.clone(),
                    effect: chain.next()?,
                    result: Ok(Reply::Ok),
                })
            });
            let done: Vec<Done> = sent.collect();
            memory.fold(&made, &done, &settings, made.at, || 0.5);
            let mut next = snapshot.clone();
            next.history = memory.history.clone();
            made = round(&next, &memory, &settings);
        }
        UnchangedCheck::of(&made, snapshot.clone(), &memory, &settings)
    }

    #[test]
    fn an_equal_state_is_unchanged_until_the_check_is_old() {
        let snapshot = snapshot(20);
        let unchanged = check_after_reports(&snapshot).unwrap();
        let at = snapshot.seconds().unwrap();
        let mut later = snapshot.gcs.clone();
        later.node_states[1].idle_duration_ms += 9000;
        assert!(unchanged.holds(&later, at + 9.0));
        later.node_states.reverse();
        assert!(unchanged.holds(&later, at + 9.0), "the same nodes");
        assert!(!unchanged.holds(&later, at + REST_S), "old");
        assert!(!unchanged.holds(&later, at - 1.0), "a clock that went back");
    }

    #[test]
    fn any_other_change_that_the_gcs_reports_is_noticed() {
        let snapshot = snapshot(20);
        let unchanged = check_after_reports(&snapshot).unwrap();
        let at = snapshot.seconds().unwrap();
        let changes: [fn(&mut ClusterResourceState); 5] = [
            |gcs| {
                let request = ResourceRequestByCount::default();
                gcs.pending_resource_requests.push(request);
            },
            |gcs| {
                let constraint = ClusterResourceConstraint::default();
                gcs.cluster_resource_constraints.push(constraint);
            },
            |gcs| gcs.node_states[1].status = NodeStatus::Running,
            |gcs| gcs.node_states[1].available_resources.clear(),
            |gcs| gcs.node_states.truncate(1),
        ];
        for change in changes {
            let mut gcs = snapshot.gcs.clone();
            assert!(unchanged.holds(&gcs, at));
            change(&mut gcs);
            assert!(!unchanged.holds(&gcs, at), "{gcs:?}");
        }
    }

    #[test]
    fn no_check_where_time_alone_leads_to_an_action() {
        assert!(check_after_reports(&snapshot(20)).is_some());
        assert!(
            check_after_reports(&snapshot(51)).is_none(),
            "it is to be drained in 9 s"
        );
        assert!(
            check_after_reports(&snapshot(70)).is_none(),
            "it is to be drained"
        );
    }
}
