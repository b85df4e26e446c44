//! Outages: for how long a cluster cannot be observed, and whether that is worth a warning.
//!
//! A head that starts or is being replaced answers no requests for a while, which is normal. A
//! warning therefore comes only when the outage lasts: after [`READY_S`] in which the head pod was
//! ready all the time, after [`REFUSED_S`] of refusals, or after [`START_S`] in any case. A cluster
//! that is observed only for a moment, as one whose head crashes again and again, is still in the
//! same outage, which ends when the cluster has been observed for [`OVER_S`].

use crate::reconcile::effects::failure::GcsKind;
use crate::reconcile::events::event::{ClusterEvent, ConditionKey, TrackedCondition};
use crate::reconcile::observed::blind::Blind;
use crate::snapshot::moment;

/// Seconds for which a head pod that is ready may leave requests unanswered.
pub const READY_S: f64 = 60.0;

/// Seconds for which a GCS may refuse the credentials, or their Secret may be missing: KubeRay
/// creates it at about the same time as the cluster.
pub const REFUSED_S: f64 = 10.0;

/// Seconds for which a head may take to start: Ray's images are large.
pub const START_S: f64 = 300.0;

/// Seconds for which a cluster has to be observed until its outage is over.
pub const OVER_S: f64 = 60.0;

/// An outage: a cluster that cannot be observed, or that has been observed again for a short time
/// only.
#[derive(Debug, Clone, PartialEq)]
pub struct Outage {
    /// The beginning of the outage, in seconds since 1970.
    since: f64,
    /// The time since which there has been no sign that the head is only starting.
    firm_since: Option<f64>,
    /// The time since which the cluster has been observed again.
    seen_since: Option<f64>,
    /// The reason why the cluster cannot be observed.
    pub(crate) why: Blind,
    /// The outage has lasted long enough to be worth a warning.
    lasts: bool,
}

impl Outage {
    /// The outage after a look that could not observe the cluster.
    pub(crate) fn blind(previous: Option<&Self>, why: &Blind, now: f64) -> Self {
        let why = why.completed(previous.map(|previous| &previous.why));
        let since = previous.map_or(now, |previous| previous.since);
        let firm_since = (!why.is_starting()).then(|| {
            let previous = previous.filter(|previous| previous.seen_since.is_none());
            previous
                .and_then(|previous| previous.firm_since)
                .unwrap_or(now)
        });
        // Missing or wrong credentials and answers that cannot be used do not end by waiting.
        let patience_s = match &why {
            Blind::Credentials { .. }
            | Blind::Gcs {
                kind: GcsKind::Unauthenticated | GcsKind::Unusable,
                ..
            } => REFUSED_S,
            _ => READY_S,
        };
        let lasts = previous.is_some_and(|previous| previous.lasts)
            || firm_since.is_some_and(|firm| now - firm >= patience_s)
            || now - since >= START_S;
        Self {
            since,
            firm_since,
            seen_since: None,
            why,
            lasts,
        }
    }

    /// The outage after a look that observed the cluster; `None` once the outage is over.
    pub(crate) fn recovery(previous: Option<&Self>, now: f64) -> Option<Self> {
        let previous = previous?;
        let seen_since = previous.seen_since.unwrap_or(now);
        (now - seen_since < OVER_S).then(|| Self {
            firm_since: None,
            seen_since: Some(seen_since),
            ..previous.clone()
        })
    }

    /// The warning, once the outage has lasted.
    pub(crate) fn warning(&self) -> Option<TrackedCondition> {
        let (since, why, advice) = (moment(self.since), &self.why, self.why.advice());
        let message = format!("the cluster has not been scaled since {since}: {why}; {advice}");
        let event = ClusterEvent::warning("NotObserved", "Scaling", message);
        (self.lasts).then(|| TrackedCondition::new(ConditionKey::NotObserved, event))
    }

