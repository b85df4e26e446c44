//! One replica's knowledge of the Lease, and the request that it sends next. Pure: time is an
//! argument, counted from any moment on a clock that never jumps.
//!
//! # Why no two replicas lead at the same time
//!
//! - The Lease is written by compare-and-swap on its resource version.
//! - The leader trusts it until `duration - margin` after the moment at which it *sent* the request that renewed
//!   it, and only while no other replica has written it.
//! - Another replica takes it once its holder has released it, or once its resource version has not changed for
//!   `duration` since that replica *saw* it, which is later than the renewal. So does a replica that finds its own
//!   name in it without an answer that says so: a request of long ago, or of a former process, may have arrived.
//! - A Lease that was deleted is made anew by its leader at once, and by others after `duration`.
//! - Clocks of two machines are never compared; `margin` is for clocks of different speeds.

use std::time::Duration;

use super::record::{LeaseRecord, Terms};

/// A request about the Lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseRequest {
    /// Read the Lease, which this replica has not seen yet.
    Read,
    /// Create the Lease, with this replica as its holder.
    Create,
    /// Write this replica's name into the Lease as it was seen, to take it or to renew it.
    Hold(LeaseRecord),
    /// Take this replica's name out of the Lease.
    Release(LeaseRecord),
}

impl LeaseRequest {
    /// The write of a request of this replica: the Lease that it replaces, and its holder
    /// afterwards. `None` for one that only reads.
    pub fn write<'a>(
        &'a self,
        replica: &'a str,
    ) -> Option<(Option<&'a LeaseRecord>, Option<&'a str>)> {
        match self {
            Self::Read => None,
            Self::Create => Some((None, Some(replica))),
            Self::Hold(current) => Some((Some(current), Some(replica))),
            Self::Release(current) => Some((Some(current), None)),
        }
    }
}

/// One replica's knowledge of the Lease.
#[derive(Debug, Clone)]
pub struct Leadership {
    replica: String,
    terms: Terms,
    /// The Lease, or that there is none, is known.
    is_known: bool,
    /// The Lease as it was seen, and since when it has been unchanged; `None` if there is none.
    pub lease: Option<(LeaseRecord, Duration)>,
    /// The time from which on the Lease may be made anew: somebody may have deleted it under its
    /// holder.
    free_from: Duration,
    /// The time at which this replica sent the last request that made it the holder; `None` if it
    /// is not.
    renewed: Option<Duration>,
    /// The time at which this replica sent the first renewal that has not been answered since.
    unanswered: Option<Duration>,
    /// The time of this replica's last request.
    last_request: Option<Duration>,
    /// The Lease is being given back.
    pub is_stopping: bool,
}

impl Leadership {
    /// The knowledge of a replica of this name, which no other replica has, at its start.
    pub fn new(replica: String, terms: Terms) -> Self {
        Self {
            replica,
            terms,
            is_known: false,
            lease: None,
            free_from: Duration::ZERO,
            renewed: None,
            unanswered: None,
            last_request: None,
            is_stopping: false,
        }
    }

    /// Takes in the Lease as a watch or a read shows it; `None` if there is none.
    pub fn note(&mut self, record: Option<LeaseRecord>, now: Duration) {
        self.is_known = true;
        let Some(record) = record else {
            let is_leader = self.leads_until().is_some_and(|until| now < until);
            if self.lease.take().is_some() && !is_leader {
                self.free_from = now + self.terms.duration;
            }
            return self.fall();
        };
        if self
            .lease
            .as_ref()
            .is_some_and(|(current, _)| !record.is_newer_than(current))
        {
            return;
        }
        if self.is_ours(&record) {
            // No other replica writes our name: a request of ours arrived, but its answer was lost. It
            // counts from the first unanswered renewal, the earliest that it can have been. Where this process
            // has never held the Lease, a former one of its name may have written it.
            let first = self.unanswered;
            self.renewed = self.renewed.map(|sent| sent.max(first.unwrap_or(sent)));
        } else {
            self.fall();
        }
        self.lease = Some((record, now));
    }

    /// Takes in that a request is being sent.
    pub fn asks(&mut self, request: &LeaseRequest, now: Duration) {
        if matches!(request, LeaseRequest::Hold(_)) {
            self.unanswered.get_or_insert(now);
        }
        self.last_request = Some(now);
    }

    /// Takes in the Lease as a request that was sent at `sent` has written it.
    pub fn wrote(&mut self, record: LeaseRecord, sent: Duration) {
        self.unanswered = None;
        self.renewed = self.is_ours(&record).then_some(sent);
        self.is_known = true;
        self.lease = Some((record, sent));
    }

    /// The time until which writes may last, while this replica leads. It may be over.
    pub fn leads_until(&self) -> Option<Duration> {
        let trusted = self.terms.duration.saturating_sub(self.terms.margin);
        Some(self.renewed.filter(|_| !self.is_stopping)? + trusted)
    }

    /// Returns whether this replica holds the Lease, as far as it knows.
    pub fn is_holder(&self) -> bool {
        self.renewed.is_some()
    }

    /// The request that is due now. `is_writing` is whether a write under the Lease is still under way.
    pub fn request(&self, now: Duration, is_writing: bool) -> Option<LeaseRequest> {
        // At most five times in one renewal interval.
        let again = |last_request: Duration| now >= last_request + self.terms.renew / 5;
        if !self.last_request.is_none_or(again) {
            return None;
        }
        if !self.is_known {
            return Some(LeaseRequest::Read);
        }
        let Some((current, since)) = &self.lease else {
            let is_due = now >= self.free_from && !self.is_stopping;
            return is_due.then_some(LeaseRequest::Create);
        };
        let is_due = match self.renewed {
            Some(_) if self.is_stopping && !is_writing => {
                return Some(LeaseRequest::Release(current.clone()));
            }
            Some(sent) => now >= sent + self.terms.renew,
            None if self.is_stopping => false,
            None => {
                // A duration that somebody wrote into the Lease cannot keep others away for ever.
                let longest = self.terms.duration * 6;
                let duration = current.duration.clamp(self.terms.duration, longest);
                current.holder.is_none() || now >= *since + duration
            }
        };
        is_due.then(|| LeaseRequest::Hold(current.clone()))
    }

