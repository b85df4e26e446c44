//! The informer: the one loop that lists objects and watches them from then on. After any failure
//! it waits, longer from failure to failure, and tries again; it never ends.
//!
//! It is written here because libraries do not expose bookmarks and the ends of watches, by which a
//! quiet watch is told from a dead one.

use std::convert::Infallible;
use std::future::Future;
use std::time::Duration;

use hyper::Response;
use kube::Client;
use kube::api::{ListParams, Request, WatchParams};
use kube::client::Body;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, timeout};

use super::backoff::Backoff;
use super::health::Beacon;
use super::pages::{self, Head, Lines, Page, PageFault, Read, WatchLine};

/// The number of objects in a page of a list: a small one, so that large objects do not fill the
/// memory.
const PAGE: u32 = 100;

/// A watch that lives for less time than this has failed, however it ended.
const BRIEF: Duration = Duration::from_secs(1);

/// The objects to watch.
#[derive(Debug, Clone)]
pub struct Selection {
    /// The title in logs and in the readiness report.
    pub title: &'static str,
    /// The path of the collection, such as `/api/v1/pods`.
    pub path: String,
    /// The label selector.
    pub labels: Option<String>,
    /// Whether only the objects' metadata is requested.
    pub metadata_only: bool,
    /// The durations.
    pub times: Times,
}

/// The durations of a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// The longest time that an answer may take; for a list, that each page may take.
    pub answer: Duration,
    /// A watch on which nothing arrives for so long is dead: API servers send bookmarks once a
    /// minute.
    pub silence: Duration,
    /// The first and the longest wait after a failure.
    pub retry: (Duration, Duration),
    /// The time after which the API server ends a watch, roughly, so that watches spread over its
    /// replicas.
    pub lifetime: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            answer: Duration::from_secs(30),
            silence: Duration::from_secs(95),
            retry: (Duration::from_millis(500), Duration::from_secs(30)),
            lifetime: Duration::from_mins(5),
        }
    }
}

impl Times {
    /// The durations for objects that change all the time and without which nothing works.
    pub fn lively(step: Duration) -> Self {
        Self {
            answer: step * 2,
            silence: step * 4,
            retry: (step / 10, step),
            ..Self::default()
        }
    }

    /// After how long without any message a watch is not well: within this time it has been found
    /// dead, and another list could have been read.
    pub fn limit(&self) -> Duration {
        self.silence + self.answer + self.retry.1
    }
}

/// The name of an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName {
    /// Its namespace, if it has one.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

/// What the informer reports.
#[derive(Debug)]
pub enum Event<K> {
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

/// Follows all objects of a selection, read as `K`, for ever, and passes what it finds to `on`, in
/// order. Objects that cannot be read are skipped.
pub async fn follow<K: DeserializeOwned>(
    client: &Client,
    selection: &Selection,
    beacon: &Beacon,
    mut on: impl FnMut(Event<K>),
) -> Infallible {
    let (first, longest) = selection.times.retry;
    let mut follower = Follower {
        client,
        selection,
        beacon,
        request: Request::new(selection.path.clone()),
        backoff: Backoff::new(first, longest),
    };
    let mut version: Option<String> = None;
    loop {
        let result = match &mut version {
            None => follower
                .list(&mut on)
                .await
                .map(|listed| version = Some(listed)),
            Some(from) => {
                let result = follower.watch(from, &mut on).await;
                if follower.must_list(&result) {
                    version = None;
                }
                result.map(drop)
            }
        };
        if let Err(fault) = result {
            let wait = follower.backoff.wait(fault.retry_after());
            if fault.is_not_found() {
                beacon.miss(&fault.to_string());
            } else {
                beacon.fail(&fault.to_string());
            }
            on(Event::Failed(fault));
            sleep(wait).await;
        }
    }
}

/// How a watch ended that did not fail.
enum End {
    /// The next watch can continue from the last version.
    GoOn,
    /// Nothing arrived on the watch, so that only a list can tell whether the known objects are
    /// still true.
    Unconfirmed,
}

struct Follower<'a> {
    client: &'a Client,
    selection: &'a Selection,
    beacon: &'a Beacon,
    request: Request,
    backoff: Backoff,
}

