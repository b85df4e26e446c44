//! The informer: the one loop that lists objects and watches them from then on. After any failure
//! it waits, longer from failure to failure, and tries again; it never ends. A new reader makes it
//! list once more.
//!
//! It is written here because libraries do not expose bookmarks and the ends of watches, by which a
//! watch that is alive is told from one that may be dead.

use std::convert::Infallible;
use std::future::Future;

use kube::Client;
use kube::api::{ListParams, Request, WatchParams};
use tokio::time::{Duration, Instant, sleep, timeout};

use super::health::Beacon;
use super::pages::{self, Lines, PageFault, WatchLine};
use super::readers::Readers;
use super::selection::{Selection, WatchDurations, WatchEvent};

/// The number of objects in a page of a list.
// A small one, so that large objects do not fill the memory.
const PAGE: u32 = 100;

/// A watch that lives for less time than this has failed, however it ended.
const BRIEF: Duration = Duration::from_secs(1);

/// Follows all objects of a selection for ever, and tells its readers what it finds, in order.
pub(super) async fn follow(
    client: &Client,
    selection: &Selection,
    beacon: &Beacon,
    readers: &Readers,
) -> Infallible {
    let mut follower = Follower {
        client,
        selection,
        beacon,
        readers,
        request: Request::new(selection.path.clone()),
        failures: 0,
    };
    let mut version: Option<String> = None;
    loop {
        let result = match &mut version {
            None => follower.begin().await.map(|listed| version = Some(listed)),
            Some(from) => {
                // A list that has begun is never given up for a newcomer: if they come often, the
                // others would wait for its end in vain.
                let watched = tokio::select! {
                    biased;
                    () = readers.newcomer() => None,
                    result = follower.watch(from) => Some(result),
                };
                if watched
                    .as_ref()
                    .is_none_or(|result| follower.must_list(result))
                {
                    version = None;
                }
                watched.map_or(Ok(()), |result| result.map(drop))
            }
        };
        if let Err(fault) = result {
            follower.failures = follower.failures.saturating_add(1);
            let wait = selection
                .times
                .retry
                .wait(follower.failures, fastrand::f64());
            // The API server knows best when it can answer again.
            let wait = wait.max(fault.retry_after().unwrap_or_default());
            beacon.fail(&fault.to_string(), fault.is_not_found());
            readers.tell(&WatchEvent::Failed(fault));
            tokio::select! {
                () = sleep(wait) => {}
                () = readers.newcomer() => {}
            }
        }
    }
}

/// The end of a watch that did not fail.
enum End {
    /// The next watch can continue from the last version.
    GoOn,
    /// Nothing arrived on the watch, so that only a list can tell whether the known objects are
    /// still true. Mostly they are: an API server that has just started sends no bookmarks before it
    /// has heard of a version of these objects from etcd. Where they do not change, that is when etcd
    /// tells of its progress, after ten minutes unless it is set otherwise. (Kubernetes, `cacher.go`,
    /// `dispatchEvents`; etcd, `watch-progress-notify-interval`.)
    Unconfirmed,
}

struct Follower<'a> {
    client: &'a Client,
    selection: &'a Selection,
    beacon: &'a Beacon,
    readers: &'a Readers,
    request: Request,
    /// The number of failures since anything arrived.
    failures: u32,
}

