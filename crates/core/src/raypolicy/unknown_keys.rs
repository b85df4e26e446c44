//! Unknown keys in a RayPolicy. API servers prune them or refuse the object; in a file they are
//! typing errors.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde_json::Value;

use crate::policy::resource::{self, RayPolicy};
use crate::raypolicy::PolicyFault;
use crate::raypolicy::fault::{Faults, Weight};
use crate::text::nearest;

/// The keys of `spec` in `object` that were not read into `policy`.
pub fn unknown(object: &Value, policy: &RayPolicy) -> Vec<PolicyFault> {
    let mut faults = Faults::default();
    // Serde leaves out what it does not know, so writing the policy again shows what was read.
    let recognized = serde_json::to_value(&policy.spec).unwrap_or_default();
    if let Some(spec) = object.get("spec") {
        compare("spec", spec, &recognized, &mut faults);
    }
    faults.0
}

/// A key that was read is in the serialized policy again; `null` and empty values read as absent.
fn compare(place: &str, written: &Value, read: &Value, faults: &mut Faults) {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    };
    match (written, read) {
        (Value::Object(written), Value::Object(read)) => {
            for (key, value) in written.iter().filter(|(_, value)| !is_empty(value)) {
                let place = format!("{place}.{key}");
                if let Some(read) = read.get(key) {
                    compare(&place, value, read, faults);
                    continue;
                }
                let problem = match nearest(key, KEYS.iter().map(String::as_str)) {
                    Some(near) => format!("there is no such key; did you mean {near}?"),
                    None => "there is no such key (kubectl explain raypolicy.spec lists them)"
                        .to_owned(),
                };
                faults.add(Weight::Part, place, problem);
            }
        }
        (Value::Array(written), Value::Array(read)) => {
            for (index, (written, read)) in written.iter().zip(read).enumerate() {
                compare(&format!("{place}[{index}]"), written, read, faults);
            }
        }
        _ => {}
    }
}

/// All keys that the schema has under `spec`: a list of them would fall behind it.
static KEYS: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    let mut keys = BTreeSet::new();
    let definition = resource::definition();
    if let Some(spec) = definition.pointer(SPEC) {
        gather(spec, &mut keys);
    }
    keys
});

/// The place of the schema of `spec` in the CustomResourceDefinition.
const SPEC: &str = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";

/// Adds the keys of the objects that a schema describes.
fn gather(schema: &Value, keys: &mut BTreeSet<String>) {
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        for (key, inner) in properties {
            keys.insert(key.clone());
            gather(inner, keys);
        }
    }
    for inner in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get(inner) {
            gather(inner, keys);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::raypolicy::compile;

    #[test]
    fn every_key_of_the_schema_is_suggested() {
        for (written, hint) in [
            (json!({"mod": "Audit"}), "did you mean mode?"),
            (
                json!({"reconcile": {"allowedMode": ["central"]}}),
                "did you mean allowedModes?",
            ),
            (
                json!({"reconcile": {"stratgy": "ray"}}),
                "did you mean strategy?",
            ),
            (
                json!({"reconcile": {"scaleup": {"maxPods": 1}}}),
                "did you mean scaleUp?",
            ),
            (
                json!({"reconcile": {"scaleUp": {"maxPods": 1, "perSeconds": 1, "perSecond": 2}}}),
                "did you mean perSeconds?",
            ),
            (
                json!({"reconcile": {"schedules": [{"name": "a", "start": "0 8 * * *",
                    "durationSeconds": 60, "timezone": "UTC"}]}}),
                "did you mean timeZone?",
            ),
            (json!({"colour": 1}), "kubectl explain raypolicy.spec"),
        ] {
            let object = json!({"apiVersion": "rayfit.dev/v1alpha1", "kind": "RayPolicy",
                "metadata": {"name": "a"}, "spec": written});
            let faults = unknown(&object, &compile::read(&object).unwrap());
            let [fault] = &faults[..] else {
                panic!("{object}: {faults:?}");
            };
            assert!(fault.problem.contains(hint), "{object}: {}", fault.problem);
        }
    }
}
