//! The object audit as a table for a terminal, and as JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::object_audit::{AuditTally, AuditedObject};
use crate::policy::Mode;
use crate::report::json::pretty;
use crate::rules;

/// The table: for each rule, how many objects are denied, and how many would be if it were
/// enforced.
pub fn text(judged: &[AuditedObject]) -> String {
    let tally = AuditTally::of(judged);
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{:6} {:26} {:>6} {:>6} {:>6} {:>6} {:>10}",
        "RULE", "NAME", "DENIED", "WARNED", "AUDIT", "EXEMPT", "WOULD-DENY"
    );
    for (rule, counts) in &tally.rules {
        let name = rules::find(*rule).map_or("", |rule| rule.name);
        let _ = writeln!(
            out,
            "{rule:6} {name:26} {:>6} {:>6} {:>6} {:>6} {:>10}",
            counts.denied,
            counts.warned,
            counts.audited,
            counts.exempt,
            counts.would_deny,
            rule = rule.to_string(),
        );
    }
    for offender in &tally.offenders {
        let rules: Vec<String> = offender.rules.iter().map(ToString::to_string).collect();
        let _ = writeln!(out, "{}: {}", offender.object, rules.join(", "));
    }
    let _ = writeln!(
        out,
        "{} objects: {} denied now, {} more if everything were enforced",
        tally.objects, tally.denied, tally.would_deny
    );
    out
}

/// All results as JSON, for programs.
pub fn json(judged: &[AuditedObject]) -> String {
    let tally = AuditTally::of(judged);
    let rules: Vec<Value> = tally
        .rules
        .iter()
        .map(|(rule, counts)| {
            let of_rule = |judged: &&AuditedObject| {
                judged.findings.iter().any(|finding| finding.rule == *rule)
            };
            let objects: Vec<String> = judged
                .iter()
                .filter(of_rule)
                .map(|judged| judged.object.to_string())
                .collect();
            json!({
                "rule": rule.to_string(),
                "name": rules::find(*rule).map(|rule| rule.name),
                "denied": counts.denied,
                "warned": counts.warned,
                "audited": counts.audited,
                "exempt": counts.exempt,
                "wouldDeny": counts.would_deny,
                "objects": objects,
            })
        })
        .collect();
    // Objects without findings are only counted: there can be many thousands of them.
    let objects = judged.iter().filter(|judged| !judged.findings.is_empty());
    let objects = objects.map(|judged| {
        let findings = judged.findings.iter().map(|finding| {
            json!({
                "rule": finding.rule.to_string(),
                "mode": finding.mode.name(),
                "wouldDeny": finding.would_deny(),
                "exempt": finding.exempt,
                "policy": finding.policy.as_deref(),
                "message": finding.message,
            })
        });
        json!({
            "kind": judged.object.kind.name(),
            "namespace": judged.object.namespace,
            "name": judged.object.name,
            "policies": judged.policies.iter().map(|name| &**name).collect::<Vec<_>>(),
            "findings": findings.collect::<Vec<_>>(),
        })
    });
    let objects: Vec<Value> = objects.collect();
    pretty(&json!({
        "objects": tally.objects,
        "denied": tally.denied,
        "wouldDeny": tally.would_deny,
        "rules": rules,
        "findings": objects,
    }))
}

/// The mode in which a finding is shown, for people.
pub(crate) fn shown(mode: Mode) -> &'static str {
    match mode {
        Mode::Enforce => "denied",
        Mode::Warn => "warned",
        Mode::Audit => "recorded",
        Mode::Off => "off",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object_audit::AuditFinding;
    use crate::objects::Identity;
    use crate::ray::Kind;
    use crate::rule_id::RuleId;

    #[test]
    fn names_of_files_cannot_control_the_terminal() {
        let finding = AuditFinding {
            rule: RuleId(105),
            mode: Mode::Enforce,
            enforced: Mode::Enforce,
            exempt: false,
            policy: None,
            message: String::new(),
        };
        let table = text(&[AuditedObject {
            object: Identity {
                kind: Kind::RayCluster,
                namespace: Some("a\nb".to_owned()),
                name: "c\u{1b}[2Jd".to_owned(),
            },
            uid: String::new(),
            policies: Vec::new(),
            findings: vec![finding],
        }]);
        let line = "RayCluster a\u{fffd}b/c\u{fffd}[2Jd: RF105";
        assert!(table.lines().any(|shown| shown == line), "{table:?}");
    }
}
