//! The snapshot as it is once a plan was sent, before anything else happens: for replays,
//! simulations and the tests that a plan settles.

use serde_json::{Value, json};

use super::note::{PodNote, ResizeNote, STATUS_ANNOTATION};
use super::outcome::{GroupPlan, Plan, PodResize, RayletSync};
use crate::snapshot::Snapshot;

/// `snapshot` after everything in `plan` was asked for. KubeRay, Kubernetes and Ray have taken
/// note and done nothing yet.
#[must_use]
pub fn sent(snapshot: &Snapshot, plan: &Plan) -> Snapshot {
    let mut after = snapshot.clone();
    for group in &plan.groups {
        set_group(&mut after.ray_cluster, group);
    }
    let deleted = |pod: &Value| {
        let mut deletions = plan.groups.iter().flat_map(GroupPlan::deletions);
        deletions.any(|deletion| name(pod) == Some(deletion.pod.as_str()))
    };
    after.pods.retain(|pod| !deleted(pod));
    for sync in &plan.raylet_syncs {
        set_raylet(&mut after, sync);
    }
    for resize in &plan.resizes {
        if let Some(pod) = after
            .pods
            .iter_mut()
            .find(|pod| name(pod) == Some(resize.pod.as_str()))
        {
            keep_given(pod);
            set_size(pod, resize);
            forget_conditions(pod);
        }
    }
    for PodNote { pod, note } in &plan.notes {
        let noted = |other: &&mut Value| name(other) == Some(pod);
        if let Some(pod) = after.pods.iter_mut().find(noted) {
            annotate(pod, note);
        }
    }
    after.history = plan.remember.clone();
    after
}

fn name(pod: &Value) -> Option<&str> {
    pod.pointer("/metadata/name")?.as_str()
}

/// Of two groups of one name the last counts, as for Ray.
fn set_group(cluster: &mut Value, plan: &GroupPlan) {
    let groups = cluster
        .pointer_mut("/spec/workerGroupSpecs")
        .and_then(Value::as_array_mut);
    let named =
        |group: &&mut Value| group.get("groupName").and_then(Value::as_str) == Some(&plan.name);
    if let Some(group) = groups.and_then(|groups| groups.iter_mut().rfind(named)) {
        group["replicas"] = json!(plan.replicas);
        let deleted = plan.deletions().map(|deletion| deletion.pod.as_str());
        let pods: Vec<&str> = deleted.collect();
        if !pods.is_empty() {
            group["scaleStrategy"] = json!({ "workersToDelete": pods });
        }
    }
}

/// Kubernetes reports what it gave until it has given more.
fn keep_given(pod: &mut Value) {
    let Some(spec) = pod.pointer("/spec/containers/0").cloned() else {
        return;
    };
    if !pod["status"].is_object() {
        pod["status"] = json!({});
    }
    let Some(status) = pod.get_mut("status").and_then(Value::as_object_mut) else {
        return;
    };
    let statuses = status
        .entry("containerStatuses")
        .or_insert_with(|| json!([]));
    let Some(statuses) = statuses.as_array_mut() else {
        return;
    };
    let own = statuses
        .iter()
        .position(|status| status["name"] == spec["name"]);
    let at = own.unwrap_or_else(|| {
        statuses.push(json!({ "name": spec["name"] }));
        statuses.len() - 1
    });
    if let Some(status) = statuses
        .get_mut(at)
        .filter(|status| status.get("resources").is_none())
    {
        status["resources"] = spec["resources"].clone();
    }
}

/// Limits take the size; requests keep their distance.
fn set_size(pod: &mut Value, resize: &PodResize) {
    let wanted = [
        ("cpu", i128::from(resize.cpu_milli) * 1_000_000),
        ("memory", i128::from(resize.memory_bytes) * 1_000_000_000),
    ];
    let gaps = crate::snapshot::pod::Pod::parse(pod).map(|pod| super::pod_size::gap(&pod));
    let Some(resources) = pod.pointer_mut("/spec/containers/0/resources") else {
        return;
    };
    for (resource, nanos) in wanted {
        let gap = gaps.map_or(0, |gaps| {
            if resource == "cpu" {
                gaps.0.nanos()
            } else {
                gaps.1.nanos()
            }
        });
        let text = |nanos| crate::quantity::Quantity::from_nanos(nanos).to_string();
        let limited = resources.pointer(&format!("/limits/{resource}")).is_some();
        if limited {
            resources["limits"][resource] = json!(text(nanos));
        }
        resources["requests"][resource] = json!(text(if limited { nanos - gap } else { nanos }));
    }
}

fn annotate(pod: &mut Value, note: &ResizeNote) {
    if !pod["metadata"]["annotations"].is_object() {
        pod["metadata"]["annotations"] = json!({});
    }
    pod["metadata"]["annotations"][STATUS_ANNOTATION] = json!(note.text());
}

fn forget_conditions(pod: &mut Value) {
    if let Some(conditions) = pod
        .pointer_mut("/status/conditions")
        .and_then(Value::as_array_mut)
    {
        conditions.retain(|condition| {
            !condition["type"]
                .as_str()
                .is_some_and(|kind| kind.starts_with("PodResize"))
        });
    }
}

fn set_raylet(after: &mut Snapshot, sync: &RayletSync) {
    let same = |node: &&mut crate::snapshot::gcs::NodeState| node.node_id == sync.node_id;
    if let Some(node) = after.gcs.node_states.iter_mut().find(same) {
        #[expect(clippy::cast_precision_loss, reason = "Ray counts in f64 too")]
        let sizes = [
            ("CPU", sync.cpu_milli as f64 / 1000.0),
            ("memory", sync.memory_bytes as f64),
        ];
        for (resource, size) in sizes {
            let old = node
                .total_resources
                .insert(resource.to_owned(), size)
                .unwrap_or(0.0);
            let free = node
                .available_resources
                .entry(resource.to_owned())
                .or_insert(0.0);
            *free = (*free + size - old).clamp(0.0, size.max(0.0));
        }
    }
}
