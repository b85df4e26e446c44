//! What one replica knows of the Leases, and what it does next. Pure: time is an argument, counted
//! from any moment on a clock that never jumps.
//!
//! # Why no two replicas write
//!
//! - A Lease is taken, renewed and given back by compare-and-swap on its resource version.
//! - Its holder trusts it until `duration - margin` after the moment at which it *sent* the
//!   request that took or renewed it.
//! - Others take it only when its resource version has not changed for `duration` since the moment
//!   at which they *saw* it, which is later. Clocks of two machines are never compared; `margin`
//!   is for clocks that run at different speeds.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::shards::preferred;

/// The times that Leases are held by. All replicas must have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// For how long a Lease that is not renewed keeps others away.
    pub duration: Duration,
    /// How often it is renewed.
    pub renew: Duration,
    /// By how much earlier its holder stops to trust it.
    pub margin: Duration,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(10),
            renew: Duration::from_millis(2_500),
            margin: Duration::from_secs(1),
        }
    }
}

/// What a Lease object says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record {
    /// Who holds it, if anybody.
    pub holder: Option<String>,
    /// Its resource version.
    pub version: String,
    /// For how long it holds without being renewed.
    pub duration: Duration,
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Create the Lease, which is not there, in our name.
    Create(Name),
    /// Write our name into it: to take it or to renew it.
    Hold(Name, Record),
    /// Take our name out of it.
    Release(Name, Record),
    /// Remove the Lease of a replica that is long gone.
    Remove(Name, Record),
}

/// Which Lease.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Name {
    /// Of a replica: that it is alive.
    Replica(String),
    /// Of a shard: who looks after its clusters.
    Shard(u32),
}

impl Step {
    /// The Lease that it is about.
    pub fn name(&self) -> &Name {
        match self {
            Self::Create(name)
            | Self::Hold(name, _)
            | Self::Release(name, _)
            | Self::Remove(name, _) => name,
        }
    }
}

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
    /// Until when we trust what we hold.
    trusted: BTreeMap<Name, Duration>,
    /// When we last renewed, or tried to take, a Lease.
    tried: BTreeMap<Name, Duration>,
    /// Shards that we give back once nothing is being written for them.
    leaving: BTreeSet<u32>,
    /// Everything was looked at once: before that, a Lease not seen may be there.
    complete: bool,
    stopping: bool,
}

