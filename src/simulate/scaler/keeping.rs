//! How a scaler keeps to a budget: as the controller does, with a record that the world has.

use std::sync::Arc;

use crate::budget::book::BudgetBook;
use crate::budget::keeper::WriteEnd;
use crate::budget::limit::BudgetLimit;
use crate::simulate::sending::{Cut, Trust};
use crate::simulate::world::World;

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

/// Takes in what the record says, and writes what is to be written. Returns what the cluster may use from
/// now on.
pub(super) fn keep(book: &mut BudgetBook, reach: Reach, world: &mut World) -> Arc<[BudgetLimit]> {
    let Some(mut budget) = world.budget.take() else {
        return Arc::default();
    };
    let now = reach.now;
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
    book.limits(now)
}

/// The policies in whose records of budgets the cluster has an entry.
pub(super) fn entries(world: &World) -> Vec<Arc<str>> {
    let uid = world.uid();
    let budget = world.budget.iter().filter(|budget| budget.has_entry(&uid));
    budget
        .map(|budget| Arc::clone(&budget.budget.policy))
        .collect()
}
