//! The end of a cluster that nobody uses.
//!
//! KubeRay suspends it when its spec says so. Before it is deleted it gets a finalizer, by which
//! KubeRay cleans up, and only the object that was seen with it is deleted: a process that is killed
//! in between leaves the finalizer, and the next one goes on from there. (Ray, `cloud_provider.py`,
//! `_suspend_idle_ray_cluster` and `_delete_idle_ray_cluster`.)

use serde_json::{Value, json};

use crate::plan::ClusterEndPolicy;
use crate::reconcile::effects::effect::{ClusterPatch, Effect};
use crate::reconcile::effects::replicas::tested;
use crate::snapshot::Snapshot;

/// The finalizer that is put on a RayCluster before it is deleted because nobody uses it, so that
/// KubeRay can clean up. (Ray, `cloud_provider.py`, `IDLE_TERMINATION_CLEANUP_FINALIZER`.)
pub(crate) const CLEANUP_FINALIZER: &str = "ray.io/idle-termination-cleanup-finalizer";

/// The next call that ends the cluster; `None` if its object says too little to be sure that it is
/// this one.
pub(crate) fn effect(snapshot: &Snapshot, policy: ClusterEndPolicy) -> Option<Effect> {
    let cluster = &snapshot.ray_cluster;
    let version = cluster.resource_version.as_deref()?;
    let patch = |operation: Value| {
        let operations = Value::Array(vec![tested(cluster.object())?, operation]);
        Some(Effect::PatchCluster(ClusterPatch {
            operations: serde_json::from_value(operations).ok()?,
            changes: Vec::new(),
        }))
    };
    let finalizers = cluster.object().pointer("/metadata/finalizers");
    match (policy, finalizers.and_then(Value::as_array)) {
        (ClusterEndPolicy::Suspend, _) => {
            patch(json!({"op": "add", "path": "/spec/idleSuspend", "value": true}))
        }
        // JSON Patch appends to a list, but does not create it.
        (ClusterEndPolicy::Delete, None) => patch(json!({
            "op": "add", "path": "/metadata/finalizers", "value": [CLEANUP_FINALIZER],
        })),
        (ClusterEndPolicy::Delete, Some(list)) if !list.contains(&json!(CLEANUP_FINALIZER)) => {
            patch(json!({
                "op": "add", "path": "/metadata/finalizers/-", "value": CLEANUP_FINALIZER,
            }))
        }
        (ClusterEndPolicy::Delete, Some(_)) => {
            let uid = cluster.object().pointer("/metadata/uid")?.as_str()?;
            Some(Effect::DeleteCluster {
                uid: uid.to_owned(),
                resource_version: version.to_owned(),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(metadata: &Value) -> Snapshot {
        Snapshot {
            ray_cluster: json!({"metadata": metadata, "spec": {}}).into(),
            ..serde_json::from_value(
                json!({"apiVersion": "rayfit.dev/v1alpha1", "kind": "Snapshot",
                "time": "2026-01-14T12:00:00Z", "rayCluster": {}, "gcs": {}}),
            )
            .unwrap()
        }
    }

    /// The object after the patch, on which alone the patch succeeds.
    fn patched(metadata: &Value, policy: ClusterEndPolicy) -> Value {
        let Some(Effect::PatchCluster(patch)) = effect(&snapshot(metadata), policy) else {
            panic!("no patch of {metadata}");
        };
        let mut newer = json!({"metadata": metadata, "spec": {}});
        newer["metadata"]["resourceVersion"] = json!("8");
        assert!(json_patch::patch(&mut newer, &patch.operations).is_err());
        let mut object = json!({"metadata": metadata, "spec": {}});
        json_patch::patch(&mut object, &patch.operations).unwrap();
        object
    }

    #[test]
    fn a_suspended_cluster_says_so_in_its_spec() {
        let seen = json!({"uid": "u", "resourceVersion": "7"});
        let object = patched(&seen, ClusterEndPolicy::Suspend);
        assert_eq!(object["spec"], json!({"idleSuspend": true}));
    }

    #[test]
    fn the_finalizer_comes_first_beside_those_that_are_there() {
        for before in [json!(null), json!([]), json!(["example.org/mine"])] {
            let mut seen = json!({"uid": "u", "resourceVersion": "7", "finalizers": before});
            let mut after = before.as_array().cloned().unwrap_or_default();
            after.push(json!(CLEANUP_FINALIZER));
            let object = patched(&seen, ClusterEndPolicy::Delete);
            assert_eq!(object["metadata"]["finalizers"], json!(after));

            seen["finalizers"] = json!(after);
            let deletion = Effect::DeleteCluster {
                uid: "u".to_owned(),
                resource_version: "7".to_owned(),
            };
            let next = effect(&snapshot(&seen), ClusterEndPolicy::Delete);
            assert_eq!(next, Some(deletion));
        }
    }

    #[test]
    fn an_object_without_identity_is_left_alone() {
        for seen in [
            json!({"uid": "u", "finalizers": [CLEANUP_FINALIZER]}),
            json!({"resourceVersion": "7", "finalizers": [CLEANUP_FINALIZER]}),
        ] {
            let next = effect(&snapshot(&seen), ClusterEndPolicy::Delete);
            assert_eq!(next, None, "{seen}");
        }
    }
}
