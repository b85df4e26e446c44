//! What one replica knows of the Leases, and what it does next. Pure: time is an argument, counted
//! from any moment on a clock that never jumps.
//!
//! Each replica has a Lease that says that it is alive, and renews it. A shard's Lease names its
//! holder and is valid as long as the holder's own Lease is; it is written only when the shard
//! changes hands, so that shards cost no requests while nothing changes.
//!
//! # Why no two replicas write to the same cluster
//!
//! - Every Lease is written by compare-and-swap on its resource version.
//! - A replica trusts the shards that it took until `duration - margin` after the moment at which
//!   it *sent* the request that renewed its own Lease, and only while no other replica has written
//!   that Lease since it took them. If another replica has, it has to take all its shards anew.
//! - A shard of another replica is taken only after the taker has [released](LeaseStep::ReleaseDead) that
//!   replica's own Lease on its behalf. The taker does so when that Lease's resource version has
//!   not changed for `duration` since the moment at which the taker *saw* it, which is later than
//!   the renewal. The silent replica trusts none of its shards by then, and learns of the release
//!   before it can renew its Lease.
//! - The shard's Lease is written as it was seen *before* the release was sent: if its holder had
//!   come back since, it would have written the shard's Lease again, and the compare-and-swap would
//!   fail.
//! - Replicas that divide clusters into different numbers of shards are never at work at the same
//!   time: see `division`.
//! - Clocks of two machines are never compared; `margin` is for clocks of different speeds.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::record::{LeaseName, LeaseRecord, LeaseStep, Terms};
use super::shards::preferred;

/// A Lease as it was seen, and since when it has been unchanged.
#[derive(Debug, Clone)]
pub(super) struct SeenLease {
    pub(super) record: LeaseRecord,
    pub(super) since: Duration,
}

/// What one replica knows of the Leases.
#[derive(Debug, Clone)]
pub struct LeaseLedger {
    pub(super) me: String,
    pub(super) shards: u32,
    pub(super) terms: Terms,
    pub(super) seen: BTreeMap<LeaseName, SeenLease>,
    /// When this replica sent the last request that renewed its own Lease; `None` if it has none.
    pub(super) renewed: Option<Duration>,
    /// When this replica sent the first renewal that has not been answered since.
    unanswered: Option<Duration>,
    /// The shards that this replica took since it has had its own Lease.
    held: BTreeSet<u32>,
    /// When this replica sent the release of another one's Lease; that one has not been seen since.
    released_dead: BTreeMap<String, Duration>,
    /// When this replica last tried to write each Lease.
    tried: BTreeMap<LeaseName, Duration>,
    /// The shards that are draining: they are released once no write for them is under way.
    draining: BTreeSet<u32>,
    /// Whether all Leases were listed once; before that, a Lease that was not seen may exist.
    complete: bool,
    /// Whether a list, made since this replica has its own Lease, has shown that no other replica
    /// divides clusters differently.
    pub(super) agreed: bool,
    /// When this replica last asked for such a list.
    pub(super) looked: Option<Duration>,
    /// Until when this replica waits after it gave way to one that divides clusters differently.
    pub(super) yields_until: Duration,
    stopping: bool,
}

/// The Lease of a silent replica is deleted after this many times its duration.
const FORGOTTEN: u32 = 60;

impl LeaseLedger {
    /// An empty ledger.
    pub fn new(me: String, shards: u32, terms: Terms) -> Self {
        Self {
            me,
            shards,
            terms,
            seen: BTreeMap::new(),
            renewed: None,
            unanswered: None,
            held: BTreeSet::new(),
            released_dead: BTreeMap::new(),
            tried: BTreeMap::new(),
            draining: BTreeSet::new(),
            complete: false,
            agreed: false,
            looked: None,
            yields_until: Duration::ZERO,
            stopping: false,
        }
    }

    /// Takes in a Lease that was seen.
    pub fn note(&mut self, name: LeaseName, record: LeaseRecord, now: Duration) {
        let known = |seen: &SeenLease| !record.is_newer_than(&seen.record);
        if self.seen.get(&name).is_some_and(known) {
            return;
        }
        let ours = self.is_me(record.holder.as_ref());
        match &name {
            LeaseName::Replica(replica) if *replica == self.me && !ours => self.fall(),
            // No other replica writes our name: a request of ours arrived, but its answer was lost.
            // It counts from the first unanswered renewal, the earliest that it can have been.
            LeaseName::Replica(replica) if *replica == self.me => {
                let sent = self
                    .renewed
                    .map(|sent| sent.max(self.unanswered.unwrap_or(sent)));
                self.renewed = sent;
            }
            LeaseName::Replica(replica) if record.holder.is_some() => {
                self.released_dead.remove(replica);
            }
            LeaseName::Shard(shard) if !ours => drop(self.held.remove(shard)),
            _ => {}
        }
        self.seen.insert(name, SeenLease { record, since: now });
    }

