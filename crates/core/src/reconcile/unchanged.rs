//! The unchanged check: whether a look shows the same state as the one before, so that no round has
//! to be made.
//!
//! Most clusters do nothing most of the time, and a cluster whose pods start only waits. After a round
//! that found nothing to do or to announce, and that would find nothing either if only time passed, the
//! next looks compare the GCS's state with that round's and make no plan. This is bounded: after
//! [`REST_S`] a round is made in any case.

use std::hash::{Hash as _, Hasher as _};

use crate::hash;
use crate::reconcile::decide::round;
use crate::reconcile::memory::RoundMemory;
use crate::reconcile::round::Round;
use crate::reconcile::settings::RoundSettings;
use crate::snapshot::Snapshot;
use crate::snapshot::gcs::{ClusterResourceState, NodeState, NodeStatus};

/// The most seconds for which no round is made while looks show the same state.
pub const REST_S: f64 = 10.0;

/// Memory in use that differs by less than these bytes is the same.
// It is never at rest where anything runs, and no pod is so small that it matters.
const IN_USE_STEP: i64 = 16 << 20;

/// The state of a Ray cluster in which there is nothing to do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UnchangedCheck {
    sum: u64,
    /// The time of the observation, in seconds since 1970.
    from: f64,
    /// The time until which it holds, in seconds since 1970.
    pub until: f64,
    /// [`Round::busy`] in that state.
    pub is_busy: bool,
}

impl UnchangedCheck {
    /// The check that follows from a round, if nothing is to be done until [`REST_S`] later: the
    /// round had nothing to do, and a round of the same state that much later has nothing to do and
    /// remembers nothing else either. `snapshot` is the round's, and `memory` is the memory after the round.
    pub fn of(
        round_made: &Round,
        snapshot: Snapshot,
        memory: &RoundMemory,
        settings: &RoundSettings,
    ) -> Option<Self> {
        let (check, _) = Self::lasting(REST_S, round_made, snapshot, memory, settings).ok()?;
        Some(check)
    }

    /// As [`UnchangedCheck::of`], for so many seconds; also returns the round that is made at their end, which has
    /// nothing to do, and its state. For callers that know what else may happen until then: in a live cluster,
    /// [`REST_S`] bounds what trust in a wrong check costs.
    ///
    /// # Errors
    ///
    /// The snapshot, if something is to be done.
    pub fn lasting(
        rest_s: f64,
        round_made: &Round,
        mut snapshot: Snapshot,
        memory: &RoundMemory,
        settings: &RoundSettings,
    ) -> Result<(Self, (Round, Snapshot)), Box<Snapshot>> {
        let has_nothing_to_do = |round: &Round| round.chains.is_empty() && round.skipped.is_empty();
        if !has_nothing_to_do(round_made) {
            return Err(Box::new(snapshot));
        }
        let check = Self {
            sum: sum(&snapshot.gcs),
            from: round_made.at,
            until: round_made.at + rest_s,
            is_busy: round_made.busy,
        };
        snapshot.history.clone_from(&memory.history);
        let later = || {
            let time: k8s_openapi::jiff::Timestamp = snapshot.time.parse().ok()?;
            let passed = k8s_openapi::jiff::SignedDuration::try_from_secs_f64(rest_s).ok()?;
            Some(time.checked_add(passed).ok()?.to_string())
        };
        let Some(time) = later() else {
            return Err(Box::new(snapshot));
        };
        let now = std::mem::replace(&mut snapshot.time, time);
        age(&mut snapshot, rest_s);
        let round = round(&snapshot, memory, settings);
        // The memory may be what makes a round of a moment between lead to an action later.
        let is_same = round.busy == check.is_busy && round.plan.remember == memory.history;
        if has_nothing_to_do(&round) && is_same {
            return Ok((check, (round, snapshot)));
        }
        snapshot.time = now;
        age(&mut snapshot, -rest_s);
        Err(Box::new(snapshot))
    }

    /// Returns whether the state is the same, and the check not too old. `now` is in seconds since 1970.
    pub fn holds(&self, state: &ClusterResourceState, now: f64) -> bool {
        self.is_fresh(now) && self.sum == sum(state)
    }

    /// Returns whether the check is not too old: for callers that know in another way that the state is the
    /// same.
    pub fn is_fresh(&self, now: f64) -> bool {
        (self.from..self.until).contains(&now)
    }
}

