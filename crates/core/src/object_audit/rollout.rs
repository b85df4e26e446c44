//! The report of `rayfit rollout` as JSON, for programs and for its page: what the audit says of each rule, team and
//! object, and the patch of each object.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use crate::facts::{DEFAULT_NAMESPACE, Facts};
use crate::finding::Finding;
use crate::object_audit::patch::patch;
use crate::object_audit::progress::{RolloutProgress, faults};
use crate::object_audit::{AuditFinding, AuditTally, AuditedObject};
use crate::policy::Mode;
use crate::ray::RayObject;
use crate::rules;

/// An object of the report.
#[derive(Debug, Clone, PartialEq)]
pub struct RolloutObject {
    /// The results of its audit.
    pub audited: AuditedObject,
    /// The findings that the results are about.
    pub findings: Vec<Finding>,
    /// The team that owns it.
    pub team: String,
    /// The operations of the JSON patch that mends it.
    pub patch: Vec<Value>,
    /// The number of findings that the patch mends.
    pub mended: usize,
}

impl RolloutObject {
    /// A stored object by what `judge` and `team` say of it, with its patch; `None` for one that is no Ray object, and
    /// for one that goes away: nobody has to mend that, and the background audit leaves it out too.
    pub fn of(
        value: &Value,
        judge: impl Fn(&RayObject<'_>) -> (AuditedObject, Vec<Finding>),
        team: impl Fn(&RayObject<'_>) -> String,
    ) -> Option<Self> {
        let object = RayObject::parse(value).filter(|object| !object.is_deleting())?;
        let (audited, findings) = judge(&object);
        let find = |value: &Value| {
            let (audited, findings) = RayObject::parse(value).map(|object| judge(&object))?;
            let findings = audited.findings.iter().zip(findings);
            // A rule that a policy turns off is to change nothing.
            let findings = findings.filter(|(audited, _)| audited.enforced > Mode::Off);
            Some(findings.map(|(_, finding)| finding).collect())
        };
        let is_mendable = findings.iter().any(|finding| finding.mend.is_some());
        let (patch, mended) = if !is_mendable || object.ray_owner().is_some() {
            // KubeRay would take back a change of what it has made.
            (Vec::new(), 0)
        } else {
            patch(value, |value| find(value).unwrap_or_default())
        };
        Some(Self {
            team: team(&object),
            audited,
            findings,
            patch,
            mended,
        })
    }
}

/// The team of an object: what a label or annotation of it says, or that label of its namespace, or its namespace.
pub fn team(object: &RayObject<'_>, label: Option<&str>, facts: &Facts) -> String {
    let namespace = object.namespace().unwrap_or(DEFAULT_NAMESPACE);
    let named = label.and_then(|label| {
        let annotation = || {
            let annotations = object.metadata()?.get("annotations")?;
            annotations.get(label)?.as_str()
        };
        let own = object.label(label).or_else(annotation);
        own.or_else(|| facts.namespace_label(namespace, label))
    });
    named.unwrap_or(namespace).to_owned()
}

/// The report. Fields are only ever added.
pub fn report(
    objects: &[RolloutObject],
    at: Timestamp,
    progress: Option<&RolloutProgress>,
) -> Value {
    let tally = AuditTally::of(objects.iter().map(|object| &object.audited));
    // Objects without findings are only counted: there can be many thousands of them.
    let found = objects.iter().filter(|object| !object.findings.is_empty());
    let findings = found.map(|object| described(object, progress));
    json!({
        "at": at.to_string(),
        "objects": tally.objects,
        "denied": tally.denied,
        "wouldDeny": tally.would_deny,
        "rules": by_rule(objects, &tally),
        "teams": by_team(objects, progress),
        "earlier": progress.map(RolloutProgress::json),
        "findings": findings.collect::<Vec<_>>(),
    })
}

fn by_rule(objects: &[RolloutObject], tally: &AuditTally) -> Vec<Value> {
    let rules = tally.rules.iter().map(|(id, counts)| {
        let of_rule = objects.iter().filter(|object| {
            let mut findings = object.findings.iter();
            findings.any(|finding| finding.rule == *id)
        });
        let names = of_rule.map(|object| object.audited.object.to_string());
        let rule = rules::find(*id);
        json!({
            "rule": id.to_string(),
            "name": rule.map(|rule| rule.name),
            "summary": rule.map(|rule| rule.summary),
            "denied": counts.denied,
            "warned": counts.warned,
            "audited": counts.audited,
            "exempt": counts.exempt,
            "wouldDeny": counts.would_deny,
            "objects": names.collect::<Vec<_>>(),
        })
    });
    rules.collect()
}

fn by_team(objects: &[RolloutObject], progress: Option<&RolloutProgress>) -> Vec<Value> {
    let mut teams: BTreeMap<&str, (Vec<&AuditedObject>, usize)> = BTreeMap::new();
    for object in objects {
        let (audited, _) = teams.entry(&object.team).or_default();
        audited.push(&object.audited);
    }
    for team in progress
        .into_iter()
        .flat_map(|progress| progress.gone.values())
    {
        teams.entry(team).or_default().1 += 1;
    }
    let teams = teams.into_iter().map(|(team, (audited, gone))| {
        let tally = AuditTally::of(audited.iter().copied());
        let faults: BTreeSet<_> = faults(audited).collect();
        let is_new = |fault: &&_| progress.is_some_and(|progress| progress.new.contains(*fault));
        json!({
            "team": team,
            "objects": tally.objects,
            "denied": tally.denied,
            "wouldDeny": tally.would_deny,
            "findings": faults.len(),
            "new": faults.iter().filter(is_new).count(),
            "gone": gone,
        })
    });
    teams.collect()
}

fn described(object: &RolloutObject, progress: Option<&RolloutProgress>) -> Value {
    let AuditedObject {
        object: identity,
        policies,
        ..
    } = &object.audited;
    let finding = |(audited, finding): (&AuditFinding, &Finding)| {
        let rule = finding.rule.to_string();
        let fault = (identity.clone(), rule);
        json!({
            "rule": fault.1,
            "mode": audited.mode.name(),
            "wouldDeny": audited.would_deny(),
            "exempt": audited.exempt,
            "policy": audited.policy.as_deref(),
            "new": progress.map(|progress| progress.new.contains(&fault)),
            "path": finding.path.to_string(),
            "problem": finding.problem,
            "why": finding.why,
            "fix": finding.fix,
            "message": audited.message,
        })
    };
    let findings = object.audited.findings.iter().zip(&object.findings);
    json!({
        "kind": identity.kind.name(),
        "namespace": identity.namespace,
        "name": identity.name,
        "team": object.team,
        "policies": policies.iter().map(|name| &**name).collect::<Vec<_>>(),
        "findings": findings.map(finding).collect::<Vec<_>>(),
        "patch": object.patch,
        "mended": object.mended,
    })
}
