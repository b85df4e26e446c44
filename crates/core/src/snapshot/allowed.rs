//! Allowed fields: what is kept of a RayCluster is a list of the fields that are read, and nothing
//! else.
//!
//! One list serves the watch, which keeps as little as it can, and `rayfit record`, whose snapshots
//! are sent to other people. A field that is not on the list is in neither.
//! `tests/attacks/record.rs` tests both sides: decisions on what is kept are those on the whole
//! object, and nothing that was planted beside the list comes through.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
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
    // One of KubeRay's says that it cleans up before a cluster that nobody uses goes.
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

/// The fields of an environment variable that are kept.
const VARIABLE: Allowed = Keys(&[("name", Plain), ("value", Plain)]);

impl Allowed {
    /// Returns what is kept of a value. A value of another type than the list expects is left
    /// empty, so that it is still read as the mistake that it is.
    pub fn keep(&self, value: &Value) -> Value {
        // Whatever the value is, it can be read.
        self.deserialize(value).unwrap_or_default()
    }
}

/// A RayCluster in an answer, reduced to what is kept of it.
#[derive(Debug)]
pub struct AllowedCluster(pub Value);

impl<'de> Deserialize<'de> for AllowedCluster {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        RAY_CLUSTER.deserialize(deserializer).map(Self)
    }
}

/// Reads what is kept directly from a text. Nothing is built of the rest, which a stranger can make as large as the
/// API server allows.
impl<'de> DeserializeSeed<'de> for &Allowed {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &Allowed {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut part = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let allowed = match self {
                Keys(keys) => keys
                    .iter()
                    .find(|(name, _)| *name == key)
                    .map(|(_, below)| below),
                AnyKey(below) => Some(*below),
                _ => None,
            };
            if let Some(allowed) = allowed {
                part.insert(key, entries.next_value_seed(allowed)?);
            } else {
                entries.next_value::<IgnoredAny>()?;
            }
        }
        Ok(part.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let allowed = match self {
            Each(allowed) => *allowed,
            Env(_) => &VARIABLE,
            _ => {
                while items.next_element::<IgnoredAny>()?.is_some() {}
                return Ok(Value::Array(Vec::new()));
            }
        };
        let mut part = Vec::new();
        while let Some(item) = items.next_element_seed(allowed)? {
            let name = item.get("name").and_then(Value::as_str);
            let is_kept = match self {
                Env(names) => name.is_some_and(|name| names.contains(&name)),
                _ => true,
            };
            if is_kept {
                part.push(item);
            }
        }
        Ok(part.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        let is_kept = matches!(self, Allowed::Plain);
        Ok(if is_kept { value } else { "" }.into())
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
        let part = RAY_CLUSTER.keep(&json!({
            "apiVersion": "ray.io/v1", "kind": "RayCluster",
            "metadata": { "name": "demo", "resourceVersion": "7", "managedFields": [{}],
                "labels": { "kueue.x-k8s.io/queue-name": "q" },
                "annotations": { "vault.example/token": "s3cret", "ray.io/ippr": "{}" } },
            "spec": { "gcsFaultToleranceOptions": { "redisPassword": { "value": "s3cret" } },
                "headGroupSpec": { "rayStartParams": { "redis-password": "s3cret", "port": "6380" } },
                "workerGroupSpecs": [null, { "groupName": "cpu", "replicas": 2 }] }
        }));
        assert!(!part.to_string().contains("s3cret"), "{part}");
        assert_eq!(
            part["metadata"]["annotations"],
            json!({ "ray.io/ippr": "{}" })
        );
        assert_eq!(part["metadata"]["labels"]["kueue.x-k8s.io/queue-name"], "q");
        let head = &part["spec"]["headGroupSpec"];
        assert_eq!(head["rayStartParams"], json!({ "port": "6380" }));
        let groups = &part["spec"]["workerGroupSpecs"];
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
        let read = RAY_CLUSTER.deserialize(&mut reader);
        assert_eq!(read.unwrap(), RAY_CLUSTER.keep(&object));
    }

    #[test]
    fn labels_are_kept_that_somebody_reads() {
        let labels = json!({ "kueue.x-k8s.io/queue-name": "q", "ray.io/cluster": "c", "team": "a",
            "vault.example/token": "s3cret" });
        let mut object = json!({ "metadata": { "labels": labels } });
        retain_labels(&mut object, |key| key == "team");
        let part = json!({ "kueue.x-k8s.io/queue-name": "q", "ray.io/cluster": "c", "team": "a" });
        assert_eq!(object["metadata"]["labels"], part);
    }

    #[test]
    fn annotations_of_others_leave_an_empty_map() {
        // Without the empty map, a patch that adds an annotation of Rayfit would replace the
        // annotations of others.
        let part = RAY_CLUSTER.keep(&json!({ "metadata": { "annotations": { "a": "b" } } }));
        assert_eq!(part["metadata"]["annotations"], json!({}));
        let none = RAY_CLUSTER.keep(&json!({ "metadata": {} }));
        assert!(none["metadata"].get("annotations").is_none());
    }

    #[test]
    fn what_has_another_form_is_left_empty() {
        let group = json!({ "rayStartParams": { "num-cpus": { "a": "s3cret" } },
            "template": "s3cret", "labels": { "a": ["s3cret"] }, "scaleStrategy": ["s3cret"] });
        let part = RAY_CLUSTER.keep(&json!({ "spec": { "headGroupSpec": group } }));
        let expected = json!({ "rayStartParams": { "num-cpus": {} }, "template": "",
            "labels": { "a": [] }, "scaleStrategy": [] });
        assert_eq!(part["spec"]["headGroupSpec"]["labels"], expected["labels"]);
        assert_eq!(part["spec"]["headGroupSpec"], expected);
    }
}
