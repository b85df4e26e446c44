//! A budget in a simulated world: its record, and another cluster that uses it too.

use super::moment::Moment;
use crate::budget::amounts::BudgetAmounts;
use crate::budget::book::{BudgetBook, PlannedUse, RecordWrite};
use crate::budget::keeper::WriteEnd;
use crate::budget::limit::{Budget, BudgetShare};
use crate::budget::record::Grants;

/// A budget over the simulated cluster and others: those of a shared world, or one that is simulated
/// as far as its use of the budget goes.
#[derive(Debug, Clone)]
pub struct SimulatedBudget {
    /// The budget.
    pub budget: Budget,
    /// What the other cluster wants, and from when on, in seconds since the first job.
    pub wants: Vec<(f64, BudgetAmounts)>,
    /// What the other cluster uses.
    pub used: BudgetAmounts,
    record: Grants,
    /// What the other cluster knows of the budget; `None` where other clusters of the world use it.
    other: Option<BudgetBook>,
}

/// The UID of the other cluster.
const OTHER: &str = "another";

impl SimulatedBudget {
    /// A budget of which nothing is granted yet. It has been there for long, so that all know it.
    pub fn new(budget: Budget, wants: Vec<(f64, BudgetAmounts)>) -> Self {
        let mut other = BudgetBook::new(OTHER);
        other.set(std::slice::from_ref(&budget), BudgetShare::default());
        Self {
            budget,
            wants,
            used: BudgetAmounts::default(),
            record: Grants {
                revision: 1,
                made: 1,
                ..Grants::default()
            },
            other: Some(other),
        }
    }

    /// A budget of several clusters of one world, of which nothing is granted yet. The code that
    /// plays the world sets what the others use before something happens to one of them.
    pub fn shared(budget: Budget) -> Self {
        Self {
            other: None,
            ..Self::new(budget, Vec::new())
        }
    }

    /// Whether other clusters of the world use it.
    pub fn is_shared(&self) -> bool {
        self.other.is_none()
    }

    /// Whether more is granted than there is.
    pub fn is_overgranted(&self) -> bool {
        !self.record.sum().is_within(self.budget.total)
    }

    /// What a cluster uses at the most, as the record knows it, given its UID.
    pub fn recorded(&self, uid: &str) -> BudgetAmounts {
        let entry = self.record.clusters.get(uid);
        entry.map_or_else(BudgetAmounts::default, |entry| {
            entry.granted.plus(entry.excess)
        })
    }

    /// Whether a cluster has an entry in the record, given its UID.
    pub(super) fn has_entry(&self, uid: &str) -> bool {
        self.record.clusters.contains_key(uid)
    }

    /// Whether more is used than there is: a cluster uses more than its grant, because its users asked
    /// for that, and others have not come down yet.
    pub fn is_overdrawn(&self) -> bool {
        !self.record.used().is_within(self.budget.total)
    }

    /// The version of the record.
    pub(super) fn version(&self) -> String {
        self.record.revision.to_string()
    }

    /// Stores a record, if nobody else has written it.
    pub(super) fn store(&mut self, write: &RecordWrite) -> bool {
        let is_next = write.version == self.version();
        if is_next {
            self.record = write.grants.clone();
        }
        is_next
    }

    /// Shows a book the record.
    pub(super) fn show(&self, book: &mut BudgetBook, now: f64) {
        let (policy, version) = (&self.budget.policy, self.version());
        if book.unread().is_empty() {
            book.observe(policy, Some((&version, &self.record)));
        } else {
            book.read(policy, &version, self.record.clone(), now);
        }
    }

    /// Lets the other cluster use what it wants and may. It begins once the simulated one, which it
    /// names by its UID, is known. `since` is the number of seconds since the first job.
    pub fn pass(&mut self, first: &str, since: f64, now: Moment) {
        if !self.record.clusters.contains_key(first) {
            return;
        }
        let Some(mut book) = self.other.take() else {
            return;
        };
        let now = now.epoch_seconds();
        let wants = self.wants.iter().rev().find(|(from, _)| *from <= since);
        let wants = wants.map_or_else(BudgetAmounts::default, |(_, wants)| *wants);
        self.show(&mut book, now);
        let limit = book.limits(now).first().map(|one| one.limit);
        self.used = wants.min(limit.unwrap_or_default());
        let planned = self.used;
        book.plans(PlannedUse { planned, wants }, now);
        for write in book.writes(now, |_| false) {
            let is_stored = self.store(&write);
            let version = self.version();
            let end = if is_stored {
                WriteEnd::Stored(&version)
            } else {
                WriteEnd::Refused
            };
            book.wrote(write, end, now, 0.0);
        }
        self.other = Some(book);
    }
}