    /// The time at which to ask for the request again if the Lease does not change before.
    pub fn look_again(&self, now: Duration) -> Duration {
        let shortest = Duration::from_millis(50);
        // Nothing tells when a write that is under way ends, so that is asked again soon.
        let ends = self.is_stopping.then_some(shortest);
        now + ends.unwrap_or((self.terms.renew / 5).max(shortest))
    }

    fn is_ours(&self, record: &LeaseRecord) -> bool {
        record.holder.as_ref() == Some(&self.replica)
    }

    fn fall(&mut self) {
        self.renewed = None;
        self.unanswered = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn record(holder: &str, version: u32) -> LeaseRecord {
        LeaseRecord {
            holder: (!holder.is_empty()).then(|| holder.to_owned()),
            version: version.to_string(),
            duration: Terms::default().duration,
            acquired: None,
        }
    }

    fn replica(name: &str) -> Leadership {
        Leadership::new(name.to_owned(), Terms::default())
    }

    #[test]
    fn the_lease_of_a_silent_leader_is_taken_once_it_has_ended_for_certain() {
        let mut b = replica("b");
        assert_eq!(b.request(SECOND, false), Some(LeaseRequest::Read));
        b.note(Some(record("a", 1)), SECOND);
        assert_eq!(b.request(SECOND * 8, false), None);
        b.note(Some(record("a", 2)), SECOND * 8);
        assert_eq!(b.request(SECOND * 9, false), None, "it was renewed");
        let hold = LeaseRequest::Hold(record("a", 2));
        assert_eq!(b.request(SECOND * 16, false), Some(hold));
        b.wrote(record("b", 3), SECOND * 16);
        assert_eq!(b.leads_until(), Some(SECOND * 23));
    }

    #[test]
    fn a_released_lease_is_taken_at_once_and_an_absent_one_made() {
        let mut b = replica("b");
        b.note(Some(record("", 4)), SECOND);
        let hold = LeaseRequest::Hold(record("", 4));
        assert_eq!(b.request(SECOND, false), Some(hold));
        let mut c = replica("c");
        c.note(None, SECOND);
        assert_eq!(c.request(SECOND, false), Some(LeaseRequest::Create));
    }

    #[test]
    fn a_deleted_lease_is_made_anew_by_its_leader_first() {
        let (mut a, mut b) = (replica("a"), replica("b"));
        a.wrote(record("a", 1), SECOND);
        b.note(Some(record("a", 1)), SECOND);
        for replica in [&mut a, &mut b] {
            replica.note(None, SECOND * 2);
        }
        assert_eq!(a.request(SECOND * 2, false), Some(LeaseRequest::Create));
        assert_eq!(b.request(SECOND * 9, false), None);
        assert_eq!(b.request(SECOND * 10, false), Some(LeaseRequest::Create));
    }

    #[test]
    fn a_duration_that_somebody_wrote_keeps_nobody_away_for_ever() {
        let mut b = replica("b");
        let mut forged = record("a", 1);
        forged.duration = Duration::from_secs(u64::MAX / 4);
        b.note(Some(forged.clone()), SECOND);
        assert_eq!(b.request(SECOND * 48, false), None);
        assert_eq!(
            b.request(SECOND * 49, false),
            Some(LeaseRequest::Hold(forged))
        );
    }

    #[test]
    fn the_lease_is_given_back_after_the_last_write_and_renewed_until_then() {
        let mut a = replica("a");
        a.wrote(record("a", 1), SECOND);
        a.is_stopping = true;
        assert_eq!(a.leads_until(), None, "no write begins any more");
        assert_eq!(a.request(SECOND * 2, true), None);
        assert_eq!(
            a.request(SECOND * 3, true),
            Some(LeaseRequest::Hold(record("a", 1)))
        );
        assert_eq!(
            a.request(SECOND * 3, false),
            Some(LeaseRequest::Release(record("a", 1)))
        );
        a.wrote(record("", 2), SECOND * 3);
        assert!(!a.is_holder());
        assert_eq!(a.request(SECOND * 9, false), None);
    }

    #[test]
    fn a_renewal_whose_answer_was_lost_counts_from_the_first_that_it_can_be() {
        let mut a = replica("a");
        a.wrote(record("a", 1), SECOND);
        let renewal = LeaseRequest::Hold(record("a", 1));
        a.asks(&renewal, SECOND * 3);
        a.asks(&renewal, SECOND * 5);
        assert_eq!(a.leads_until(), Some(SECOND * 8));
        a.note(Some(record("a", 2)), SECOND * 6);
        assert_eq!(a.leads_until(), Some(SECOND * 10));
    }

    /// The container was restarted in its pod, whose name the Lease still has.
    #[test]
    fn a_lease_of_a_former_process_of_the_same_name_is_waited_for() {
        let mut a = replica("a");
        a.asks(&LeaseRequest::Read, SECOND);
        a.note(Some(record("a", 5)), SECOND * 2);
        assert_eq!(a.leads_until(), None);
        assert_eq!(a.request(SECOND * 9, false), None);
        assert_eq!(
            a.request(SECOND * 10, false),
            Some(LeaseRequest::Hold(record("a", 5)))
        );
    }
}
