//! Allowed fields: what is kept of a RayCluster is a list of the fields that are read, and nothing
//! else.
//!
//! One list serves the watch, which keeps as little as it can, and `rayfit record`, whose snapshots
//! are sent to other people. A field that is not on the list is in neither.
//! `tests/attacks/record.rs` tests both sides: decisions on what is kept are those on the whole
//! object, and nothing that was planted beside the list comes through.

use serde_json::{Map, Value};

use crate::ray::container::MEMORY_MONITOR;
use crate::ray::initial_sizes;
use crate::ray::kueue::QUEUE;
use crate::ray::{ippr, reconcile};

/// The fields of a JSON value that are kept.
#[derive(Debug, Clone, Copy)]
pub enum Allowed {
    /// A string, a number or a boolean is kept. Of a list or an object only its type is kept, which
    /// is read as a mistake.
    Plain,
    /// These keys of an object are kept.
    Keys(&'static [(&'static str, Allowed)]),
    /// All keys of an object are kept, such as names of resources or labels, because anybody may
    /// choose them.
    AnyKey(&'static Allowed),
    /// Each item of a list is kept. An item that is left empty keeps its place.
    Each(&'static Allowed),
    /// Of a list of environment variables those of these names are kept, with values that are written there.
    Env(&'static [&'static str]),
}

use Allowed::{AnyKey, Each, Env, Keys, Plain};

/// The fields of a RayCluster that are kept.
pub const RAY_CLUSTER: Allowed = Keys(&[
    ("apiVersion", Plain),
    ("kind", Plain),
    ("metadata", METADATA),
    ("spec", SPEC),
    ("status", STATUS),
]);

const METADATA: Allowed = Keys(&[
    ("name", Plain),
    ("namespace", Plain),
    ("uid", Plain),
    ("resourceVersion", Plain),
    ("generation", Plain),
    ("creationTimestamp", Plain),
    ("deletionTimestamp", Plain),
    // Whether KubeRay cleans up before a cluster that nobody uses goes.
    ("finalizers", Each(&Plain)),
    // RayPolicies select clusters by labels, whatever the keys are; a recording keeps those that do.
    ("labels", AnyKey(&Plain)),
    (
        "annotations",
        Keys(&[
            (ippr::ANNOTATION, Plain),
            (reconcile::ANNOTATION, Plain),
            (reconcile::RECORD, Plain),
            (reconcile::SETTINGS, Plain),
            (initial_sizes::ANNOTATION, Plain),
            ("kueue.x-k8s.io/elastic-job", Plain),
        ]),
    ),
    // RayPolicies match the RayJob or RayService that a cluster was made for.
    (
        "ownerReferences",
        Each(&Keys(&[
            ("apiVersion", Plain),
            ("kind", Plain),
            ("name", Plain),
            ("uid", Plain),
            ("controller", Plain),
        ])),
    ),
]);

const SPEC: Allowed = Keys(&[
    // This is kept for people to see; no decision reads it.
    ("rayVersion", Plain),
    ("enableInTreeAutoscaling", Plain),
    ("suspend", Plain),
    (
        "idleTerminationOptions",
        Keys(&[("timeoutSeconds", Plain), ("policy", Plain)]),
    ),
    ("idleSuspend", Plain),
    ("managedBy", Plain),
    (
        "autoscalerOptions",
        Keys(&[("idleTimeoutSeconds", Plain), ("upscalingMode", Plain)]),
    ),
    // This says where the credentials of the GCS are. Only the name of the Secret is kept.
    (
        "authOptions",
        Keys(&[("mode", Plain), ("secretName", Plain)]),
    ),
    ("tlsOptions", Keys(&[("enabled", Plain)])),
    ("headGroupSpec", GROUP),
    ("workerGroupSpecs", Each(&GROUP)),
]);

const GROUP: Allowed = Keys(&[
    ("groupName", Plain),
    ("replicas", Plain),
    ("minReplicas", Plain),
    ("maxReplicas", Plain),
    ("numOfHosts", Plain),
    ("idleTimeoutSeconds", Plain),
    ("priority", Plain),
    ("suspend", Plain),
    ("labels", AnyKey(&Plain)),
    ("resources", AnyKey(&Plain)),
    (
        "scaleStrategy",
        Keys(&[
            ("workersToDelete", Each(&Plain)),
            ("scaleGate", Each(&Keys(&[("name", Plain)]))),
        ]),
    ),
    (
        "rayStartParams",
        Keys(&[
            ("num-cpus", Plain),
            ("num-gpus", Plain),
            ("memory", Plain),
            ("resources", Plain),
            // This is the port on which the GCS listens.
            ("port", Plain),
        ]),
    ),
    ("template", Keys(&[("spec", POD_SPEC)])),
]);

