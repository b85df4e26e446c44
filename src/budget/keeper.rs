//! What the owner of a cluster may count on.
//!
//! Its reads of the record may be old, its writes may fail, and the answer to a write may be lost,
//! so that it does not know whether the write was stored. In each of these cases the cluster may use
//! the smaller of the grants that may be stored:
//!
//! - A cluster has no grant before its owner has read the record. An owner that begins, or takes over
//!   from another one, reads what is stored, and not what a cache has.
//! - An entry that is lowered counts as lowered from the moment at which it is sent.
//! - An entry that is raised counts as raised once the write has been answered.
//! - A write is sent only for the version that was read. As long as a write without an answer might
//!   still be stored, its version is not known to have passed, and the smaller grant holds.
//! - What a watch shows is taken in only if it is later than what is known. Of another record, which was
//!   made anew after somebody had deleted one, nobody can tell that: the record is read.
//! - A new record knows only those that have written it. Until it has been known for so long that
//!   everybody has had the time to say in it what they use, nobody is granted anything.

use crate::budget::amounts::BudgetAmounts;
use crate::budget::record::{ClusterUse, Grant, Grants};

/// For how many seconds a record has to be known as new until it counts as one that everybody has
/// written who uses anything: longer than it can take until the last owner hears of it, stops going by what
/// was before, and has written what its cluster uses. Each owner goes by its own clock.
pub const SETTLING_S: f64 = 240.0;

/// What the owner of one cluster knows of one budget.
#[derive(Debug, Clone, Default)]
pub struct BudgetKeeper {
    cluster: String,
    /// The record as it was read or written last, with its version.
    known: Option<(String, Grants)>,
    /// The smallest grant that was sent since the last write that is known to be stored.
    sent: Option<BudgetAmounts>,
    /// The new record that is known, by its first revision, and since when, in seconds since 1970.
    new: Option<(u64, f64)>,
}

/// How a write of the record ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteEnd<'a> {
    /// The record was stored, and has this version now.
    Stored(&'a str),
    /// The write was refused, because the record has another version.
    Refused,
    /// Nobody knows.
    Unknown,
}

impl BudgetKeeper {
    /// The keeper of a cluster, given its UID, that knows nothing yet.
    pub fn new(cluster: &str) -> Self {
        Self {
            cluster: cluster.to_owned(),
            ..Self::default()
        }
    }

    /// Takes in the record as it is stored.
    pub fn read(&mut self, version: &str, grants: Grants) {
        self.known = Some((version.to_owned(), grants));
    }

    /// Takes in the record as a watch shows it, which may be old. Without a read before it, it says
    /// nothing.
    pub fn observe(&mut self, version: &str, grants: &Grants) {
        let Some((known, now)) = &mut self.known else {
            return;
        };
        if grants.made != now.made {
            self.known = None;
        } else if grants.revision > now.revision {
            version.clone_into(known);
            now.clone_from(grants);
        }
    }

    /// Takes in the time, in seconds since 1970.
    pub fn passes(&mut self, now: f64) {
        if let Some((_, grants)) = &self.known {
            let before = self.new.filter(|(made, _)| *made == grants.made);
            // A clock that was set back must not keep everybody waiting for as long.
            let since = before.map_or(now, |(_, since)| since.min(now));
            self.new = grants.is_new.then_some((grants.made, since));
        }
    }

    /// Forgets the record, which is no longer there, or may be another one.
    pub fn forget(&mut self) {
        self.known = None;
    }

    /// Whether the record has to be read before anything can be used.
    pub fn needs_read(&self) -> bool {
        self.known.is_none()
    }

    /// Whether the record is known to be new.
    pub fn is_new(&self) -> bool {
        self.known.as_ref().is_some_and(|(_, grants)| grants.is_new)
    }

    /// How much the cluster may use of `total` now. If others wait for more, that is no more than
    /// its share; what it uses beyond that, it is to give back.
    pub fn limit(&self, total: BudgetAmounts, of: &ClusterUse) -> BudgetAmounts {
        let Some((_, grants)) = &self.known else {
            return BudgetAmounts::default();
        };
        let entry = grants
            .clusters
            .get(&self.cluster)
            .copied()
            .unwrap_or_default();
        let granted = entry.granted.min(self.sent.unwrap_or(entry.granted));
        if grants.is_contended(total, &self.cluster) {
            granted.min(grants.target(total, &self.cluster, of))
        } else {
            granted
        }
    }

    /// The record to write at a time, in seconds since 1970, with the version that it replaces, if it
    /// is to be written. `is_gone` tells of clusters that no longer use anything. From now on the
    /// cluster may use no more than is sent.
    pub fn write(
        &mut self,
        total: BudgetAmounts,
        of: &ClusterUse,
        now: f64,
        is_gone: impl Fn(&str) -> bool,
    ) -> Option<(String, Grants)> {
        self.passes(now);
        let (version, grants) = self.known.as_ref()?;
        let is_made = grants.is_lost();
        let mut next = if is_made {
            Grants::made_at(now)
        } else {
            grants.clone()
        };
        next.forget(|uid| uid != self.cluster && is_gone(uid));
        let settles = self.new.is_some_and(|(_, since)| now >= since + SETTLING_S);
        next.is_new &= !settles;
        // An entry that may have been lowered has to be certain before it is used again; and what
        // others have left is no longer theirs once that is written.
        let leaves = self.sent.is_some() || next.clusters.len() < grants.clusters.len();
        let is_hungry = !of.wants.is_within(self.limit(total, of));
        let again = next.clusters.get(&self.cluster).copied();
        let again = again.filter(|_| settles || leaves && is_hungry);
        let entry = next.entry_to_write(total, &self.cluster, of).or(again)?;
        next.clusters.insert(self.cluster.clone(), entry);
        if !is_made {
            next.revision = next.revision.wrapping_add(1);
        }
        let sent = self
            .sent
            .map_or(entry.granted, |sent| sent.min(entry.granted));
        self.sent = Some(sent);
        Some((version.clone(), next))
    }

