//! A stored object, checked as if it were created now.

use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;

use crate::facts::Facts;
use crate::finding::Finding;
use crate::judge::{ceiling, judge};
use crate::objects::Identity;
use crate::policy::{Mode, Policies, Settings};
use crate::ray::RayObject;
use crate::report::message;
use crate::rule_id::RuleId;

/// The results for one stored object.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AuditedObject {
    /// The object.
    pub object: Identity,
    /// The object's UID; empty if it has none.
    pub uid: String,
    /// The policies that match the object, in their order.
    pub policies: Vec<Arc<str>>,
    /// The findings in the object.
    pub findings: Vec<AuditFinding>,
}

/// A finding in a stored object.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AuditFinding {
    /// The rule.
    pub rule: RuleId,
    /// The mode of the finding under the current policies.
    pub mode: Mode,
    /// The mode that the finding would have if every policy's `mode` were Enforce.
    pub enforced: Mode,
    /// An exemption holds the finding back from a stricter mode.
    pub exempt: bool,
    /// The policy that decided on the mode.
    pub policy: Option<Arc<str>>,
    /// The message: place, problem, reason and fix.
    pub message: String,
}

impl AuditedObject {
    /// Would be denied if it were created now.
    pub fn is_denied(&self) -> bool {
        self.findings
            .iter()
            .any(|finding| finding.mode == Mode::Enforce)
    }

    /// Would be denied only if every policy's `mode` were Enforce.
    pub fn would_be_denied(&self) -> bool {
        !self.is_denied() && self.findings.iter().any(AuditFinding::would_deny)
    }
}

impl AuditFinding {
    /// Would deny the object only if every policy's `mode` were Enforce.
    pub fn would_deny(&self) -> bool {
        self.enforced == Mode::Enforce && self.mode < Mode::Enforce && !self.exempt
    }
}

/// Checks a stored object as if it were created at `now`: the results, and the findings that they are about, in the
/// same order.
pub fn examine(
    object: &RayObject<'_>,
    facts: &Facts,
    policies: &Policies,
    base: &Settings,
    now: Timestamp,
) -> (AuditedObject, Vec<Finding>) {
    let settings = policies.settings_for(base, object, facts, now);
    let curious = Settings {
        // Rules that are off run too, so that the results show the effect of turning them on.
        modes: settings.modes.awake(),
        ..Settings::clone(&settings)
    };
    let ceiling = ceiling(object, None, &settings);
    let verdict = judge(object, None, None, facts, &curious);
    let judged = |finding: &Finding| {
        let ruling = settings.modes.rule_on(finding.rule, finding.mode);
        let exempt = ruling
            .decided
            .as_ref()
            .is_some_and(|by| by.exemption.is_some());
        AuditFinding {
            rule: finding.rule,
            mode: ruling.mode.min(ceiling),
            enforced: ruling.unbounded.min(ceiling),
            exempt,
            policy: ruling.decided.map(|by| by.policy),
            message: message::line(finding),
        }
    };
    let mut findings = verdict.denied;
    findings.extend(verdict.warned);
    findings.extend(verdict.audited);
    let audited = AuditedObject {
        object: Identity::of(object),
        uid: object.uid().unwrap_or_default().to_owned(),
        policies: policies
            .matching(object, facts)
            .map(|policy| policy.name.clone())
            .collect(),
        findings: findings.iter().map(judged).collect(),
    };
    (audited, findings)
}
