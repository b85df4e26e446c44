//! Launches that failed, as `ray status` shows them, and pods in which Ray does not run yet.

use std::collections::HashSet;

use crate::plan::{Plan, is_overdue};
use crate::reconcile::effects::effect::{EffectClass, EffectTarget};
use crate::reconcile::memory::backoff::Waits;
use crate::seconds::second_of;
use crate::snapshot::Snapshot;
use crate::snapshot::autoscaling_state::FailedRequest;
use crate::snapshot::history::{Instance, InstanceStatus};
use crate::snapshot::pod::{Pod, PodRole};

/// Seconds for which a failure is still shown when it is over.
const SHOWN_S: f64 = 600.0;

/// One failed request for each worker group whose launches were refused, or did not become Ray
/// nodes in time.
pub(crate) fn requests(snapshot: &Snapshot, plan: &Plan, waits: &Waits) -> Vec<FailedRequest> {
    let now = snapshot.seconds().unwrap_or_default();
    let failed = |(group, at): (&String, &f64)| {
        // The pods and launches of the group that are overdue.
        let is_late = |since: Option<f64>| since.is_some_and(|since| is_overdue(since, now));
        let pods: Vec<Pod<'_>> = pending_pods(snapshot)
            .filter(|pod| pod.group == group && is_late(pod.created()))
            .collect();
        let launches = plan.remember.instances.iter().filter(|launch| {
            let is_asked = launch.pod.is_none() && launch.status == InstanceStatus::Requested;
            launch.group == *group && is_asked && is_late(launch.since)
        });
        let launches: Vec<&Instance> = launches.collect();
        if pods.is_empty() && launches.is_empty() && now - at >= SHOWN_S {
            return None;
        }
        // The group's own refusal first: it names what to change, where that of the whole patch may
        // be about another group.
        let refused = [EffectTarget::Group(group.clone()), EffectTarget::Cluster];
        let refused = refused
            .iter()
            .find_map(|about| waits.of(about, EffectClass::Replicas, now));
        let reason = match (refused, pods.first()) {
            (Some(wait), _) => wait.why.clone(),
            (None, Some(pod)) => format!("pod {}: {}", pod.name, waits_for(pod)),
            (None, None) if launches.is_empty() => {
                "its pods were refused, or Ray did not start in them in time".to_owned()
            }
            (None, None) => {
                "KubeRay has not made its pods: look at the Events of the RayCluster".to_owned()
            }
        };
        let counts = launches.iter().map(|launch| launch.count);
        let count = counts.fold(pods.len() as u64, u64::saturating_add).max(1);
        let since = pods.iter().filter_map(Pod::created);
        let since = since.chain(launches.iter().filter_map(|launch| launch.since));
        Some(FailedRequest {
            group: group.clone(),
            count: i32::try_from(count).unwrap_or(i32::MAX),
            reason,
            started: second_of(since.reduce(f64::min).unwrap_or(*at)),
            failed: second_of(*at),
        })
    };
    plan.remember
        .unavailable
        .iter()
        .filter_map(failed)
        .collect()
}

/// Worker pods in which Ray does not run yet.
pub(crate) fn pending_pods(snapshot: &Snapshot) -> impl Iterator<Item = Pod<'_>> {
    let nodes = &snapshot.gcs.node_states;
    let ray_pods: HashSet<&str> = nodes.iter().map(|node| node.instance_id.as_str()).collect();
    let pending = move |pod: &Pod<'_>| {
        pod.role == PodRole::Worker && !pod.deleting && !pod.ended && !ray_pods.contains(pod.name)
    };
    snapshot.pods.iter().filter(pending)
}

