//! The objects to watch, and the events about them.

use std::time::Duration;

use rayfit_core::seconds::Retry;

use super::pages::{ObjectName, PageFault};

/// The objects to watch.
#[derive(Debug, Clone)]
pub struct Selection {
    /// The title in logs and in the readiness report.
    pub title: &'static str,
    /// The path of the collection, such as `/api/v1/pods`.
    pub path: String,
    /// The label selector.
    pub labels: Option<String>,
    /// The name of the one object to watch. It is not listed, so that a right to `watch` that is
    /// limited to the name is enough.
    pub name: Option<String>,
    /// Only the objects' metadata is needed.
    pub metadata_only: bool,
    /// The durations.
    pub times: WatchDurations,
}

impl Selection {
    /// All objects of a collection, with the usual durations.
    pub fn all(title: &'static str, path: impl Into<String>) -> Self {
        Self {
            title,
            path: path.into(),
            labels: None,
            name: None,
            metadata_only: false,
            times: WatchDurations::default(),
        }
    }
}

/// The durations of a watch. By the usual ones, what it shows is at most
/// [`WATCH_LAG_S`](rayfit_core::seconds::WATCH_LAG_S) old.
#[derive(Debug, Clone, Copy)]
pub struct WatchDurations {
    /// The longest time that an answer may take; for a list, that each page may take.
    pub answer: Duration,
    /// A watch on which nothing arrives for so long may be dead, so that the objects are listed again:
    /// API servers send bookmarks once a minute, once they know a version.
    pub silence: Duration,
    /// The waits after failures.
    pub retry: Retry,
    /// The time after which the API server ends a watch, roughly, so that watches spread over its
    /// replicas.
    pub lifetime: Duration,
}

impl Default for WatchDurations {
    fn default() -> Self {
        Self {
            answer: Duration::from_secs(30),
            // API servers send a bookmark once a minute even where nothing changes, mostly.
            silence: Duration::from_secs(95),
            retry: Retry {
                first_s: 0.5,
                longest_s: 30.0,
            },
            lifetime: Duration::from_mins(5),
        }
    }
}

impl WatchDurations {
    /// The durations for objects that change all the time and without which nothing works.
    pub fn lively(step: Duration) -> Self {
        Self {
            answer: step * 2,
            silence: step * 4,
            // The Lease lasts four steps, and its events are needed within them.
            retry: Retry {
                first_s: step.as_secs_f64() / 10.0,
                longest_s: step.as_secs_f64(),
            },
            ..Self::default()
        }
    }

    /// The time without any message after which a watch is not well.
    pub fn limit(&self) -> Duration {
        // Within this time it has been found dead, and another list could have been read.
        self.silence + self.answer + Duration::from_secs_f64(self.retry.longest_s)
    }
}

/// An event about objects that are read as `K`, from an informer.
#[derive(Debug, Clone)]
pub enum WatchEvent<K> {
    /// A list begins. Objects that it does not bring until [`Self::Complete`] are gone.
    Begun,
    /// An object of the list.
    Listed(ObjectName, K),
    /// The list is complete, as of this version.
    Complete(Option<String>),
    /// An object is new or has changed.
    Applied(ObjectName, K),
    /// An object is gone, or can no longer be read; with the version that says so, if one does.
    Deleted(ObjectName, Option<String>),
    /// A request failed, and is tried again after a while.
    Failed(PageFault),
}

impl<K> WatchEvent<K> {
    /// Reduces the event to what `keep` returns of an object. An object of which nothing is kept is
    /// passed over in a list, and gone when it changes.
    pub(super) fn keep<T>(
        &self,
        keep: impl FnOnce(&ObjectName, &K) -> Option<T>,
    ) -> Option<WatchEvent<T>> {
        Some(match self {
            Self::Begun => WatchEvent::Begun,
            Self::Listed(name, object) => WatchEvent::Listed(name.clone(), keep(name, object)?),
            Self::Complete(version) => WatchEvent::Complete(version.clone()),
            Self::Applied(name, object) => match keep(name, object) {
                Some(part) => WatchEvent::Applied(name.clone(), part),
                None => WatchEvent::Deleted(name.clone(), None),
            },
            Self::Deleted(name, version) => WatchEvent::Deleted(name.clone(), version.clone()),
            Self::Failed(fault) => WatchEvent::Failed(fault.clone()),
        })
    }
}

#[cfg(test)]
mod tests {
    use rayfit_core::seconds::WATCH_LAG_S;

    use super::*;

    /// Nothing waits for less time than a watch may lag.
    #[test]
    fn a_watch_lags_no_longer_than_everybody_counts_on() {
        let lags = WatchDurations::default().limit();
        assert_eq!(lags, Duration::from_secs_f64(WATCH_LAG_S));
    }
}
