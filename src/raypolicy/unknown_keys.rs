//! Unknown keys in a RayPolicy. API servers prune them or refuse the object; in a file they are
//! typing errors.

use serde_json::Value;

use crate::policy::resource::RayPolicy;
use crate::raypolicy::{PolicyFault, Weight};
use crate::text::nearest;

/// The keys of `spec` in `object` that were not read into `policy`.
pub fn unknown(object: &Value, policy: &RayPolicy) -> Vec<PolicyFault> {
    let mut faults = Vec::new();
    let known = serde_json::to_value(&policy.spec).unwrap_or_default();
    if let Some(spec) = object.get("spec") {
        compare("spec", spec, &known, &mut faults);
    }
    faults
}

/// A key that was read is in the serialized policy again; `null` and empty values read as absent.
fn compare(place: &str, written: &Value, read: &Value, faults: &mut Vec<PolicyFault>) {
    match (written, read) {
        (Value::Object(written), Value::Object(read)) => {
            for (key, value) in written.iter().filter(|(_, value)| !is_empty(value)) {
                match read.get(key) {
                    Some(read) => compare(&format!("{place}.{key}"), value, read, faults),
                    None => faults.push(fault(place, key)),
                }
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

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

const KEYS: &[&str] = &[
    "match",
    "priority",
    "mode",
    "rules",
    "limits",
    "defaults",
    "reconcile",
    "exemptions",
    "failClosed",
    "namespaceSelector",
    "objectSelector",
    "names",
    "kinds",
    "reason",
    "ticket",
    "expires",
    "objects",
    "namespace",
    "name",
    "kind",
    "standby",
    "headroom",
    "sharePercent",
    "cpus",
    "requests",
    "resources",
    "schedules",
    "start",
    "end",
    "durationSeconds",
    "timeZone",
    "minReplicas",
    "keepSmallSeconds",
    "learnGaps",
    "followMemory",
    "makeRoom",
    "budget",
    "budgetShare",
    "cpu",
    "memory",
    "gpus",
    "weight",
];

fn fault(place: &str, key: &str) -> PolicyFault {
    let problem = match nearest(key, KEYS.iter().copied()) {
        Some(near) => format!("there is no such key; did you mean {near}?"),
        None => "there is no such key (kubectl explain raypolicy.spec lists them)".to_owned(),
    };
    PolicyFault {
        place: format!("{place}.{key}"),
        problem,
        weight: Weight::Part,
    }
}