    /// Takes in that a Lease was deleted.
    pub fn gone(&mut self, name: &LeaseName) {
        self.seen.remove(name);
        match name {
            LeaseName::Replica(replica) if *replica == self.me => self.fall(),
            LeaseName::Replica(replica) => drop(self.released_dead.remove(replica)),
            LeaseName::Shard(shard) => drop(self.held.remove(shard)),
        }
    }

    /// This replica has lost its own Lease, and with it all its shards.
    fn fall(&mut self) {
        self.renewed = None;
        self.unanswered = None;
        self.agreed = false;
        self.held.clear();
    }

    fn is_me(&self, holder: Option<&String>) -> bool {
        holder == Some(&self.me)
    }

    /// Takes in that all existing Leases have been noted.
    pub fn complete(&mut self) {
        self.complete = true;
    }

    /// Begins to release everything.
    pub fn stop(&mut self) {
        self.stopping = true;
    }

    /// Whether everything is being released.
    pub fn is_stopping(&self) -> bool {
        self.stopping
    }

    /// Takes in that a request sent at `sent` made this replica the holder of a Lease.
    pub fn holds(&mut self, name: LeaseName, record: LeaseRecord, sent: Duration) {
        match &name {
            LeaseName::Replica(_) => {
                self.renewed = Some(sent);
                self.unanswered = None;
            }
            // A shard that was requested before our own Lease was lost does not count as held.
            LeaseName::Shard(shard) if self.renewed.is_some() => drop(self.held.insert(*shard)),
            LeaseName::Shard(_) => {}
        }
        let since = sent;
        self.seen.insert(name, SeenLease { record, since });
    }

    /// Takes in that this replica has released a Lease.
    pub fn released(&mut self, name: &LeaseName, record: LeaseRecord, now: Duration) {
        match name {
            LeaseName::Shard(shard) => {
                self.held.remove(shard);
                self.draining.remove(shard);
            }
            LeaseName::Replica(_) => self.fall(),
        }
        self.seen
            .insert(name.clone(), SeenLease { record, since: now });
    }

    /// Takes in that a request sent at `sent` released the Lease of a silent replica.
    pub fn released_dead(
        &mut self,
        name: &LeaseName,
        record: LeaseRecord,
        sent: Duration,
        now: Duration,
    ) {
        if let LeaseName::Replica(replica) = name {
            self.released_dead.insert(replica.clone(), sent);
        }
        self.seen
            .insert(name.clone(), SeenLease { record, since: now });
    }

    /// Takes in that a request was sent at `now`, whatever its result.
    pub fn attempted(&mut self, step: &LeaseStep, now: Duration) {
        let name = step.name();
        if matches!(step, LeaseStep::Look(_)) {
            self.looked = Some(now);
            return;
        }
        if matches!(name, LeaseName::Replica(replica) if *replica == self.me) {
            self.unanswered.get_or_insert(now);
        }
        self.tried.insert(name.clone(), now);
    }

    /// Until when this replica may write, by shard. Draining shards are not included.
    pub fn trusted(&self) -> impl Iterator<Item = (u32, Duration)> {
        let until = self.until().filter(|_| self.agreed && !self.stopping);
        let stays = |shard: &&u32| !self.draining.contains(*shard);
        let held = self.held.iter().filter(stays);
        held.filter_map(move |shard| Some((*shard, until?)))
    }

    fn until(&self) -> Option<Duration> {
        let trusted = self.terms.duration.saturating_sub(self.terms.margin);
        self.renewed.map(|sent| sent + trusted)
    }

    /// The place of this replica among those that are alive, while it may write; the first renews what all
    /// of them renew together.
    pub fn rank(&self, now: Duration) -> Option<usize> {
        let may_write = self.trusted().any(|(_, until)| now < until);
        let members = self.members(now);
        members
            .iter()
            .position(|member| *member == self.me)
            .filter(|_| may_write)
    }

    /// Whether everything has been released.
    pub fn is_empty(&self) -> bool {
        self.renewed.is_none()
    }

    /// The steps that are due now. `busy` says whether a write for a shard is still under way.
    pub fn steps(&mut self, now: Duration, busy: impl Fn(u32) -> bool) -> Vec<LeaseStep> {
        if !self.complete {
            return Vec::new();
        }
        if self.stopping {
            return self.release_own(now, &busy);
        }
        if !self.agreed {
            return self.agree(now).into_iter().collect();
        }
        let mut steps: Vec<LeaseStep> = self.live(now).into_iter().collect();
        if self.until().is_some_and(|until| now < until) {
            let members = self.members(now);
            for shard in 0..self.shards {
                let step = if preferred(&members, shard) == Some(&self.me) {
                    self.draining.remove(&shard);
                    self.take(shard, now)
                } else {
                    self.give(shard, &busy)
                };
                // The Lease of a silent replica is released once, however many shards it held.
                steps.extend(step.filter(|step| !steps.contains(step)));
            }
        }
        steps.extend(self.forgotten(now));
        steps
    }

