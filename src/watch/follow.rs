//! Following all objects of one kind.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::future::pending;
use std::time::Duration;

use futures_util::StreamExt as _;
use kube::Resource;
use kube::api::{Api, ApiResource};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep_until};

/// After so long without an answer what is known is no longer taken for true.
const STALE: Duration = Duration::from_mins(5);

/// Objects that are read at once: few, so that large ones do not fill the memory.
const PAGE: u32 = 100;

/// How the objects of one kind are followed.
pub(crate) struct Kind {
    /// What they are called in the log.
    pub(crate) title: &'static str,
    /// The resource.
    pub(crate) resource: ApiResource,
    /// Which of them.
    pub(crate) labels: Option<&'static str>,
    /// How long changes are gathered before they are published.
    pub(crate) pace: Duration,
}

/// Follows all objects of a kind, for ever, read as `K`. `keep` says what of an object is kept, if
/// anything; `publish` gets everything that is kept whenever it has changed, or `None` where it
/// cannot be read or is out of date.
pub(crate) async fn follow<K, T>(
    client: &kube::Client,
    kind: Kind,
    keep: impl Fn(K) -> Option<T>,
    mut publish: impl FnMut(Option<&BTreeMap<String, T>>),
) where
    K: Resource<DynamicType = ApiResource> + DeserializeOwned + Clone + Debug + Send + 'static,
    T: PartialEq,
{
    let api: Api<K> = Api::all_with(client.clone(), &kind.resource);
    let mut config = watcher::Config::default().page_size(PAGE);
    if let Some(labels) = kind.labels {
        config = config.labels(labels);
    }
    let mut events = std::pin::pin!(watcher(api, config).default_backoff());
    let mut seen = Seen::default();
    let mut due: Option<Instant> = None;
    loop {
        let event = tokio::select! {
            event = events.next() => event,
            () = until(due) => {
                due = None;
                publish(Some(&seen.objects));
                continue;
            }
        };
        match event {
            Some(Ok(event)) => {
                seen.failing_since = None;
                if seen.take(event, &keep) {
                    due.get_or_insert_with(|| Instant::now() + kind.pace);
                }
            }
            Some(Err(error)) => {
                if seen.fail(kind.title, &error) {
                    due = None;
                    publish(None);
                }
            }
            // A watcher begins anew by itself and never ends.
            None => return,
        }
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => pending().await,
    }
}

/// What has been seen.
struct Seen<T> {
    objects: BTreeMap<String, T>,
    /// What a list has brought that is not complete yet.
    listed: Option<BTreeMap<String, T>>,
    is_complete: bool,
    failing_since: Option<Instant>,
}

impl<T> Default for Seen<T> {
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            listed: None,
            is_complete: false,
            failing_since: None,
        }
    }
}

impl<T: PartialEq> Seen<T> {
    /// Takes an event in; whether there is something new to publish. Most changes of an object are
    /// none of what is kept of it.
    fn take<K: Resource>(&mut self, event: Event<K>, keep: &impl Fn(K) -> Option<T>) -> bool {
        match event {
            Event::Init => {
                self.listed = Some(BTreeMap::new());
                false
            }
            Event::InitApply(object) => {
                let key = key(&object);
                if let (Some(listed), Some(kept)) = (&mut self.listed, keep(object)) {
                    listed.insert(key, kept);
                }
                false
            }
            Event::InitDone => {
                self.objects = self.listed.take().unwrap_or_default();
                self.is_complete = true;
                true
            }
            Event::Apply(object) => {
                let key = key(&object);
                match keep(object) {
                    Some(kept) if self.objects.get(&key) == Some(&kept) => false,
                    Some(kept) => {
                        self.objects.insert(key, kept);
                        true
                    }
                    None => self.objects.remove(&key).is_some(),
                }
            }
            Event::Delete(object) => self.objects.remove(&key(&object)).is_some(),
        }
    }

    /// Notes a failure; whether nothing is known now.
    fn fail(&mut self, title: &str, error: &watcher::Error) -> bool {
        let now = Instant::now();
        match self.failing_since {
            None => {
                self.failing_since = Some(now);
                tracing::warn!(%error, "cannot watch {title}, trying again");
                !self.is_complete
            }
            Some(since) if self.is_complete && now - since > STALE => {
                self.is_complete = false;
                tracing::warn!("{title} have not been seen for minutes and count as unknown");
                true
            }
            Some(_) => false,
        }
    }
}

fn key(object: &impl Resource) -> String {
    let metadata = object.meta();
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    format!(
        "{namespace}/{}",
        metadata.name.as_deref().unwrap_or_default()
    )
}
