//! Follows all objects of one kind, and keeps the parts of them that are needed.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use crate::apiserver::{Beacon, Informers, ObjectName, Selection, WatchEvent};

/// The time without an answer after which what is known no longer counts as true.
const STALE: Duration = Duration::from_mins(5);

/// The known objects of a kind.
pub(crate) enum Known<'a, T> {
    /// All objects of the kind.
    All(&'a BTreeMap<ObjectName, T>),
    /// The cluster does not have the kind.
    NotInstalled,
    /// Nothing is known: the objects cannot be read, or what was read is too old.
    Nothing,
}

impl<T: Clone> Known<'_, T> {
    /// The known objects; none where they are unknown.
    pub(crate) fn objects(&self) -> Vec<T> {
        match self {
            Self::All(objects) => objects.values().cloned().collect(),
            Self::NotInstalled | Self::Nothing => Vec::new(),
        }
    }
}

/// Follows all objects of a selection for ever, read as `K`. `keep` returns the part of an object that
/// is kept, if any; `publish` gets what is known whenever that has changed. Changes are collected for `pace` before they
/// are published.
pub(crate) async fn follow<K: DeserializeOwned, T: PartialEq + Send + 'static>(
    informers: &Informers,
    selection: Selection,
    pace: Duration,
    keep: impl Fn(K) -> Option<T> + Send + 'static,
    mut publish: impl FnMut(Known<'_, T>),
) {
    // Nothing here may hold up the watch, which others read too, so the channel has no bound.
    let (tell, mut events) = mpsc::unbounded_channel();
    let reading = informers.read(selection, keep, move |event| {
        // Nobody receives it any more while this future is being dropped.
        let _ = tell.send(event);
    });
    let gathering = async {
        let mut cache = SeenObjects::default();
        let mut due: Option<Instant> = None;
        loop {
            let event = tokio::select! {
                event = events.recv() => event,
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    due = None;
                    publish(Known::All(&cache.objects));
                    continue;
                }
            };
            match event {
                Some(WatchEvent::Failed(fault)) => {
                    if cache.has_become_unknown(reading.beacon()) {
                        due = None;
                        let is_absent = !cache.was_complete && fault.is_not_found();
                        publish(if is_absent {
                            Known::NotInstalled
                        } else {
                            Known::Nothing
                        });
                    }
                }
                Some(event) => {
                    if cache.take(event) {
                        // The pace counts from the first change: counted from the last, changes
                        // without a pause would never be published.
                        due.get_or_insert_with(|| Instant::now() + pace);
                    }
                }
                None => return,
            }
        }
    };
    tokio::select! {
        never = reading.forever() => match never {},
        () = gathering => {}
    }
}

/// The objects that were seen.
struct SeenObjects<T> {
    objects: BTreeMap<ObjectName, T>,
    /// The objects of a list that is not complete yet.
    listed: BTreeMap<ObjectName, T>,
    /// All objects are known, and the knowledge is not too old.
    is_complete: bool,
    was_complete: bool,
}

impl<T> Default for SeenObjects<T> {
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            listed: BTreeMap::new(),
            is_complete: false,
            was_complete: false,
        }
    }
}

impl<T: PartialEq> SeenObjects<T> {
    /// Takes in an event, and returns whether there is something new to publish. Most changes of an
    /// object do not concern the parts that are kept.
    fn take(&mut self, event: WatchEvent<T>) -> bool {
        match event {
            WatchEvent::Begun => {
                // Known objects stay in force until the list is complete.
                self.listed = BTreeMap::new();
                false
            }
            WatchEvent::Listed(name, part) => {
                self.listed.insert(name, part);
                false
            }
            WatchEvent::Complete(_) => {
                self.objects = std::mem::take(&mut self.listed);
                (self.is_complete, self.was_complete) = (true, true);
                true
            }
            WatchEvent::Applied(name, part) if self.objects.get(&name) == Some(&part) => false,
            WatchEvent::Applied(name, part) => {
                self.objects.insert(name, part);
                true
            }
            WatchEvent::Deleted(name, _) => self.objects.remove(&name).is_some(),
            WatchEvent::Failed(_) => false,
        }
    }

    /// Returns whether nothing is known after a failure and that has to be published.
    fn has_become_unknown(&mut self, beacon: &Beacon) -> bool {
        if self.is_complete && beacon.silence() > STALE {
            self.is_complete = false;
            tracing::warn!(
                "{} have not been seen for minutes and count as unknown",
                beacon.title
            );
            return true;
        }
        !self.was_complete
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;
    use crate::apiserver::Watches;

    #[tokio::test(start_paused = true)]
    async fn what_only_begins_again_and_again_grows_old() {
        let beacon = Watches::default().open("nodes", STALE);
        let mut seen = SeenObjects::<()>::default();
        assert!(seen.has_become_unknown(&beacon), "nothing was ever seen");
        seen.take(WatchEvent::Complete(None));
        beacon.hear();
        for _ in 0..6 {
            advance(Duration::from_mins(1)).await;
            seen.take(WatchEvent::Begun);
        }
        assert!(seen.has_become_unknown(&beacon), "a beginning is no list");
        assert!(!seen.has_become_unknown(&beacon), "said once");
        seen.take(WatchEvent::Complete(None));
        beacon.hear();
        assert!(!seen.has_become_unknown(&beacon));
    }
}
