//! What one replica knows of the Leases, and what it does next. Pure: time is an argument, counted
//! from any moment on a clock that never jumps.
//!
//! Each replica has a Lease that says that it is alive, and renews it. A shard's Lease names its
//! holder and is as good as the holder's own; it is written when it changes hands only, so that
//! the number of shards costs nothing while nothing happens.
//!
//! # Why no two replicas write
//!
//! - Every Lease is written by compare-and-swap on its resource version.
//! - A replica trusts the shards that it took until `duration - margin` after the moment at which
//!   it *sent* the request that renewed its own Lease; and only while nobody else has written that
//!   Lease since it took them. Where somebody has, it takes all of them anew.
//! - A shard of another replica is taken only after that one's Lease was written by the taker, as
//!   nobody's: it is [buried](LeaseStep::Bury). That is done when its resource version has not changed
//!   for `duration` since the moment at which the taker *saw* it, which is later than when it was
//!   renewed. Whoever is buried no longer trusts anything by then, and learns of it before it can
//!   renew.
//! - The shard is taken as it was seen *before* the burial was sent: were its holder back since,
//!   it would have written the shard's Lease again, and the compare-and-swap fails.
//! - Replicas that divide clusters into different numbers of shards are never at work at the same
//!   time: see `division`.
//! - Clocks of two machines are never compared; `margin` is for clocks of different speeds.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::record::{LeaseName, LeaseRecord, LeaseStep, Terms};
use super::shards::preferred;

/// A Lease as it was seen, and since when it has been as it is.
#[derive(Debug, Clone)]
pub(super) struct SeenLease {
    pub(super) record: LeaseRecord,
    pub(super) since: Duration,
}

/// What one replica knows.
#[derive(Debug, Clone)]
pub struct LeaseLedger {
    pub(super) me: String,
    pub(super) shards: u32,
    pub(super) terms: Terms,
    pub(super) seen: BTreeMap<LeaseName, SeenLease>,
    /// When we sent the request that renewed our own Lease last; `None` if it is not ours.
    pub(super) renewed: Option<Duration>,
    /// When we sent the first of the requests to renew it that were not answered since.
    unanswered: Option<Duration>,
    /// The shards that we took since our own Lease is ours.
    held: BTreeSet<u32>,
    /// When we sent the request that buried a replica, which has not been heard of since.
    buried: BTreeMap<String, Duration>,
    /// When we last tried to write a Lease.
    tried: BTreeMap<LeaseName, Duration>,
    /// Shards that we give back once nothing is being written for them.
    leaving: BTreeSet<u32>,
    /// Everything was looked at once: before that, a Lease not seen may be there.
    complete: bool,
    /// Since our own Lease is ours, a list has shown that nobody divides clusters otherwise.
    pub(super) agreed: bool,
    /// When we last asked for such a list.
    pub(super) looked: Option<Duration>,
    /// Until when we wait after we gave way to somebody who divides them otherwise.
    pub(super) yields_until: Duration,
    stopping: bool,
}

/// A replica that has not been heard of for so many durations is forgotten.
const FORGOTTEN: u32 = 60;

impl LeaseLedger {
    /// Nothing is known yet.
    pub fn new(me: String, shards: u32, terms: Terms) -> Self {
        Self {
            me,
            shards,
            terms,
            seen: BTreeMap::new(),
            renewed: None,
            unanswered: None,
            held: BTreeSet::new(),
            buried: BTreeMap::new(),
            tried: BTreeMap::new(),
            leaving: BTreeSet::new(),
            complete: false,
            agreed: false,
            looked: None,
            yields_until: Duration::ZERO,
            stopping: false,
        }
    }

    /// A Lease was seen.
    pub fn note(&mut self, name: LeaseName, record: LeaseRecord, now: Duration) {
        let known = |seen: &SeenLease| !record.is_newer_than(&seen.record);
        if self.seen.get(&name).is_some_and(known) {
            return;
        }
        let ours = self.is_me(record.holder.as_ref());
        match &name {
            LeaseName::Replica(replica) if *replica == self.me && !ours => self.fall(),
            // Nobody else writes our name: a request of ours got there, and its answer did not.
            LeaseName::Replica(replica) if *replica == self.me => {
                let sent = self
                    .renewed
                    .map(|sent| sent.max(self.unanswered.unwrap_or(sent)));
                self.renewed = sent;
            }
            LeaseName::Replica(replica) if record.holder.is_some() => {
                self.buried.remove(replica);
            }
            LeaseName::Shard(shard) if !ours => drop(self.held.remove(shard)),
            _ => {}
        }
        self.seen.insert(name, SeenLease { record, since: now });
    }