impl Follower<'_> {
    /// Whether a new list is needed after a watch has ended. An overload or a broken connection
    /// needs none: otherwise an API server that restarts would have to list everything for every
    /// client.
    fn must_list(&self, result: &Result<End, PageFault>) -> bool {
        let is_old = self.beacon.silence() > self.selection.times.silence;
        is_old
            || match result {
                Ok(End::GoOn)
                | Err(PageFault::Cut | PageFault::NoAnswer(_) | PageFault::TooSlow(_)) => false,
                Err(PageFault::Refused { code, .. }) => !matches!(code, 429 | 500..),
                Ok(End::Unconfirmed) | Err(_) => true,
            }
    }

    /// Lists all objects, and returns the version of the list.
    async fn list<K: DeserializeOwned>(
        &mut self,
        on: &mut impl FnMut(Event<K>),
    ) -> Result<String, PageFault> {
        let mut params = ListParams {
            label_selector: self.selection.labels.clone(),
            ..ListParams::default()
        };
        let mut size = PAGE;
        on(Event::Begun);
        loop {
            let page = match self.page(&params, size).await {
                Err(PageFault::TooLarge(_)) if size > 1 => {
                    size = (size / 4).max(1);
                    continue;
                }
                page => page?,
            };
            for (head, read) in page.objects {
                if let Some((name, object)) = self.readable((head, read)) {
                    on(Event::Listed(name, object));
                }
            }
            params.continue_token = page.next;
            if params.continue_token.is_none() {
                let version = page
                    .version
                    .ok_or(PageFault::Malformed("list with a version"))?;
                self.beacon.hear();
                on(Event::Complete(Some(version.clone())));
                return Ok(version);
            }
        }
    }

    async fn page<K: DeserializeOwned>(
        &self,
        params: &ListParams,
        size: u32,
    ) -> Result<Page<K>, PageFault> {
        let params = params.clone().limit(size);
        let request = if self.selection.metadata_only {
            self.request.list_metadata(&params)
        } else {
            self.request.list(&params)
        };
        let body = self.in_time(async {
            let body = self.send(request).await?;
            pages::body_of(body, size).await
        });
        pages::page(&body.await?)
    }

    /// Watches from `version` on, and keeps it at the version from which the next watch can
    /// continue.
    async fn watch<K: DeserializeOwned>(
        &mut self,
        version: &mut String,
        on: &mut impl FnMut(Event<K>),
    ) -> Result<End, PageFault> {
        let began = Instant::now();
        let Times {
            silence, lifetime, ..
        } = self.selection.times;
        let lifetime = lifetime
            .mul_f64(0.75 + fastrand::f64() / 4.0)
            .as_secs()
            .max(1);
        let params = WatchParams {
            label_selector: self.selection.labels.clone(),
            timeout: u32::try_from(lifetime).ok(),
            bookmarks: true,
            ..WatchParams::default()
        };
        let request = if self.selection.metadata_only {
            self.request.watch_metadata(&params, version)
        } else {
            self.request.watch(&params, version)
        };
        let body = self.in_time(self.send(request)).await?;
        let mut lines = Lines::new(body);
        let mut is_heard = false;
        loop {
            let line = timeout(silence, lines.next()).await;
            let Some(line) = line.map_err(|_| PageFault::Silent(silence))? else {
                break;
            };
            // The events before it stay valid: a connection that breaks only ends this watch.
            let Ok(line) = line else { break };
            if line.trim_ascii().is_empty() {
                continue;
            }
            self.take(pages::line(&line), version, on)?;
            is_heard = true;
        }
        match (began.elapsed() < BRIEF, is_heard) {
            (true, _) => Err(PageFault::Cut),
            (false, true) => Ok(End::GoOn),
            (false, false) => Ok(End::Unconfirmed),
        }
    }

    fn take<K: DeserializeOwned>(
        &mut self,
        line: WatchLine<K>,
        version: &mut String,
        on: &mut impl FnMut(Event<K>),
    ) -> Result<(), PageFault> {
        let next = match line {
            WatchLine::Applied(read) => {
                let head = read.0.clone();
                on(match self.readable(read) {
                    Some((name, object)) => Event::Applied(name, object),
                    None => Event::Deleted(name_of(&head), None),
                });
                head.version
            }
            WatchLine::Deleted(head) => {
                on(Event::Deleted(name_of(&head), head.version.clone()));
                head.version
            }
            WatchLine::Bookmark(version) => version,
            WatchLine::Other => return Ok(()),
            WatchLine::Failed(fault) => return Err(fault),
        };
        if let Some(next) = next {
            *version = next;
        }
        self.beacon.hear();
        self.backoff.reset();
        Ok(())
    }

    /// The object, if it can be read. Of an object that cannot, only the name is logged.
    fn readable<K>(&self, (head, read): Read<K>) -> Option<(ObjectName, K)> {
        let name = name_of(&head);
        match read {
            Ok(object) => Some((name, object)),
            Err(error) => {
                self.beacon.skip();
                tracing::warn!(
                    watch = self.selection.title,
                    namespace = name.namespace,
                    name = name.name,
                    kind = ?error.classify(),
                    "an object cannot be read and is passed over"
                );
                None
            }
        }
    }

    async fn send(
        &self,
        request: Result<hyper::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<Body, PageFault> {
        let request = request.map_err(|error| PageFault::Unsendable(error.to_string()))?;
        let answer: Response<Body> = self
            .client
            .send(request.map(Body::from))
            .await
            .map_err(|error| pages::no_answer(&error))?;
        pages::accepted(answer).await
    }

    async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, PageFault>>,
    ) -> Result<T, PageFault> {
        let longest = self.selection.times.answer;
        timeout(longest, work)
            .await
            .map_err(|_| PageFault::TooSlow(longest))?
    }
}

fn name_of(head: &Head) -> ObjectName {
    ObjectName {
        namespace: head.namespace.clone(),
        name: head.name.clone(),
    }
}
