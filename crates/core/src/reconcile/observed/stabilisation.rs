//! Stabilisation: demand that the GCS still counts although a Ray node has taken it.
//!
//! The GCS polls the raylets one by one, about once a second. So when a Ray node joins or takes a
//! task, its reduced free resources and another raylet's outdated demand are reported together for
//! a moment, and nodes would be launched twice for the same demand. Launches wait for that moment,
//! unless there is more demand than before; the wait is short, and follows directly on another only
//! where Ray nodes join one after the other, as they do that were launched one after the other.

use crate::snapshot::Snapshot;

/// The greatest age of the GCS's data about a raylet, in seconds.
// It polls the raylets one by one, about once a second.
const STALE_S: f64 = 1.5;

/// The most seconds in a row for which launches wait.
const LONGEST_S: f64 = 15.0;

/// The last round's sighting, and the wait that it began.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Stabilisation {
    sighting: Option<Sighting>,
    /// The time since which launches wait, in seconds since 1970.
    since: f64,
    /// The beginning of the first of the waits that followed directly on each other, in seconds
    /// since 1970.
    began: f64,
    /// The demand that was known when the wait began.
    demand: i64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Sighting {
    /// The number of tasks and placement groups that wait.
    demand: i64,
    /// The number of running Ray nodes.
    nodes: usize,
    /// The sum of their free resources, each as a share of the node's total. Only its decrease has
    /// a meaning.
    free: f64,
}

impl Stabilisation {
    /// The stabilisation after another look.
    #[must_use]
    pub(crate) fn next(self, snapshot: &Snapshot, now: f64) -> Self {
        let gcs = &snapshot.gcs;
        let tasks = gcs.pending_resource_requests.iter();
        let gangs = i64::try_from(gcs.pending_gang_resource_requests.len()).unwrap_or(i64::MAX);
        let mut sighting = Sighting {
            // A GCS may say any count.
            demand: tasks
                .map(|request| request.count)
                .fold(gangs, i64::saturating_add),
            nodes: 0,
            free: 0.0,
        };
        for node in gcs.node_states.iter().filter(|node| node.is_running()) {
            let share = |(name, free): (&String, &f64)| {
                let total = node.total_resources.get(name).copied().unwrap_or(0.0);
                if total > 0.0 { free / total } else { 0.0 }
            };
            sighting.nodes += 1;
            sighting.free += node.available_resources.iter().map(share).sum::<f64>();
        }
        let next = Self {
            sighting: Some(sighting),
            ..self
        };
        let Some(previous) = self.sighting else {
            return next;
        };
        // The GCS reports nodes in any order, and a sum of shares depends on it in its last digits.
        let joined = sighting.nodes > previous.nodes;
        let took = joined || sighting.free < previous.free - 1e-6;
        let rested = now - self.since >= 2.0 * STALE_S;
        if took && (rested || joined && now - self.began < LONGEST_S) {
            return Self {
                since: now,
                began: if rested { now } else { self.began },
                demand: previous.demand,
                ..next
            };
        }
        next
    }

    /// Returns whether the demand that is seen now may be outdated, so that launches wait.
    pub(crate) fn is_unsettled(self, now: f64) -> bool {
        let is_covered = self
            .sighting
            .is_some_and(|sighting| sighting.demand <= self.demand);
        is_covered && self.demand > 0 && now - self.since < STALE_S
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::reconcile::observed::stabilisation::*;

    fn snapshot(demand: i64, free: &[f64]) -> Snapshot {
        let node = |free: &f64| json!({"nodeId": "", "status": "RUNNING", "totalResources": {"CPU": 1}, "availableResources": {"CPU": free}});
        serde_json::from_value(json!({
            "apiVersion": "rayfit.dev/v1alpha1", "kind": "Snapshot", "time": "2026-01-14T12:00:00Z",
            "rayCluster": {},
            "gcs": {
                "nodeStates": free.iter().map(node).collect::<Vec<_>>(),
                "pendingResourceRequests": [{"request": {"resourcesBundle": {"CPU": 1}}, "count": demand}],
            },
        }))
        .unwrap()
    }

    #[test]
    fn demand_that_a_node_just_took_is_not_launched_for_again() {
        let stabilisation = Stabilisation::default().next(&snapshot(2, &[]), 100.0);
        assert!(
            !stabilisation.is_unsettled(100.0),
            "new demand is served at once"
        );
        let joined = stabilisation.next(&snapshot(2, &[0.0]), 101.0);
        assert!(joined.is_unsettled(101.0), "its task may be among the two");
        let more = joined.next(&snapshot(3, &[0.0]), 101.2);
        assert!(!more.is_unsettled(101.2), "there is new demand");
        assert!(!joined.is_unsettled(102.6), "by now it is known");
    }

    #[test]
    fn more_demand_than_there_are_numbers_is_only_much() {
        let mut much = snapshot(i64::MAX, &[]);
        let again = much.gcs.pending_resource_requests.clone();
        much.gcs.pending_resource_requests.extend(again);
        let stabilisation = Stabilisation::default().next(&much, 100.0);
        assert!(!stabilisation.is_unsettled(100.0));
    }

    #[test]
    fn launches_wait_again_where_nodes_join_one_after_the_other() {
        let mut nodes = vec![0.0];
        let mut stabilisation = Stabilisation::default().next(&snapshot(90, &nodes), 100.0);
        let mut waits = Vec::new();
        for round in 1..=20 {
            let now = 100.0 + f64::from(round);
            nodes.push(0.0);
            stabilisation = stabilisation.next(&snapshot(90, &nodes), now);
            waits.push(stabilisation.is_unsettled(now));
        }
        assert!(waits[..15].iter().all(|waits| *waits), "{waits:?}");
        assert!(!waits.iter().all(|waits| *waits), "not for ever: {waits:?}");
    }

    #[test]
    fn launches_do_not_wait_twice_in_a_row() {
        let mut stabilisation = Stabilisation::default().next(&snapshot(5, &[0.9]), 100.0);
        let mut waits = Vec::new();
        for round in 1..=24 {
            let now = 100.0 + 0.25 * f64::from(round);
            stabilisation = stabilisation.next(&snapshot(5, &[0.9 - 0.01 * f64::from(round)]), now);
            waits.push(stabilisation.is_unsettled(now));
        }
        let served = waits.iter().filter(|waits| !**waits).count();
        assert!(served >= waits.len() / 2, "{waits:?}");
    }
}
