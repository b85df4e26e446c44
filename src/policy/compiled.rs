//! A RayPolicy after compilation: it is read once, into a form that is always valid.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use super::resource::{Defaults, Reconcile};
use super::settings::{DefaultValues, ReconcileSettings};
use super::{Exemption, Limits, Mode, Scope};
use crate::plan::{Headroom, ScheduledStandby};
use crate::rule_id::RuleId;

/// A RayPolicy after compilation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Policy {
    /// Its name.
    pub name: Arc<str>,
    /// The priority: of the policies that match an object, the one with the highest decides.
    pub priority: i32,
    /// The objects that it matches.
    pub scope: Scope,
    /// The strictest mode that any rule can have.
    pub mode: Option<Mode>,
    /// Modes of single rules.
    pub rules: BTreeMap<RuleId, Mode>,
    /// Limits on what objects may request.
    pub limits: Limits,
    /// The values that defaults fill in.
    pub defaults: Defaults,
    /// The scaler of the clusters, and its settings.
    pub reconcile: PartialReconcile,
    /// Exemptions: findings that are only recorded until a given time.
    pub exemptions: Vec<Arc<Exemption>>,
    /// Refuse Ray objects while no webhook answers.
    pub fail_closed: Option<bool>,
}

impl Policy {
    /// The exemptions that have ended at `now`.
    pub fn ended(&self, now: Timestamp) -> impl Iterator<Item = &Exemption> {
        let exemptions = self.exemptions.iter().map(Arc::as_ref);
        exemptions.filter(move |exemption| !exemption.is_in_force(now))
    }
}

/// The part of [`ReconcileSettings`], and the permitted modes, that a policy sets.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PartialReconcile {
    /// The settings as they are written, but for the two below, which are compiled.
    pub(crate) written: Reconcile,
    /// The raw spec, reduced to the fields a sidecar obeys.
    pub(crate) for_sidecar: Arc<Reconcile>,
    pub(crate) headroom: Option<Arc<Headroom>>,
    pub(crate) schedules: Option<Arc<[ScheduledStandby]>>,
}

impl PartialReconcile {
    pub(crate) fn write_over(&self, settings: &mut ReconcileSettings) {
        self.written.write_over(&mut settings.written);
        write(&mut settings.headroom, self.headroom.as_ref());
        write(&mut settings.schedules, self.schedules.as_ref());
    }
}

/// Overwrites the values that the policy sets.
fn write<T: Clone>(place: &mut T, said: Option<&T>) {
    if let Some(said) = said {
        place.clone_from(said);
    }
}

impl Defaults {
    /// Writes the values that are set here, whose quantities are valid, over those there.
    pub(crate) fn write_over(&self, values: &mut DefaultValues) {
        let container = self.ray_container.clone().unwrap_or_default();
        let rayfit = self.rayfit_container.clone().unwrap_or_default();
        for (place, amount) in [
            (&mut values.ray_sidecar.cpu, container.cpu),
            (&mut values.ray_sidecar.memory, container.memory),
            (&mut values.rayfit_sidecar.cpu, rayfit.cpu),
            (&mut values.rayfit_sidecar.memory, rayfit.memory),
        ] {
            let Some(amount) = amount else { continue };
            // Objects get them as the policy writes them.
            *place = match amount.0 {
                Value::String(text) => text,
                other => other.to_string(),
            };
        }
        write(&mut values.image, rayfit.image.as_ref());
        let seconds = self.idle_timeout_seconds.as_ref();
        write(&mut values.idle_timeout_seconds, seconds);
        write(&mut values.upscaling_mode, self.upscaling_mode.as_ref());
        let head = self.head_takes_no_work.as_ref();
        write(&mut values.head_takes_no_work, head);
    }
}