/// Whether an object was stored after another. A watch tells of our own writes after their replies
/// did, and of what was before them. (Resource versions are numbers that grow.)
fn is_newer(version: &str, than: &str) -> bool {
    match (version.parse::<u64>(), than.parse::<u64>()) {
        (Ok(version), Ok(than)) => version > than,
        _ => version != than,
    }
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
            trusted: BTreeMap::new(),
            tried: BTreeMap::new(),
            leaving: BTreeSet::new(),
            complete: false,
            stopping: false,
        }
    }

    /// A Lease was seen.
    pub fn note(&mut self, name: Name, record: Record, now: Duration) {
        let known = |seen: &Seen| !is_newer(&record.version, &seen.record.version);
        if self.seen.get(&name).is_some_and(known) {
            return;
        }
        if record.holder.as_deref() != Some(&self.me) {
            self.trusted.remove(&name);
        }
        self.seen.insert(name, Seen { record, since: now });
    }

    /// A Lease is gone.
    pub fn gone(&mut self, name: &Name) {
        self.seen.remove(name);
        self.trusted.remove(name);
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
        let trusted = self.terms.duration.saturating_sub(self.terms.margin);
        self.trusted.insert(name.clone(), sent + trusted);
        self.seen.insert(
            name,
            Seen {
                record,
                since: sent,
            },
        );
    }

    /// We wrote that we do not hold it any more.
    pub fn released(&mut self, name: &Name, record: Record, now: Duration) {
        self.trusted.remove(name);
        if let Name::Shard(shard) = name {
            self.leaving.remove(shard);
        }
        self.seen.insert(name.clone(), Seen { record, since: now });
    }

    /// A request was sent at `now`, whatever comes of it.
    pub fn attempted(&mut self, name: &Name, now: Duration) {
        self.tried.insert(name.clone(), now);
    }

    /// Until when shards may be written for, by shard. What is to be given back is not among them.
    pub fn trusted(&self) -> impl Iterator<Item = (u32, Duration)> {
        let shards = self.trusted.iter().filter_map(|(name, until)| match name {
            Name::Shard(shard) => Some((*shard, *until)),
            Name::Replica(_) => None,
        });
        shards.filter(|(shard, _)| !self.stopping && !self.leaving.contains(shard))
    }

    /// Everything was given back.
    pub fn is_empty(&self) -> bool {
        self.trusted.is_empty()
    }

    /// What is to be done now. `busy` says whether something is still being written for a shard.
    pub fn steps(&mut self, now: Duration, busy: impl Fn(u32) -> bool) -> Vec<Step> {
        if !self.complete {
            return Vec::new();
        }
        if self.stopping {
            return self.farewell(now, &busy);
        }
        let mut steps: Vec<Step> = self
            .keep(Name::Replica(self.me.clone()), now)
            .into_iter()
            .collect();
        let members = self.members(now);
        for shard in 0..self.shards {
            let name = Name::Shard(shard);
            let mine = preferred(&members, shard) == Some(&self.me);
            if mine {
                self.leaving.remove(&shard);
                steps.extend(self.keep(name, now));
            } else if self.trusted.contains_key(&name) {
                // Only when nobody could begin to write since: the fence is closed in between.
                let closed = !self.leaving.insert(shard);
                let release = (closed && !busy(shard))
                    .then(|| self.release(&name))
                    .flatten();
                steps.extend(release.or_else(|| self.keep(name, now)));
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

    /// Takes or renews a Lease, if it is time.
    fn keep(&self, name: Name, now: Duration) -> Option<Step> {
        let Some(seen) = self.seen.get(&name) else {
            return self.may_try(&name, now).then_some(Step::Create(name));
        };
        let held = seen.record.holder.as_deref() == Some(&self.me);
        let due = if held && self.trusted.contains_key(&name) {
            self.tried
                .get(&name)
                .is_none_or(|at| now >= *at + self.terms.renew)
        } else {
            (held || self.is_free(seen, now)) && self.may_try(&name, now)
        };
        due.then(|| Step::Hold(name, seen.record.clone()))
    }

    /// Not more often than five times in the time of a renewal.
    fn may_try(&self, name: &Name, now: Duration) -> bool {
        self.tried
            .get(name)
            .is_none_or(|at| now >= *at + self.terms.renew / 5)
    }

    fn release(&self, name: &Name) -> Option<Step> {
        let seen = self.seen.get(name)?;
        let held = seen.record.holder.as_deref() == Some(&self.me);
        held.then(|| Step::Release(name.clone(), seen.record.clone()))
    }

    /// Shards first, so that others take them at once; then ourselves.
    fn farewell(&self, now: Duration, busy: &impl Fn(u32) -> bool) -> Vec<Step> {
        let idle = |name: &Name| matches!(name, Name::Shard(shard) if !busy(*shard));
        let shards: Vec<&Name> = self
            .trusted
            .keys()
            .filter(|name| matches!(name, Name::Shard(_)))
            .collect();
        if shards.is_empty() {
            let me = Name::Replica(self.me.clone());
            let held = self
                .trusted
                .contains_key(&me)
                .then(|| self.seen.get(&me))
                .flatten();
            return held
                .map(|seen| Step::Remove(me, seen.record.clone()))
                .into_iter()
                .collect();
        }
        let mut steps: Vec<Step> = Vec::new();
        for name in shards {
            let step = if idle(name) {
                self.release(name)
            } else {
                self.keep(name.clone(), now)
            };
            steps.extend(step);
        }
        steps
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
