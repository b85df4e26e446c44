//! What objects are judged and defaulted by at one moment.

use std::borrow::Cow;

use k8s_openapi::jiff::Timestamp;

use super::{Policies, Settings};
use crate::facts::Facts;
use crate::ray::RayObject;

/// What is known and decided at one moment: what objects are judged and defaulted by.
#[derive(Debug, Clone, Default)]
pub struct EffectivePolicy {
    /// What is known of the cluster.
    pub facts: Facts,
    /// What its admins decided for every object.
    pub settings: Settings,
    /// What they decided for some objects.
    pub policies: Policies,
}

impl EffectivePolicy {
    /// The settings for `object` at `now`.
    pub fn settings_for(&self, object: &RayObject<'_>, now: Timestamp) -> Cow<'_, Settings> {
        self.policies
            .settings_for(&self.settings, object, &self.facts, now)
    }
}