const POD_SPEC: Allowed = Keys(&[
    // This tells which TPUs a node has, and which groups can take each other's room.
    ("nodeSelector", AnyKey(&Plain)),
    // These bound how far containers can grow.
    (
        "resources",
        Keys(&[("limits", AnyKey(&Plain)), ("requests", AnyKey(&Plain))]),
    ),
    ("containers", Each(&CONTAINER)),
]);

const CONTAINER: Allowed = Keys(&[
    ("name", Plain),
    // This tells whether Ray's memory monitor is on. No other value is kept: it may be secret.
    ("env", Env(&[MEMORY_MONITOR])),
    (
        "resources",
        Keys(&[("limits", AnyKey(&Plain)), ("requests", AnyKey(&Plain))]),
    ),
    (
        "resizePolicy",
        Each(&Keys(&[("resourceName", Plain), ("restartPolicy", Plain)])),
    ),
]);

const STATUS: Allowed = Keys(&[
    // `rayfit status` shows it.
    ("state", Plain),
    // This tells whether there ever was a head.
    ("head", Keys(&[("podIP", Plain)])),
    // This tells whether KubeRay is refused to make pods.
    (
        "conditions",
        Each(&Keys(&[
            ("type", Plain),
            ("status", Plain),
            ("reason", Plain),
        ])),
    ),
]);

/// Returns what is kept of a RayCluster.
pub fn ray_cluster(object: &Value) -> Value {
    RAY_CLUSTER.keep(object)
}

impl Allowed {
    /// Returns what is kept of a value. A value of another type than the list expects is left
    /// empty, so that it is still read as the mistake that it is.
    pub fn keep(&self, value: &Value) -> Value {
        match (self, value) {
            (Keys(keys), Value::Object(fields)) => {
                let kept = keys.iter().filter_map(|(key, allowed)| {
                    Some(((*key).to_owned(), allowed.keep(fields.get(*key)?)))
                });
                Value::Object(kept.collect())
            }
            (AnyKey(allowed), Value::Object(fields)) => {
                let kept = fields.iter();
                kept.map(|(key, value)| (key.clone(), allowed.keep(value)))
                    .collect::<Map<_, _>>()
                    .into()
            }
            (Each(allowed), Value::Array(items)) => {
                items.iter().map(|item| allowed.keep(item)).collect()
            }
            (Env(_), Value::Array(entries)) => {
                let entries = entries.iter().map(|entry| VARIABLE.keep(entry));
                entries.filter(|entry| self.has_item(entry)).collect()
            }
            (Plain, Value::String(_)) | (_, Value::Null | Value::Bool(_) | Value::Number(_)) => {
                value.clone()
            }
            (_, Value::String(_)) => Value::String(String::new()),
            (_, Value::Array(_)) => Value::Array(Vec::new()),
            (_, Value::Object(_)) => Value::Object(Map::new()),
        }
    }
}

/// The fields of an environment variable that are kept.
const VARIABLE: Allowed = Keys(&[("name", Plain), ("value", Plain)]);

impl Allowed {
    /// The fields that are kept at a key of an object; `None` if the key is not kept.
    pub(super) fn below(&self, key: &str) -> Option<&Self> {
        match self {
            Keys(keys) => {
                let mut keys = keys.iter();
                keys.find(|(name, _)| *name == key)
                    .map(|(_, allowed)| allowed)
            }
            AnyKey(allowed) => Some(allowed),
            _ => None,
        }
    }

    /// The fields that are kept of the items of a list; `None` if no item is kept.
    pub(super) fn item(&self) -> Option<&Self> {
        match self {
            Each(allowed) => Some(allowed),
            Env(_) => Some(&VARIABLE),
            _ => None,
        }
    }

    /// Whether an item of a list, reduced to what is kept of it, is kept.
    pub(super) fn has_item(&self, item: &Value) -> bool {
        let Env(names) = self else { return true };
        let name = item.get("name").and_then(Value::as_str);
        name.is_some_and(|name| names.contains(&name))
    }
}