    /// When to compute the steps again if no Lease changes before.
    pub fn look_again(&self, now: Duration) -> Duration {
        if self.stopping || !self.draining.is_empty() {
            // Nothing tells when a write that is under way ends, so that is asked again soon.
            return now + Duration::from_millis(50);
        }
        now + (self.terms.renew / 5).max(Duration::from_millis(50))
    }

    /// The replicas that are alive, including this one once it has its Lease.
    fn members(&self, now: Duration) -> BTreeSet<String> {
        let alive = self.seen.iter().filter_map(|(name, seen)| match name {
            LeaseName::Replica(replica) if seen.record.shards == Some(self.shards) => {
                (!self.is_free(seen, now)).then(|| replica.clone())
            }
            LeaseName::Replica(_) | LeaseName::Shard(_) => None,
        });
        alive.collect()
    }

    fn is_free(&self, seen: &SeenLease, now: Duration) -> bool {
        // A duration that somebody wrote into the Lease cannot keep others away for ever.
        let longest = self.terms.duration * 6;
        let duration = seen.record.duration.clamp(self.terms.duration, longest);
        seen.record.holder.is_none() || now >= seen.since + duration
    }

    /// Creates or renews this replica's own Lease, if that is due.
    pub(super) fn live(&self, now: Duration) -> Option<LeaseStep> {
        let name = LeaseName::Replica(self.me.clone());
        let due = |sent: Duration| now >= sent + self.terms.renew;
        if !self.may_try(&name, now) || !self.renewed.is_none_or(due) {
            return None;
        }
        Some(match self.seen.get(&name) {
            None => LeaseStep::Create(name),
            Some(seen) => LeaseStep::Hold(name, seen.record.clone()),
        })
    }

    /// Takes a shard that this replica should hold and does not, if it is free by now.
    fn take(&self, shard: u32, now: Duration) -> Option<LeaseStep> {
        let name = LeaseName::Shard(shard);
        if self.held.contains(&shard) {
            return None;
        }
        let Some(seen) = self.seen.get(&name) else {
            return self.may_try(&name, now).then_some(LeaseStep::Create(name));
        };
        let hold = || Some(LeaseStep::Hold(name.clone(), seen.record.clone()));
        let holder = seen.record.holder.as_ref();
        match holder.filter(|holder| !self.is_me(Some(holder))) {
            None => self.may_try(&name, now).then(hold).flatten(),
            Some(_) if !self.is_free(seen, now) => None,
            Some(other) => match self.released_dead.get(other) {
                Some(sent) if seen.since < *sent => self.may_try(&name, now).then(hold).flatten(),
                _ => self.release_dead(other, now),
            },
        }
    }

    pub(super) fn release_dead(&self, replica: &str, now: Duration) -> Option<LeaseStep> {
        let name = LeaseName::Replica(replica.to_owned());
        let seen = self.seen.get(&name);
        let silent = seen.is_none_or(|seen| self.is_free(seen, now));
        let record = seen.map(|seen| seen.record.clone());
        (silent && self.may_try(&name, now)).then_some(LeaseStep::ReleaseDead(name, record))
    }

    /// Releases a shard that another replica should hold. The first call only marks the shard as
    /// draining, which closes the fence; a later call releases it, when no write can have begun
    /// meanwhile.
    fn give(&mut self, shard: u32, busy: &impl Fn(u32) -> bool) -> Option<LeaseStep> {
        let step = self.release(shard)?;
        let closed = !self.draining.insert(shard);
        (closed && !busy(shard)).then_some(step)
    }

    /// The release of a shard that names this replica, even if an earlier process of the same name
    /// took it.
    fn release(&self, shard: u32) -> Option<LeaseStep> {
        let name = LeaseName::Shard(shard);
        let record = &self.seen.get(&name)?.record;
        self.is_me(record.holder.as_ref())
            .then(|| LeaseStep::Release(name, record.clone()))
    }

    /// Whether a Lease may be written again: at most five times in one renewal interval.
    pub(super) fn may_try(&self, name: &LeaseName, now: Duration) -> bool {
        self.tried
            .get(name)
            .is_none_or(|at| now >= *at + self.terms.renew / 5)
    }