    /// Takes in how a write ended.
    pub fn wrote(&mut self, written: Grants, end: WriteEnd<'_>) {
        match end {
            WriteEnd::Stored(version) => {
                self.known = Some((version.to_owned(), written));
                self.sent = None;
            }
            WriteEnd::Refused | WriteEnd::Unknown => self.known = None,
        }
    }

    /// The record without the cluster, which no longer uses anything of the budget, with the version
    /// that it replaces; nothing if it has no entry. From now on the cluster may use nothing.
    pub fn leave(&mut self) -> Option<(String, Grants)> {
        let (version, grants) = self.known.as_ref()?;
        let mut next = grants.clone();
        next.clusters.remove(&self.cluster)?;
        next.revision = next.revision.wrapping_add(1);
        self.sent = Some(BudgetAmounts::default());
        Some((version.clone(), next))
    }

    /// The clusters that have entries, by their UIDs.
    pub fn entries(&self) -> impl Iterator<Item = String> + '_ {
        let known = self.known.iter();
        known.flat_map(|(_, grants)| grants.clusters.keys().cloned())
    }

    /// The entry of the cluster, as far as it is known.
    pub fn entry(&self) -> Option<Grant> {
        let (_, grants) = self.known.as_ref()?;
        grants.clusters.get(&self.cluster).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu(cpu_milli: u64) -> BudgetAmounts {
        BudgetAmounts {
            cpu_milli,
            ..BudgetAmounts::default()
        }
    }

    fn total(cpu_milli: u64) -> BudgetAmounts {
        cpu(cpu_milli).max(BudgetAmounts::of([0, u64::MAX, u64::MAX]))
    }

    fn cluster(uses: u64, wants: u64) -> ClusterUse {
        ClusterUse {
            uses: cpu(uses),
            wants: cpu(wants),
            weight: 1,
            priority: 0,
        }
    }

    fn nobody(_: &str) -> bool {
        false
    }

    fn grants(all: &[(&str, u64, u64)]) -> Grants {
        let entry = |(uid, granted, wants): &(&str, u64, u64)| {
            let entry = Grant {
                granted: cpu(*granted),
                wants: cpu(*wants),
                weight: 1,
                ..Grant::default()
            };
            ((*uid).to_owned(), entry)
        };
        Grants {
            revision: 1,
            made: 1,
            is_new: false,
            clusters: all.iter().map(entry).collect(),
        }
    }

    #[test]
    fn nothing_may_be_used_before_the_record_was_read() {
        let mut keeper = BudgetKeeper::new("a");
        assert!(keeper.needs_read());
        assert_eq!(keeper.limit(total(100), &cluster(5, 5)), cpu(0));
        assert_eq!(keeper.write(total(100), &cluster(5, 5), 0.0, nobody), None);
        keeper.read("1", grants(&[("a", 30, 30)]));
        assert_eq!(keeper.limit(total(100), &cluster(5, 30)), cpu(30));
    }

    /// The write that lowers the grant may still be stored at any time.
    #[test]
    fn a_grant_that_may_have_been_lowered_is_not_used() {
        let stored = grants(&[("a", 100, 100), ("b", 0, 100)]);
        let mut keeper = BudgetKeeper::new("a");
        keeper.read("1", stored.clone());
        let (_, lowered) = keeper
            .write(total(100), &cluster(5, 5), 0.0, nobody)
            .unwrap();
        assert_eq!(lowered.clusters["a"].granted, cpu(5));
        keeper.wrote(lowered, WriteEnd::Unknown);
        keeper.read("1", stored);
        let wants = cluster(5, 100);
        assert_eq!(keeper.limit(total(100), &wants), cpu(5));
        // A write that is stored after it ends the doubt.
        let (version, again) = keeper.write(total(100), &wants, 0.0, nobody).unwrap();
        assert_eq!(
            (version.as_str(), again.clusters["a"].granted),
            ("1", cpu(50))
        );
        keeper.wrote(again, WriteEnd::Stored("2"));
        assert_eq!(keeper.limit(total(100), &wants), cpu(50));
    }

    /// Otherwise the API server would give it no new version, and the write that is in doubt could
    /// still be stored.
    #[test]
    fn what_is_written_to_end_a_doubt_is_never_what_is_stored() {
        let stored = grants(&[("a", 80, 80)]);
        let mut keeper = BudgetKeeper::new("a");
        keeper.read("1", stored.clone());
        // The budget is lowered for a moment.
        let (_, lowered) = keeper
            .write(total(10), &cluster(5, 80), 0.0, nobody)
            .unwrap();
        keeper.wrote(lowered, WriteEnd::Unknown);
        keeper.read("1", stored.clone());
        assert_eq!(keeper.limit(total(100), &cluster(5, 80)), cpu(10));
        let (_, again) = keeper
            .write(total(100), &cluster(5, 80), 0.0, nobody)
            .unwrap();
        assert_eq!(again.clusters["a"].granted, cpu(80));
        assert_ne!(again, stored);
    }
}
