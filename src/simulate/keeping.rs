//! How a scaler keeps to a budget: as the controller does, with a record that the world has.

use std::sync::Arc;

use super::sending::{Cut, Trust};
use super::world::World;
use crate::budget::book::BudgetBook;
use crate::budget::keeper::WriteEnd;
use crate::budget::limit::BudgetLimit;
use crate::reconcile::{Round, RoundMemory, RoundSettings, round};
use crate::snapshot::Snapshot;

/// The budgets of a scaler.
#[derive(Debug, Clone, Default)]
pub(super) struct ScalerBudgets {
    book: BudgetBook,
    limits: Arc<[BudgetLimit]>,
}

/// What a scaler can reach.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reach {
    /// What it is cut off from.
    pub(super) cut: Option<Cut>,
    /// Until when it may write.
    pub(super) trust: Trust,
    /// The time by its own clock, in seconds since 1970.
    pub(super) now: f64,
}

/// Whether what the cluster may use has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LimitChange {
    None,
    Less,
    /// More of something.
    More,
}

impl ScalerBudgets {
    /// Takes in what the record says, and writes what is to be written.
    pub(super) fn keep(
        &mut self,
        settings: &RoundSettings,
        reach: Reach,
        world: &mut World,
    ) -> LimitChange {
        let Some(mut budget) = world.budget.take() else {
            return LimitChange::None;
        };
        if self.book.is_empty() {
            self.book = BudgetBook::new(&world.uid());
        }
        let (book, now) = (&mut self.book, reach.now);
        book.set(&settings.budgets, settings.budget_share);
        if reach.cut.is_none() {
            budget.show(book, now);
        }
        let may_write = reach.trust.refusal(world.now).is_none();
        let writes = if may_write {
            book.writes(now, |_| false)
        } else {
            Vec::new()
        };
        for write in writes {
            let is_stored = reach.cut != Some(Cut::Requests) && budget.store(&write);
            let version = budget.version();
            let end = match (reach.cut, is_stored) {
                (Some(_), _) => WriteEnd::Unknown,
                (None, true) => WriteEnd::Stored(&version),
                (None, false) => WriteEnd::Refused,
            };
            book.wrote(write, end, now, world.random.f64());
        }
        world.budget = Some(budget);
        let limits = book.limits(now);
        let before = std::mem::replace(&mut self.limits, limits);
        if before == self.limits {
            return LimitChange::None;
        }
        let mut pairs = before.iter().zip(self.limits.iter());
        let is_more = pairs.any(|(before, now)| !now.limit.is_within(before.limit));
        if is_more || before.is_empty() {
            LimitChange::More
        } else {
            LimitChange::Less
        }
    }

    /// The round of a snapshot, within what budgets allow; where they leave too little, more is asked
    /// for first.
    pub(super) fn decide(
        &mut self,
        snapshot: &Snapshot,
        memory: &mut RoundMemory,
        settings: &RoundSettings,
        reach: Reach,
        world: &mut World,
    ) -> Round {
        if !self.limits.is_empty() && reach.cut.is_none() {
            read_anew(snapshot, memory, reach.now, world);
        }
        let made = self.within(snapshot, memory, settings, reach.now);
        if self.keep(settings, reach, world) == LimitChange::More {
            return self.within(snapshot, memory, settings, reach.now);
        }
        made
    }

    fn within(
        &mut self,
        snapshot: &Snapshot,
        memory: &RoundMemory,
        settings: &RoundSettings,
        now: f64,
    ) -> Round {
        let made = round(snapshot, memory, &self.bound(settings));
        if let Some(of) = made.budget {
            self.book.plans(of, now);
        }
        made
    }

    /// The settings with what budgets let the cluster use now.
    pub(super) fn bound(&self, settings: &RoundSettings) -> RoundSettings {
        settings.within(self.limits.clone())
    }
}

/// Reads the objects as they are stored, if that is needed before the cluster may grow.
fn read_anew(snapshot: &Snapshot, memory: &mut RoundMemory, now: f64, world: &mut World) {
    if !memory.needs_read(&snapshot.pods, now) {
        return;
    }
    let generation = |of: &serde_json::Value| of["metadata"]["generation"].clone();
    let stored = generation(world.stored_cluster());
    world.learn_cluster();
    let pods = world.own_pods();
    let is_seen = stored == generation(snapshot.ray_cluster.object())
        && pods
            .iter()
            .all(|pod| snapshot.pods.find(pod.name).is_some());
    if is_seen {
        memory.read_pods(&pods, now);
    }
}
