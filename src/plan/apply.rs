//! The snapshot as it is when a plan has just been sent and nothing else has happened yet. Replays,
//! simulations and the tests that a plan settles use it.

use serde_json::{Value, json};

use crate::hash::HashSet;
use crate::plan::growth::pod_size::gap;
use crate::plan::outcome::plan::{GroupPlan, Plan, PodResize, RayletSync};
use crate::plan::outcome::resize_note::PodNote;
use crate::quantity::Quantity;
use crate::ray::initial_sizes::{ANNOTATION, InitialSizes};
use crate::snapshot::Snapshot;
use crate::snapshot::pod_object::{ContainerStatus, PodSpec, PodStatus, Resources};

/// Returns `snapshot` after everything in `plan` was asked for: KubeRay, Kubernetes and Ray have
/// taken note of it, and have not acted yet.
#[must_use]
pub fn sent(snapshot: &Snapshot, plan: &Plan) -> Snapshot {
    let mut after = snapshot.clone();
    let sizes = initial_sizes(snapshot, plan.groups.iter()).text();
    after.ray_cluster.edit(|cluster| {
        set_annotation(cluster, sizes);
        for group in &plan.groups {
            set_group(cluster, group);
        }
    });
    let deleted: HashSet<&str> = (plan.groups.iter().flat_map(GroupPlan::deletions))
        .map(|deletion| deletion.pod.as_str())
        .collect();
    after.pods.retain(|pod| !deleted.contains(pod.name));
    for sync in &plan.raylet_syncs {
        set_raylet(&mut after, sync);
    }
    for resize in &plan.resizes {
        let Some(gap) = after.pods.find(&resize.pod).map(|pod| gap(&pod)) else {
            continue;
        };
        if let Some((_, spec, status)) = after.pods.parts(&resize.pod) {
            keep_given(spec, status);
            set_size(spec, resize, gap);
            let conditions = &mut status.conditions;
            // The conditions describe the resize before this one.
            conditions.retain(|condition| !condition.kind.starts_with("PodResize"));
        }
    }
    for PodNote { pod, note } in &plan.notes {
        if let Some((annotations, ..)) = after.pods.parts(pod) {
            annotations.resize_status = Some(note.text());
        }
    }
    for hold in &plan.holds {
        if let Some((annotations, ..)) = after.pods.parts(&hold.pod) {
            annotations.holds_node = hold.holds.then(String::new);
        }
    }
    after.history = plan.remember.clone();
    after
}

/// The sizes of new pods, as the RayCluster is to say them once these groups are as planned.
pub(crate) fn initial_sizes<'a>(
    snapshot: &Snapshot,
    groups: impl Iterator<Item = &'a GroupPlan>,
) -> InitialSizes {
    let mut sizes = snapshot.ray_cluster.initial_sizes.clone();
    let now = snapshot.seconds().unwrap_or_default();
    for group in groups.filter(|group| group.launch_now > 0) {
        sizes.set(&group.name, group.initial_size, now);
    }
    sizes
}

/// Writes `replicas` and the pods to delete into a worker group. Of several groups of one name the
/// last one counts, as for Ray.
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

/// Writes the sizes of new pods. Groups that may grow have another annotation, so that there are some.
fn set_annotation(cluster: &mut Value, sizes: Option<String>) {
    let annotations = cluster.pointer_mut("/metadata/annotations");
    if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
        match sizes {
            Some(sizes) => annotations.insert(ANNOTATION.to_owned(), Value::String(sizes)),
            None => annotations.remove(ANNOTATION),
        };
    }
}

/// Keeps the resources that the container was given: Kubernetes reports them in the pod's status
/// until it has changed them, whatever the spec asks for in the meantime.
fn keep_given(spec: &PodSpec, status: &mut PodStatus) {
    let Some(container) = spec.containers.first() else {
        return;
    };
    let statuses = &mut status.container_statuses;
    let own = statuses.iter().position(|one| one.name == container.name);
    let at = own.unwrap_or_else(|| {
        statuses.push(ContainerStatus {
            name: container.name.clone(),
            ..ContainerStatus::default()
        });
        statuses.len() - 1
    });
    if let Some(status) = statuses.get_mut(at) {
        status.resources.get_or_insert(container.resources);
    }
}

/// Sets the limits to the new size. The requests keep their distance from the limits.
fn set_size(spec: &mut PodSpec, resize: &PodResize, gap: (Quantity, Quantity)) {
    let Some(container) = spec.containers.first_mut() else {
        return;
    };
    let Resources { requests, limits } = &mut container.resources;
    let cpu = Quantity::from_milli(resize.cpu_milli);
    let memory = Quantity::from_units(resize.memory_bytes);
    for (limit, request, size, gap) in [
        (&mut limits.cpu, &mut requests.cpu, cpu, gap.0),
        (&mut limits.memory, &mut requests.memory, memory, gap.1),
    ] {
        // Kubernetes refuses a resize that changes the quality-of-service class, which the gap
        // keeps.
        *request = Some(match limit {
            Some(limit) => {
                *limit = size;
                Quantity::from_nanos(size.nanos() - gap.nanos())
            }
            None => size,
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
            // Strategy `Ray` may plan a size below zero, and `clamp` panics where its bounds are
            // the wrong way round.
            *free = (*free + size - old).clamp(0.0, size.max(0.0));
        }
    }
}
