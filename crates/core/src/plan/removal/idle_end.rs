//! The end of a cluster that nobody uses (`spec.idleTerminationOptions`). (Ray, KubeRay provider,
//! `cloud_provider.py`, `_evaluate_idle_termination`.)

use crate::plan::outcome::plan::{ClusterEnd, ClusterEndPolicy, CountedUsers};
use crate::plan::strategy::Strategy;
use crate::snapshot::gcs::RayUsers;
use crate::snapshot::history::UnusedMemory;
use crate::snapshot::{Snapshot, leading_head};

/// The longest time for which the users of a cluster may be unknown, in seconds, before its unused
/// time counts from the beginning. It covers a controller that was busy, and not a cluster that was
/// suspended meanwhile or a clock that was set forward. (Ray's autoscaler goes by a clock that does
/// not jump, and ends with its head.)
const LONGEST_GAP_S: f64 = 60.0;

/// The greatest age of the time at which that was last known, in seconds: the memory changes no
/// more often, so that rounds of a cluster at rest can be spared.
const NOTED_S: f64 = 20.0;

/// The end of the cluster, if it is to end now, and the memory of since when nobody has used it.
pub(crate) fn decide(
    snapshot: &Snapshot,
    strategy: Strategy,
    now: f64,
) -> (Option<ClusterEnd>, Option<UnusedMemory>) {
    let spec = snapshot.ray_cluster.spec.as_ref();
    let Some(options) = spec.and_then(|spec| spec.idle_end.as_ref()) else {
        return (None, None);
    };
    let mut memory = snapshot.history.unused.clone().unwrap_or_default();
    // The cluster is observed now. What was known before counts only if it is of the same head, and not from too long
    // ago.
    let head = leading_head(&snapshot.pods, None);
    let head = head.filter(|pod| !pod.deleting && !pod.ended);
    let head = head.map(|pod| pod.uid());
    let age = memory.known_at.map_or(0.0, |at| now - at);
    let is_same_head = memory.known_at.is_none() || memory.head.as_deref() == head;
    if !is_same_head || !(0.0..=LONGEST_GAP_S).contains(&age) {
        memory.since = None;
        memory.known_at = None;
    }
    if memory.known_at.is_none_or(|at| now - at >= NOTED_S) {
        memory.known_at = Some(now);
    }
    memory.head = head.map(str::to_owned);
    let counted = CountedUsers::of(strategy);
    let is_used = |users: &RayUsers| {
        let counts_actors = counted == CountedUsers::DriversAndDetachedActors;
        users.drivers > 0 || counts_actors && users.detached_actors > 0
    };
    let users = snapshot.gcs.users.filter(|users| !is_used(users));
    // The end of a cluster in use loses work, so what is not known counts as use.
    let Some(users) = users else {
        memory.since = None;
        return (None, Some(memory));
    };
    // A driver that came and went since the last round has used the cluster.
    if users.last_job_end_ms > memory.last_job_end_ms {
        memory.last_job_end_ms = users.last_job_end_ms;
        memory.since = None;
    }
    let since = memory.since.unwrap_or(now);
    memory.since = Some(since);
    // A timeout that cannot be counted ends nothing.
    let timeout = options.timeout.as_f64().unwrap_or(f64::INFINITY);
    let policy = match options.policy.as_str() {
        "Suspend" => Some(ClusterEndPolicy::Suspend),
        "Delete" => Some(ClusterEndPolicy::Delete),
        _ => None,
    };
    let policy = policy.filter(|_| now - since >= timeout && !options.is_suspended);
    let end = policy.map(|policy| ClusterEnd {
        policy,
        unused_since: since,
        counted,
    });
    (end, Some(memory))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::snapshot::History;

    /// A moment of the cluster, which nobody uses, with what is remembered of those before.
    fn moment(memory: Option<UnusedMemory>, head: &str) -> Snapshot {
        let head = json!({"metadata": {"name": head, "uid": head,
            "labels": {"ray.io/cluster": "c", "ray.io/node-type": "head"}}});
        let mut snapshot: Snapshot = serde_json::from_value(json!({
            "apiVersion": "rayfit.dev/v1alpha1", "kind": "Snapshot",
            "time": "2026-01-14T12:00:00Z", "gcs": {}, "pods": [head], "rayCluster": {
                "metadata": {"name": "c", "namespace": "ray"},
                "spec": {"idleTerminationOptions": {"timeoutSeconds": 300}}}}))
        .unwrap();
        snapshot.gcs.users = Some(RayUsers::default());
        snapshot.history.unused = memory;
        snapshot
    }

    #[test]
    fn only_time_counts_in_which_it_was_known_that_nobody_used_the_cluster() {
        let round = |memory, head: &str, now| decide(&moment(memory, head), Strategy::Rayfit, now);
        // True if the cluster ends at a last moment, after one every ten seconds until the first.
        let ends = |quiet: f64, head: &str, last: f64| {
            let mut memory = None;
            let mut now = 0.0;
            while now <= quiet {
                let (end, next) = round(memory, "one", now);
                assert!(end.is_none(), "{now}");
                (memory, now) = (next, now + 10.0);
            }
            round(memory, head, last).0.is_some()
        };
        assert!(ends(290.0, "one", 300.0));
        assert!(
            !ends(290.0, "two", 300.0),
            "another head has run no driver yet"
        );
        assert!(ends(260.0, "one", 310.0), "a controller that was busy");
        assert!(!ends(290.0, "one", 400.0), "nobody knows what was between");
        assert!(!ends(20.0, "one", 10_000.0), "a clock that was set forward");
        assert!(!ends(290.0, "one", 0.0), "a clock that was set back");
    }

    #[test]
    fn what_is_remembered_seldom_changes() {
        let first = decide(&moment(None, "one"), Strategy::Rayfit, 0.0).1;
        let at = |now| decide(&moment(first.clone(), "one"), Strategy::Rayfit, now).1;
        assert_eq!(at(19.0), first);
        assert_ne!(at(20.0), first);
    }

    fn ends(
        options: &Value,
        users: Option<RayUsers>,
        unused_since: f64,
        strategy: Strategy,
    ) -> bool {
        let snapshot = Snapshot {
            ray_cluster: json!({"spec": {"idleTerminationOptions": options}}).into(),
            gcs: crate::snapshot::gcs::ClusterResourceState {
                users,
                ..Default::default()
            },
            history: History {
                unused: Some(UnusedMemory {
                    since: Some(unused_since),
                    last_job_end_ms: 10,
                    ..UnusedMemory::default()
                }),
                ..History::default()
            },
            ..serde_json::from_value(
                json!({"apiVersion": "rayfit.dev/v1alpha1", "kind": "Snapshot",
                "time": "2026-01-14T12:00:00Z", "rayCluster": {}, "gcs": {}}),
            )
            .unwrap()
        };
        decide(&snapshot, strategy, 1000.0).0.is_some()
    }

    #[test]
    fn a_cluster_ends_once_nobody_has_used_it_for_long_enough() {
        let nobody = RayUsers {
            last_job_end_ms: 10,
            ..RayUsers::default()
        };
        let after_60 = json!({"timeoutSeconds": 60});
        let rayfit = |users, since| ends(&after_60, users, since, Strategy::Rayfit);
        assert!(rayfit(Some(nobody), 940.0));
        assert!(!rayfit(Some(nobody), 941.0));
        assert!(!rayfit(None, 0.0), "nobody can say");
        let driver = RayUsers {
            drivers: 1,
            ..nobody
        };
        assert!(!rayfit(Some(driver), 0.0));
        let between = RayUsers {
            last_job_end_ms: 11,
            ..nobody
        };
        assert!(!rayfit(Some(between), 0.0), "a driver came and went");
        for options in [
            json!({}),
            json!({"timeoutSeconds": null}),
            json!({"timeoutSeconds": 1, "policy": "Sleep"}),
        ] {
            assert!(
                !ends(&options, Some(nobody), 0.0, Strategy::Rayfit),
                "{options}"
            );
        }
    }

    #[test]
    fn detached_actors_are_use_but_for_ray() {
        let serves = RayUsers {
            detached_actors: 2,
            last_job_end_ms: 10,
            drivers: 0,
        };
        let after_60 = json!({"timeoutSeconds": 60, "policy": "Delete"});
        assert!(!ends(&after_60, Some(serves), 0.0, Strategy::Rayfit));
        assert!(ends(&after_60, Some(serves), 0.0, Strategy::Ray));
    }
}
