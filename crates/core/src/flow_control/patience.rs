//! The wait of requests after the API server has answered one of them with a call for patience.
//!
//! An API server that has too much to do says so to everybody. But a quota of its flow control, or a
//! webhook, can also refuse the requests about objects of one namespace only. So the clusters of a namespace
//! wait if a request about one of them was refused, and all wait as soon as requests about two namespaces
//! were.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::fair_queue::FlowOfGroup as _;

/// The name of a flow, `NAMESPACE/NAME`: the requests of one cluster belong together.
pub type Flow = Arc<str>;

/// The shortest and the longest wait, whatever the API server asks for.
const BOUNDS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(1));

/// Answers within this time are about the same trouble.
const TOGETHER: Duration = Duration::from_secs(10);

/// The times until which requests wait, counted like every time here from some fixed moment.
#[derive(Debug, Clone, Default)]
pub struct PatienceUntil {
    all: Option<Duration>,
    /// The moments until which requests of one namespace wait, by namespace.
    of: HashMap<String, Duration>,
    /// The namespace that was last told to wait, and when.
    last: Option<(String, Duration)>,
}

impl PatienceUntil {
    /// Takes in that the API server asked for patience, for `time` if it said for how long: in answer to
    /// a request of a flow, or of the process itself. The longest wait that was asked for counts.
    pub fn ask(&mut self, now: Duration, flow: Option<&Flow>, time: Option<Duration>) {
        let time = time.unwrap_or_default().clamp(BOUNDS.0, BOUNDS.1);
        let end = now.saturating_add(time);
        let Some(flow) = flow else {
            self.all = self.all.max(Some(end));
            return;
        };
        let namespace = flow.group();
        let is_another = |(last, at): &(String, Duration)| {
            last != namespace && now.saturating_sub(*at) <= TOGETHER
        };
        // The quota or the webhook of one namespace does not refuse requests about another one.
        if self.last.as_ref().is_some_and(is_another) {
            self.all = self.all.max(Some(end));
        }
        self.last = Some((namespace.to_owned(), now));
        // Waits that are over are forgotten, so that no more namespaces are kept than wait.
        self.of.retain(|_, until| *until > now);
        let until = self.of.entry(namespace.to_owned()).or_default();
        *until = end.max(*until);
    }

    /// The time until which all requests wait, if they wait now.
    pub fn until(&self, now: Duration) -> Option<Duration> {
        self.all.filter(|until| *until > now)
    }

    /// The time until which the requests of a flow wait, if they wait now.
    pub fn until_of(&self, flow: &Flow, now: Duration) -> Option<Duration> {
        let own = self.of.get(flow.group()).copied();
        own.filter(|until| *until > now).max(self.until(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_longest_wait_that_was_asked_for_counts_within_bounds() {
        let mut patience = PatienceUntil::default();
        assert_eq!(patience.until(seconds(0)), None);
        patience.ask(seconds(10), None, Some(seconds(7)));
        patience.ask(seconds(11), None, None);
        assert_eq!(patience.until(seconds(11)), Some(seconds(17)));
        assert_eq!(patience.until(seconds(17)), None);
        patience.ask(seconds(20), None, Some(seconds(3600)));
        assert_eq!(patience.until(seconds(20)), Some(seconds(80)));
    }

    #[test]
    fn what_one_namespace_is_told_does_not_stop_the_others() {
        let [first, second, other] = ["a/first", "a/second", "b/other"].map(Flow::from);
        let mut patience = PatienceUntil::default();
        patience.ask(seconds(100), Some(&first), Some(seconds(5)));
        patience.ask(seconds(101), Some(&second), Some(seconds(5)));
        assert_eq!(patience.until(seconds(101)), None);
        assert_eq!(patience.until_of(&first, seconds(101)), Some(seconds(106)));
        assert_eq!(patience.until_of(&other, seconds(101)), None);
        patience.ask(seconds(102), Some(&other), Some(seconds(5)));
        assert_eq!(patience.until(seconds(102)), Some(seconds(107)));
        // Much later, it is another trouble.
        patience.ask(seconds(200), Some(&first), Some(seconds(5)));
        assert_eq!(patience.until(seconds(200)), None);
        assert_eq!(patience.of.len(), 1, "what is over is forgotten");
    }
}
