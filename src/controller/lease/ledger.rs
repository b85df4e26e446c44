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
//!   nobody's: it is [buried](Step::Bury). That is done when its resource version has not changed
//!   for `duration` since the moment at which the taker *saw* it, which is later than when it was
//!   renewed. Whoever is buried no longer trusts anything by then, and learns of it before it can
//!   renew.
//! - The shard is taken as it was seen *before* the burial was sent: were its holder back since,
//!   it would have written the shard's Lease again, and the compare-and-swap fails.
//! - Clocks of two machines are never compared; `margin` is for clocks of different speeds.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::record::{Name, Record, Step, Terms};
use super::shards::preferred;

#[derive(Debug, Clone)]
struct Seen {
    record: Record,
    since: Duration,
}

/// What one replica knows.
#[derive(Debug, Clone)]
pub struct Ledger {
    me: String,
    shards: u32,
    terms: Terms,
    seen: BTreeMap<Name, Seen>,
    /// When we sent the request that renewed our own Lease last; `None` if it is not ours.
    renewed: Option<Duration>,
    /// The shards that we took since our own Lease is ours.
    held: BTreeSet<u32>,
    /// When we sent the request that buried a replica, which has not been heard of since.
    buried: BTreeMap<String, Duration>,
    /// When we last tried to write a Lease.
    tried: BTreeMap<Name, Duration>,
    /// Shards that we give back once nothing is being written for them.
    leaving: BTreeSet<u32>,
    /// Everything was looked at once: before that, a Lease not seen may be there.
    complete: bool,
    stopping: bool,
}

/// A replica that has not been heard of for so many durations is forgotten.
const FORGOTTEN: u32 = 60;

impl Ledger {
    /// Nothing is known yet.
    pub fn new(me: String, shards: u32, terms: Terms) -> Self {
        Self {
            me,
            shards,
            terms,
            seen: BTreeMap::new(),
            renewed: None,
            held: BTreeSet::new(),
            buried: BTreeMap::new(),
            tried: BTreeMap::new(),
            leaving: BTreeSet::new(),
            complete: false,
            stopping: false,
        }
    }

    /// A Lease was seen.
    pub fn note(&mut self, name: Name, record: Record, now: Duration) {
        let known = |seen: &Seen| !record.is_newer_than(&seen.record);
        if self.seen.get(&name).is_some_and(known) {
            return;
        }
        let ours = self.is_me(record.holder.as_ref());
        match &name {
            // What we wrote without hearing of it is no end: nobody else writes our name.
            Name::Replica(replica) if *replica == self.me && !ours => self.fall(),
            Name::Replica(replica) if record.holder.is_some() => drop(self.buried.remove(replica)),
            Name::Shard(shard) if !ours => drop(self.held.remove(shard)),
            _ => {}
        }
        self.seen.insert(name, Seen { record, since: now });
    }

    /// A Lease is gone.
    pub fn gone(&mut self, name: &Name) {
        self.seen.remove(name);
        match name {
            Name::Replica(replica) if *replica == self.me => self.fall(),
            Name::Replica(replica) => drop(self.buried.remove(replica)),
            Name::Shard(shard) => drop(self.held.remove(shard)),
        }
    }

    /// Our own Lease is not ours any more, so nothing is.
    fn fall(&mut self) {
        self.renewed = None;
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
    pub fn holds(&mut self, name: Name, record: Record, sent: Duration) {
        match &name {
            Name::Replica(_) => self.renewed = Some(sent),
            // Of a shard that was asked for before our own Lease was lost nothing is known.
            Name::Shard(shard) if self.renewed.is_some() => drop(self.held.insert(*shard)),
            Name::Shard(_) => {}
        }
        let since = sent;
        self.seen.insert(name, Seen { record, since });
    }

    /// We wrote that we do not hold it any more.
    pub fn released(&mut self, name: &Name, record: Record, now: Duration) {
        if let Name::Shard(shard) = name {
            self.held.remove(shard);
            self.leaving.remove(shard);
        }
        self.seen.insert(name.clone(), Seen { record, since: now });
    }

    /// A request that was sent at `sent` buried a replica.
    pub fn buried(&mut self, name: &Name, record: Record, sent: Duration, now: Duration) {
        if let Name::Replica(replica) = name {
            self.buried.insert(replica.clone(), sent);
        }
        self.seen.insert(name.clone(), Seen { record, since: now });
    }

    /// A request was sent at `now`, whatever comes of it.
    pub fn attempted(&mut self, name: &Name, now: Duration) {
        self.tried.insert(name.clone(), now);
    }

    /// Until when shards may be written for, by shard. What is to be given back is not among them.
    pub fn trusted(&self) -> impl Iterator<Item = (u32, Duration)> {
        let until = self.until().filter(|_| !self.stopping);
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
    pub fn steps(&mut self, now: Duration, busy: impl Fn(u32) -> bool) -> Vec<Step> {
        if !self.complete {
            return Vec::new();
        }
        if self.stopping {
            return self.farewell(now, &busy);
        }
        let mut steps: Vec<Step> = self.live(now).into_iter().collect();
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
            Name::Replica(replica) => (!self.is_free(seen, now)).then(|| replica.clone()),
            Name::Shard(_) => None,
        });
        alive.collect()
    }