/// Takes out the labels of an object that nobody reads: for Ray, `KubeRay` and Kueue `is_selected` need
/// not name a key.
pub fn retain_labels(object: &mut Value, is_selected: impl Fn(&str) -> bool) {
    let labels = object.pointer_mut("/metadata/labels");
    if let Some(labels) = labels.and_then(Value::as_object_mut) {
        labels.retain(|key, _| key.starts_with("ray.io/") || key == QUEUE || is_selected(key));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_on_the_list_is_kept_in_its_place() {
        let kept = ray_cluster(&json!({
            "apiVersion": "ray.io/v1", "kind": "RayCluster",
            "metadata": { "name": "demo", "resourceVersion": "7", "managedFields": [{}],
                "labels": { "kueue.x-k8s.io/queue-name": "q" },
                "annotations": { "vault.example/token": "s3cret", "ray.io/ippr": "{}" } },
            "spec": { "gcsFaultToleranceOptions": { "redisPassword": { "value": "s3cret" } },
                "headGroupSpec": { "rayStartParams": { "redis-password": "s3cret", "port": "6380" } },
                "workerGroupSpecs": [null, { "groupName": "cpu", "replicas": 2 }] }
        }));
        assert!(!kept.to_string().contains("s3cret"), "{kept}");
        assert_eq!(
            kept["metadata"]["annotations"],
            json!({ "ray.io/ippr": "{}" })
        );
        assert_eq!(kept["metadata"]["labels"]["kueue.x-k8s.io/queue-name"], "q");
        let head = &kept["spec"]["headGroupSpec"];
        assert_eq!(head["rayStartParams"], json!({ "port": "6380" }));
        let groups = &kept["spec"]["workerGroupSpecs"];
        assert_eq!(
            *groups,
            json!([null, { "groupName": "cpu", "replicas": 2 }])
        );
    }

    #[test]
    fn what_is_read_from_a_text_is_what_is_kept_of_the_object() {
        let env = json!([{"name": MEMORY_MONITOR, "value": "0", "x": 1}, {"name": "KEY", "value": "s"}, 3]);
        let group = json!({"groupName": "a", "labels": {"k": ["x"]}, "scaleStrategy": ["x"],
            "template": {"spec": {"containers": [{"name": "r", "env": env, "image": "i"}], "volumes": [[]]}}});
        let object = json!({"kind": "RayCluster", "metadata": {"name": "demo", "managedFields": [{}],
            "labels": {"a": "b"}, "annotations": {"other": "x", "ray.io/ippr": "{}"}, "finalizers": ["f", {}]},
            "spec": {"suspend": true, "headGroupSpec": group, "workerGroupSpecs": [null, 1.5, group]},
            "status": "none"});
        let text = object.to_string();
        let mut reader = serde_json::Deserializer::from_str(&text);
        let read = serde::de::DeserializeSeed::deserialize(&RAY_CLUSTER, &mut reader);
        assert_eq!(read.unwrap(), ray_cluster(&object));
    }

    #[test]
    fn labels_are_kept_that_somebody_reads() {
        let labels = json!({ "kueue.x-k8s.io/queue-name": "q", "ray.io/cluster": "c", "team": "a",
            "vault.example/token": "s3cret" });
        let mut object = json!({ "metadata": { "labels": labels } });
        retain_labels(&mut object, |key| key == "team");
        let kept = json!({ "kueue.x-k8s.io/queue-name": "q", "ray.io/cluster": "c", "team": "a" });
        assert_eq!(object["metadata"]["labels"], kept);
    }

    #[test]
    fn annotations_of_others_leave_an_empty_map() {
        // Without the empty map, a patch that adds an annotation of Rayfit would replace the
        // annotations of others.
        let kept = ray_cluster(&json!({ "metadata": { "annotations": { "a": "b" } } }));
        assert_eq!(kept["metadata"]["annotations"], json!({}));
        let none = ray_cluster(&json!({ "metadata": {} }));
        assert!(none["metadata"].get("annotations").is_none());
    }

    #[test]
    fn what_has_another_form_is_left_empty() {
        let group = json!({ "rayStartParams": { "num-cpus": { "a": "s3cret" } },
            "template": "s3cret", "labels": { "a": ["s3cret"] }, "scaleStrategy": ["s3cret"] });
        let kept = ray_cluster(&json!({ "spec": { "headGroupSpec": group } }));
        let expected = json!({ "rayStartParams": { "num-cpus": {} }, "template": "",
            "labels": { "a": [] }, "scaleStrategy": [] });
        assert_eq!(kept["spec"]["headGroupSpec"]["labels"], expected["labels"]);
        assert_eq!(kept["spec"]["headGroupSpec"], expected);
    }
}
