//! What decisions need of the objects that are watched. Environments, volumes, commands of Ray's
//! containers and managed fields are most of an object, may hold secrets, and are left out. Pure.

use serde_json::{Map, Value, json};

pub use crate::snapshot::allowed::ray_cluster;

/// Of a Pod: who it is, what its containers may use and do use, how it is.
pub fn pod(object: &Value) -> Value {
    let (spec, status) = (&object["spec"], &object["status"]);
    let mut kept = json!({
        "metadata": metadata(&object["metadata"]),
        "spec": pick(spec, &["nodeName", "overhead", "priority", "priorityClassName"]),
        "status": pick(status, &["phase", "reason", "podIP", "qosClass", "observedGeneration", "startTime"]),
    });
    kept["spec"]["containers"] = each(&spec["containers"], |container| {
        let mut kept = pick(container, &["name", "image", "resources", "resizePolicy"]);
        if container["name"] == "autoscaler" {
            // Whether it is Ray's autoscaler is told by what it runs.
            kept.extend(pick(container, &["command", "args"]));
        } else if let Some(ports) = container.get("ports") {
            kept.insert("ports".to_owned(), ports.clone());
        }
        kept
    });
    if spec["initContainers"].is_array() {
        kept["spec"]["initContainers"] = each(&spec["initContainers"], |container| {
            pick(container, &["name", "restartPolicy", "resources"])
        });
    }
    kept["status"]["conditions"] = each(&status["conditions"], |condition| {
        pick(
            condition,
            &[
                "type",
                "status",
                "reason",
                "message",
                "lastTransitionTime",
                "observedGeneration",
            ],
        )
    });
    kept["status"]["containerStatuses"] = each(&status["containerStatuses"], |status| {
        let keys = [
            "name",
            "image",
            "ready",
            "started",
            "restartCount",
            "state",
            "resources",
            "allocatedResources",
        ];
        pick(status, &keys)
    });
    kept
}

/// Of a Node: what it has to give.
pub fn node(object: &Value) -> Value {
    json!({
        "metadata": pick(&object["metadata"], &["name", "uid", "resourceVersion"]),
        "spec": pick(&object["spec"], &["unschedulable", "taints"]),
        "status": pick(&object["status"], &["allocatable"]),
    })
}

fn metadata(metadata: &Value) -> Map<String, Value> {
    let keys = [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "finalizers",
        "ownerReferences",
    ];
    let mut kept = pick(metadata, &keys);
    for key in ["labels", "annotations"] {
        if let Some(map) = metadata[key].as_object() {
            let ours = map
                .iter()
                .filter(|(name, _)| name.starts_with("ray.io/") || name.starts_with("rayfit.dev/"));
            kept.insert(
                key.to_owned(),
                ours.map(|(name, value)| (name.clone(), value.clone()))
                    .collect(),
            );
        }
    }
    kept
}

fn pick(object: &Value, keys: &[&str]) -> Map<String, Value> {
    let kept = keys
        .iter()
        .filter_map(|key| Some(((*key).to_owned(), object.get(*key)?.clone())));
    kept.collect()
}

fn each(list: &Value, keep: impl Fn(&Value) -> Map<String, Value>) -> Value {
    let list = list.as_array().into_iter().flatten();
    list.filter(|object| object.is_object())
        .map(|object| Value::Object(keep(object)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container() -> Value {
        json!({
            "name": "ray-worker", "image": "rayproject/ray:2.60.0",
            "command": ["/bin/bash"], "args": ["ray start"],
            "env": [{ "name": "TOKEN", "value": "s3cret" }],
            "envFrom": [{ "secretRef": { "name": "s3cret" } }],
            "volumeMounts": [{ "name": "v", "mountPath": "/s3cret" }],
            "livenessProbe": { "exec": { "command": ["s3cret"] } },
            "resources": { "limits": { "cpu": "1" } },
            "resizePolicy": [{ "resourceName": "cpu", "restartPolicy": "NotRequired" }]
        })
    }

    fn metadata() -> Value {
        json!({
            "name": "w", "namespace": "ray", "uid": "1", "resourceVersion": "2",
            "managedFields": [{ "manager": "s3cret" }],
            "labels": { "ray.io/cluster": "demo", "team": "s3cret" },
            "annotations": {
                "ray.io/ippr-status": "{}", "rayfit.dev/autoscaler": "0",
                "kubectl.kubernetes.io/last-applied-configuration": "s3cret"
            }
        })
    }

    #[test]
    fn of_pods_only_what_decisions_need_is_kept() {
        let kept = pod(&json!({
            "metadata": metadata(),
            "spec": { "nodeName": "n", "volumes": ["s3cret"], "containers": [container()] },
            "status": {
                "phase": "Running", "podIP": "10.0.0.1", "hostIP": "s3cret",
                "conditions": [{ "type": "PodResizePending", "status": "True", "reason": "Deferred", "message": "full" }],
                "containerStatuses": [{ "name": "ray-worker", "containerID": "s3cret", "resources": { "limits": { "cpu": "1" } } }]
            }
        }));
        assert!(!kept.to_string().contains("s3cret"), "{kept}");
        let container = &kept["spec"]["containers"][0];
        assert_eq!(container["resources"]["limits"]["cpu"], "1");
        assert!(container.get("command").is_none(), "{container}");
        assert_eq!(kept["metadata"]["annotations"]["ray.io/ippr-status"], "{}");
        assert_eq!(kept["status"]["conditions"][0]["message"], "full");
        assert_eq!(
            kept["status"]["containerStatuses"][0]["resources"]["limits"]["cpu"],
            "1"
        );
    }

    #[test]
    fn what_the_autoscaler_container_runs_is_kept() {
        let mut autoscaler = container();
        autoscaler["name"] = json!("autoscaler");
        let kept = pod(&json!({ "metadata": metadata(), "spec": { "containers": [autoscaler] } }));
        assert_eq!(kept["spec"]["containers"][0]["args"], json!(["ray start"]));
    }

    #[test]
    fn objects_without_parts_are_no_trouble() {
        for keep in [pod, ray_cluster, node] {
            keep(&json!({ "metadata": { "name": "x" } }));
            keep(&json!({}));
        }
    }
}
