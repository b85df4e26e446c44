//! The findings in one object as a report of <https://openreports.io>, which dashboards show.

use serde_json::{Value, json};

use crate::object_audit::{Found, Judged};
use crate::policy::Mode;
use crate::ray::Kind;

/// The label by which Rayfit's reports are found.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

/// The most results in one report.
const RESULTS: usize = 100;

/// The name of the report of an object.
pub fn name(judged: &Judged) -> String {
    let kind = judged.object.kind.name().to_lowercase();
    // A name may have 253 characters, the prefix included.
    let name: String = judged.object.name.chars().take(200).collect();
    format!("rayfit-{kind}-{name}")
}

/// The report of an object; `None` if it has no findings. The object owns the report, so that
/// Kubernetes deletes the report with it.
pub fn report(judged: &Judged) -> Option<Value> {
    let shown: Vec<&Found> = judged
        .findings
        .iter()
        .filter(|found| found.mode > Mode::Off)
        .collect();
    // Kubernetes refuses an owner without a UID, and without an owner nobody would delete the
    // report.
    if shown.is_empty() || judged.uid.is_empty() {
        return None;
    }
    let count = |result: &str| {
        shown
            .iter()
            .filter(|found| result_of(found) == result)
            .count()
    };
    let (kind, name_of) = (judged.object.kind, &judged.object.name);
    Some(json!({
        "apiVersion": "openreports.io/v1alpha1",
        "kind": "Report",
        "metadata": {
            "name": name(judged),
            "namespace": judged.object.namespace,
            "labels": { MANAGED_BY: "rayfit" },
            "ownerReferences": [{
                "apiVersion": "ray.io/v1", "kind": kind.name(),
                "name": name_of, "uid": judged.uid,
            }],
        },
        "source": "rayfit",
        "scope": scope(kind, judged),
        "summary": {
            // Rules that have found nothing are not reported, so that none can be said to have
            // passed.
            "pass": 0, "error": 0,
            "fail": count("fail"), "warn": count("warn"), "skip": count("skip"),
        },
        "results": shown.iter().take(RESULTS).map(|found| result(found)).collect::<Vec<_>>(),
    }))
}

fn scope(kind: Kind, judged: &Judged) -> Value {
    json!({
        "apiVersion": "ray.io/v1", "kind": kind.name(), "uid": judged.uid,
        "namespace": judged.object.namespace, "name": judged.object.name,
    })
}

fn result_of(found: &Found) -> &'static str {
    match found.mode {
        _ if found.exempt => "skip",
        Mode::Enforce => "fail",
        _ => "warn",
    }
}

fn result(found: &Found) -> Value {
    json!({
        "source": "rayfit",
        "policy": found.policy.as_deref().unwrap_or("rayfit"),
        "rule": found.rule.to_string(),
        "category": "Ray",
        "result": result_of(found),
        "scored": true,
        "message": found.message,
        "properties": { "mode": found.mode.name() },
    })
}
