//! The budgets of one cluster: their records are read, watched and written, and what the cluster may
//! use follows.

use std::collections::HashSet;
use std::sync::Arc;

use super::desk::BudgetDesk;
use crate::budget::book::BudgetBook;
use crate::budget::keeper::WriteEnd;
use crate::budget::limit::{Budget, BudgetLimit};
use crate::controller::act::writer::Writer;
use crate::controller::clock::Clock;
use crate::reconcile::Failure;

/// The budgets of one cluster: what performs the steps that its book asks for.
pub struct ClusterBudgets {
    uid: String,
    /// Nothing for a process that knows no policies.
    desk: Option<BudgetDesk>,
    clock: Clock,
    /// The last logged reason why a record cannot be used.
    logged: String,
}

impl ClusterBudgets {
    /// The budgets of a cluster, given its UID.
    pub fn new(uid: &str, desk: Option<BudgetDesk>, clock: Clock) -> Self {
        Self {
            uid: uid.to_owned(),
            desk,
            clock,
            logged: String::new(),
        }
    }

    /// Takes in which budgets there are.
    pub fn holds(&self, budgets: &[Budget]) {
        if let Some(desk) = &self.desk {
            desk.holds(budgets);
        }
    }

    /// The policies in whose records the cluster has an entry.
    pub fn entries(&self) -> Vec<Arc<str>> {
        let desk = self.desk.as_ref();
        desk.map(|desk| desk.policies_of(&self.uid))
            .unwrap_or_default()
    }

    /// Takes in what the records say, and writes what is to be written. Returns what the cluster may
    /// use from now on.
    pub async fn keep(&mut self, book: &mut BudgetBook, writer: &Writer) -> Arc<[BudgetLimit]> {
        if book.is_empty() {
            return Arc::default();
        }
        let failed = self.work(book, writer).await.err();
        let why = failed
            .map(|failure| failure.to_string())
            .unwrap_or_default();
        if self.logged != why {
            if !why.is_empty() {
                let cluster = writer.key().to_string();
                tracing::warn!(cluster, why, "the record of a budget cannot be used");
            }
            self.logged = why;
        }
        book.limits(self.clock.wall())
    }

    async fn work(&self, book: &mut BudgetBook, writer: &Writer) -> Result<(), Failure> {
        let Some(desk) = self.desk.clone() else {
            return Ok(());
        };
        for policy in book.policies() {
            let seen = desk.seen(&policy);
            let seen = seen.as_ref();
            let seen = seen.map(|record| (record.version.as_str(), &record.grants));
            book.observe(&policy, seen);
        }
        for policy in book.unread() {
            let record = desk.read(&policy, writer).await?;
            let (version, grants) = (record.version.as_str(), record.grants.clone());
            book.read(&policy, version, grants, self.clock.wall());
        }
        let gone = if book.is_busy() {
            desk.gone(book.entries().into_iter())
        } else {
            HashSet::new()
        };
        let mut failed = None;
        for write in book.writes(self.clock.wall(), |uid| gone.contains(uid)) {
            let done = desk.write(&write, writer).await;
            let end = match &done {
                Ok(version) => WriteEnd::Stored(version),
                Err(Failure::Api(status)) if (400..500).contains(&status.code) => WriteEnd::Refused,
                Err(_) => WriteEnd::Unknown,
            };
            let now = self.clock.wall();
            book.wrote(write, end, now, fastrand::f64());
            // Another cluster's owner has written it first.
            let is_late = matches!(&done, Err(Failure::Api(status)) if status.code == 409);
            failed = done.err().filter(|_| !is_late).or(failed);
        }
        failed.map_or(Ok(()), Err)
    }
}
