//! A RayPolicy after compilation: it is read once, into a form that is always valid.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::resource::{Defaults, Limits, Match, Reconcile};
use super::settings::ReconcileSettings;
use super::{Exemption, Mode};
use crate::rule_id::RuleId;

/// A RayPolicy after compilation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Policy {
    /// Its name.
    pub name: Arc<str>,
    /// The priority: of the policies that match an object, the one with the highest decides.
    pub priority: i32,
    /// The objects that it matches, by selectors that are valid and kinds that exist.
    pub scope: Match,
    /// The strictest mode that any rule can have.
    pub mode: Option<Mode>,
    /// Modes of single rules.
    pub rules: BTreeMap<RuleId, Mode>,
    /// Limits on what objects may request.
    pub limits: Limits,
    /// The values that defaults fill in; quantities are valid.
    pub defaults: Defaults,
    /// The scaler of the clusters, and its settings.
    pub reconcile: ReconcileSettings,
    /// The settings as they are written, reduced to those that a sidecar obeys.
    pub(crate) for_sidecar: Reconcile,
    /// Exemptions: findings that are only recorded until a given time.
    pub exemptions: Vec<Arc<Exemption>>,
    /// Refuse Ray objects while no webhook answers.
    pub fail_closed: Option<bool>,
}
