//! The progress since an earlier report: findings that are gone, and findings that are new.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use k8s_openapi::jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::facts::DEFAULT_NAMESPACE;
use crate::object_audit::AuditedObject;
use crate::objects::Identity;
use crate::ray::Kind;
use crate::report::counted;

/// An earlier report of `rayfit rollout -o json`.
#[derive(Debug, Deserialize)]
pub struct EarlierReport {
    /// The time for which objects were judged.
    #[serde(default)]
    at: Option<Timestamp>,
    findings: Vec<EarlierObject>,
}

#[derive(Debug, Deserialize)]
struct EarlierObject {
    kind: String,
    namespace: Option<String>,
    name: String,
    #[serde(default)]
    team: Option<String>,
    findings: Vec<EarlierFinding>,
}

#[derive(Debug, Deserialize)]
struct EarlierFinding {
    rule: String,
}

/// The findings of a rule in an object, by which reports are compared.
pub type AuditFault = (Identity, String);

/// The progress since an earlier report.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RolloutProgress {
    at: Option<Timestamp>,
    /// The faults that the earlier report does not have.
    pub new: BTreeSet<AuditFault>,
    /// The faults that only the earlier report has, with the team.
    pub gone: BTreeMap<AuditFault, String>,
}

/// The faults of objects.
pub fn faults<'a>(
    objects: impl IntoIterator<Item = &'a AuditedObject>,
) -> impl Iterator<Item = AuditFault> {
    objects.into_iter().flat_map(|audited| {
        let findings = audited.findings.iter();
        findings.map(|found| (audited.object.clone(), found.rule.to_string()))
    })
}

impl RolloutProgress {
    /// The progress from a report to the objects as they are.
    pub fn since<'a>(
        earlier: EarlierReport,
        objects: impl IntoIterator<Item = &'a AuditedObject>,
    ) -> Self {
        let mut progress = Self {
            at: earlier.at,
            new: faults(objects).collect(),
            ..Self::default()
        };
        let mut kept = BTreeSet::new();
        for object in earlier.findings {
            let Some(kind) = Kind::from_name(&object.kind) else {
                continue;
            };
            let namespace = object.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE);
            let team = object.team.unwrap_or_else(|| namespace.to_owned());
            let identity = Identity {
                kind,
                namespace: object.namespace,
                name: object.name,
            };
            for finding in object.findings {
                let fault = (identity.clone(), finding.rule);
                if progress.new.remove(&fault) {
                    kept.insert(fault);
                } else if !kept.contains(&fault) {
                    progress.gone.insert(fault, team.clone());
                }
            }
        }
        progress
    }

    /// The progress for programs.
    pub fn json(&self) -> Value {
        let gone = self.gone.iter().map(|((object, rule), team)| {
            json!({"object": object.to_string(), "rule": rule, "team": team})
        });
        json!({
            "at": self.at.map(|at| at.to_string()),
            "new": self.new.len(),
            "gone": gone.collect::<Vec<_>>(),
        })
    }
}

impl fmt::Display for RolloutProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at.map(|at| format!(" of {at}"));
        let (at, gone) = (at.unwrap_or_default(), counted(self.gone.len(), "finding"));
        write!(
            f,
            "since the report{at}: {gone} gone, {} new",
            self.new.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object_audit::AuditFinding;
    use crate::policy::Mode;
    use crate::rule_id::RuleId;

    #[test]
    fn findings_are_gone_new_or_as_they_were() {
        let finding = |rule| AuditFinding {
            rule: RuleId(rule),
            mode: Mode::Audit,
            enforced: Mode::Audit,
            exempt: false,
            policy: None,
            message: String::new(),
        };
        let object = AuditedObject {
            object: Identity {
                kind: Kind::RayCluster,
                namespace: Some("n".to_owned()),
                name: "a".to_owned(),
            },
            uid: String::new(),
            policies: Vec::new(),
            // A rule can find several things in an object.
            findings: vec![finding(105), finding(105), finding(201)],
        };
        let earlier = r#"{"findings": [
            {"kind": "RayCluster", "namespace": "n", "name": "a",
             "findings": [{"rule": "RF105"}, {"rule": "RF105"}, {"rule": "RF213"}]},
            {"kind": "Other", "namespace": "n", "name": "b", "findings": [{"rule": "RF105"}]}]}"#;
        let earlier: EarlierReport = serde_json::from_str(earlier).unwrap();
        let progress = RolloutProgress::since(earlier, [&object]);
        let fault = |rule: &str| (object.object.clone(), rule.to_owned());
        assert_eq!(progress.new, BTreeSet::from([fault("RF201")]));
        let gone = BTreeMap::from([(fault("RF213"), "n".to_owned())]);
        assert_eq!(progress.gone, gone);
        assert_eq!(
            progress.to_string(),
            "since the report: 1 finding gone, 1 new"
        );
    }
}