/// Compares two states, but for how long Ray nodes have been idle.
pub fn is_same(one: &ClusterResourceState, other: &ClusterResourceState) -> bool {
    sum(one) == sum(other)
}

/// Makes idle nodes idle for so many seconds longer.
fn age(snapshot: &mut Snapshot, seconds: f64) {
    #[expect(clippy::cast_possible_truncation, reason = "some seconds")]
    let passed = (seconds * 1000.0).round() as i64;
    for node in &mut snapshot.gcs.node_states {
        if node.status == NodeStatus::Idle {
            node.idle_duration_ms = node.idle_duration_ms.saturating_add(passed);
        }
    }
}

/// A hash of everything that the GCS reports, except for how long Ray nodes have been idle, and for
/// small changes of the memory in use.
fn sum(state: &ClusterResourceState) -> u64 {
    let ClusterResourceState {
        node_states,
        pending_resource_requests: tasks,
        pending_gang_resource_requests: gangs,
        cluster_resource_constraints: constraints,
        users,
    } = state;
    let mut hasher = hash::comparing();
    users.hash(&mut hasher);
    node_states.len().hash(&mut hasher);
    // The nodes' hashes are added up, so that their order does not matter: the GCS keeps nodes in a
    // hash table. With a GCS that reported them in another order each time, hardly a round was
    // spared, and a thousand clusters at rest took twice the CPU time.
    let nodes = node_states.iter().map(|node| {
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
            memory_in_use,
        } = node;
        let mut hasher = hash::comparing();
        let in_use = memory_in_use.map(|memory| memory.bytes.div_euclid(IN_USE_STEP));
        in_use.hash(&mut hasher);
        (node_id, instance_id, ray_node_type_name).hash(&mut hasher);
        (dynamic_labels, labels, std::mem::discriminant(status)).hash(&mut hasher);
        for amounts in [available_resources, total_resources] {
            amounts.len().hash(&mut hasher);
            for (name, amount) in amounts {
                (name, amount.to_bits()).hash(&mut hasher);
            }
        }
        hasher.finish()
    });
    nodes.fold(0, u64::wrapping_add).hash(&mut hasher);
    // These lists are empty or short wherever nothing is to be done, so formatting them is cheap.
    format!("{tasks:?}{gangs:?}{constraints:?}").hash(&mut hasher);
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
        let (made, memory) = reported(snapshot);
        let settings = RoundSettings::default();
        UnchangedCheck::of(&made, snapshot.clone(), &memory, &settings)
    }

    /// The round after these, and the memory before it.
    fn reported(snapshot: &Snapshot) -> (Round, RoundMemory) {
        let settings = RoundSettings::default();
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
        (made, memory)
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

    /// A pod that starts is waited for, which takes no rounds either, unless something is awaited since
    /// some moment.
    #[test]
    fn what_is_awaited_is_waited_for_without_rounds() {
        let mut snapshot = snapshot(20);
        snapshot.gcs.node_states.truncate(1);
        let unchanged = check_after_reports(&snapshot).unwrap();
        assert!(unchanged.is_busy);
        let at = snapshot.seconds().unwrap();
        assert!(unchanged.holds(&snapshot.gcs, at + 9.0));
        assert!(!check_after_reports(&self::snapshot(20)).unwrap().is_busy);
    }

    #[test]
    fn a_longer_rest_ends_with_the_round_that_is_made_then() {
        let snapshot = snapshot(5);
        let settings = RoundSettings::default();
        let (made, memory) = reported(&snapshot);
        let lasting =
            |seconds| UnchangedCheck::lasting(seconds, &made, snapshot.clone(), &memory, &settings);
        let (check, then) = lasting(40.0).unwrap();
        let at = snapshot.seconds().unwrap();
        assert!(check.is_fresh(at + 39.0) && !check.is_fresh(at + 40.0));
        assert_eq!(then.1.seconds(), Some(at + 40.0));
        assert_eq!(then.1.gcs.node_states[1].idle_duration_ms, 45_000);
        let kept = lasting(80.0).unwrap_err();
        assert_eq!(kept.gcs, snapshot.gcs, "it is drained before");
        assert_eq!(kept.seconds(), snapshot.seconds());
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