    /// A Lease is gone.
    pub fn gone(&mut self, name: &LeaseName) {
        self.seen.remove(name);
        match name {
            LeaseName::Replica(replica) if *replica == self.me => self.fall(),
            LeaseName::Replica(replica) => drop(self.buried.remove(replica)),
            LeaseName::Shard(shard) => drop(self.held.remove(shard)),
        }
    }

    /// Our own Lease is not ours any more, so nothing is.
    fn fall(&mut self) {
        self.renewed = None;
        self.unanswered = None;
        self.agreed = false;
        self.held.clear();
    }

    fn is_me(&self, holder: Option<&String>) -> bool {
        holder == Some(&self.me)
    }

    /// All Leases that there are have been noted.
    pub fn complete(&mut self) {
        self.complete = true;
    }

    /// From now on everything is given back.
    pub fn stop(&mut self) {
        self.stopping = true;
    }

    /// Everything is to be given back.
    pub fn is_stopping(&self) -> bool {
        self.stopping
    }

    /// A request that was sent at `sent` put our name into a Lease.
    pub fn holds(&mut self, name: LeaseName, record: LeaseRecord, sent: Duration) {
        match &name {
            LeaseName::Replica(_) => {
                self.renewed = Some(sent);
                self.unanswered = None;
            }
            // Of a shard that was asked for before our own Lease was lost nothing is known.
            LeaseName::Shard(shard) if self.renewed.is_some() => drop(self.held.insert(*shard)),
            LeaseName::Shard(_) => {}
        }
        let since = sent;
        self.seen.insert(name, SeenLease { record, since });
    }

    /// We wrote that we do not hold it any more.
    pub fn released(&mut self, name: &LeaseName, record: LeaseRecord, now: Duration) {
        match name {
            LeaseName::Shard(shard) => {
                self.held.remove(shard);
                self.leaving.remove(shard);
            }
            LeaseName::Replica(_) => self.fall(),
        }
        self.seen
            .insert(name.clone(), SeenLease { record, since: now });
    }

    /// A request that was sent at `sent` buried a replica.
    pub fn buried(&mut self, name: &LeaseName, record: LeaseRecord, sent: Duration, now: Duration) {
        if let LeaseName::Replica(replica) = name {
            self.buried.insert(replica.clone(), sent);
        }
        self.seen
            .insert(name.clone(), SeenLease { record, since: now });
    }

    /// A request was sent at `now`, whatever comes of it.
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

    /// Until when shards may be written for, by shard. What is to be given back is not among them.
    pub fn trusted(&self) -> impl Iterator<Item = (u32, Duration)> {
        let until = self.until().filter(|_| self.agreed && !self.stopping);
        let stays = |shard: &&u32| !self.leaving.contains(*shard);
        let held = self.held.iter().filter(stays);
        held.filter_map(move |shard| Some((*shard, until?)))
    }

    fn until(&self) -> Option<Duration> {
        let trusted = self.terms.duration.saturating_sub(self.terms.margin);
        self.renewed.map(|sent| sent + trusted)
    }

    /// Everything was given back.
    pub fn is_empty(&self) -> bool {
        self.renewed.is_none()
    }

    /// What is to be done now. `busy` says whether something is still being written for a shard.
    pub fn steps(&mut self, now: Duration, busy: impl Fn(u32) -> bool) -> Vec<LeaseStep> {
        if !self.complete {
            return Vec::new();
        }
        if self.stopping {
            return self.farewell(now, &busy);
        }
        if !self.agreed {
            return self.agree(now).into_iter().collect();
        }
        let mut steps: Vec<LeaseStep> = self.live(now).into_iter().collect();
        if self.until().is_some_and(|until| now < until) {
            let members = self.members(now);
            for shard in 0..self.shards {
                let step = if preferred(&members, shard) == Some(&self.me) {
                    self.leaving.remove(&shard);
                    self.take(shard, now)
                } else {
                    self.give(shard, &busy)
                };
                // A replica is buried once, however many shards it had.
                steps.extend(step.filter(|step| !steps.contains(step)));
            }
        }
        steps.extend(self.forgotten(now));
        steps
    }

