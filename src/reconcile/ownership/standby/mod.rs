//! Standing by: when the sidecar of a cluster in mode central scales it in place of the central replicas.
//!
//! The central replicas renew one Lease together, their heartbeat, as long as any of them may write. A
//! sidecar that stands by reads it every [`POLL_S`], and stands in once a read shows what a read
//! [`SILENCE_S`] before has shown. Then it takes the cluster over by the ordinary
//! [hand-over](super::handover), and gives it back when the heartbeat is renewed.
//!
//! What is judged here decides who *should* write, never who *may*: a wrong judgement costs a pause of a few
//! seconds, and two writers are prevented by the hand-over record. The rules, so that it is seldom wrong:
//!
//! - Silence is only what this process has seen itself: the time between two reads of the same content. The times in
//!   the Lease are not looked at, because clocks of two machines are never compared.
//! - Where this process could not read for [`GAP_S`], the time before counts no more: when the API server comes
//!   back after an outage, the replicas have to be given the time to renew.
//! - Reads may be answered from the API server's cache, which may be old; the one that proves silence may not.
//! - A Lease that is absent or cannot be read proves nothing: nobody may ever have renewed it.
//! - Where a stand-in ends soon, because the heartbeat is renewed again after all, twice the silence is needed for the
//!   next one: renewals that are slow must not hand a cluster to and fro.
//! - Each sidecar waits a little longer by a time of its own, so that those of many clusters do not take over together.
//! - Once a central replica has taken the cluster back while the heartbeat was silent, the heartbeat is not
//!   believed until it is renewed; otherwise the two would take it from each other for ever.

use crate::reconcile::ownership::eligibility::{Duty, ScalerRole};
use crate::reconcile::ownership::handover::HandoverRecord;
use crate::reconcile::ownership::lease::record::is_later;
use crate::reconcile::ownership::lease::shards::shard_of;

/// How often the heartbeat is read, in seconds.
pub const POLL_S: f64 = 2.5;

/// For how many seconds the heartbeat must not have been renewed. A replica renews it every three seconds, so that two
/// renewals may be late; with [`POLL_S`] and the wait of the hand-over, demand is served within 20 s.
pub const SILENCE_S: f64 = 8.0;

/// The longest silence that is needed, after stand-ins that ended soon.
pub const LONGEST_SILENCE_S: f64 = 60.0;

/// A stand-in that lasts no longer ended soon.
pub const SOON_S: f64 = 30.0;

/// How long after the last stand-in [`SILENCE_S`] is enough again.
pub const QUIET_S: f64 = 600.0;

/// By how much longer the sidecars of some clusters wait than those of others.
pub const SPREAD_S: f64 = 2.0;

/// Into how many parts [`SPREAD_S`] is divided.
const PARTS: u32 = 1_000;

/// Reads that are further apart say nothing about the time between them.
pub const GAP_S: f64 = 6.0;

/// After how many stand-ins that ended soon the silence no longer grows.
const PATIENT: u32 = 3;

/// What a sidecar that stands by knows of the central replicas. Starting from an empty one is always safe.
/// All times are in seconds of one clock that only goes forward.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Standby {
    heartbeat: Option<SeenHeartbeat>,
    /// When the last read was asked for, whatever came of it.
    tried: Option<f64>,
    /// When the last answer came.
    answered: Option<f64>,
    duty: Duty,
    /// The hand-over record as it was last seen.
    record: Option<HandoverRecord>,
    /// Whether a central replica has been at work while the heartbeat was silent.
    is_disproved: bool,
    /// How much longer than others this sidecar waits.
    spread: f64,
    /// How many stand-ins in a row ended soon.
    brief: u32,
    /// When the last stand-in began.
    began: f64,
    /// When the last stand-in ended, if that is not long ago.
    ended: Option<f64>,
}

/// The heartbeat as it was read, and since when it has been the same.
#[derive(Debug, Clone, PartialEq)]
struct SeenHeartbeat {
    version: String,
    since: f64,
}

/// A read of the heartbeat that was answered.
#[derive(Debug, Clone, PartialEq)]
pub struct HeartbeatRead<'a> {
    /// The resource version of the Lease; `None` if there is no Lease.
    pub version: Option<&'a str>,
    /// When it was asked for.
    pub asked: f64,
    /// Whether it was answered from what was stored last, and not from a cache.
    pub is_fresh: bool,
}

