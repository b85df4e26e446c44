//! The snapshot as it is when a plan has just been sent and nothing else has happened yet.
#![allow(clippy::unwrap_used, clippy::cast_precision_loss)]

use std::collections::BTreeSet;

use rayfit_core::plan::{GroupPlan, Plan, PodResize, STATUS_ANNOTATION};
use rayfit_core::quantity::Quantity;
use rayfit_core::ray::initial_sizes::ANNOTATION;
use rayfit_core::snapshot::Snapshot;
use serde_json::{Value, json};

/// Returns `snapshot` after everything in `plan` was asked for: KubeRay, Kubernetes and Ray have
/// taken note of it, and have not acted yet.
pub(super) fn sent(snapshot: &Snapshot, plan: &Plan) -> Snapshot {
    let deleted: BTreeSet<&str> = (plan.groups.iter().flat_map(GroupPlan::deletions))
        .map(|deletion| deletion.pod.as_str())
        .collect();
    let mut after = serde_json::to_value(snapshot).unwrap();
    for pod in after["pods"].as_array_mut().unwrap() {
        let name = pod["metadata"]["name"].as_str().unwrap().to_owned();
        for resize in plan.resizes.iter().filter(|resize| resize.pod == name) {
            set_size(pod, resize);
        }
        for (_, note) in plan.notes.iter().filter(|(pod, _)| *pod == name) {
            pod["metadata"]["annotations"][STATUS_ANNOTATION] = note.text().into();
        }
        for hold in plan.holds.iter().filter(|hold| hold.pod == name) {
            let mark = hold.holds.then_some("");
            pod["metadata"]["annotations"]["rayfit.dev/holds-node"] = mark.into();
        }
    }
    let mut after: Snapshot = serde_json::from_value(after).unwrap();
    for sync in &plan.raylet_syncs {
        let mut nodes = after.gcs.node_states.iter_mut();
        let Some(node) = nodes.find(|node| node.node_id == sync.node_id) else {
            continue;
        };
        for (resource, size) in [
            ("CPU", sync.cpu_milli as f64 / 1000.0),
            ("memory", sync.memory_bytes as f64),
        ] {
            let old = node.total_resources.insert(resource.to_owned(), size);
            let free = node.available_resources.entry(resource.to_owned());
            let free = free.or_default();
            // Strategy `Ray` may plan a size below zero, and `clamp` panics where its bounds are
            // the wrong way round.
            *free = (*free + size - old.unwrap_or(0.0)).clamp(0.0, size.max(0.0));
        }
    }
    after.pods.retain(|pod| !deleted.contains(pod.name));
    let mut sizes = snapshot.ray_cluster.initial_sizes.clone();
    for group in plan.groups.iter().filter(|group| group.launch_now > 0) {
        sizes.set(
            &group.name,
            group.initial_size,
            snapshot.seconds().unwrap_or_default(),
        );
    }
    after.ray_cluster.edit(|cluster| {
        // Groups that may grow have another annotation, so that there are some.
        if let Some(annotations) = cluster["metadata"]["annotations"].as_object_mut() {
            match sizes.text() {
                Some(sizes) => annotations.insert(ANNOTATION.to_owned(), sizes.into()),
                None => annotations.remove(ANNOTATION),
            };
        }
        for group in &plan.groups {
            // Of several groups of one name the last one counts, as for Ray.
            let groups = cluster["spec"]["workerGroupSpecs"].as_array_mut();
            let mut groups = groups.into_iter().flatten();
            let Some(spec) = groups.rfind(|spec| spec["groupName"] == *group.name) else {
                continue;
            };
            spec["replicas"] = json!(group.replicas);
            let deletions = group.deletions().map(|deletion| &deletion.pod);
            let deletions: Vec<&String> = deletions.collect();
            if !deletions.is_empty() {
                spec["scaleStrategy"] = json!({ "workersToDelete": deletions });
            }
        }
    });
    after.history = plan.remember.clone();
    after
}

/// Sets the limits to the new size. The requests keep their distance from the limits: Kubernetes refuses a resize
/// that changes the quality-of-service class.
fn set_size(pod: &mut Value, resize: &PodResize) {
    let container = pod["spec"]["containers"][0].clone();
    // Kubernetes reports the resources that it gave the container in the pod's status until it has changed them,
    // whatever the spec asks for in the meantime; and conditions that describe the resize before this one go.
    if let Some(conditions) = pod["status"]["conditions"].as_array_mut() {
        conditions.retain(|one| !one["type"].as_str().unwrap().starts_with("PodResize"));
    }
    if !pod["status"]["containerStatuses"].is_array() {
        pod["status"]["containerStatuses"] = json!([]);
    }
    let statuses = pod["status"]["containerStatuses"].as_array_mut().unwrap();
    let at = statuses
        .iter()
        .position(|one| one["name"] == container["name"]);
    let at = at.unwrap_or_else(|| {
        statuses.push(json!({ "name": container["name"] }));
        statuses.len() - 1
    });
    let given = &mut statuses[at]["resources"];
    if !given.is_object() {
        *given = container["resources"].clone();
    }
    let given = given.clone();
    let amount = |resources: &Value, part: &str, name: &str| {
        let amount = resources.get(part)?.get(name)?;
        Quantity::from_json(amount).ok()
    };
    for (name, size) in [
        ("cpu", Quantity::from_milli(resize.cpu_milli)),
        ("memory", Quantity::from_units(resize.memory_bytes)),
    ] {
        let limit =
            amount(&given, "limits", name).or(amount(&container["resources"], "limits", name));
        let request =
            amount(&given, "requests", name).or(amount(&container["resources"], "requests", name));
        let gap = limit.zip(request).map_or(0, |(limit, request)| {
            (limit.nanos() - request.nanos()).max(0)
        });
        let resources = &mut pod["spec"]["containers"][0]["resources"];
        let mut request = size;
        if amount(resources, "limits", name).is_some() {
            resources["limits"][name] = size.to_string().into();
            request = Quantity::from_nanos(size.nanos() - gap);
        }
        resources["requests"][name] = request.to_string().into();
    }
}