    /// The Event that the outage is over, if there was a warning.
    pub(crate) fn over(&self) -> Option<TrackedCondition> {
        let since = moment(self.since);
        let message = format!("the cluster can be observed again; it could not be since {since}");
        let event = ClusterEvent::normal("Observed", "Scaling", message);
        (self.lasts).then(|| TrackedCondition::new(ConditionKey::Observed, event))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::reconcile::effects::failure::GcsKind;
    use crate::reconcile::observed::outage::*;
    use crate::reconcile::{HeadPod, RoundMemory, RoundSettings, round};

    fn silent(ready: bool) -> Blind {
        Blind::Gcs {
            head: HeadPod {
                name: "h".to_owned(),
                ready,
                closed: false,
            },
            kind: GcsKind::Unreachable,
            reason: "connection refused".to_owned(),
        }
    }

    /// The reasons of the Events when the cluster is looked at once a second; each item of `what`
    /// is what one look finds, and `None` is a cluster that is observed.
    fn announced(seconds: u32, what: impl Fn(u32) -> Option<Blind>) -> Vec<(u32, &'static str)> {
        let (mut memory, settings) = (RoundMemory::default(), RoundSettings::default());
        let mut announced = Vec::new();
        for second in 0..seconds {
            let now = 1_768_392_000.0 + f64::from(second);
            let round = match what(second) {
                Some(why) => crate::reconcile::blind(&memory, &why, now),
                None => round::Round {
                    outage: Outage::recovery(memory.outage.as_ref(), now),
                    conditions: over(&memory, now),
                    ..round::Round::default()
                },
            };
            let announcements = memory.fold(&round, &[], &settings, now, || 0.5);
            announced.extend(
                announcements
                    .events
                    .iter()
                    .map(|event| (second, event.reason)),
            );
        }
        announced
    }

    fn over(memory: &RoundMemory, now: f64) -> Vec<TrackedCondition> {
        let outage = Outage::recovery(memory.outage.as_ref(), now);
        let before = memory.outage.as_ref().filter(|_| outage.is_none());
        before.and_then(Outage::over).into_iter().collect()
    }

    #[test]
    fn a_head_that_starts_causes_no_event() {
        let start = |second| match second {
            0..20 => Some(Blind::NoHead),
            20..60 => Some(Blind::NoAddress {
                pod: "h".to_owned(),
            }),
            60..200 => Some(silent(false)),
            200..210 => Some(silent(true)),
            _ => None,
        };
        assert_eq!(announced(900, start), []);
    }

    #[test]
    fn a_head_that_never_becomes_ready_causes_an_event() {
        let announced = announced(900, |_| Some(Blind::NoHead));
        assert_eq!(announced, [(300, "NotObserved")]);
    }

    #[test]
    fn an_unanswering_head_that_is_ready_causes_one_event_and_one_at_its_end() {
        let outage = |second| (second < 600).then(|| silent(true));
        assert_eq!(
            announced(900, outage),
            [(60, "NotObserved"), (660, "Observed")]
        );
    }

    #[test]
    fn a_refusal_causes_an_event_soon() {
        let refused = |_| {
            Some(Blind::Credentials {
                head: HeadPod {
                    name: "h".to_owned(),
                    ready: false,
                    closed: false,
                },
                reason: "Secret demo cannot be read".to_owned(),
            })
        };
        assert_eq!(announced(100, refused), [(10, "NotObserved")]);
    }

    #[test]
    fn a_head_that_crashes_again_and_again_causes_one_event() {
        let crashing = |second| match second % 10 {
            0..4 => Some(Blind::Ended {
                pod: format!("h-{second}"),
            }),
            4..7 => Some(Blind::NoAddress {
                pod: format!("h-{second}"),
            }),
            7..9 => Some(silent(true)),
            _ => None,
        };
        assert_eq!(announced(120, crashing), []);
        assert_eq!(announced(3600, crashing), [(300, "NotObserved")]);
    }

    #[test]
    fn the_first_reason_is_kept_while_the_gcs_is_not_asked() {
        let head = HeadPod {
            name: "h".to_owned(),
            ready: true,
            closed: false,
        };
        let first = Outage::blind(None, &silent(false), 0.0);
        let next = Outage::blind(Some(&first), &Blind::NotAsked { head }, 1.0);
        assert_eq!(next.why, silent(true));
    }

    fn any_blind() -> impl Strategy<Value = Blind> {
        let head = any::<bool>().prop_map(|ready| HeadPod {
            name: "h".to_owned(),
            ready,
            closed: false,
        });
        prop_oneof![
            Just(Blind::NoHead),
            Just(Blind::NoAddress {
                pod: "h".to_owned()
            }),
            Just(Blind::Ended {
                pod: "h".to_owned()
            }),
            any::<bool>().prop_map(silent),
            head.prop_map(|head| Blind::NotAsked { head }),
        ]
    }

    proptest! {
        #[test]
        fn an_outage_has_the_same_text_at_any_time(
            why in any_blind(), one in 0.0..1e4_f64, other in 0.0..1e4_f64,
        ) {
            let first = Outage::blind(None, &why, 0.0);
            let look = |now| {
                let outage = Outage::blind(Some(&first), &why, now);
                (outage.why.to_string(), outage.warning())
            };
            let ((one, announced), (other, again)) = (look(one), look(other));
            prop_assert_eq!(one, other);
            if let (Some(announced), Some(again)) = (announced, again) {
                prop_assert_eq!(announced, again);
            }
        }
    }
}
