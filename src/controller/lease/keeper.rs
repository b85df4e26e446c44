//! The keeper of the Lease: sends the requests that [`Leadership`] asks for, and keeps the fence up to date.

use std::sync::Arc;
use std::time::Instant;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Resource as _;
use kube::api::Api;
use rayfit_core::manifests::names::LEADER_LEASE;
use rayfit_core::reconcile::ownership::lease::leader::{Leadership, LeaseRequest};
use rayfit_core::reconcile::ownership::lease::record::LeaseRecord;
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};

use super::fence::Fence;
use super::stored::{LeaseOptions, record_of, send};
use crate::apiserver::selection::WatchDurations;
use crate::apiserver::{Informers, Selection, WatchEvent, error_chain};
use crate::controller::stop::asked_to_stop;
use crate::telemetry::controller::ScalingMetrics;

/// Takes part in the choice of the leader and keeps `fence` up to date, until `stop` is true and the Lease has
/// been given back. Errors of the API server are logged, and the request is sent again.
pub async fn keep(
    options: LeaseOptions,
    informers: Informers,
    fence: Fence,
    measures: Arc<ScalingMetrics>,
    mut stop: watch::Receiver<bool>,
) {
    let selection = Selection {
        name: Some(LEADER_LEASE.to_owned()),
        times: WatchDurations::lively(options.terms.renew),
        ..Selection::all("Leases", Lease::url_path(&(), Some(&options.namespace)))
    };
    let mut keeper = LeaseKeeper {
        api: Api::namespaced(informers.client.clone(), &options.namespace),
        leadership: Leadership::new(options.replica.clone(), options.terms),
        options,
        start: Instant::now(),
        fence,
        measures,
        is_fault_logged: false,
    };
    let (tell, mut events) = mpsc::unbounded_channel();
    let reading = informers.read(selection, Some::<Lease>, move |event| {
        // Nobody receives it any more while this future is being dropped.
        let _ = tell.send(event);
    });
    let keeping = async {
        loop {
            let now = keeper.start.elapsed();
            let again = keeper.leadership.look_again(now).saturating_sub(now);
            tokio::select! {
                Some(event) = events.recv() => keeper.note(event),
                () = sleep(again) => {}
                () = asked_to_stop(&mut stop), if !keeper.leadership.is_stopping => keeper.leadership.is_stopping = true,
            }
            // Events that arrived meanwhile are taken in before anything is sent.
            while let Ok(event) = events.try_recv() {
                keeper.note(event);
            }
            // The fence closes before the Lease is given back, and opens once it was won.
            keeper.update_fence();
            keeper.send().await;
            keeper.update_fence();
            if keeper.leadership.is_stopping && !keeper.leadership.is_holder() {
                return;
            }
        }
    };
    tokio::select! {
        never = reading.forever() => match never {},
        () = keeping => {}
    }
}

struct LeaseKeeper {
    api: Api<Lease>,
    options: LeaseOptions,
    start: Instant,
    fence: Fence,
    measures: Arc<ScalingMetrics>,
    leadership: Leadership,
    is_fault_logged: bool,
}

impl LeaseKeeper {
    fn note(&mut self, event: WatchEvent<Lease>) {
        let now = self.start.elapsed();
        match event {
            WatchEvent::Applied(_, lease) | WatchEvent::Listed(_, lease) => {
                self.leadership.note(Some(record_of(&lease)), now);
            }
            WatchEvent::Deleted(..) => self.leadership.note(None, now),
            WatchEvent::Begun | WatchEvent::Complete(_) => {}
            WatchEvent::Failed(fault) => self.log_fault(&fault.to_string()),
        }
    }

    fn update_fence(&self) {
        let until = self
            .leadership
            .leads_until()
            .map(|until| self.start + until);
        self.measures.leader.set(until.is_some().into());
        self.fence.set(until);
    }

    /// Sends the request that is due, if any is.
    async fn send(&mut self) {
        let sent = self.start.elapsed();
        let Some(request) = self.leadership.request(sent, self.fence.is_writing()) else {
            return;
        };
        self.leadership.asks(&request, sent);
        let answer = self.answer(&request).await;
        let now = self.start.elapsed();
        match (answer, request) {
            (Some(Ok(record)), LeaseRequest::Read) => self.leadership.note(record, now),
            (Some(Ok(record)), request) => {
                match &request {
                    LeaseRequest::Create => tracing::info!("Lease created: this replica leads"),
                    LeaseRequest::Hold(previous)
                        if previous.holder.as_ref() != Some(&self.options.replica) =>
                    {
                        tracing::info!(from = previous.holder, "Lease taken: this replica leads");
                    }
                    LeaseRequest::Release(_) => tracing::info!("Lease given back"),
                    LeaseRequest::Hold(_) | LeaseRequest::Read => {}
                }
                self.is_fault_logged = false;
                self.leadership.wrote(record.unwrap_or_default(), sent);
            }
            // It is another one by now, or none, and the remembered one may be stale.
            (Some(Err(kube::Error::Api(status))), _) if matches!(status.code, 404 | 409) => {
                if let Some(Ok(record)) = self.answer(&LeaseRequest::Read).await {
                    self.leadership.note(record, self.start.elapsed());
                }
            }
            (Some(Err(error)), _) => self.log_fault(&error_chain::text(&error)),
            (None, _) => {
                self.log_fault(&format!("no answer within {:?}", self.options.terms.renew));
            }
        }
    }

    /// The answer to a request; `None` if there is none soon: a request that hangs is given up early enough for
    /// another attempt while the Lease is valid.
    async fn answer(
        &self,
        request: &LeaseRequest,
    ) -> Option<Result<Option<LeaseRecord>, kube::Error>> {
        let answer = send(&self.api, &self.options, request);
        timeout(self.options.terms.renew, answer).await.ok()
    }

    /// Logs why the Lease cannot be used: once, not at every attempt.
    fn log_fault(&mut self, error: &str) {
        if !std::mem::replace(&mut self.is_fault_logged, true) {
            tracing::warn!(%error, namespace = self.options.namespace, "the Lease {LEADER_LEASE} cannot be used: nothing is scaled by this replica until it can");
        }
    }
}
