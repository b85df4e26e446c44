//! Stabilisation: demand that the GCS still counts although a Ray node has taken it.
//!
//! The GCS polls the raylets one by one, about once a second. So when a Ray node joins or takes a
//! task, its reduced free resources and another raylet's outdated demand are reported together for
//! a moment, and nodes would be launched twice for the same demand. Launches wait for that moment,
//! unless there is more demand than before; the wait is short, and never follows directly on
//! another.

use crate::snapshot::Snapshot;

/// How old the GCS's data about a raylet can be, in seconds.
const STALE_S: f64 = 1.5;

/// What the last round observed, and the wait that it began.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Stabilisation {
    seen: Option<Sighting>,
    /// Since when launches wait, in seconds since 1970.
    since: f64,
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

impl Sighting {
    fn of(snapshot: &Snapshot) -> Self {
        let gcs = &snapshot.gcs;
        let tasks = gcs.pending_resource_requests.iter();
        let gangs = gcs.pending_gang_resource_requests.len();
        let nodes = gcs.node_states.iter().filter(|node| node.is_running());
        let mut seen = Self {
            demand: tasks.map(|request| request.count).sum::<i64>()
                + i64::try_from(gangs).unwrap_or(i64::MAX),
            nodes: 0,
            free: 0.0,
        };
        for node in nodes {
            let share = |(name, free): (&String, &f64)| {
                let total = node.total_resources.get(name).copied().unwrap_or(0.0);
                if total > 0.0 { free / total } else { 0.0 }
            };
            seen.nodes += 1;
            seen.free += node.available_resources.iter().map(share).sum::<f64>();
        }
        seen
    }
}

impl Stabilisation {
    /// The stabilisation after another look.
    #[must_use]
    pub(crate) fn after(self, snapshot: &Snapshot, now: f64) -> Self {
        let seen = Sighting::of(snapshot);
        let Some(before) = self.seen else {
            return Self {
                seen: Some(seen),
                ..self
            };
        };
        // The GCS reports nodes in any order, and a sum of shares depends on it in its last digits.
        let took = seen.nodes > before.nodes || seen.free < before.free - 1e-6;
        let rested = now - self.since >= 2.0 * STALE_S;
        if took && rested {
            return Self {
                seen: Some(seen),
                since: now,
                demand: before.demand,
            };
        }
        Self {
            seen: Some(seen),
            ..self
        }
    }

    /// Whether the demand that is seen now may be outdated, so that launches wait.
    pub(crate) fn is_unsettled(self, now: f64) -> bool {
        let known = self.seen.is_some_and(|seen| seen.demand <= self.demand);
        known && self.demand > 0 && now - self.since < STALE_S
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
        let stabilisation = Stabilisation::default().after(&snapshot(2, &[]), 100.0);
        assert!(
            !stabilisation.is_unsettled(100.0),
            "new demand is served at once"
        );
        let joined = stabilisation.after(&snapshot(2, &[0.0]), 101.0);
        assert!(joined.is_unsettled(101.0), "its task may be among the two");
        let more = joined.after(&snapshot(3, &[0.0]), 101.2);
        assert!(!more.is_unsettled(101.2), "there is new demand");
        assert!(!joined.is_unsettled(102.6), "by now it is known");
    }

    #[test]
    fn launches_do_not_wait_twice_in_a_row() {
        let mut stabilisation = Stabilisation::default().after(&snapshot(5, &[0.9]), 100.0);
        let mut waits = Vec::new();
        for round in 1..=24 {
            let now = 100.0 + 0.25 * f64::from(round);
            stabilisation =
                stabilisation.after(&snapshot(5, &[0.9 - 0.01 * f64::from(round)]), now);
            waits.push(stabilisation.is_unsettled(now));
        }
        let served = waits.iter().filter(|waits| !**waits).count();
        assert!(served >= waits.len() / 2, "{waits:?}");
    }
}
