//! The findings in one object as a report of <https://openreports.io>, which dashboards show.

use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use crate::object_audit::{AuditFinding, AuditedObject};
use crate::policy::Mode;

/// The label by which Rayfit's reports are found.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

/// The most results in one report.
const RESULTS: usize = 100;

/// The most bytes of an object's name in the name of its report, which may have 253 with the prefix.
const LONGEST: usize = 200;

/// The bytes of a longer name that are kept before the dash and the hash.
const KEPT: usize = LONGEST - 17;

/// The name of the report of an object.
pub fn name(judged: &AuditedObject) -> String {
    let kind = judged.object.kind.name().to_lowercase();
    let name = &judged.object.name;
    if name.len() <= LONGEST {
        return format!("rayfit-{kind}-{name}");
    }
    // Long names may begin alike, and two objects must not have one report.
    let digest = digest(&SHA256, name.as_bytes());
    let bytes = digest.as_ref().iter().take(8);
    let hash = bytes.fold(0_u64, |hash, byte| (hash << 8) | u64::from(*byte));
    let start = name.get(..name.floor_char_boundary(KEPT));
    // A dash may not follow a dot in names.
    let start = start.unwrap_or_default().trim_end_matches(['.', '-']);
    format!("rayfit-{kind}-{start}-{hash:016x}")
}

/// The report of an object; `None` if it has no findings.
pub fn report(judged: &AuditedObject) -> Option<Value> {
    let findings = judged.findings.iter();
    let shown: Vec<&AuditFinding> = findings
        .filter(|finding| finding.mode > Mode::Off)
        .collect();
    // Kubernetes refuses an owner without a UID, and without an owner nobody would delete the
    // report.
    if shown.is_empty() || judged.uid.is_empty() {
        return None;
    }
    let result = |finding: &AuditFinding| match finding.mode {
        _ if finding.exempt => "skip",
        Mode::Enforce => "fail",
        _ => "warn",
    };
    let count = |which| {
        shown
            .iter()
            .filter(|finding| result(finding) == which)
            .count()
    };
    let results = shown.iter().take(RESULTS).map(|finding| {
        json!({
            "source": "rayfit",
            "policy": finding.policy.as_deref().unwrap_or("rayfit"),
            "rule": finding.rule.to_string(),
            "category": "Ray",
            "result": result(finding),
            "scored": true,
            "message": finding.message,
            "properties": { "mode": finding.mode.name() },
        })
    });
    let owner = json!({
        "apiVersion": "ray.io/v1", "kind": judged.object.kind.name(),
        "name": judged.object.name, "uid": judged.uid,
    });
    let mut scope = owner.clone();
    scope["namespace"] = json!(judged.object.namespace);
    Some(json!({
        "apiVersion": "openreports.io/v1alpha1",
        "kind": "Report",
        "metadata": {
            "name": name(judged),
            "namespace": judged.object.namespace,
            "labels": { MANAGED_BY: "rayfit" },
            // Kubernetes deletes the report together with its owner.
            "ownerReferences": [owner],
        },
        "source": "rayfit",
        "scope": scope,
        "summary": {
            // Rules that have found nothing are not reported, so that none can be said to have
            // passed.
            "pass": 0, "error": 0,
            "fail": count("fail"), "warn": count("warn"), "skip": count("skip"),
        },
        "results": results.collect::<Vec<_>>(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::Identity;
    use crate::ray::Kind;

    fn named(object: &str) -> String {
        name(&AuditedObject {
            object: Identity {
                kind: Kind::RayCluster,
                namespace: Some("n".to_owned()),
                name: object.to_owned(),
            },
            uid: "u".to_owned(),
            policies: Vec::new(),
            findings: Vec::new(),
        })
    }

    #[test]
    fn two_objects_never_have_one_report() {
        assert_eq!(named("demo"), "rayfit-raycluster-demo");
        let longest = "x".repeat(LONGEST);
        assert_eq!(named(&longest), format!("rayfit-raycluster-{longest}"));
        let [one, other] = ["a", "b"].map(|end| named(&format!("{longest}{end}")));
        assert_ne!(one, other);
        assert_eq!(one, named(&format!("{longest}a")), "it stays the same");
        assert_eq!(one.len(), "rayfit-raycluster-".len() + LONGEST);
        let dotted = named(&format!("{}.{longest}", "x".repeat(KEPT - 1)));
        assert!(!dotted.contains(".-"), "{dotted}");
    }
}
