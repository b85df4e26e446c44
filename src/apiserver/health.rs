//! The state of a process's watches: which are well, since when the others are not, and why.
//!
//! Only what the API server sent counts: a complete list, an event, a bookmark. The state is judged
//! when it is asked for, so that a watch that hangs is found out too.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// All watches of a process.
#[derive(Debug, Clone, Default)]
pub struct Watches {
    open: Arc<Mutex<Vec<Weak<Beacon>>>>,
    /// The number of objects that could not be read, by the watch's title; watches that are closed
    /// are included.
    skipped: Arc<Mutex<BTreeMap<&'static str, u64>>>,
}

/// The state that one watch reports. The watch is forgotten when this is dropped.
#[derive(Debug)]
pub struct Beacon {
    /// The title of the watch.
    pub title: &'static str,
    /// The time without any message after which the watch is not well.
    limit: Duration,
    opened: Instant,
    state: Mutex<WatchState>,
    watches: Watches,
}

#[derive(Debug, Default)]
struct WatchState {
    heard: Option<Instant>,
    failure: Option<String>,
    /// The API server's last answer was that it does not know the watched resource.
    is_absent: bool,
}

/// A watch that is not well.
#[derive(Debug, Clone, PartialEq, Eq, derive_more::Display)]
#[display(
    "{title} have not been seen{} for {} s: {why}",
    if *is_unknown { " at all" } else { "" }, time.as_secs()
)]
pub struct WatchTrouble {
    /// The title of the watch.
    pub title: &'static str,
    /// The time since the API server last sent anything on it.
    pub time: Duration,
    /// There has been no complete list yet.
    pub is_unknown: bool,
    /// The last failure.
    pub why: String,
}

/// The number of watches of a title, of those among them that are not well, and of objects that
/// could not be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WatchCount {
    /// The watches.
    pub open: u64,
    /// The watches that are not well.
    pub failing: u64,
    /// The objects that were skipped since the process started.
    pub skipped: u64,
}

impl Watches {
    /// Registers a watch; it is well as long as the API server sends something within `limit`.
    pub fn open(&self, title: &'static str, limit: Duration) -> Arc<Beacon> {
        let beacon = Arc::new(Beacon {
            title,
            limit,
            opened: Instant::now(),
            state: Mutex::default(),
            watches: self.clone(),
        });
        // The metric exists from 0 on: Prometheus sees no increase in a series that begins with 1.
        self.skipped.lock().entry(title).or_default();
        self.open.lock().push(Arc::downgrade(&beacon));
        beacon
    }

    /// The watches that are not well.
    pub fn troubles(&self) -> Vec<WatchTrouble> {
        let open = self.all();
        open.iter().filter_map(|watch| watch.trouble()).collect()
    }

    /// The numbers by title, for metrics.
    pub fn counts(&self) -> BTreeMap<&'static str, WatchCount> {
        let mut counts: BTreeMap<_, WatchCount> = BTreeMap::new();
        for (title, skipped) in &*self.skipped.lock() {
            counts.entry(*title).or_default().skipped = *skipped;
        }
        for watch in self.all() {
            let count = counts.entry(watch.title).or_default();
            count.open += 1;
            count.failing += u64::from(watch.trouble().is_some());
        }
        counts
    }

    fn all(&self) -> Vec<Arc<Beacon>> {
        let mut open = self.open.lock();
        open.retain(|watch| watch.strong_count() > 0);
        open.iter().filter_map(Weak::upgrade).collect()
    }
}

impl Beacon {
    /// Reports that a list is complete, or that something arrived after one.
    pub fn hear(&self) {
        let mut state = self.state.lock();
        let failed = state.failure.take();
        state.is_absent = false;
        let since = state.heard.replace(Instant::now());
        drop(state);
        if let Some(why) = failed {
            let time = since.unwrap_or(self.opened).elapsed();
            tracing::info!(
                watch = self.title,
                why,
                "seen again after {} s",
                time.as_secs()
            );
        }
    }

