//! The budgets of one cluster: their records are read, watched and written, and what the cluster may
//! use follows.

use std::collections::HashSet;
use std::sync::Arc;

use super::desk::BudgetDesk;
use crate::budget::book::{BudgetBook, PlannedUse};
use crate::budget::keeper::WriteEnd;
use crate::budget::limit::BudgetLimit;
use crate::controller::act::writer::Writer;
use crate::controller::clock::Clock;
use crate::controller::observe::ClusterView;
use crate::ray::{Kind, RayObject, ReconcileMode};
use crate::reconcile::{Failure, RoundSettings};

/// Whether limits allow more of anything than others do.
pub fn is_more(limits: &[BudgetLimit], than: &[BudgetLimit]) -> bool {
    let before = |one: &BudgetLimit| than.iter().find(|other| other.policy == one.policy);
    let mut limits = limits.iter();
    limits.any(|one| before(one).is_some_and(|before| !one.limit.is_within(before.limit)))
}

/// Whether a cluster that is not scaled here uses nothing of any budget: it has no pods, or is not
/// scaled in mode central, in which budgets hold.
pub fn uses_nothing(scene: &ClusterView) -> bool {
    let mode = |root| RayObject::of_kind(Kind::RayCluster, root).reconcile_mode();
    let mode = scene.cluster.as_object().map(mode);
    scene.pods.is_empty() || mode != Some(ReconcileMode::Central)
}

/// The budgets of one cluster.
pub struct ClusterBudgets {
    uid: String,
    /// Nothing for a process that knows no policies.
    desk: Option<BudgetDesk>,
    book: BudgetBook,
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
            book: BudgetBook::new(uid),
            clock,
            logged: String::new(),
        }
    }

    /// Whether no budget holds for the cluster, and none did.
    pub fn is_empty(&self) -> bool {
        self.book.is_empty()
    }

    /// Takes in which budgets hold for the cluster.
    pub fn set(&mut self, settings: &RoundSettings) {
        self.book.set(&settings.budgets, settings.budget_share);
        if let Some(desk) = &self.desk {
            desk.holds(&settings.budgets);
        }
        self.leave_others();
    }

    /// Takes in that the cluster uses nothing of any budget any more.
    pub async fn leave(&mut self, writer: &Writer) {
        self.book.set(&[], self.book.share());
        self.leave_others();
        self.keep(writer).await;
    }

    /// Has the cluster's entries removed from the records of budgets that do not hold for it.
    fn leave_others(&mut self) {
        if let Some(desk) = &self.desk {
            for policy in desk.policies_of(&self.uid) {
                self.book.leave(&policy);
            }
        }
    }

    /// Takes in what the records say, and writes what is to be written. Returns what the cluster may
    /// use from now on.
    pub async fn keep(&mut self, writer: &Writer) -> Arc<[BudgetLimit]> {
        if self.book.is_empty() {
            return Arc::default();
        }
        let failed = self.work(writer).await.err();
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
        self.book.limits(self.clock.wall())
    }

    /// Takes in what a plan takes, before it is carried out.
    pub fn plans(&mut self, of: Option<PlannedUse>) {
        if let Some(of) = of {
            self.book.plans(of, self.clock.wall());
        }
    }

    /// Whether a record is to be read or written in a moment.
    pub fn is_busy(&self) -> bool {
        self.book.is_busy()
    }

    async fn work(&mut self, writer: &Writer) -> Result<(), Failure> {
        let Some(desk) = self.desk.clone() else {
            return Ok(());
        };
        for policy in self.book.policies() {
            let seen = desk.seen(&policy);
            let seen = seen.as_ref();
            let seen = seen.map(|record| (record.version.as_str(), &record.grants));
            self.book.observe(&policy, seen);
        }
        for policy in self.book.unread() {
            let record = desk.read(&policy, writer).await?;
            let (version, grants) = (record.version.as_str(), record.grants.clone());
            self.book.read(&policy, version, grants, self.clock.wall());
        }
        let gone = if self.book.is_busy() {
            desk.gone(self.book.entries().into_iter())
        } else {
            HashSet::new()
        };
        let mut failed = None;
        for write in self
            .book
            .writes(self.clock.wall(), |uid| gone.contains(uid))
        {
            let done = desk.write(&write, writer).await;
            let end = match &done {
                Ok(version) => WriteEnd::Stored(version),
                Err(Failure::Api(status)) if (400..500).contains(&status.code) => WriteEnd::Refused,
                Err(_) => WriteEnd::Unknown,
            };
            let now = self.clock.wall();
            self.book.wrote(write, end, now, fastrand::f64());
            // Another cluster's owner has written it first.
            let is_late = matches!(&done, Err(Failure::Api(status)) if status.code == 409);
            failed = done.err().filter(|_| !is_late).or(failed);
        }
        failed.map_or(Ok(()), Err)
    }
}