    fn is_free(&self, seen: &Seen, now: Duration) -> bool {
        // Whatever somebody wrote into it, it does not keep us away for ever.
        let longest = self.terms.duration * 6;
        let duration = seen.record.duration.clamp(self.terms.duration, longest);
        seen.record.holder.is_none() || now >= seen.since + duration
    }

    /// Says that we live, if it is time.
    fn live(&self, now: Duration) -> Option<Step> {
        let name = Name::Replica(self.me.clone());
        let due = |sent: Duration| now >= sent + self.terms.renew;
        if !self.may_try(&name, now) || !self.renewed.is_none_or(due) {
            return None;
        }
        Some(match self.seen.get(&name) {
            None => Step::Create(name),
            Some(seen) => Step::Hold(name, seen.record.clone()),
        })
    }

    /// Takes a shard that ought to be ours and is not, if it is nobody's by now.
    fn take(&self, shard: u32, now: Duration) -> Option<Step> {
        let name = Name::Shard(shard);
        if self.held.contains(&shard) {
            return None;
        }
        let Some(seen) = self.seen.get(&name) else {
            return self.may_try(&name, now).then_some(Step::Create(name));
        };
        let hold = || Some(Step::Hold(name.clone(), seen.record.clone()));
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

    fn bury(&self, replica: &str, now: Duration) -> Option<Step> {
        let name = Name::Replica(replica.to_owned());
        let seen = self.seen.get(&name);
        let silent = seen.is_none_or(|seen| self.is_free(seen, now));
        let record = seen.map(|seen| seen.record.clone());
        (silent && self.may_try(&name, now)).then_some(Step::Bury(name, record))
    }

    /// Gives back a shard that ought to be another's. Only when nobody could begin to write since:
    /// the fence is closed in between.
    fn give(&mut self, shard: u32, busy: &impl Fn(u32) -> bool) -> Option<Step> {
        let step = self.release(shard)?;
        let closed = !self.leaving.insert(shard);
        (closed && !busy(shard)).then_some(step)
    }

    /// Also of what we hold by what an earlier process of our name wrote.
    fn release(&self, shard: u32) -> Option<Step> {
        let name = Name::Shard(shard);
        let record = &self.seen.get(&name)?.record;
        self.is_me(record.holder.as_ref())
            .then(|| Step::Release(name, record.clone()))
    }

    /// Not more often than five times in the time of a renewal.
    fn may_try(&self, name: &Name, now: Duration) -> bool {
        self.tried
            .get(name)
            .is_none_or(|at| now >= *at + self.terms.renew / 5)
    }

    /// Shards first, so that others take them at once; then ourselves.
    fn farewell(&self, now: Duration, busy: &impl Fn(u32) -> bool) -> Vec<Step> {
        let named: Vec<u32> = (0..self.shards)
            .filter(|shard| self.release(*shard).is_some())
            .collect();
        if named.is_empty() {
            let me = Name::Replica(self.me.clone());
            let seen = self.seen.get(&me).filter(|_| self.renewed.is_some());
            let remove = seen.map(|seen| Step::Remove(me, seen.record.clone()));
            return remove.into_iter().collect();
        }
        let idle = named.into_iter().filter(|shard| !busy(*shard));
        let releases = idle.filter_map(|shard| self.release(shard));
        self.live(now).into_iter().chain(releases).collect()
    }

    fn forgotten(&self, now: Duration) -> Option<Step> {
        self.seen.iter().find_map(|(name, seen)| {
            let other = matches!(name, Name::Replica(replica) if *replica != self.me);
            let long = now >= seen.since + self.terms.duration * FORGOTTEN;
            (other && long && self.may_try(name, now))
                .then(|| Step::Remove(name.clone(), seen.record.clone()))
        })
    }
}