    /// Reports that the watch failed and is tried again; `is_absent` if because the API server does not know the
    /// resource, which may be installed later. That is logged once, until the watch is well again.
    pub fn fail(&self, why: &str, is_absent: bool) {
        let mut state = self.state.lock();
        let is_first = state.failure.is_none();
        state.failure = Some(why.to_owned());
        state.is_absent = is_absent;
        drop(state);
        if is_first {
            tracing::warn!(
                error = why,
                watch = self.title,
                "the watch failed, trying again"
            );
        }
    }

    /// Reports that an object could not be read.
    pub fn skip(&self) {
        let mut skipped = self.watches.skipped.lock();
        *skipped.entry(self.title).or_default() += 1;
    }

    /// The time since anything arrived, counted from the opening of the watch if nothing ever has.
    pub fn silence(&self) -> Duration {
        let heard = self.state.lock().heard;
        heard.unwrap_or(self.opened).elapsed()
    }

    fn trouble(&self) -> Option<WatchTrouble> {
        let state = self.state.lock();
        let time = state.heard.unwrap_or(self.opened).elapsed();
        let is_unknown = state.heard.is_none();
        // A resource that was never installed has no objects, so that its watch misses nothing.
        let is_well = if is_unknown {
            state.is_absent
        } else {
            time <= self.limit
        };
        if is_well {
            return None;
        }
        let why = state.failure.clone();
        drop(state);
        let why = why.unwrap_or_else(|| {
            let first = "the API server has not answered the first list yet";
            let then = "the API server says nothing, not even a bookmark";
            if is_unknown { first } else { then }.to_owned()
        });
        Some(WatchTrouble {
            title: self.title,
            time,
            is_unknown,
            why,
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn a_watch_is_well_from_its_first_list_on_while_something_is_heard() {
        let watches = Watches::default();
        let beacon = watches.open("pods", LIMIT);
        advance(Duration::from_secs(3)).await;
        let [trouble] = watches.troubles().try_into().unwrap();
        assert!(trouble.is_unknown);
        assert_eq!(
            trouble.to_string(),
            "pods have not been seen at all for 3 s: the API server has not answered the first list yet"
        );
        beacon.fail("HTTP 500", false);
        assert_eq!(watches.troubles()[0].why, "HTTP 500");
        beacon.hear();
        assert_eq!(watches.troubles(), []);
        beacon.fail("cut", false);
        advance(LIMIT).await;
        assert_eq!(watches.troubles(), [], "what was seen is not old yet");
        advance(Duration::from_secs(1)).await;
        assert_eq!(
            watches.troubles()[0].to_string(),
            "pods have not been seen for 31 s: cut"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_of_what_is_not_installed_is_well() {
        let watches = Watches::default();
        let beacon = watches.open("RayCronJobs", LIMIT);
        beacon.fail("HTTP 404", true);
        advance(LIMIT * 2).await;
        assert_eq!(watches.troubles(), []);
        assert_eq!(watches.counts()["RayCronJobs"].failing, 0);
        beacon.fail("HTTP 403", false);
        assert_eq!(watches.troubles()[0].why, "HTTP 403");
        // Once the resource was there, its absence is a failure.
        beacon.hear();
        assert_eq!(watches.troubles(), []);
        beacon.fail("HTTP 404", true);
        advance(LIMIT * 2).await;
        assert_eq!(watches.troubles()[0].why, "HTTP 404");
        assert_eq!(watches.counts()["RayCronJobs"].failing, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_hangs_is_found_out_though_it_reports_nothing() {
        let watches = Watches::default();
        let beacon = watches.open("Leases", LIMIT);
        beacon.hear();
        advance(LIMIT * 2).await;
        assert!(watches.troubles()[0].why.contains("not even a bookmark"));
        beacon.skip();
        let count = WatchCount {
            open: 1,
            failing: 1,
            skipped: 1,
        };
        assert_eq!(watches.counts()["Leases"], count);
        drop(beacon);
        assert_eq!(watches.troubles(), []);
        assert_eq!(watches.counts()["Leases"].skipped, 1, "still counted");
    }
}