/// The reason why a pod waits: for a Kubernetes node, an image, or the start of Ray.
pub(crate) fn waits_for(pod: &Pod<'_>) -> String {
    let scheduled = pod.condition("PodScheduled");
    if let Some(condition) = scheduled.filter(|condition| condition.status == "False") {
        let message = condition.message.as_deref().unwrap_or("no node holds it");
        return format!("waits for a node: {message}");
    }
    let mut statuses = pod.container_statuses().iter();
    let waiting = statuses.find_map(|status| status.state.waiting.as_ref()?.reason.as_deref());
    match waiting {
        Some(reason) => format!("its container waits: {reason}"),
        None => "waits for Ray to start in it".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::plan;
    use crate::reconcile::effects::effect::{ClusterPatch, Effect, GroupChange};
    use crate::reconcile::effects::failure::{ApiStatus, Failure};
    use crate::reconcile::ray_state::failed_launches::*;
    use crate::reconcile::{Done, Round, RoundMemory, RoundSettings};

    /// A group with one replica, asked for at noon; with its pod, or before that was made.
    fn snapshot(time: &str, has_pod: bool) -> Snapshot {
        let container =
            json!({"name": "ray", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}});
        let pod = |name: &str, kind: &str, group: &str| {
            json!({
                "metadata": {"name": name, "creationTimestamp": "2026-01-14T12:00:00Z", "labels": {
                    "ray.io/cluster": "demo", "ray.io/node-type": kind, "ray.io/group": group}},
                "spec": {"containers": [container]},
                "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled",
                    "status": "False", "message": "0/3 nodes are available"}]},
            })
        };
        let mut pods = vec![pod("head", "head", "headgroup")];
        pods.extend(has_pod.then(|| pod("w", "worker", "cpu")));
        serde_json::from_value(json!({
            "apiVersion": "rayfit.dev/v1alpha1", "kind": "Snapshot", "time": time,
            "rayCluster": {"metadata": {"name": "demo"}, "spec": {
                "headGroupSpec": {"rayStartParams": {"num-cpus": "0"}, "template": {"spec": {"containers": [container]}}},
                "workerGroupSpecs": [{"groupName": "cpu", "replicas": 1, "minReplicas": 1, "maxReplicas": 3,
                    "rayStartParams": {}, "template": {"spec": {"containers": [container]}}}]}},
            "pods": pods,
            "gcs": {"nodeStates": [{"nodeId": "", "instanceId": "head", "rayNodeTypeName": "headgroup",
                "status": "RUNNING", "totalResources": {"node:__internal_head__": 1.0}}]},
            "history": {"instances": if has_pod { json!([]) } else { json!([
                {"group": "cpu", "status": "Requested", "since": 1_768_392_000.0}]) }},
        }))
        .unwrap()
    }

    fn shown(snapshot: &Snapshot) -> Vec<FailedRequest> {
        let (plan, _) = plan::decide(snapshot, &plan::PlanSettings::default());
        requests(snapshot, &plan, &Waits::default())
    }

    #[test]
    fn what_does_not_come_in_time_has_failed() {
        for (has_pod, why) in [
            (true, "pod w: waits for a node: 0/3 nodes are available"),
            (
                false,
                "KubeRay has not made its pods: look at the Events of the RayCluster",
            ),
        ] {
            assert_eq!(shown(&snapshot("2026-01-14T12:09:59Z", has_pod)), []);
            for later in ["2026-01-14T12:10:01Z", "2026-01-14T13:00:00Z"] {
                let failed = FailedRequest {
                    group: "cpu".to_owned(),
                    count: 1,
                    reason: why.to_owned(),
                    started: 1_768_392_000,
                    failed: 1_768_392_600,
                };
                assert_eq!(shown(&snapshot(later, has_pod)), [failed]);
            }
        }
    }

    #[test]
    fn refused_launches_have_failed_with_the_servers_reason() {
        let before = snapshot("2026-01-14T12:00:00Z", false);
        let change = GroupChange {
            group: "cpu".to_owned(),
            now: 0,
            then: 1,
            launches: 1,
            deletions: Vec::new(),
            line: String::new(),
        };
        let effect = Effect::PatchCluster(ClusterPatch {
            operations: json_patch::Patch(Vec::new()),
            changes: vec![change],
        });
        let refused = ApiStatus {
            code: 403,
            reason: "Forbidden".to_owned(),
            message: "exceeded quota: pods".to_owned(),
            ..ApiStatus::default()
        };
        let done = Done {
            about: EffectTarget::Cluster,
            effect,
            result: Err(Failure::Api(refused)),
        };
        let (mut memory, now) = (RoundMemory::default(), before.seconds().unwrap());
        memory.fold(
            &Round::default(),
            &[done],
            &RoundSettings::default(),
            now,
            || 0.5,
        );
        let mut next = snapshot("2026-01-14T12:00:01Z", false);
        next.history = memory.history.clone();
        let (plan, _) = plan::decide(&next, &plan::PlanSettings::default());
        let failed = requests(&next, &plan, &memory.waits);
        assert_eq!(failed.len(), 1, "{failed:?}");
        assert!(failed[0].reason.contains("exceeded quota"), "{failed:?}");
    }
}
