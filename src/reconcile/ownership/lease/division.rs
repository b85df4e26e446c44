//! Only one division of clusters into shards is at work at a time. Pure.
//!
//! Replicas that divide clusters into different numbers of shards, as during a rollout that changes
//! `--shards`, would each scale every cluster. They are never at work at the same time:
//!
//! - A replica has a Lease only while it sees no living replica with another number of shards.
//! - It trusts no shard before a list of all Leases, requested *after* its own Lease was written,
//!   shows no such replica. Of two replicas that write their Leases at the same time, at least one
//!   sees the other; a replica that sees another releases its own Lease and tries again later.
//! - A replica that has fallen silent counts until its Lease is released on its behalf, as it does
//!   for its shards.

use std::time::Duration;

use super::ledger::LeaseLedger;
use super::record::{LeaseName, LeaseRecord, LeaseStep};
use super::shards::shard_of;

impl LeaseLedger {
    /// Takes in a list, requested at `sent`, that shows these Leases and no others.
    pub fn listed(&mut self, leases: Vec<(LeaseName, LeaseRecord)>, sent: Duration, now: Duration) {
        let is_ours = self.renewed.is_some_and(|renewed| renewed <= sent);
        let missing = |name: &&LeaseName| !leases.iter().any(|(listed, _)| listed == *name);
        let gone: Vec<LeaseName> = self.seen.keys().filter(missing).cloned().collect();
        for name in gone {
            self.gone(&name);
        }
        for (name, record) in leases {
            self.note(name, record, now);
        }
        if is_ours && self.renewed.is_some() && self.divided_otherwise().is_none() {
            self.agreed = true;
        }
    }

    /// A replica that may be at work and divides clusters into another number of shards. It counts
    /// until its Lease is released, however long it has been silent.
    fn divided_otherwise(&self) -> Option<&str> {
        self.seen.iter().find_map(|(name, seen)| match name {
            LeaseName::Replica(replica)
                if *replica != self.me
                    && seen.record.holder.is_some()
                    && seen.record.shards != Some(self.shards) =>
            {
                Some(replica.as_str())
            }
            _ => None,
        })
    }

    /// The replica that keeps this one from work by another number of shards, and that number.
    pub fn waits_for(&self) -> Option<(&str, Option<u32>)> {
        let replica = self.divided_otherwise().filter(|_| !self.agreed)?;
        let seen = self.seen.get(&LeaseName::Replica(replica.to_owned()))?;
        Some((replica, seen.record.shards))
    }

    /// The steps before any shard is taken: this replica's own Lease, and then a list that shows no
    /// replica that divides clusters differently. While there is one, this replica has no Lease.
    pub(super) fn agree(&mut self, now: Duration) -> Option<LeaseStep> {
        let me = LeaseName::Replica(self.me.clone());
        match self.divided_otherwise().map(str::to_owned) {
            Some(other) => {
                // The wait depends on the name, so that two replicas that began together do not
                // collide again.
                let spread = shard_of(&self.me, 8) + 1;
                self.yields_until = now + self.terms.renew / 2 * spread;
                let seen = self.seen.get(&me).filter(|_| self.renewed.is_some());
                match seen.map(|seen| seen.record.clone()) {
                    Some(record) => self
                        .may_try(&me, now)
                        .then_some(LeaseStep::Release(me, record)),
                    None => self.release_dead(&other, now),
                }
            }
            None if now < self.yields_until => None,
            None if self.renewed.is_some() && self.live(now).is_none() => {
                let again = |at: Duration| now >= at + self.terms.renew / 5;
                self.looked.is_none_or(again).then_some(LeaseStep::Look(me))
            }
            None => self.live(now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ledger::tests::{record, replica};
    use super::super::record::Terms;
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// A replica that divides clusters into another number of shards.
    fn other(name: &str, version: u32) -> LeaseRecord {
        LeaseRecord {
            shards: Some(2),
            ..record(name, version)
        }
    }

    #[test]
    fn nothing_is_taken_while_somebody_divides_clusters_otherwise() {
        let mut b = LeaseLedger::new("b".to_owned(), 1, Terms::default());
        b.complete();
        b.note(replica("a"), other("a", 1), SECOND);
        assert_eq!(b.steps(SECOND * 2, |_| false), []);
        assert_eq!(b.waits_for(), Some(("a", Some(2))));
        // The replica has fallen silent, and may be at work until its Lease is released.
        let release_dead = LeaseStep::ReleaseDead(replica("a"), Some(other("a", 1)));
        assert_eq!(b.steps(SECOND * 20, |_| false), [release_dead]);
        b.released_dead(
            &replica("a"),
            LeaseRecord::default(),
            SECOND * 20,
            SECOND * 20,
        );
        assert_eq!(b.steps(SECOND * 20, |_| false), [], "not at once");
        assert_eq!(
            b.steps(SECOND * 40, |_| false),
            [LeaseStep::Create(replica("b"))]
        );
        assert_eq!(b.waits_for(), None);
    }

    #[test]
    fn who_sees_another_division_in_the_list_gives_way() {
        let mut b = LeaseLedger::new("b".to_owned(), 1, Terms::default());
        b.complete();
        b.holds(replica("b"), record("b", 1), SECOND);
        assert_eq!(b.steps(SECOND, |_| false), [LeaseStep::Look(replica("b"))]);
        assert_eq!(b.trusted().next(), None);
        let listed = vec![
            (replica("a"), other("a", 2)),
            (replica("b"), record("b", 1)),
        ];
        b.listed(listed, SECOND, SECOND * 2);
        let release = LeaseStep::Release(replica("b"), record("b", 1));
        assert_eq!(b.steps(SECOND * 2, |_| false), [release]);
        // A list that was requested before our own Lease was written shows nothing.
        let mut c = LeaseLedger::new("c".to_owned(), 1, Terms::default());
        c.complete();
        c.holds(replica("c"), record("c", 1), SECOND * 5);
        c.listed(vec![(replica("c"), record("c", 1))], SECOND * 4, SECOND * 6);
        assert!(!c.agreed);
    }

    #[test]
    fn a_version_that_does_not_say_how_it_divides_clusters_is_waited_for() {
        let mut b = LeaseLedger::new("b".to_owned(), 1, Terms::default());
        b.complete();
        let older = LeaseRecord {
            shards: None,
            ..record("a", 1)
        };
        b.note(replica("a"), older, SECOND);
        assert_eq!(b.steps(SECOND * 2, |_| false), []);
        assert_eq!(b.waits_for(), Some(("a", None)));
    }
}
