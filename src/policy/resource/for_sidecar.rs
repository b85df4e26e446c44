//! The part of `reconcile` that concerns a sidecar, and how several policies combine in it.

use super::values::{BackOff, InPlace, Reconcile};

impl Reconcile {
    /// What concerns a sidecar: not who scales.
    #[must_use]
    pub fn for_sidecar(&self) -> Self {
        Self {
            mode: None,
            allowed_modes: None,
            ..self.clone()
        }
    }

    /// Writes what is set here over what is set there, as
    /// [`PartialReconcile::write_over`](crate::policy::compiled::PartialReconcile) does with what was read.
    pub(crate) fn write_over(&self, there: &mut Self) {
        // A field that is added later has to be thought of here.
        let Self {
            mode,
            allowed_modes,
            strategy,
            pending_idle_timeout_seconds,
            conserve_gpus,
            max_workers_per_cluster,
            scale_up,
            unschedulable_seconds,
            progress_deadline_seconds,
            drain_timeout_seconds,
            hold_busy_nodes,
            in_place,
            headroom,
            schedules,
            back_off,
        } = self;
        write(&mut there.mode, mode.as_ref());
        write(&mut there.allowed_modes, allowed_modes.as_ref());
        write(&mut there.strategy, strategy.as_ref());
        let pending = pending_idle_timeout_seconds.as_ref();
        write(&mut there.pending_idle_timeout_seconds, pending);
        write(&mut there.conserve_gpus, conserve_gpus.as_ref());
        let most = max_workers_per_cluster.as_ref();
        write(&mut there.max_workers_per_cluster, most);
        write(&mut there.scale_up, scale_up.as_ref());
        write(
            &mut there.unschedulable_seconds,
            unschedulable_seconds.as_ref(),
        );
        write(
            &mut there.progress_deadline_seconds,
            progress_deadline_seconds.as_ref(),
        );
        write(
            &mut there.drain_timeout_seconds,
            drain_timeout_seconds.as_ref(),
        );
        write(&mut there.hold_busy_nodes, hold_busy_nodes.as_ref());
        write(&mut there.headroom, headroom.as_ref());
        write(&mut there.schedules, schedules.as_ref());
        if let Some(in_place) = in_place {
            in_place.write_over(there.in_place.get_or_insert_default());
        }
        if let Some(back_off) = back_off {
            back_off.write_over(there.back_off.get_or_insert_default());
        }
    }
}

impl InPlace {
    fn write_over(&self, there: &mut Self) {
        let Self {
            shrink_after_seconds,
            keep_small_seconds,
            deferred_seconds,
            learn_gaps,
            follow_memory,
            make_room,
            initial_sizes,
        } = self;
        write(
            &mut there.shrink_after_seconds,
            shrink_after_seconds.as_ref(),
        );
        write(&mut there.keep_small_seconds, keep_small_seconds.as_ref());
        write(&mut there.deferred_seconds, deferred_seconds.as_ref());
        write(&mut there.learn_gaps, learn_gaps.as_ref());
        write(&mut there.follow_memory, follow_memory.as_ref());
        write(&mut there.make_room, make_room.as_ref());
        write(&mut there.initial_sizes, initial_sizes.as_ref());
    }
}

impl BackOff {
    fn write_over(&self, there: &mut Self) {
        let Self {
            initial_seconds,
            max_seconds,
        } = self;
        write(&mut there.initial_seconds, initial_seconds.as_ref());
        write(&mut there.max_seconds, max_seconds.as_ref());
    }
}

fn write<T: Clone>(there: &mut Option<T>, here: Option<&T>) {
    if here.is_some() {
        *there = here.cloned();
    }
}
