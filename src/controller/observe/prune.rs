//! What decisions need of a RayCluster that is watched. Environments, volumes, commands of Ray's
//! containers and managed fields are most of an object, may hold secrets, and are left out. Pure.

use serde_json::{Map, Value};

/// The whole object once more, as kubectl applied it.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Of a RayCluster: all but the insides of its pods that no decision reads.
pub fn ray_cluster(object: &Value) -> Value {
    let mut kept = object.clone();
    kept["metadata"] = Value::Object(metadata(&object["metadata"]));
    // The cluster's own labels and annotations may name a queue, an owner, a mode.
    for key in ["labels", "annotations"] {
        if let Some(map) = object["metadata"][key].as_object() {
            let mut map = map.clone();
            map.shift_remove(LAST_APPLIED);
            kept["metadata"][key] = Value::Object(map);
        }
    }
    if let Some(spec) = kept.get_mut("spec").and_then(Value::as_object_mut) {
        if let Some(head) = spec.get_mut("headGroupSpec") {
            template(head);
        }
        let groups = spec
            .get_mut("workerGroupSpecs")
            .and_then(Value::as_array_mut);
        for group in groups.into_iter().flatten() {
            template(group);
        }
        if let Some(options) = spec
            .get_mut("autoscalerOptions")
            .and_then(Value::as_object_mut)
        {
            for key in ["env", "envFrom", "volumeMounts", "securityContext"] {
                options.shift_remove(key);
            }
        }
    }
    kept
}

/// Of any object: who it is, and the labels and annotations of those who scale it.
pub(super) fn metadata(metadata: &Value) -> Map<String, Value> {
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

/// A pod template: its containers without what they run, its environment and its volumes.
fn template(group: &mut Value) {
    let Some(template) = group.get_mut("template").and_then(Value::as_object_mut) else {
        return;
    };
    let labels = template
        .get("metadata")
        .map(|metadata| pick(metadata, &["labels"]));
    let spec = template.get("spec").cloned().unwrap_or_default();
    let kept = pick(
        &spec,
        &[
            "nodeSelector",
            "overhead",
            "restartPolicy",
            "priorityClassName",
            "tolerations",
            "runtimeClassName",
        ],
    );
    let containers = each(&spec["containers"], |container| {
        pick(
            container,
            &[
                "name",
                "image",
                "resources",
                "resizePolicy",
                "ports",
                "restartPolicy",
            ],
        )
    });
    let inits = each(&spec["initContainers"], |container| {
        pick(container, &["name", "restartPolicy", "resources"])
    });
    let mut kept = Value::Object(kept);
    kept["containers"] = containers;
    if inits.as_array().is_some_and(|inits| !inits.is_empty()) {
        kept["initContainers"] = inits;
    }
    template.insert("spec".to_owned(), kept);
    if let Some(labels) = labels {
        template.insert("metadata".to_owned(), Value::Object(labels));
    }
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
    use serde_json::json;

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
    fn of_ray_clusters_the_insides_of_pods_are_left_out() {
        let template = json!({
            "metadata": { "labels": { "a": "b" }, "annotations": { "vault": "s3cret" } },
            "spec": { "containers": [container()], "volumes": ["s3cret"], "serviceAccountName": "s3cret" }
        });
        let mut object = json!({
            "metadata": metadata(),
            "spec": {
                "headGroupSpec": { "rayStartParams": { "port": "6380" }, "template": template },
                "workerGroupSpecs": [{ "groupName": "cpu", "replicas": 1, "template": template }, { "groupName": "odd" }],
                "autoscalerOptions": { "idleTimeoutSeconds": 5, "env": ["s3cret"] }
            }
        });
        object["metadata"]["labels"] = json!({ "kueue.x-k8s.io/queue-name": "q" });
        let kept = ray_cluster(&object);
        assert!(!kept.to_string().contains("s3cret"), "{kept}");
        let group = &kept["spec"]["workerGroupSpecs"][0];
        assert_eq!(group["replicas"], 1);
        assert_eq!(
            group["template"]["spec"]["containers"][0]["resizePolicy"][0]["resourceName"],
            "cpu"
        );
        assert_eq!(kept["metadata"]["labels"]["kueue.x-k8s.io/queue-name"], "q");
        assert_eq!(kept["spec"]["autoscalerOptions"]["idleTimeoutSeconds"], 5);
        assert_eq!(
            kept["spec"]["workerGroupSpecs"][1],
            json!({ "groupName": "odd" })
        );
    }

    #[test]
    fn objects_without_parts_are_no_trouble() {
        ray_cluster(&json!({ "metadata": { "name": "x" } }));
        ray_cluster(&json!({}));
    }
}
