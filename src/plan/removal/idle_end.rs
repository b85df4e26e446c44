//! The end of a cluster that nobody uses (`spec.idleTerminationOptions`). (Ray, KubeRay provider,
//! `cloud_provider.py`, `_evaluate_idle_termination`.)

use crate::plan::outcome::plan::{ClusterEnd, ClusterEndPolicy};
use crate::plan::strategy::Strategy;
use crate::snapshot::Snapshot;
use crate::snapshot::gcs::RayUsers;
use crate::snapshot::history::UnusedMemory;

/// Whether the cluster is to end now, and since when nobody has used it. Where it is not known who
/// does, somebody does.
pub(crate) fn decide(
    snapshot: &Snapshot,
    strategy: Strategy,
    now: f64,
) -> (Option<ClusterEnd>, Option<UnusedMemory>) {
    let spec = snapshot.ray_cluster.spec.as_ref();
    let Some(options) = spec.and_then(|spec| spec.idle_end.as_ref()) else {
        return (None, None);
    };
    let mut memory = snapshot.history.unused.unwrap_or_default();
    let users = snapshot.gcs.users.filter(|users| !is_used(users, strategy));
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
    });
    (end, Some(memory))
}

/// Ray counts drivers only, so a cluster that serves from detached actors ends under its users.
fn is_used(users: &RayUsers, strategy: Strategy) -> bool {
    users.drivers > 0 || strategy.is_rayfit() && users.detached_actors > 0
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::snapshot::History;

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