impl Standby {
    /// What the sidecar of a head pod knows in the beginning: nothing.
    pub fn of_head(uid: &str) -> Self {
        Self {
            spread: SPREAD_S * f64::from(shard_of(uid, PARTS)) / f64::from(PARTS),
            ..Self::default()
        }
    }

    /// For how many seconds the heartbeat must not have been renewed before this sidecar stands in.
    pub fn needed_silence(&self) -> f64 {
        let doubled = SILENCE_S * f64::from(1_u32 << self.brief.min(PATIENT));
        doubled.min(LONGEST_SILENCE_S) + self.spread
    }

    /// Whether this sidecar has to stand in.
    pub fn duty(&self) -> Duty {
        self.duty
    }

    /// For how long the heartbeat has been the same, as far as is known.
    pub fn silent_for(&self, now: f64) -> Option<f64> {
        Some(now - self.heartbeat.as_ref()?.since)
    }

    /// When to read the heartbeat next.
    pub fn next_read(&self) -> f64 {
        let Some(tried) = self.tried else {
            return f64::NEG_INFINITY;
        };
        let regular = tried + POLL_S;
        match self.proven_at() {
            Some(at) if tried < at => regular.min(at),
            _ => regular,
        }
    }

    /// Takes in that a read is asked for at `now`. Whether it has to be answered from what was
    /// stored last, because it may prove silence, or because no heartbeat is known.
    pub fn ask(&mut self, now: f64) -> bool {
        self.tried = Some(now);
        // A cache may still have a Lease that no longer exists, and show a later state of it
        // although nobody has renewed it since.
        self.heartbeat.is_none() || self.proven_at().is_some_and(|at| now >= at)
    }

    /// When a read of the same content would prove silence.
    fn proven_at(&self) -> Option<f64> {
        let waits = self.duty == Duty::OwnMode && !self.is_disproved;
        let seen = self.heartbeat.as_ref().filter(|_| waits)?;
        Some(seen.since + self.needed_silence())
    }

    /// Takes in the answer to a read, which came at `now`.
    pub fn heard(&mut self, read: &HeartbeatRead<'_>, now: f64) {
        let last = self.answered.replace(now);
        if self.ended.is_some_and(|ended| now > ended + QUIET_S) {
            self.ended = None;
            self.brief = 0;
        }
        let Some(version) = read.version else {
            self.heartbeat = None;
            return;
        };
        let is_known = |seen: &SeenHeartbeat| {
            if read.is_fresh {
                seen.version == version
            } else {
                // The cache may show what was there before.
                !is_later(version, &seen.version)
            }
        };
        let known = self.heartbeat.take_if(|seen| is_known(seen));
        let Some(mut seen) = known else {
            self.is_disproved = false;
            self.end(now);
            self.heartbeat = Some(SeenHeartbeat {
                version: version.to_owned(),
                since: now,
            });
            return;
        };
        if last.is_none_or(|last| read.asked > last + GAP_S) {
            seen.since = now;
        }
        let is_proven = read.is_fresh && read.asked >= seen.since + self.needed_silence();
        if is_proven && !self.is_disproved && self.duty == Duty::OwnMode {
            self.duty = Duty::StandIn;
            self.began = now;
            // It was read before, and a central replica may have changed it until it fell silent.
            self.record = None;
        }
        self.heartbeat = Some(seen);
    }

    fn end(&mut self, now: f64) {
        if self.duty == Duty::StandIn {
            let is_brief = now < self.began + SOON_S;
            self.brief = if is_brief { self.brief + 1 } else { 0 };
            self.ended = Some(now);
        }
        self.duty = Duty::OwnMode;
    }

    /// Takes in the hand-over record, as it was read.
    pub fn saw(&mut self, record: HandoverRecord) {
        let named = match &record {
            HandoverRecord::Held(by) | HandoverRecord::Taking { role: by, .. } => Some(by),
            HandoverRecord::Absent | HandoverRecord::Nobody | HandoverRecord::Unknown(_) => None,
        };
        let central = named == Some(&ScalerRole::Central);
        let is_new = self.record.as_ref().is_some_and(|seen| *seen != record);
        if self.duty == Duty::StandIn && central && is_new {
            self.end(self.answered.unwrap_or_default());
            self.is_disproved = true;
        }
        self.record = Some(record);
    }
}

#[cfg(test)]
mod interleavings;
#[cfg(test)]
mod tests;
