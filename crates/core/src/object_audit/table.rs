//! The object audit as a table for a terminal.

use std::fmt::Write as _;

use crate::object_audit::{AuditTally, AuditedObject};
use crate::rules;

/// The table: for each rule, how many objects are denied, and how many would be if it were
/// enforced.
pub fn text<'a>(judged: impl IntoIterator<Item = &'a AuditedObject>) -> String {
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
    for (object, offender) in &tally.offenders {
        let _ = writeln!(out, "{object}: {}", offender.rules.join(", "));
    }
    let _ = writeln!(
        out,
        "{} objects: {} denied now, {} more if everything were enforced",
        tally.objects, tally.denied, tally.would_deny
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object_audit::AuditFinding;
    use crate::objects::Identity;
    use crate::policy::Mode;
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
        let table = text([&AuditedObject {
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