    /// When to look again if nothing is heard before.
    pub fn look_again(&self, now: Duration) -> Duration {
        if self.stopping || !self.leaving.is_empty() {
            return now + Duration::from_millis(50);
        }
        now + (self.terms.renew / 5).max(Duration::from_millis(50))
    }

    /// Replicas that are alive, this one included once it said so.
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
        // Whatever somebody wrote into it, it does not keep us away for ever.
        let longest = self.terms.duration * 6;
        let duration = seen.record.duration.clamp(self.terms.duration, longest);
        seen.record.holder.is_none() || now >= seen.since + duration
    }

    /// Says that we live, if it is time.
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

    /// Takes a shard that ought to be ours and is not, if it is nobody's by now.
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
            Some(other) => match self.buried.get(other) {
                Some(sent) if seen.since < *sent => self.may_try(&name, now).then(hold).flatten(),
                _ => self.bury(other, now),
            },
        }
    }

    pub(super) fn bury(&self, replica: &str, now: Duration) -> Option<LeaseStep> {
        let name = LeaseName::Replica(replica.to_owned());
        let seen = self.seen.get(&name);
        let silent = seen.is_none_or(|seen| self.is_free(seen, now));
        let record = seen.map(|seen| seen.record.clone());
        (silent && self.may_try(&name, now)).then_some(LeaseStep::Bury(name, record))
    }

    /// Gives back a shard that ought to be another's. Only when nobody could begin to write since:
    /// the fence is closed in between.
    fn give(&mut self, shard: u32, busy: &impl Fn(u32) -> bool) -> Option<LeaseStep> {
        let step = self.release(shard)?;
        let closed = !self.leaving.insert(shard);
        (closed && !busy(shard)).then_some(step)
    }

    /// Also of what we hold by what an earlier process of our name wrote.
    fn release(&self, shard: u32) -> Option<LeaseStep> {
        let name = LeaseName::Shard(shard);
        let record = &self.seen.get(&name)?.record;
        self.is_me(record.holder.as_ref())
            .then(|| LeaseStep::Release(name, record.clone()))
    }

    /// Not more often than five times in the time of a renewal.
    pub(super) fn may_try(&self, name: &LeaseName, now: Duration) -> bool {
        self.tried
            .get(name)
            .is_none_or(|at| now >= *at + self.terms.renew / 5)
    }

    /// Shards first, so that others take them at once; then ourselves.
    fn farewell(&self, now: Duration, busy: &impl Fn(u32) -> bool) -> Vec<LeaseStep> {
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
        self.live(now).into_iter().chain(releases).collect()
    }

    fn forgotten(&self, now: Duration) -> Option<LeaseStep> {
        self.seen.iter().find_map(|(name, seen)| {
            let other = matches!(name, LeaseName::Replica(replica) if *replica != self.me);
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
        }
    }

    pub(in super::super) fn replica(name: &str) -> LeaseName {
        LeaseName::Replica(name.to_owned())
    }

    /// `b`, alive, which saw that `a` holds the shard, and then nothing of it for long.
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
    fn a_shard_of_the_silent_is_taken_once_they_are_buried() {
        let mut b = survivor();
        assert_eq!(
            b.steps(SECOND * 20, |_| false),
            [LeaseStep::Bury(replica("a"), Some(record("a", 1)))]
        );
        b.buried(
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
        b.buried(
            &replica("a"),
            LeaseRecord::default(),
            SECOND * 20,
            SECOND * 20,
        );
        // It came back and took its shard anew; of its own Lease nothing was heard yet.
        b.note(SHARD, record("a", 9), SECOND * 21);
        b.holds(replica("b"), record("b", 10), SECOND * 40);
        assert_eq!(
            b.steps(SECOND * 40, |_| false),
            [LeaseStep::Bury(replica("a"), Some(LeaseRecord::default()))],
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
