//! Compiled exemptions: findings that are only recorded until a given time.

use std::collections::BTreeSet;

use k8s_openapi::jiff::Timestamp;

use super::resource::ExemptObjects;
use super::selector::matches;
use crate::facts::DEFAULT_NAMESPACE;
use crate::ray::RayObject;
use crate::rule_id::RuleId;

/// An exemption: findings of some rules in some objects that are only recorded until a given time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exemption {
    /// Its position in the policy, from 0.
    pub index: usize,
    /// The rules; `None` is all of them.
    pub rules: Option<BTreeSet<RuleId>>,
    /// The objects, each of a kind that exists.
    pub objects: Vec<ExemptObjects>,
    /// The reason for it.
    pub reason: String,
    /// The ticket under which the work on it is tracked.
    pub ticket: Option<String>,
    /// The time at which it ends.
    pub expires: Timestamp,
}

impl Exemption {
    /// Holds at `now`.
    pub fn is_in_force(&self, now: Timestamp) -> bool {
        now < self.expires
    }

    /// Covers `object`.
    pub fn covers(&self, object: &RayObject<'_>) -> bool {
        // A manifest may leave the namespace out.
        let namespace = object.namespace().unwrap_or(DEFAULT_NAMESPACE);
        let fits = |pattern: &Option<String>, text: &str| {
            pattern
                .as_ref()
                .is_none_or(|pattern| matches(pattern, text))
        };
        self.objects.iter().any(|objects| {
            (objects.kind.as_ref()).is_none_or(|kind| kind == object.kind.name())
                && fits(&objects.namespace, namespace)
                && fits(&objects.name, object.written_name())
        })
    }
}
