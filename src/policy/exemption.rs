//! Compiled exemptions: findings that are only recorded until a given time.

use std::collections::BTreeSet;

use k8s_openapi::jiff::Timestamp;

use super::scope::name_of;
use super::selector::Pattern;
use crate::facts::DEFAULT_NAMESPACE;
use crate::ray::{Kind, RayObject};
use crate::rule_id::RuleId;

/// An exemption: findings of some rules in some objects that are only recorded until a given time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exemption {
    /// Its position in the policy, from 0.
    pub index: usize,
    /// The rules; `None` is all of them.
    pub rules: Option<BTreeSet<RuleId>>,
    /// The objects.
    pub objects: Vec<ExemptionScope>,
    /// The reason for it.
    pub reason: String,
    /// The ticket under which the work on it is tracked.
    pub ticket: Option<String>,
    /// The time at which it ends.
    pub expires: Timestamp,
}

/// Some objects by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExemptionScope {
    /// Any kind, if `None`.
    pub kind: Option<Kind>,
    /// Any namespace, if `None`.
    pub namespace: Option<Pattern>,
    /// Any name, if `None`.
    pub name: Option<Pattern>,
}

impl Exemption {
    /// Whether it is valid at `now`.
    pub fn is_in_force(&self, now: Timestamp) -> bool {
        now < self.expires
    }

    /// Whether it covers `object`.
    pub fn covers(&self, object: &RayObject<'_>) -> bool {
        let namespace = object.namespace().unwrap_or(DEFAULT_NAMESPACE);
        let fits = |pattern: &Option<Pattern>, text: &str| {
            pattern.as_ref().is_none_or(|pattern| pattern.matches(text))
        };
        self.objects.iter().any(|objects| {
            objects.kind.is_none_or(|kind| kind == object.kind)
                && fits(&objects.namespace, namespace)
                && fits(&objects.name, name_of(object))
        })
    }

    /// Whether it covers findings of `rule`.
    pub fn is_about(&self, rule: RuleId) -> bool {
        self.rules
            .as_ref()
            .is_none_or(|rules| rules.contains(&rule))
    }
}

impl ExemptionScope {
    /// Whether it covers every object.
    pub fn is_everything(&self) -> bool {
        let any = |pattern: &Option<Pattern>| pattern.as_ref().is_none_or(Pattern::is_any);
        any(&self.namespace) && any(&self.name)
    }
}
