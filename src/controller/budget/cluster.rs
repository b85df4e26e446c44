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
        if !desk.is_current() {
            book.doubt();
        }
        for policy in book.policies() {
            let seen = desk.seen(&policy);
            let seen = seen.as_ref();
            let seen = seen.map(|record| (record.version.as_str(), &record.grants));
            book.observe(&policy, seen);
        }
        let mut failed = None;
        for policy in book.unread() {
            match desk.read(&policy, writer).await {
                Ok(record) => {
                    let (version, grants) = (record.version.as_str(), record.grants.clone());
                    book.read(&policy, version, grants, self.clock.wall());
                }
                // A record that nobody can read keeps no cluster from giving back to other budgets.
                Err(failure @ Failure::NotSent(_)) => failed = Some(failure),
                Err(failure) => return Err(failure),
            }
        }
        let gone = if book.is_busy() {
            desk.gone(book.entries().into_iter())
        } else {
            HashSet::new()
        };
        for write in book.writes(self.clock.wall(), |uid| gone.contains(uid)) {
            let done = desk.write(&write, writer).await;
            let end = match &done {
                Ok(version) => WriteEnd::Stored(version),
                // After such an answer nothing was stored; after any other failure something may
                // have been.
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

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Mutex;

    use hyper::{Method, Request, Response};
    use kube::Client;
    use kube::client::Body;
    use serde_json::json;
    use tokio::sync::mpsc;

    use super::*;
    use crate::apiserver::{Gate, Patience};
    use crate::budget::amounts::BudgetAmounts;
    use crate::budget::book::PlannedUse;
    use crate::budget::limit::BudgetShare;
    use crate::controller::act::writer::Requests;
    use crate::controller::metrics::RoundMetrics;
    use crate::controller::observe::{Key, Observed};

    #[tokio::test]
    async fn a_record_that_cannot_be_read_holds_up_no_other() {
        let written = Arc::new(Mutex::new(0));
        let count = Arc::clone(&written);
        // It has a record of the budget `broken` and one of `good`, and takes whatever is written.
        let service = tower::service_fn(move |request: Request<Body>| {
            let broken = json!({"metadata": {"name": "rayfit-budget-broken",
                "annotations": {"rayfit.dev/budget": "{"}}});
            let good = json!({"metadata": {"name": "rayfit-budget-good", "resourceVersion": "1",
                "annotations": {"rayfit.dev/budget": r#"{"revision": 1, "made": 1}"#}}});
            let answer = if *request.method() == Method::GET {
                json!({"kind": "LeaseList", "apiVersion": "coordination.k8s.io/v1", "metadata": {},
                    "items": [broken, good]})
            } else {
                *count.lock().unwrap() += 1;
                json!({"metadata": {"name": "rayfit-budget-good", "resourceVersion": "2"}})
            };
            let answer = Response::new(Body::from(answer.to_string().into_bytes()));
            async move { Ok::<_, Infallible>(answer) }
        });
        let gate = Gate::new(1000, 1000, Patience::default());
        let requests = Requests::new(Client::new(service, "ray"), gate);
        let writer = Writer::new(requests, Key::new("ray", "demo"), None);
        let (tell, _) = mpsc::unbounded_channel();
        let (observed, metrics) = (Observed::new(tell), RoundMetrics::default());
        let desk = BudgetDesk::new("rayfit-system".to_owned(), observed, metrics);
        let mut budgets = ClusterBudgets::new("u", Some(desk), Clock::default());
        let mut book = BudgetBook::new("u");
        let of = |policy: &str| Budget {
            policy: policy.into(),
            total: BudgetAmounts::of([100, 100, 100]),
        };
        book.set(&[of("broken"), of("good")], BudgetShare::default());
        let planned = BudgetAmounts::of([10, 10, 0]);
        let wants = planned;
        book.plans(PlannedUse { planned, wants }, 0.0);
        let limits = budgets.keep(&mut book, &writer).await;
        assert_eq!(*written.lock().unwrap(), 1);
        let of_policy = |policy: &str| limits.iter().find(|one| *one.policy == *policy);
        let may_use = |policy| of_policy(policy).map(|one| one.limit.cpu_milli);
        assert_eq!(may_use("broken"), Some(0));
        assert!(may_use("good") >= Some(10));
    }
}
