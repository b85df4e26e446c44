//! All budgets of one cluster, as its owner keeps them from look to look.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::budget::amounts::BudgetAmounts;
use crate::budget::keeper::{BudgetKeeper, SETTLING_S, WriteEnd};
use crate::budget::limit::{Budget, BudgetLimit, BudgetShare};
use crate::budget::record::{ClusterUse, Grants};
use crate::seconds::{WATCH_LAG_S, doubled};

/// For how many seconds a cluster may still come to use what it was to use then: longer than a call
/// is under way, and than a watch lags.
const PEAK_S: f64 = 30.0;

/// The seconds between two writes of one record about one cluster.
const WRITE_S: f64 = 1.0;

/// The most seconds until a write that failed is tried again.
const RETRY_S: f64 = 30.0;

/// The most seconds between two looks at a cluster.
const LOOK_S: f64 = 5.0;

/// For how many seconds a plan is waited for before the record is written without one.
const UNPLANNED_S: f64 = 10.0;

// By then everybody has heard of a new record, and what was asked for by the grants before it is part of
// what a cluster says that it uses.
const _: () = assert!(SETTLING_S >= WATCH_LAG_S + LOOK_S + PEAK_S + RETRY_S + UNPLANNED_S);

/// What a plan takes of budgets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PlannedUse {
    /// What the cluster uses once the plan has been carried out, or before that.
    pub planned: BudgetAmounts,
    /// What it would use if there were no budgets.
    pub wants: BudgetAmounts,
}

/// What the owner of a cluster knows of all budgets that hold for it.
#[derive(Debug, Clone, Default)]
pub struct BudgetBook {
    uid: String,
    share: BudgetShare,
    kept: Vec<Kept>,
    last: Option<PlannedUse>,
    /// What it uses by its objects, which counts as long as nothing has been planned.
    held: BudgetAmounts,
    /// What the cluster may have come to use, and when it was planned.
    peaks: Vec<(f64, BudgetAmounts)>,
}

#[derive(Debug, Clone)]
struct Kept {
    budget: Budget,
    keeper: BudgetKeeper,
    /// What the cluster was granted when its owner began, which the owner before may have let it use
    /// a moment ago.
    inherited: Option<(f64, BudgetAmounts)>,
    /// No earlier than then the record is written again.
    next_write: f64,
    failures: u32,
    /// Whether the budget holds for the cluster; if not, its entry is to be removed.
    holds: bool,
}

impl Kept {
    /// Nothing is known of the record yet.
    fn new(uid: &str, budget: Budget, holds: bool) -> Self {
        Self {
            budget,
            keeper: BudgetKeeper::new(uid),
            inherited: None,
            next_write: 0.0,
            failures: 0,
            holds,
        }
    }

    /// Whether others have to know what the cluster uses, although no plan says it.
    fn has_to_say(&self, of: &ClusterUse, now: f64) -> bool {
        let said = self.keeper.entry();
        let is_said = said.is_some_and(|said| of.uses.is_within(said.granted.plus(said.excess)));
        let has_waited = |(since, _)| now >= since + UNPLANNED_S;
        !is_said && self.inherited.is_some_and(has_waited)
    }
}

/// A record to be written.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordWrite {
    /// The RayPolicy whose budget it is.
    pub policy: Arc<str>,
    /// The version that it replaces; empty if there is none.
    pub version: String,
    /// The record.
    pub grants: Grants,
}

impl BudgetBook {
    /// The book of a cluster, given its UID, that knows nothing yet.
    pub fn new(uid: &str) -> Self {
        Self {
            uid: uid.to_owned(),
            ..Self::default()
        }
    }

    /// Takes in which budgets hold for the cluster.
    pub fn set(&mut self, budgets: &[Budget], share: BudgetShare) {
        self.share = share;
        for kept in &mut self.kept {
            let holds = budgets.iter().find(|one| one.policy == kept.budget.policy);
            kept.holds = holds.is_some();
            if let Some(budget) = holds {
                kept.budget = budget.clone();
            }
        }
        for budget in budgets {
            if !self
                .kept
                .iter()
                .any(|kept| kept.budget.policy == budget.policy)
            {
                let kept = Kept::new(&self.uid, budget.clone(), true);
                self.kept.push(kept);
            }
        }
    }

