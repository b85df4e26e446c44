//! The heartbeat of all central replicas together: one Lease that says that at least one of them may write. Pure.
//!
//! It is for sidecars that [stand by](crate::reconcile::ownership::standby), which may read this one Lease and no
//! other. It proves nothing to replicas, and no write depends on it. The first of the living replicas renews
//! it; where it does not, the next one does a little later, so that it is one request in each interval however
//! many replicas there are.

use std::time::Duration;

use super::record::LeaseRecord;

/// The most replicas that wait for each other.
const RANKS: u32 = 4;

/// What a replica knows of the heartbeat.
#[derive(Debug, Clone, Default)]
pub struct Heartbeat {
    /// The Lease as it was seen, and since when it has been unchanged.
    seen: Option<(LeaseRecord, Duration)>,
    /// When this replica last tried to write it.
    tried: Option<Duration>,
}

/// What a replica does for the heartbeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeartbeatStep {
    /// Create the Lease, which does not exist.
    Create,
    /// Renew it, on condition that it is still as it was seen.
    Renew(LeaseRecord),
}

impl Heartbeat {
    /// Takes in the Lease as it was seen.
    pub fn note(&mut self, record: LeaseRecord, now: Duration) {
        let is_known = |(seen, _): &(LeaseRecord, Duration)| !record.is_newer_than(seen);
        if !self.seen.as_ref().is_some_and(is_known) {
            self.seen = Some((record, now));
        }
    }

    /// Takes in that the Lease was deleted.
    pub fn gone(&mut self) {
        self.seen = None;
    }

    /// Takes in that it was written at `now`, whatever the result.
    pub fn attempted(&mut self, now: Duration) {
        self.tried = Some(now);
    }

    /// What is due now for the replica of a rank, if anything is: it is renewed every `renew`.
    pub fn step(&self, rank: usize, renew: Duration, now: Duration) -> Option<HeartbeatStep> {
        if self.tried.is_some_and(|at| now < at + renew / 5) {
            return None;
        }
        let Some((record, since)) = &self.seen else {
            return Some(HeartbeatStep::Create);
        };
        let rank = u32::try_from(rank).unwrap_or(RANKS).min(RANKS);
        let due = *since + renew + renew / 3 * rank;
        (now >= due).then(|| HeartbeatStep::Renew(record.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::ledger::tests::record;
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const RENEW: Duration = Duration::from_secs(3);

    #[test]
    fn one_replica_renews_it_and_the_next_steps_in() {
        let mut heartbeat = Heartbeat::default();
        assert_eq!(
            heartbeat.step(1, RENEW, SECOND),
            Some(HeartbeatStep::Create)
        );
        heartbeat.attempted(SECOND);
        assert_eq!(heartbeat.step(1, RENEW, SECOND), None, "no answer yet");
        heartbeat.note(record("a", 5), SECOND * 2);
        heartbeat.note(record("a", 4), SECOND * 4);
        let renews = |rank, second| heartbeat.step(rank, RENEW, SECOND * second).is_some();
        assert_eq!([renews(0, 4), renews(0, 5)], [false, true]);
        assert_eq!([renews(1, 5), renews(1, 6)], [false, true]);
        assert!(renews(999, 9), "whatever its rank");
        let step = heartbeat.step(0, RENEW, SECOND * 5);
        assert_eq!(step, Some(HeartbeatStep::Renew(record("a", 5))));
        heartbeat.gone();
        assert_eq!(
            heartbeat.step(0, RENEW, SECOND * 5),
            Some(HeartbeatStep::Create)
        );
    }
}
