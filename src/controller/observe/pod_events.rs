//! Reading what node autoscalers say about pods, in Events.
//!
//! The Events of a namespace are listed while a pod of a RayCluster there waits for a Kubernetes
//! node, and not watched. API servers keep no cache of Events, so that a watch of them hears no
//! bookmarks: whether it is dead shows only in a new list, every few minutes, and without a namespace
//! that is a list of all Events of the Kubernetes cluster. A list for pods that wait costs nothing
//! where none does, reads one namespace, starts from what is true, and misses nothing that a broken
//! connection loses.
//!
//! One list leaves out what most Events about pods come from, instead of naming the node autoscalers,
//! because selectors have no "or", and each list reads all Events of its namespace from etcd. `source`
//! selects by `source.component`, or where that is empty by `reportingComponent`. (Kubernetes,
//! `pkg/registry/core/event/strategy.go`.)

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream;
use kube::Client;
use kube::api::{ListParams, Request};
use rayfit_core::flow_control::{Flow, LAST};
use rayfit_core::snapshot::prospect_reader::ProspectReader;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::Observed;
use super::ask_times::AskTimes;
use super::awaiting::AwaitingPods;
use crate::apiserver::pages::PageFault;
use crate::apiserver::{Gate, pages};
use crate::controller::lease::Fence;

/// The interval of checks whether anything is to be read.
const TICK: Duration = Duration::from_millis(500);

/// The most namespaces that are read at a time.
const AT_ONCE: usize = 2;

/// The longest that reading a namespace may take.
const LONGEST: Duration = Duration::from_secs(20);

/// The Events of a page, and the most pages that are read of a namespace.
const PAGE: u32 = 100;
const PAGES: usize = 50;

/// All Events about pods but those of kubelets and of the scheduler.
const SELECTED: &str = "involvedObject.kind=Pod,source!=kubelet,source!=default-scheduler";

/// Reads the Events of a namespace about pods into `reader`. Passes the gate after all other
/// requests. Returns whether all were read: somebody who makes thousands there may hide what is said of pods in the
/// same namespace, and of none in another.
pub(crate) async fn read_events(
    client: &Client,
    gate: &Gate,
    namespace: &str,
    reader: &mut ProspectReader,
) -> Result<bool, PageFault> {
    let request = Request::new(format!("/api/v1/namespaces/{namespace}/events"));
    let mut params = ListParams::default().fields(SELECTED);
    let mut size = PAGE;
    for _ in 0..PAGES {
        let page = async {
            let flow: Flow = LAST.into();
            let passed = gate.pass(&flow).await;
            let _pass = passed.map_err(|not| PageFault::Unsendable(not.to_string()))?;
            let listed = request.list(&params.clone().limit(size));
            let body = pages::ask(client, listed, Some(flow)).await?;
            pages::body_of(body, size).await
        };
        let body = match page.await {
            // Somebody has made very large Events.
            Err(PageFault::TooLarge(_)) if size > 1 => {
                size = (size / 8).max(1);
                continue;
            }
            body => body?,
        };
        let page = pages::page(&body)?;
        for sent in &page.objects {
            reader.take(sent.object.get());
        }
        params.continue_token = page.next;
        if params.continue_token.is_none() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Reads, for all clusters that this process scales, what is said about their pods, until the process stops. What
/// cannot be read is not known, so that the scheduler's word counts alone.
pub async fn follow(observed: Observed, client: Client, gate: Gate, fence: Fence) {
    // Reads a namespace, and takes in what is said there; also returns how long that took.
    let read = async |namespace: String, awaiting: &AwaitingPods| {
        let began = Instant::now();
        let mut pods = awaiting.get(&namespace).cloned().unwrap_or_default();
        let mut reader = ProspectReader::new(&namespace, pods.clone());
        let reading = read_events(&client, &gate, &namespace, &mut reader);
        let result = timeout(LONGEST, reading).await;
        let result = result.unwrap_or(Err(PageFault::TooSlow(LONGEST)));
        let result = result.map(|is_whole| {
            let prospects = reader.prospects();
            // The pages that were not read may say something of the other pods.
            if !is_whole {
                pods.retain(|name, _| prospects.contains_key(name));
            }
            for (pod, prospects) in &prospects {
                tracing::trace!(namespace, pod, ?prospects, "what node autoscalers say");
            }
            observed.change(|store| store.put_prospects(&namespace, &pods, prospects));
        });
        (namespace, began.elapsed(), result)
    };
    let reading = async {
        let start = Instant::now();
        let mut tick = interval(TICK);
        // A reading may take many ticks, and none of them is to be made up for.
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut times, mut failing) = (AskTimes::default(), BTreeSet::new());
        loop {
            tick.tick().await;
            let awaiting = if fence.is_leader() {
                observed.read().awaiting()
            } else {
                AwaitingPods::new()
            };
            let due = times.due(&awaiting, start.elapsed().as_secs_f64());
            failing.retain(|namespace| awaiting.contains_key(namespace));
            let readings = due.into_iter().map(|namespace| read(namespace, &awaiting));
            let mut readings = stream::iter(readings).buffer_unordered(AT_ONCE);
            while let Some((namespace, took, result)) = readings.next().await {
                let now = start.elapsed().as_secs_f64();
                let is_refused = matches!(result, Err(PageFault::Refused { code: 403, .. }));
                let took_s = (!is_refused).then_some(took.as_secs_f64());
                times.note_reading(&namespace, took_s, now);
                note(&mut failing, namespace, result.err());
            }
        }
    };
    tokio::select! {
        biased;
        () = gate.closed() => std::future::pending().await,
        () = reading => {}
    }
}

/// Logs the first failure, and that all namespaces can be read again.
fn note(failing: &mut BTreeSet<String>, namespace: String, fault: Option<PageFault>) {
    match fault {
        Some(fault) => {
            if failing.is_empty() {
                tracing::warn!(
                    namespace,
                    error = %fault,
                    "Events cannot be listed, so what node autoscalers say about pods is not known: \
                     pods that no Kubernetes node takes are waited for by unschedulableSeconds alone"
                );
            }
            failing.insert(namespace);
        }
        None => {
            if failing.remove(&namespace) && failing.is_empty() {
                tracing::info!(
                    namespace,
                    "what node autoscalers say about pods is known again"
                );
            }
        }
    }
}