    /// Takes in that the cluster has an entry in the record of a budget, which is to be removed if the
    /// budget does not hold for it.
    pub fn leave(&mut self, policy: &Arc<str>) {
        if !self.kept.iter().any(|kept| kept.budget.policy == *policy) {
            let budget = Budget {
                policy: Arc::clone(policy),
                total: BudgetAmounts::default(),
            };
            self.kept.push(Kept::new(&self.uid, budget, false));
        }
    }

    /// Takes in what the cluster uses by its objects. Without its GCS nothing is planned, and others have
    /// to know what it uses all the same.
    pub fn sees(&mut self, held: BudgetAmounts) {
        self.held = held;
    }

    /// Whether a plan has said what the cluster uses.
    pub fn is_planned(&self) -> bool {
        self.last.is_some()
    }

    /// Takes in that what is known of the records may be too old: they have to be read.
    pub fn doubt(&mut self) {
        let kept = self.kept.iter_mut();
        kept.for_each(|kept| kept.keeper.forget());
    }

    /// Which part of budgets the cluster gets.
    pub fn share(&self) -> BudgetShare {
        self.share
    }

    /// The policies of the budgets.
    pub fn policies(&self) -> Vec<Arc<str>> {
        let kept = self.kept.iter();
        kept.map(|kept| Arc::clone(&kept.budget.policy)).collect()
    }

    /// The clusters that have entries, by their UIDs.
    pub fn entries(&self) -> BTreeSet<String> {
        let kept = self.kept.iter();
        kept.flat_map(|kept| kept.keeper.entries()).collect()
    }

    /// Whether no budget holds for the cluster, and none did.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// The policies whose records have to be read as they are stored.
    pub fn unread(&self) -> Vec<Arc<str>> {
        let unread = self.kept.iter().filter(|kept| kept.keeper.needs_read());
        unread.map(|kept| Arc::clone(&kept.budget.policy)).collect()
    }

    /// Takes in a record as it is stored. `now` is in seconds since 1970.
    pub fn read(&mut self, policy: &str, version: &str, grants: Grants, now: f64) {
        if let Some(kept) = self.of(policy) {
            kept.keeper.read(version, grants);
            let granted = kept.keeper.entry().unwrap_or_default().granted;
            kept.inherited.get_or_insert((now, granted));
        }
    }

    /// Takes in a record as a watch shows it; nothing if the watch shows that there is none.
    pub fn observe(&mut self, policy: &str, record: Option<(&str, &Grants)>) {
        if let Some(kept) = self.of(policy) {
            match record {
                Some((version, grants)) => kept.keeper.observe(version, grants),
                // Either somebody deleted the record, or the watch lags behind its making: a read
                // will tell.
                None if kept.keeper.entry().is_some() => kept.keeper.forget(),
                None => {}
            }
        }
    }

    /// How much the cluster may use now.
    pub fn limits(&self, now: f64) -> Arc<[BudgetLimit]> {
        let holding = self.kept.iter().filter(|kept| kept.holds);
        let limit = |kept: &Kept| BudgetLimit {
            policy: Arc::clone(&kept.budget.policy),
            limit: of_named(
                kept.keeper
                    .limit(kept.budget.total, &self.of_cluster(kept, now)),
                kept.budget.total,
                BudgetAmounts::UNBOUNDED,
            ),
            is_new: kept.keeper.is_new(),
        };
        holding.map(limit).collect()
    }

    /// Takes in what a plan takes, before it is carried out.
    pub fn plans(&mut self, of: PlannedUse, now: f64) {
        // Where the clock has been set back, what happened before counts from now on: nothing is given
        // back too soon, and others need not wait until the clock is where it was.
        let peaks = self.peaks.iter_mut().map(|(at, _)| at);
        let kept = self.kept.iter_mut();
        let inherited = kept.filter_map(|kept| Some(&mut kept.inherited.as_mut()?.0));
        peaks.chain(inherited).for_each(|at| *at = at.min(now));
        self.peaks.retain(|(at, _)| is_young(*at, now));
        // Of equal plans one after the other, the last one counts for the longest.
        self.peaks.retain(|(_, peak)| *peak != of.planned);
        self.peaks.push((now, of.planned));
        self.last = Some(of);
    }

