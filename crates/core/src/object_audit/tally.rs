//! Adds up the findings in many objects.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::object_audit::AuditedObject;
use crate::objects::Identity;
use crate::policy::Mode;
use crate::policy::resource::{Offender, RuleCount};
use crate::rule_id::RuleId;

/// The number of worst objects that are named.
pub const OFFENDERS: usize = 20;

/// The sums over some objects.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuditTally {
    /// The number of objects that were checked.
    pub objects: i64,
    /// The number of objects that would be denied if they were created now.
    pub denied: i64,
    /// The number of further objects that would be denied if every policy's `mode` were Enforce.
    pub would_deny: i64,
    /// The counts by rule.
    pub rules: BTreeMap<RuleId, RuleCount>,
    /// The worst objects, in descending order.
    pub offenders: Vec<(Identity, Offender)>,
}

impl AuditTally {
    /// Adds up the results of objects.
    pub fn of<'a>(objects: impl IntoIterator<Item = &'a AuditedObject>) -> Self {
        let mut tally = Self::default();
        for judged in objects {
            tally.add(judged);
        }
        tally
    }

    /// Adds the results of one object.
    pub fn add(&mut self, judged: &AuditedObject) {
        self.objects += 1;
        self.denied += i64::from(judged.is_denied());
        self.would_deny += i64::from(judged.would_be_denied());
        let rules: BTreeSet<RuleId> = judged.findings.iter().map(|finding| finding.rule).collect();
        for rule in &rules {
            let counts = self.rules.entry(*rule).or_insert_with(|| RuleCount {
                rule: rule.to_string(),
                ..RuleCount::default()
            });
            let of_rule = || {
                judged
                    .findings
                    .iter()
                    .filter(|finding| finding.rule == *rule)
            };
            let worst = of_rule().map(|finding| finding.mode).max();
            match worst {
                Some(Mode::Enforce) => counts.denied += 1,
                Some(Mode::Warn) => counts.warned += 1,
                Some(Mode::Audit) => counts.audited += 1,
                _ => {}
            }
            let is_exempt = of_rule().all(|finding| finding.exempt);
            counts.exempt += i64::from(is_exempt);
            counts.would_deny += i64::from(!is_exempt && worst != Some(Mode::Enforce));
        }
        let count = |items: usize| i64::try_from(items).unwrap_or(i64::MAX);
        let findings = judged.findings.iter();
        let denials =
            findings.filter(|finding| finding.mode == Mode::Enforce || finding.would_deny());
        let denials = denials.count();
        if denials == 0
            && judged
                .findings
                .iter()
                .all(|finding| finding.mode == Mode::Off)
        {
            return;
        }
        let object = judged.object.clone();
        let offender = Offender {
            kind: object.kind.name().to_owned(),
            namespace: object.namespace.clone().unwrap_or_default(),
            name: object.name.clone(),
            denials: count(denials),
            findings: count(judged.findings.len()),
            rules: rules.iter().map(ToString::to_string).collect(),
        };
        let offender = (object, offender);
        let key = |(object, of): &(Identity, Offender)| {
            (Reverse(of.denials), Reverse(of.findings), object.clone())
        };
        // Kept in order while objects are added, so that no more than these few are held of a
        // cluster with many thousands of objects.
        let place = self
            .offenders
            .partition_point(|other| key(other) <= key(&offender));
        if place < OFFENDERS {
            self.offenders.insert(place, offender);
            self.offenders.truncate(OFFENDERS);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::object_audit::AuditFinding;
    use crate::object_audit::tally::*;
    use crate::ray::Kind;

    fn judged(name: &str, findings: &[(u16, Mode, Mode, bool)]) -> AuditedObject {
        AuditedObject {
            object: Identity {
                kind: Kind::RayCluster,
                namespace: Some("n".to_owned()),
                name: name.to_owned(),
            },
            uid: String::new(),
            policies: Vec::new(),
            findings: findings
                .iter()
                .map(|&(rule, mode, enforced, exempt)| AuditFinding {
                    rule: RuleId(rule),
                    mode,
                    enforced,
                    exempt,
                    policy: None,
                    message: String::new(),
                })
                .collect(),
        }
    }

    #[test]
    fn objects_are_counted_once_by_the_gravest_finding_of_a_rule() {
        use Mode::{Audit, Enforce, Warn};
        let tally = AuditTally::of(&[
            judged(
                "a",
                &[(105, Enforce, Enforce, false), (105, Warn, Enforce, false)],
            ),
            judged(
                "b",
                &[(105, Warn, Enforce, false), (213, Warn, Warn, false)],
            ),
            judged("c", &[(105, Audit, Enforce, true)]),
            judged("d", &[]),
        ]);
        assert_eq!((tally.objects, tally.denied, tally.would_deny), (4, 1, 1));
        let counts = &tally.rules[&RuleId(105)];
        assert_eq!((counts.denied, counts.warned, counts.audited), (1, 1, 1));
        assert_eq!((counts.exempt, counts.would_deny), (1, 1));
        assert_eq!(tally.rules[&RuleId(213)].would_deny, 1);
        let names: Vec<&str> = tally
            .offenders
            .iter()
            .map(|(object, _)| object.name.as_str())
            .collect();
        assert_eq!(names, ["a", "b", "c"]);
    }

    #[test]
    fn only_the_worst_are_named() {
        let many: Vec<AuditedObject> = (0..100)
            .map(|index| {
                let count = usize::from(index == 77) + 1;
                judged(
                    &format!("o{index:03}"),
                    &vec![(105, Mode::Enforce, Mode::Enforce, false); count],
                )
            })
            .collect();
        let tally = AuditTally::of(&many);
        assert_eq!(tally.offenders.len(), OFFENDERS);
        assert_eq!(tally.offenders[0].1.name, "o077");
        assert_eq!(tally.offenders[1].1.name, "o000");
    }
}
