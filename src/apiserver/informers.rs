//! The shared informers of a process: whatever several of its parts want to see is watched once.
//!
//! A watch belongs to a collection of objects and a label selector, and ends with its last reader.
//! Nothing is stored here: each reader gets every object, and keeps the parts that it needs. A
//! reader that comes later makes the watch list its objects anew, for all of its readers. A watch
//! asks for metadata alone while none of its readers needs more.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::panic::resume_unwind;
use std::sync::{Arc, Weak};

use kube::Client;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::health::{Beacon, Watches};
use super::informer;
use super::readers::Readers;
use super::selection::{Selection, WatchEvent};

/// The path of a collection, the label selector, and the name of a single object.
type Key = (String, Option<String>, Option<String>);

/// The informers of a process. Clones share them.
#[derive(Clone)]
pub struct Informers {
    /// The client.
    pub client: Client,
    watches: Watches,
    running: Arc<Mutex<BTreeMap<Key, Weak<SharedWatch>>>>,
}

/// A watch that is under way until this is dropped.
struct SharedWatch {
    readers: Arc<Readers>,
    beacon: Arc<Beacon>,
    /// Closed when the watch has ended, which only a panic makes it do before this is dropped.
    alive: watch::Receiver<()>,
    /// The task of the watch. A set stops its tasks when it is dropped.
    _task: JoinSet<Infallible>,
}

/// A reader of a watch, until this is dropped.
#[must_use = "dropping it ends the reading"]
pub struct Reading {
    running: Arc<SharedWatch>,
    id: u64,
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.running.readers.leave(self.id);
    }
}

impl Informers {
    /// Informers that use `client`, and report how they are in `watches`.
    pub fn new(client: Client, watches: Watches) -> Self {
        Self {
            client,
            watches,
            running: Arc::default(),
        }
    }

    /// Follows all objects of a selection, read as `K`, and passes to `on`, in order, what is found
    /// of them: the parts that `keep` returns, if any. Objects that cannot be read are skipped.
    /// Where the objects are watched already, the title and the durations are those of the first
    /// reader.
    pub fn read<K: DeserializeOwned, T>(
        &self,
        selection: Selection,
        keep: impl Fn(K) -> Option<T> + Send + 'static,
        mut on: impl FnMut(WatchEvent<T>) + Send + 'static,
    ) -> Reading {
        let metadata_only = selection.metadata_only;
        let running = self.running(selection);
        let beacon = Arc::clone(&running.beacon);
        let take = Box::new(move |event: &WatchEvent<&RawValue>| {
            let reduced = event.keep(|name, object| {
                let read = serde_json::from_str(object.get()).inspect_err(|error| {
                    beacon.skip();
                    tracing::warn!(
                        watch = beacon.title,
                        namespace = name.namespace,
                        name = name.name,
                        // The error's own text could quote the object.
                        kind = ?error.classify(),
                        "an object cannot be read and is passed over"
                    );
                });
                keep(read.ok()?)
            });
            if let Some(event) = reduced {
                on(event);
            }
        });
        let id = running.readers.join(metadata_only, take);
        Reading { running, id }
    }

    /// The watch of a selection, which begins if there is none.
    fn running(&self, selection: Selection) -> Arc<SharedWatch> {
        let key = (
            selection.path.clone(),
            selection.labels.clone(),
            selection.name.clone(),
        );
        // The lock is held until the watch is listed, so that two readers never begin it twice.
        let mut all = self.running.lock();
        if let Some(running) = all.get(&key).and_then(Weak::upgrade) {
            return running;
        }
        all.retain(|_, running| running.strong_count() > 0);
        let beacon = (self.watches).open(selection.title, selection.times.limit());
        let readers = Arc::<Readers>::default();
        let (living, alive) = watch::channel(());
        let (client, seen_by) = (self.client.clone(), Arc::clone(&readers));
        let lit = Arc::clone(&beacon);
        let mut task = JoinSet::new();
        task.spawn(async move {
            let _living = living;
            informer::follow(&client, &selection, &lit, &seen_by).await
        });
        let running = Arc::new(SharedWatch {
            readers,
            beacon,
            alive,
            _task: task,
        });
        all.insert(key, Arc::downgrade(&running));
        running
    }
}

impl Reading {
    /// The state of the watch.
    pub fn beacon(&self) -> &Arc<Beacon> {
        &self.running.beacon
    }

