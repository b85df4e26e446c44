//! Times at which the Events about the pods of a namespace are read again. Pure.
//!
//! Soon after a pod was found to wait, since node autoscalers answer within seconds; then more and
//! more seldom, because what they say of a pod later is said while nothing moves. Times are seconds
//! since some moment.

use std::collections::{HashMap, HashSet};

use super::awaiting::AwaitingPods;

/// The shortest time between two readings.
const SOONEST_S: f64 = 2.0;

/// The longest.
const RARELY_S: f64 = 30.0;

/// The pause after a reading, as a multiple of the time that it took.
// A namespace with very many Events costs the API server a tenth of its time at most.
const REST: f64 = 10.0;

/// Seconds after which it is tried again if the right is missing.
const REFUSED_S: f64 = 300.0;

/// The times of all namespaces.
#[derive(Debug, Default)]
pub(super) struct AskTimes(HashMap<String, Times>);

#[derive(Debug)]
struct Times {
    /// The UIDs of the pods that wait.
    pods: HashSet<String>,
    /// The time at which the last of them was found to wait.
    newest: f64,
    next: f64,
    /// The earliest time at which it may be read, whatever is new.
    not_before: f64,
}

impl AskTimes {
    /// The namespaces that are to be read now, those first that have been due for longest.
    pub(super) fn due(&mut self, awaiting: &AwaitingPods, now: f64) -> Vec<String> {
        // Namespaces that were read lately are remembered, so that pods that come and go cost no more.
        self.0
            .retain(|namespace, times| awaiting.contains_key(namespace) || now < times.not_before);
        let mut due = Vec::new();
        for (namespace, pods) in awaiting {
            let times = self.0.entry(namespace.clone()).or_insert_with(|| Times {
                pods: HashSet::new(),
                newest: now,
                next: now,
                not_before: now,
            });
            let uids: HashSet<String> = pods.values().map(|pod| pod.uid.clone()).collect();
            if !uids.is_subset(&times.pods) {
                times.newest = now;
                times.next = times.next.min(times.not_before);
            }
            times.pods = uids;
            if times.next <= now {
                due.push((times.next, namespace.clone()));
            }
        }
        due.sort_by(|(one, a), (other, b)| one.total_cmp(other).then_with(|| a.cmp(b)));
        due.into_iter().map(|(_, namespace)| namespace).collect()
    }

    /// Takes in that a namespace was read, which took so long, or that it may not be read.
    pub(super) fn note_reading(&mut self, namespace: &str, took_s: Option<f64>, now: f64) {
        if let Some(times) = self.0.get_mut(namespace) {
            let rest = took_s.map_or(REFUSED_S, |took_s| (took_s * REST).max(SOONEST_S));
            times.not_before = now + rest;
            let usual = ((now - times.newest) / 2.0).clamp(SOONEST_S, RARELY_S);
            times.next = now + usual.max(rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use rayfit_core::snapshot::prospect_reader::AwaitingPod;

    use super::*;

    fn pods(pods: &[(&str, &str)]) -> AwaitingPods {
        let mut all = AwaitingPods::new();
        for (namespace, uid) in pods {
            let of = all.entry((*namespace).to_owned()).or_default();
            let pod = AwaitingPod {
                uid: (*uid).to_owned(),
                created: 0.0,
            };
            of.insert((*uid).to_owned(), pod);
        }
        all
    }

    /// The times within `seconds` at which a namespace is read, if each reading takes `took_s` seconds.
    fn readings(awaiting: impl Fn(f64) -> AwaitingPods, seconds: u32, took_s: f64) -> Vec<f64> {
        let mut times = AskTimes::default();
        let mut read = Vec::new();
        for half in 0..seconds * 2 {
            let now = f64::from(half) / 2.0;
            for namespace in times.due(&awaiting(now), now) {
                read.push(now);
                times.note_reading(&namespace, Some(took_s), now);
            }
        }
        read
    }

    #[test]
    fn a_pod_that_waits_is_asked_about_soon_and_then_more_seldom() {
        let read = readings(|_| pods(&[("ray", "a")]), 600, 0.0);
        assert_eq!(read[..5], [0.0, 2.0, 4.0, 6.0, 9.0]);
        assert!(read.len() < 30, "{} in ten minutes", read.len());
        assert!(read.windows(2).all(|pair| pair[1] - pair[0] <= RARELY_S));
    }

    #[test]
    fn nothing_is_read_where_no_pod_waits() {
        assert_eq!(readings(|_| AwaitingPods::new(), 600, 0.0), [] as [f64; 0]);
    }

    #[test]
    fn a_new_pod_is_asked_about_at_once() {
        let later = |now: f64| {
            let all = [("ray", "a"), ("ray", "b")];
            pods(if now < 300.0 { &all[..1] } else { &all })
        };
        let read = readings(later, 310, 0.0);
        assert_eq!(read[read.len() - 5..], [300.0, 302.0, 304.0, 306.0, 309.0]);
    }

    #[test]
    fn pods_that_come_and_go_and_slow_answers_cost_no_more() {
        let flaps = |now: f64| {
            let name = format!("{now}");
            let (even, there) = (("ray", name.as_str()), now.fract() == 0.0);
            pods(if there {
                std::slice::from_ref(&even)
            } else {
                &[]
            })
        };
        let read = readings(flaps, 100, 0.0);
        assert!(read.len() <= 50, "{} in 100 s", read.len());
        let slow = readings(flaps, 100, 2.0);
        assert!(slow.len() <= 5, "{} in 100 s", slow.len());
    }

    #[test]
    fn where_the_right_is_missing_it_is_tried_now_and_then() {
        let mut times = AskTimes::default();
        let mut tried = 0;
        for second in 0..1200 {
            let now = f64::from(second);
            let name = format!("{second}");
            for namespace in times.due(&pods(&[("ray", &name)]), now) {
                times.note_reading(&namespace, None, now);
                tried += 1;
            }
        }
        assert_eq!(tried, 4);
    }

    #[test]
    fn who_has_waited_longest_is_first() {
        let mut times = AskTimes::default();
        assert_eq!(times.due(&pods(&[("b", "1")]), 0.0), ["b"]);
        assert_eq!(times.due(&pods(&[("a", "1"), ("b", "1")]), 1.0), ["b", "a"]);
    }
}
