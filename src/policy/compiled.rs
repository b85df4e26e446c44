//! A RayPolicy after compilation: it is read once, into a form that is always valid.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;

use super::resource::Reconcile;
use super::settings::{DefaultValues, ReconcileSettings};
use super::{Exemption, Limits, Mode, Scope};
use crate::plan::{Headroom, ScaleUp, ScheduledStandby, Strategy};
use crate::ray::ReconcileMode;
use crate::rule_id::RuleId;

/// A RayPolicy after compilation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Policy {
    /// Its name.
    pub name: Arc<str>,
    /// Of the policies that match an object, the one with the highest priority decides.
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
    pub defaults: PartialDefaults,
    /// Who scales the clusters, and how.
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

/// The part of [`DefaultValues`] that a policy sets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PartialDefaults {
    pub(crate) image: Option<String>,
    pub(crate) idle_timeout_seconds: Option<i64>,
    pub(crate) upscaling_mode: Option<String>,
    pub(crate) ray_cpu: Option<String>,
    pub(crate) ray_memory: Option<String>,
    pub(crate) rayfit_cpu: Option<String>,
    pub(crate) rayfit_memory: Option<String>,
    pub(crate) head_takes_no_work: Option<bool>,
}

/// The part of [`ReconcileSettings`], and the permitted modes, that a policy sets.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PartialReconcile {
    pub(crate) mode: Option<ReconcileMode>,
    pub(crate) allowed_modes: Option<Vec<ReconcileMode>>,
    pub(crate) strategy: Option<Strategy>,
    pub(crate) pending_idle_timeout_seconds: Option<u32>,
    pub(crate) conserve_gpus: Option<bool>,
    pub(crate) max_workers_per_cluster: Option<u32>,
    pub(crate) scale_up: Option<ScaleUp>,
    pub(crate) unschedulable_seconds: Option<u32>,
    pub(crate) progress_deadline_seconds: Option<u32>,
    pub(crate) drain_timeout_seconds: Option<u32>,
    pub(crate) hold_busy_nodes: Option<bool>,
    pub(crate) shrink_after_seconds: Option<u32>,
    pub(crate) keep_small_seconds: Option<u32>,
    pub(crate) deferred_seconds: Option<u32>,
    pub(crate) learn_gaps: Option<bool>,
    pub(crate) follow_memory: Option<bool>,
    pub(crate) make_room: Option<bool>,
    pub(crate) initial_sizes: Option<bool>,
    pub(crate) headroom: Option<Arc<Headroom>>,
    pub(crate) schedules: Option<Arc<[ScheduledStandby]>>,
    pub(crate) back_off_initial_seconds: Option<u32>,
    pub(crate) back_off_max_seconds: Option<u32>,
    /// The same as it is written, as far as it concerns a sidecar.
    pub(crate) for_sidecar: Arc<Reconcile>,
}

/// Overwrites the values that the policy sets.
fn write<T: Clone>(place: &mut T, said: Option<&T>) {
    if let Some(said) = said {
        place.clone_from(said);
    }
}

impl PartialDefaults {
    pub(crate) fn write_over(&self, values: &mut DefaultValues) {
        write(&mut values.image, self.image.as_ref());
        write(
            &mut values.idle_timeout_seconds,
            self.idle_timeout_seconds.as_ref(),
        );
        write(&mut values.upscaling_mode, self.upscaling_mode.as_ref());
        write(&mut values.ray_sidecar.cpu, self.ray_cpu.as_ref());
        write(&mut values.ray_sidecar.memory, self.ray_memory.as_ref());
        write(&mut values.rayfit_sidecar.cpu, self.rayfit_cpu.as_ref());
        write(
            &mut values.rayfit_sidecar.memory,
            self.rayfit_memory.as_ref(),
        );
        write(
            &mut values.head_takes_no_work,
            self.head_takes_no_work.as_ref(),
        );
    }
}

impl PartialReconcile {
    pub(crate) fn write_over(&self, settings: &mut ReconcileSettings) {
        if self.mode.is_some() {
            settings.mode = self.mode;
        }
        if self.pending_idle_timeout_seconds.is_some() {
            settings.pending_idle_timeout_seconds = self.pending_idle_timeout_seconds;
        }
        write(&mut settings.strategy, self.strategy.as_ref());
        write(&mut settings.conserve_gpus, self.conserve_gpus.as_ref());
        write(
            &mut settings.max_workers_per_cluster,
            self.max_workers_per_cluster.as_ref(),
        );
        settings.scale_up = self.scale_up.or(settings.scale_up);
        write(
            &mut settings.unschedulable_seconds,
            self.unschedulable_seconds.as_ref(),
        );
        write(
            &mut settings.progress_deadline_seconds,
            self.progress_deadline_seconds.as_ref(),
        );
        write(
            &mut settings.drain_timeout_seconds,
            self.drain_timeout_seconds.as_ref(),
        );
        write(&mut settings.hold_busy_nodes, self.hold_busy_nodes.as_ref());
        write(
            &mut settings.in_place.shrink_after_seconds,
            self.shrink_after_seconds.as_ref(),
        );
        write(
            &mut settings.in_place.keep_small_seconds,
            self.keep_small_seconds.as_ref(),
        );
        write(
            &mut settings.in_place.deferred_seconds,
            self.deferred_seconds.as_ref(),
        );
        write(&mut settings.in_place.learn_gaps, self.learn_gaps.as_ref());
        write(
            &mut settings.in_place.follow_memory,
            self.follow_memory.as_ref(),
        );
        write(&mut settings.in_place.make_room, self.make_room.as_ref());
        write(
            &mut settings.in_place.initial_sizes,
            self.initial_sizes.as_ref(),
        );
        write(&mut settings.headroom, self.headroom.as_ref());
        write(&mut settings.schedules, self.schedules.as_ref());
        let back_off = &mut settings.back_off;
        back_off.initial_seconds = self.back_off_initial_seconds.or(back_off.initial_seconds);
        back_off.max_seconds = self.back_off_max_seconds.or(back_off.max_seconds);
    }
}