    /// Waits for ever. A panic of any of the watch's readers is passed on to all of them.
    pub async fn forever(&self) -> Infallible {
        let mut alive = self.running.alive.clone();
        while alive.changed().await.is_ok() {}
        resume_unwind(Box::new("a shared watch has panicked"))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::body::Body;
    use futures_util::stream;
    use hyper::header::ACCEPT;
    use hyper::{Request, Response};
    use kube::client::ClientBuilder;
    use serde_json::{Value, json};
    use tokio::sync::mpsc::{self, UnboundedReceiver};

    use super::*;
    use crate::apiserver::ApiServer;

    /// Informers of an API server with two pods, which never change, and the requests that it gets.
    fn informers() -> (Informers, UnboundedReceiver<&'static str>) {
        let (asked, requests) = mpsc::unbounded_channel();
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            let is_watch = request.uri().query().unwrap().contains("watch=true");
            let accepted = request.headers().get(ACCEPT);
            let is_metadata = accepted.is_some_and(|accepted| {
                let accepted = accepted.to_str().unwrap();
                accepted.contains("PartialObjectMetadata")
            });
            let request = match (is_watch, is_metadata) {
                (false, false) => "list",
                (true, false) => "watch",
                (false, true) => "list of metadata",
                (true, true) => "watch of metadata",
            };
            let _ = asked.send(request);
            let named = |name: &str| json!({ "metadata": { "name": name } });
            let list = json!({
                "metadata": { "resourceVersion": "5" }, "items": [named("a"), named("b")]
            });
            let body = if is_watch {
                Body::from_stream(stream::pending::<Result<Vec<u8>, std::io::Error>>())
            } else {
                Body::from(list.to_string())
            };
            async move { Ok::<_, std::convert::Infallible>(Response::new(body)) }
        });
        let client = ApiServer::of_builder(ClientBuilder::new(service, "default")).client;
        (Informers::new(client, Watches::default()), requests)
    }

    fn pods(metadata_only: bool) -> Selection {
        Selection {
            metadata_only,
            ..Selection::all("pods", "/api/v1/pods".to_owned())
        }
    }

    /// A reader of pods, and the names in each list that was complete.
    fn lists(informers: &Informers, metadata_only: bool) -> (Reading, UnboundedReceiver<String>) {
        let (tell, told) = mpsc::unbounded_channel();
        let mut names = String::new();
        let reading = informers.read(
            pods(metadata_only),
            Some::<Value>,
            move |event| match event {
                WatchEvent::Begun => names.clear(),
                WatchEvent::Listed(name, _) => names.push_str(&name.name),
                WatchEvent::Complete(_) => drop(tell.send(names.clone())),
                _ => {}
            },
        );
        (reading, told)
    }

    #[tokio::test]
    async fn a_reader_that_comes_later_gets_whole_lists_by_the_same_watch() {
        let (informers, mut requests) = informers();
        let (_first, mut to_first) = lists(&informers, true);
        assert_eq!(to_first.recv().await.unwrap(), "ab");
        assert_eq!(requests.recv().await.unwrap(), "list of metadata");
        assert_eq!(requests.recv().await.unwrap(), "watch of metadata");
        let (second, mut to_second) = lists(&informers, false);
        assert_eq!(to_second.recv().await.unwrap(), "ab");
        assert_eq!(to_first.recv().await.unwrap(), "ab");
        assert_eq!(requests.recv().await.unwrap(), "list");
        assert_eq!(requests.recv().await.unwrap(), "watch");
        drop(second);
        let (_third, mut to_third) = lists(&informers, true);
        assert_eq!(to_third.recv().await.unwrap(), "ab");
        assert_eq!(requests.recv().await.unwrap(), "list of metadata");
        assert_eq!(informers.watches.counts()["pods"].open, 1);
    }

    #[tokio::test]
    async fn a_watch_ends_with_its_last_reader() {
        let (informers, _requests) = informers();
        let (first, mut told) = lists(&informers, false);
        told.recv().await.unwrap();
        let (second, _) = lists(&informers, false);
        drop(first);
        tokio::task::yield_now().await;
        assert_eq!(informers.watches.counts()["pods"].open, 1);
        drop(second);
        while informers.watches.counts()["pods"].open > 0 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_panic_of_one_reader_reaches_all() {
        let (informers, _requests) = informers();
        let (reading, mut told) = lists(&informers, false);
        told.recv().await.unwrap();
        let other = informers.read(pods(false), Some::<Value>, |_| panic!("a bug"));
        for reading in [reading, other] {
            let ended = tokio::spawn(async move { reading.forever().await });
            let ended = tokio::time::timeout(Duration::from_mins(1), ended).await;
            assert!(ended.unwrap().unwrap_err().is_panic());
        }
    }
}