    /// The records to be written now. From now on the cluster may use no more than they say. `is_gone`
    /// tells of clusters that no longer use anything.
    pub fn writes(&mut self, now: f64, is_gone: impl Fn(&str) -> bool) -> Vec<RecordWrite> {
        let mut writes = Vec::new();
        for at in 0..self.kept.len() {
            let of = self.kept.get(at).map(|kept| self.of_cluster(kept, now));
            let (Some(of), Some(kept)) = (of, self.kept.get_mut(at)) else {
                continue;
            };
            let may = self.last.is_some() || !kept.holds || kept.has_to_say(&of, now);
            // A write that is due later than any delay was planned by a clock that has been set
            // back since.
            if !may || now < kept.next_write && kept.next_write - now <= RETRY_S {
                continue;
            }
            let write = if kept.holds {
                kept.keeper.write(kept.budget.total, &of, now, &is_gone)
            } else {
                kept.keeper.leave()
            };
            if let Some((version, grants)) = write {
                kept.next_write = now + WRITE_S;
                writes.push(RecordWrite {
                    policy: Arc::clone(&kept.budget.policy),
                    version,
                    grants,
                });
            }
        }
        // The entry of a budget that no longer holds has been removed.
        self.kept
            .retain(|kept| kept.holds || kept.keeper.needs_read() || kept.keeper.entry().is_some());
        writes
    }

    /// Takes in how a write ended. `random` is from 0 to 1.
    pub fn wrote(&mut self, write: RecordWrite, end: WriteEnd<'_>, now: f64, random: f64) {
        let Some(kept) = self.of(&write.policy) else {
            return;
        };
        kept.failures = match end {
            WriteEnd::Stored(_) => 0,
            WriteEnd::Refused | WriteEnd::Unknown => kept.failures.saturating_add(1),
        };
        if kept.failures > 0 {
            let longest = doubled(WRITE_S, kept.failures - 1, RETRY_S);
            // Replicas that were refused because they wrote at the same time do not do so again.
            kept.next_write = now + longest * random;
        }
        kept.keeper.wrote(write.grants, end);
    }

    /// Whether a record is to be written or read in a moment.
    pub fn is_busy(&self) -> bool {
        let hungry = |kept: &Kept| {
            let entry = kept.keeper.entry().unwrap_or_default();
            let wants = self.last.map_or(entry.wants, |last| last.wants);
            kept.keeper.needs_read() || !wants.is_within(entry.granted)
        };
        self.kept.iter().any(hungry)
    }

    fn of(&mut self, policy: &str) -> Option<&mut Kept> {
        let mut kept = self.kept.iter_mut();
        kept.find(|kept| &*kept.budget.policy == policy)
    }

    /// The cluster as the record is to show it.
    fn of_cluster(&self, kept: &Kept, now: f64) -> ClusterUse {
        let young = self.peaks.iter().filter(|(at, _)| is_young(*at, now));
        let inherited = kept.inherited.filter(|(at, _)| is_young(*at, now));
        let peaks = young.chain(inherited.iter()).map(|(_, peak)| *peak);
        // As long as nothing has been planned, it uses and wants what it has.
        let of = self.last.unwrap_or_else(|| {
            let granted = kept.keeper.entry().unwrap_or_default().granted;
            let has = self.held.max(granted);
            PlannedUse {
                planned: has,
                wants: has,
            }
        });
        let uses = peaks.fold(of.planned, BudgetAmounts::max);
        ClusterUse {
            uses: named(uses, kept.budget.total),
            wants: named(of.wants, kept.budget.total),
            weight: self.share.weight,
            priority: self.share.priority,
        }
    }
}

fn is_young(at: f64, now: f64) -> bool {
    now < at + PEAK_S
}

/// Without what the budget does not bound.
fn named(amounts: BudgetAmounts, total: BudgetAmounts) -> BudgetAmounts {
    of_named(amounts, total, 0)
}