impl Follower<'_> {
    /// Decides whether a new list is needed after a watch has ended.
    fn must_list(&self, result: &Result<End, PageFault>) -> bool {
        let is_old = self.beacon.silence() > self.selection.times.silence;
        is_old
            || match result {
                // An overload or a broken connection needs no list: otherwise an API server that
                // restarts would have to list everything for every client.
                Ok(End::GoOn)
                | Err(PageFault::Cut | PageFault::NoAnswer(_) | PageFault::TooSlow(_)) => false,
                Err(PageFault::Refused { code, .. }) => !matches!(code, 429 | 500..),
                Ok(End::Unconfirmed) | Err(_) => true,
            }
    }

    /// Lists all objects, and returns the version from which to watch. A single object is not
    /// listed.
    async fn begin(&mut self) -> Result<String, PageFault> {
        self.readers.tell(&WatchEvent::Begun);
        if self.selection.name.is_some() {
            // A watch from this version begins with the object as it is.
            return Ok("0".to_owned());
        }
        // No version is named: a list from the API server's cache (version 0) may be older than
        // what was seen before, and comes in one piece whatever the limit.
        let mut params = ListParams {
            label_selector: self.selection.labels.clone(),
            ..ListParams::default()
        };
        let mut size = PAGE;
        loop {
            let limited = params.clone().limit(size);
            let request = if self.readers.need_metadata_only() {
                self.request.list_metadata(&limited)
            } else {
                self.request.list(&limited)
            };
            let page = self.in_time(async {
                let body = pages::ask(self.client, request, None).await?;
                pages::body_of(body, size).await
            });
            let body = match page.await {
                Err(PageFault::TooLarge(_)) if size > 1 => {
                    size = (size / 4).max(1);
                    continue;
                }
                page => page?,
            };
            let page = pages::page(&body)?;
            for sent in page.objects {
                self.readers
                    .tell(&WatchEvent::Listed(sent.name, sent.object));
            }
            params.continue_token = page.next;
            if params.continue_token.is_none() {
                let version = page
                    .version
                    .ok_or(PageFault::Malformed("list with a version"))?;
                self.beacon.hear();
                self.readers
                    .tell(&WatchEvent::Complete(Some(version.clone())));
                return Ok(version);
            }
        }
    }

    /// Watches from `version` on, and keeps it at the version from which the next watch can
    /// continue.
    async fn watch(&mut self, version: &mut String) -> Result<End, PageFault> {
        let began = Instant::now();
        let WatchDurations {
            silence, lifetime, ..
        } = self.selection.times;
        // As in client-go, watches that began together do not end together.
        let lifetime = lifetime
            .mul_f64(0.75 + fastrand::f64() / 4.0)
            .as_secs()
            // API servers take 0 for a watch of half an hour or longer.
            .max(1);
        let params = WatchParams {
            label_selector: self.selection.labels.clone(),
            field_selector: self
                .selection
                .name
                .as_ref()
                .map(|name| format!("metadata.name={name}")),
            timeout: u32::try_from(lifetime).ok(),
            bookmarks: true,
            ..WatchParams::default()
        };
        let request = if self.readers.need_metadata_only() {
            self.request.watch_metadata(&params, version)
        } else {
            self.request.watch(&params, version)
        };
        let asked = pages::ask(self.client, request, None);
        let body = self.in_time(asked).await?;
        let mut lines = Lines::new(body);
        let mut is_heard = false;
        loop {
            let Ok(line) = timeout(silence, lines.next()).await else {
                // No failure yet: whether it is one shows in the list that follows.
                tracing::debug!(
                    watch = self.selection.title,
                    "nothing arrives, listing again"
                );
                return Ok(End::Unconfirmed);
            };
            // The events before it stay valid: a connection that breaks only ends this watch.
            let Some(line) = line else { break };
            if line.trim_ascii().is_empty() {
                continue;
            }
            self.take(pages::line(&line), version)?;
            is_heard = true;
        }
        match (began.elapsed() < BRIEF, is_heard) {
            (true, _) => Err(PageFault::Cut),
            (false, true) => Ok(End::GoOn),
            (false, false) => Ok(End::Unconfirmed),
        }
    }

    fn take(&mut self, line: WatchLine<'_>, version: &mut String) -> Result<(), PageFault> {
        let next = match line {
            WatchLine::Applied(sent) => {
                self.readers
                    .tell(&WatchEvent::Applied(sent.name, sent.object));
                sent.version
            }
            WatchLine::Deleted(sent) => {
                self.readers
                    .tell(&WatchEvent::Deleted(sent.name, sent.version.clone()));
                sent.version
            }
            WatchLine::Bookmark(version) => version,
            WatchLine::Other => return Ok(()),
            WatchLine::Failed(fault) => return Err(fault),
        };
        if let Some(next) = next {
            *version = next;
        }
        self.beacon.hear();
        self.failures = 0;
        Ok(())
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
