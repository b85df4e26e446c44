//! The settings and facts with which objects are checked and defaulted at one moment.

use std::borrow::Cow;

use k8s_openapi::jiff::Timestamp;

use super::{Policies, Settings};
use crate::facts::Facts;
use crate::ray::RayObject;

/// The settings and facts of one moment, with which objects are checked and defaulted.
#[derive(Debug, Clone, Default)]
pub struct EffectivePolicy {
    /// Facts about the Kubernetes cluster.
    pub facts: Facts,
    /// The settings for every object.
    pub settings: Settings,
    /// The policies for some objects.
    pub policies: Policies,
}

impl EffectivePolicy {
    /// The settings for `object` at `now`.
    pub fn settings_for(&self, object: &RayObject<'_>, now: Timestamp) -> Cow<'_, Settings> {
        self.policies
            .settings_for(&self.settings, object, &self.facts, now)
    }
}