/// The amounts of what the budget bounds, and something else for the rest.
fn of_named(amounts: BudgetAmounts, total: BudgetAmounts, rest: u64) -> BudgetAmounts {
    amounts.each(total, |amount, total| match total {
        BudgetAmounts::UNBOUNDED => rest,
        _ => amount,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::record::Grant;

    fn cpu(cpu_milli: u64) -> BudgetAmounts {
        BudgetAmounts::of([cpu_milli, 0, 0])
    }

    fn budget(total: u64) -> Budget {
        let unbounded = BudgetAmounts::UNBOUNDED;
        Budget {
            policy: "team".into(),
            total: BudgetAmounts::of([total, unbounded, unbounded]),
        }
    }

    fn plans(book: &mut BudgetBook, planned: u64, wants: u64, now: f64) {
        let of = |cpu_milli| BudgetAmounts::of([cpu_milli, 7, 0]);
        let of = PlannedUse {
            planned: of(planned),
            wants: of(wants),
        };
        book.plans(of, now);
    }

    fn nobody(_: &str) -> bool {
        false
    }

    fn limit(book: &BudgetBook, now: f64) -> u64 {
        let limit = book.limits(now)[0].limit;
        assert_eq!(limit.memory_bytes, BudgetAmounts::UNBOUNDED);
        limit.cpu_milli
    }

    /// A record that has been there for long, and in which nobody has an entry.
    fn settled() -> Grants {
        Grants {
            revision: 1,
            made: 1,
            ..Grants::default()
        }
    }

    /// Carries out the only write of a book, and returns what is stored.
    fn store(book: &mut BudgetBook, now: f64) -> Grants {
        let mut writes = book.writes(now, nobody);
        let write = writes.pop().unwrap();
        let stored = write.grants.clone();
        let version = stored.revision.to_string();
        book.wrote(write, WriteEnd::Stored(&version), now, 0.5);
        stored
    }

    fn another(grants: &mut Grants, granted: u64, wants: u64) {
        grants.revision += 1;
        let entry = Grant {
            granted: cpu(granted),
            wants: cpu(wants),
            weight: 1,
            ..Grant::default()
        };
        grants.clusters.insert("b".to_owned(), entry);
    }

    #[test]
    fn what_is_not_wanted_is_lent_and_comes_back_once_it_is_not_used() {
        let mut book = BudgetBook::new("a");
        book.set(&[budget(100)], BudgetShare::default());
        assert_eq!(book.unread().len(), 1);
        assert_eq!(limit(&book, 0.0), 0);
        book.read("team", "1", settled(), 0.0);
        plans(&mut book, 0, 90, 0.0);
        let mut stored = store(&mut book, 0.0);
        assert!(limit(&book, 0.0) >= 90);
        // It uses 80 of them, and then hardly anything; another one comes.
        plans(&mut book, 80, 80, 10.0);
        plans(&mut book, 5, 5, 20.0);
        assert_eq!(book.writes(20.0, nobody), [], "nobody waits");
        another(&mut stored, 0, 100);
        book.observe("team", Some(("7", &stored)));
        assert_eq!(limit(&book, 20.0), 5, "no more than its share");
        let mut stored = store(&mut book, 20.0);
        assert_eq!(
            stored.clusters["a"].granted,
            cpu(80),
            "it may still have them"
        );
        another(&mut stored, 20, 100);
        book.observe("team", Some(("9", &stored)));
        let stored = store(&mut book, 41.0);
        assert_eq!(stored.clusters["a"].granted, cpu(5));
    }

    /// The record of a cluster that uses 50 of 100 is deleted, and another one makes it anew before that
    /// cluster's owner has seen it, so that a watch never shows that there is none.
    #[test]
    fn a_record_that_was_made_anew_grants_nothing_more_until_all_have_written_it() {
        let mut grants = settled();
        another(&mut grants, 50, 100);
        let books = ["a", "b"].map(|uid| {
            let mut book = BudgetBook::new(uid);
            book.set(&[budget(100)], BudgetShare::default());
            book
        });
        let [mut maker, mut old] = books;
        old.read("team", "7", grants, 1000.0);
        plans(&mut old, 50, 100, 1000.0);
        maker.read("team", "", Grants::default(), 1000.0);
        plans(&mut maker, 20, 100, 1000.0);
        let made = store(&mut maker, 1000.0);
        assert_eq!(made.clusters["a"].excess, cpu(20));
        let known = 1001.0;
        assert_eq!(maker.writes(known, nobody), []);
        let then = known + SETTLING_S - 1.0;
        plans(&mut maker, 20, 100, then);
        assert_eq!(maker.writes(then, nobody), [], "not everybody has said it");
        // What it was granted is no longer stored anywhere.
        old.observe("team", Some(("9", &made)));
        assert_eq!((limit(&old, then), old.unread().len()), (0, 1));
        old.read("team", "9", made, then);
        plans(&mut old, 50, 100, then);
        let said = store(&mut old, then);
        assert_eq!(said.clusters["b"].excess, cpu(50));
        assert!(old.limits(then)[0].is_new);
        maker.observe("team", Some(("10", &said)));
        let grown = store(&mut maker, known + SETTLING_S);
        assert_eq!(grown.clusters["a"].granted, cpu(50));
        assert!(!grown.is_new);
    }

    /// Somebody has removed the annotation.
    #[test]
    fn a_record_without_content_is_made_anew() {
        let mut book = BudgetBook::new("a");
        book.set(&[budget(100)], BudgetShare::default());
        let mut grants = settled();
        another(&mut grants, 50, 50);
        book.read("team", "7", grants, 1000.0);
        book.observe("team", Some(("8", &Grants::default())));
        assert_eq!(book.unread().len(), 1);
        book.read("team", "8", Grants::default(), 1000.0);
        plans(&mut book, 20, 100, 1000.0);
        let made = store(&mut book, 1000.0);
        assert!(made.is_new && made.revision == 1_000_000);
        assert_eq!(made.clusters["a"].excess, cpu(20));
    }

    /// Its GCS is silent since another owner has taken it over, so that nothing is planned.
    #[test]
    fn a_cluster_without_a_plan_says_what_it_uses() {
        let mut book = BudgetBook::new("a");
        book.set(&[budget(100)], BudgetShare::default());
        book.sees(BudgetAmounts::of([50, 7, 0]));
        book.read("team", "1", settled(), 1000.0);
        assert_eq!(book.writes(1000.0, nobody), [], "it may still answer");
        let said = store(&mut book, 1000.0 + UNPLANNED_S);
        assert!(cpu(50).is_within(said.clusters["a"].granted));
        assert_eq!(book.writes(1020.0, nobody), []);
    }

    /// The owner before may have let the cluster use all of it a moment ago.
    #[test]
    fn who_takes_over_gives_nothing_back_for_a_while() {
        let mut grants = settled();
        another(&mut grants, 0, 100);
        let mut book = BudgetBook::new("b");
        if let Some(entry) = grants.clusters.remove("b") {
            grants.clusters.insert("c".to_owned(), entry);
        }
        another(&mut grants, 90, 90);
        book.set(&[budget(100)], BudgetShare::default());
        book.read("team", "1", grants, 50.0);
        plans(&mut book, 10, 10, 50.0);
        let stored = store(&mut book, 50.0);
        assert_eq!(stored.clusters["b"].granted, cpu(90));
        let stored = store(&mut book, 81.0);
        assert_eq!(stored.clusters["b"].granted, cpu(10));
    }

    #[test]
    fn a_clock_that_is_set_back_keeps_nothing_from_others_for_as_long() {
        let mut grants = settled();
        another(&mut grants, 80, 80);
        if let Some(entry) = grants.clusters.remove("b") {
            grants.clusters.insert("a".to_owned(), entry);
        }
        another(&mut grants, 0, 100);
        let mut book = BudgetBook::new("a");
        book.set(&[budget(100)], BudgetShare::default());
        book.read("team", "1", grants, 90_000.0);
        plans(&mut book, 80, 80, 90_000.0);
        plans(&mut book, 5, 5, 1000.0);
        let stored = store(&mut book, 1000.0);
        assert_eq!(stored.clusters["a"].granted, cpu(80), "not at once");
        plans(&mut book, 5, 5, 1031.0);
        let stored = store(&mut book, 1031.0);
        assert_eq!(stored.clusters["a"].granted, cpu(5));
    }

    #[test]
    fn a_budget_that_no_longer_holds_is_left() {
        let mut book = BudgetBook::new("a");
        book.set(&[budget(100)], BudgetShare::default());
        book.read("team", "1", settled(), 0.0);
        plans(&mut book, 10, 10, 0.0);
        store(&mut book, 0.0);
        book.set(&[], BudgetShare::default());
        assert!(book.limits(2.0).is_empty());
        assert_eq!(store(&mut book, 2.0).clusters.len(), 0);
        assert_eq!(book.writes(4.0, nobody), []);
        assert!(book.is_empty());
    }

    #[test]
    fn who_wrote_at_the_same_time_waits_for_another_while() {
        let mut book = BudgetBook::new("a");
        book.set(&[budget(100)], BudgetShare::default());
        let read = |book: &mut BudgetBook| book.read("team", "3", settled(), 0.0);
        read(&mut book);
        plans(&mut book, 10, 10, 0.0);
        for (wait, random) in [(0.5, 0.5), (1.5, 0.75)] {
            let write = book.writes(0.0, nobody).pop().unwrap();
            book.wrote(write, WriteEnd::Refused, 0.0, random);
            assert_eq!(book.unread().len(), 1);
            read(&mut book);
            assert_eq!(book.writes(wait - 0.1, nobody), []);
            book.of("team").unwrap().next_write = 0.0;
        }
    }
}