    /// The steps of a replica that stops: it releases its shards first, so that others take them at
    /// once, and then its own Lease.
    fn release_own(&self, now: Duration, busy: &impl Fn(u32) -> bool) -> Vec<LeaseStep> {
        let named: Vec<u32> = (0..self.shards)
            .filter(|shard| self.release(*shard).is_some())
            .collect();
        if named.is_empty() {
            let me = LeaseName::Replica(self.me.clone());
            let seen = self.seen.get(&me).filter(|_| self.renewed.is_some());
            let remove = seen.map(|seen| LeaseStep::Remove(me, seen.record.clone()));
            return remove.into_iter().collect();
        }
        let idle = named.into_iter().filter(|shard| !busy(*shard));
        let releases = idle.filter_map(|shard| self.release(shard));
        // The own Lease is renewed while shards still drain: the writes under way depend on it.
        self.live(now).into_iter().chain(releases).collect()
    }

    fn forgotten(&self, now: Duration) -> Option<LeaseStep> {
        self.seen.iter().find_map(|(name, seen)| {
            let other = matches!(name, LeaseName::Replica(replica) if *replica != self.me);
            // A pod that was replaced never comes back under its name, so its Lease would stay for
            // ever.
            let long = now >= seen.since + self.terms.duration * FORGOTTEN;
            (other && long && self.may_try(name, now))
                .then(|| LeaseStep::Remove(name.clone(), seen.record.clone()))
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const SHARD: LeaseName = LeaseName::Shard(0);

    pub(in super::super) fn record(holder: &str, version: u32) -> LeaseRecord {
        LeaseRecord {
            holder: Some(holder.to_owned()),
            version: version.to_string(),
            duration: Terms::default().duration,
            shards: Some(1),
            acquired: None,
        }
    }

    pub(in super::super) fn replica(name: &str) -> LeaseName {
        LeaseName::Replica(name.to_owned())
    }

    /// Replica `b`, alive, which saw that `a` holds the shard, and then nothing of `a` for long.
    fn survivor() -> LeaseLedger {
        let mut b = LeaseLedger::new("b".to_owned(), 1, Terms::default());
        b.complete();
        b.note(replica("a"), record("a", 1), SECOND);
        b.note(SHARD, record("a", 2), SECOND);
        b.holds(replica("b"), record("b", 3), SECOND * 20);
        let seen =
            [(replica("a"), 1), (SHARD, 2)].map(|(name, version)| (name, record("a", version)));
        let all = seen.into_iter().chain([(replica("b"), record("b", 3))]);
        b.listed(all.collect(), SECOND * 20, SECOND * 20);
        b
    }

    #[test]
    fn a_shard_of_the_silent_is_taken_once_they_are_forgotten() {
        let mut b = survivor();
        assert_eq!(
            b.steps(SECOND * 20, |_| false),
            [LeaseStep::ReleaseDead(replica("a"), Some(record("a", 1)))]
        );
        b.released_dead(
            &replica("a"),
            LeaseRecord::default(),
            SECOND * 20,
            SECOND * 20,
        );
        assert_eq!(
            b.steps(SECOND * 21, |_| false),
            [LeaseStep::Hold(SHARD, record("a", 2))]
        );
    }

    #[test]
    fn a_shard_that_was_written_after_the_burial_is_another_matter() {
        let mut b = survivor();
        b.released_dead(
            &replica("a"),
            LeaseRecord::default(),
            SECOND * 20,
            SECOND * 20,
        );
        // Replica `a` came back and took its shard anew; `b` has not yet seen `a`'s own Lease
        // again.
        b.note(SHARD, record("a", 9), SECOND * 21);
        b.holds(replica("b"), record("b", 10), SECOND * 40);
        assert_eq!(
            b.steps(SECOND * 40, |_| false),
            [LeaseStep::ReleaseDead(
                replica("a"),
                Some(LeaseRecord::default())
            )],
            "which fails if it is alive"
        );
    }

    #[test]
    fn a_renewal_whose_answer_was_lost_counts_from_the_first_that_it_can_be() {
        let mut a = LeaseLedger::new("a".to_owned(), 1, Terms::default());
        a.complete();
        a.holds(replica("a"), record("a", 1), SECOND);
        a.listed(vec![(replica("a"), record("a", 1))], SECOND, SECOND);
        a.holds(SHARD, record("a", 2), SECOND);
        let renewal = LeaseStep::Hold(replica("a"), record("a", 1));
        a.attempted(&renewal, SECOND * 4);
        a.attempted(&renewal, SECOND * 7);
        assert_eq!(a.trusted().next(), Some((0, SECOND * 10)));
        a.note(replica("a"), record("a", 3), SECOND * 8);
        assert_eq!(a.trusted().next(), Some((0, SECOND * 13)));
    }
}
