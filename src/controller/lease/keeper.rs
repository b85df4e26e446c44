//! The keeper of the Leases: performs the [`LeaseLedger`]'s steps on the API server.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Resource as _;
use kube::api::{Api, ApiResource, DynamicObject};
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};

use super::fence::Fence;
use super::stored::{
    LABEL, LeaseOptions, find_heartbeat, lease_name, list, name_from, name_of, perform, record_of,
    write_heartbeat,
};
use crate::apiserver::selection::WatchDurations;
use crate::apiserver::{Informers, Selection, WatchEvent, error_chain};
use crate::controller::metrics::RoundMetrics;
use crate::controller::stop::asked_to_stop;
use crate::manifests::names::HEARTBEAT;
use crate::reconcile::ownership::lease::heartbeat::{Heartbeat, HeartbeatStep};
use crate::reconcile::ownership::lease::ledger::LeaseLedger;
use crate::reconcile::ownership::lease::record::{LeaseName, LeaseRecord, LeaseStep};

/// Whether any cluster has a sidecar that stands by, so that the heartbeat is needed, and whether this replica could
/// scale that cluster now.
pub type HeartbeatNeed = Box<dyn Fn() -> bool + Send>;

/// Holds this replica's share of the shards and keeps `fence` up to date, until `stop` is true and
/// everything has been released. Errors of the API server are logged, and the request is tried
/// again.
pub async fn keep(
    options: LeaseOptions,
    informers: Informers,
    fence: Fence,
    measures: RoundMetrics,
    is_heartbeat_needed: HeartbeatNeed,
    mut stop: watch::Receiver<bool>,
) {
    let api: Api<Lease> = Api::namespaced(informers.client(), &options.namespace);
    let start = Instant::now();
    let ledger = LeaseLedger::new(options.replica.clone(), options.shards, options.terms);
    let selection = Selection {
        labels: Some(LABEL.to_owned()),
        times: WatchDurations::lively(options.terms.renew),
        ..Selection::all("Leases", Lease::url_path(&(), Some(&options.namespace)))
    };
    let mut keeper = Keeper {
        api,
        listing: Api::namespaced_with(
            informers.client(),
            &options.namespace,
            &ApiResource::erase::<Lease>(&()),
        ),
        options,
        start,
        fence,
        measures,
        is_heartbeat_needed,
        heartbeat: Heartbeat::default(),
        heartbeat_fault: String::new(),
        ledger,
        is_fault_logged: false,
        waits_for: None,
    };
    let (tell, mut events) = mpsc::unbounded_channel();
    let reading = informers.read(selection, Some::<Lease>, move |event| {
        // Nobody receives it any more while this future is being dropped.
        let _ = tell.send(event);
    });
    let keeping = async {
        loop {
            let now = start.elapsed();
            let again = keeper.ledger.look_again(now).saturating_sub(now);
            tokio::select! {
                Some(event) = events.recv() => keeper.note(event),
                () = sleep(again) => {}
                () = asked_to_stop(&mut stop), if !keeper.ledger.is_stopping() => keeper.ledger.stop(),
            }
            // Events that arrived meanwhile are taken in before any new step is sent.
            while let Ok(event) = events.try_recv() {
                keeper.note(event);
            }
            // Before anything is sent, the fence closes for what others have taken.
            keeper.update_fence();
            keeper.work().await;
            // Afterwards it opens for what was won, and closes for shards that drain, which the
            // next steps rely on.
            keeper.update_fence();
            if keeper.ledger.is_stopping() && keeper.ledger.is_empty() {
                return;
            }
        }
    };
    tokio::select! {
        never = reading.forever() => match never {},
        () = keeping => {}
    }
}

struct Keeper {
    api: Api<Lease>,
    /// For lists: objects without a type, so that one unreadable Lease does not spoil the whole
    /// list.
    listing: Api<DynamicObject>,
    options: LeaseOptions,
    start: Instant,
    fence: Fence,
    measures: RoundMetrics,
    is_heartbeat_needed: HeartbeatNeed,
    heartbeat: Heartbeat,
    /// Why the heartbeat was not renewed, as last logged.
    heartbeat_fault: String,
    ledger: LeaseLedger,
    is_fault_logged: bool,
    /// The replica with another number of shards that keeps this one from work, as last logged.
    waits_for: Option<String>,
}

/// The answer to a step that was accepted.
enum LeaseAnswer {
    Written(Option<Box<Lease>>),
    Listed(Vec<(LeaseName, LeaseRecord)>),
}

/// Why the heartbeat was not renewed.
enum HeartbeatFailure {
    Refused(kube::Error),
    Late(Duration),
}

/// Creates or renews the heartbeat; returns it as it is then, if there is one.
async fn renew_heartbeat(
    api: &Api<Lease>,
    options: &LeaseOptions,
    step: &HeartbeatStep,
) -> Result<Option<Lease>, HeartbeatFailure> {
    let code = |error: &kube::Error| match error {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    };
    match (write_heartbeat(api, options, step).await, step) {
        (Ok(lease), _) => Ok(Some(lease)),
        // Somebody has made it without the label, so that no watch has told of it. It is renewed
        // from then on like any other.
        (Err(error), HeartbeatStep::Create) if code(&error) == Some(409) => {
            find_heartbeat(api).await.map_err(HeartbeatFailure::Refused)
        }
        (Err(error), HeartbeatStep::Renew(_)) if code(&error) == Some(404) => Ok(None),
        (Err(error), _) => Err(HeartbeatFailure::Refused(error)),
    }
}

impl Keeper {
    fn note(&mut self, event: WatchEvent<Lease>) {
        let now = self.start.elapsed();
        match event {
            WatchEvent::Applied(_, lease) | WatchEvent::Listed(_, lease) => self.saw(&lease, now),
            WatchEvent::Deleted(name, _) => {
                if let Some(name) = name_from(&name.name) {
                    self.ledger.gone(&name);
                } else if *name.name == *HEARTBEAT {
                    self.heartbeat.gone();
                }
            }
            WatchEvent::Complete(_) => self.ledger.complete(),
            WatchEvent::Begun => {}
            WatchEvent::Failed(fault) => self.log_fault(&fault.to_string()),
        }
    }

    fn saw(&mut self, lease: &Lease, now: Duration) {
        if let Some(name) = name_of(lease) {
            self.ledger.note(name, record_of(lease), now);
        } else if lease.metadata.name.as_deref() == Some(HEARTBEAT) {
            self.heartbeat.note(record_of(lease), now);
        }
    }

    /// Logs why the Leases cannot be used: once, not at every attempt.
    fn log_fault(&mut self, error: &str) {
        if !std::mem::replace(&mut self.is_fault_logged, true) {
            tracing::warn!(%error, namespace = self.options.namespace, "Leases cannot be used: nothing is scaled by this replica until they can");
        }
    }

    fn update_fence(&mut self) {
        let waits_for = self.ledger.waits_for();
        let replica = waits_for.map(|(replica, _)| replica.to_owned());
        if let Some((replica, shards)) = waits_for
            && self.waits_for.as_deref() != Some(replica)
        {
            tracing::info!(
                replica,
                shards,
                ours = self.options.shards,
                "nothing is scaled by this replica yet: another one divides clusters into another number of shards"
            );
        }
        self.waits_for = replica;
        let until = self
            .ledger
            .trusted()
            .map(|(shard, until)| (shard, self.start + until));
        let until: BTreeMap<_, _> = until.collect();
        self.measures.shards_held(until.len());
        self.fence.set(until);
    }

    async fn work(&mut self) {
        let now = self.start.elapsed();
        let fence = self.fence.clone();
        let steps = self.ledger.steps(now, |shard| fence.is_busy(shard));
        for step in &steps {
            self.ledger.attempted(step, now);
        }
        // A request that hangs is given up early enough for another attempt while the Lease is
        // valid.
        let longest = self.options.terms.renew;
        let performed = steps.into_iter().map(|step| {
            let (api, listing, options) = (&self.api, &self.listing, &self.options);
            async move {
                let answer = async {
                    match &step {
                        LeaseStep::Look(_) => list(listing).await.map(LeaseAnswer::Listed),
                        step => perform(api, options, step)
                            .await
                            .map(|lease| LeaseAnswer::Written(lease.map(Box::new))),
                    }
                };
                let result = timeout(longest, answer).await;
                (step, result)
            }
        });
        let rank = (self.ledger.rank(now)).filter(|_| (self.is_heartbeat_needed)());
        let beat_due = rank.and_then(|rank| self.heartbeat.step(rank, longest, now));
        let renewing = async {
            let step = beat_due.as_ref()?;
            let sent = renew_heartbeat(&self.api, &self.options, step);
            // The next renewal of the replica's own Lease waits for it, and is of more importance.
            Some(timeout(longest / 2, sent).await)
        };
        // All at once: one after the other, a few that hang would take longer than the Lease is
        // valid.
        let (performed, renewed) = tokio::join!(join_all(performed), renewing);
        if let Some(answer) = renewed {
            self.heartbeat.attempted(now);
            let answer = answer.unwrap_or_else(|_| Err(HeartbeatFailure::Late(longest / 2)));
            self.note_renewal(answer);
        }
        let mut conflicted = Vec::new();
        for (step, result) in performed {
            match result {
                Ok(Ok(LeaseAnswer::Written(lease))) => self.done(step, lease.as_deref(), now),
                Ok(Ok(LeaseAnswer::Listed(leases))) => {
                    self.is_fault_logged = false;
                    self.ledger.listed(leases, now, self.start.elapsed());
                }
                Ok(Err(error)) if is_conflict(&error) => conflicted.push(step),
                Ok(Err(error)) => self.log_fault(&error_chain::text(&error)),
                Err(_) => self.log_fault(&format!("no answer within {longest:?}")),
            }
        }
        if !conflicted.is_empty() {
            self.read_again(&conflicted).await;
        }
    }

    /// Takes in the answer to a renewal of the heartbeat, and logs why it failed: once, not at every attempt.
    fn note_renewal(&mut self, answer: Result<Option<Lease>, HeartbeatFailure>) {
        match answer {
            Ok(lease) => {
                self.heartbeat_fault.clear();
                match lease {
                    Some(lease) => self.heartbeat.note(record_of(&lease), self.start.elapsed()),
                    None => self.heartbeat.gone(),
                }
            }
            // Another replica was faster, as the watch tells.
            Err(HeartbeatFailure::Refused(kube::Error::Api(status))) if status.code == 409 => {}
            Err(fault) => {
                let why = match fault {
                    HeartbeatFailure::Refused(error) => error_chain::text(&error),
                    HeartbeatFailure::Late(longest) => format!("no answer within {longest:?}"),
                };
                if self.heartbeat_fault != why {
                    let namespace = &self.options.namespace;
                    tracing::warn!(
                        namespace,
                        why,
                        "the heartbeat {HEARTBEAT} is not renewed: sidecars that stand by take clusters over if no other replica renews it"
                    );
                    self.heartbeat_fault = why;
                }
            }
        }
    }

    fn done(&mut self, step: LeaseStep, lease: Option<&Lease>, sent: Duration) {
        self.is_fault_logged = false;
        let record = lease.map(record_of).unwrap_or_default();
        match step {
            LeaseStep::Create(name) => {
                tracing::info!(lease = lease_name(&name), "Lease created and taken");
                self.ledger.holds(name, record, sent);
            }
            LeaseStep::Hold(name, before) => {
                if before.holder.as_deref() != Some(&self.options.replica) {
                    tracing::info!(
                        lease = lease_name(&name),
                        from = before.holder,
                        "Lease taken"
                    );
                }
                self.ledger.holds(name, record, sent);
            }
            LeaseStep::Release(name, _) => {
                tracing::info!(lease = lease_name(&name), "Lease given back");
                self.ledger.released(&name, record, self.start.elapsed());
            }
            LeaseStep::ReleaseDead(name, _) => {
                let lease = lease_name(&name);
                tracing::info!(lease, "this replica has fallen silent");
                let now = self.start.elapsed();
                self.ledger.released_dead(&name, record, sent, now);
            }
            LeaseStep::Remove(name, _) => self.ledger.gone(&name),
            LeaseStep::Look(_) => {}
        }
    }

    /// After conflicts the Leases are read again, because the remembered ones may be stale.
    async fn read_again(&mut self, steps: &[LeaseStep]) {
        // A list does not need the right to `get` one Lease. It is read once for all: while one
        // list after the other came from a slow API server, this replica's own Lease would run out.
        match timeout(self.options.terms.renew, list(&self.listing)).await {
            Ok(Ok(leases)) => {
                let now = self.start.elapsed();
                for step in steps {
                    let mut found = leases.iter().filter(|(name, _)| name == step.name());
                    match found.next() {
                        Some((name, record)) => self.ledger.note(name.clone(), record.clone(), now),
                        None => self.ledger.gone(step.name()),
                    }
                }
            }
            Ok(Err(error)) => self.log_fault(&error_chain::text(&error)),
            Err(_) => {}
        }
    }
}

/// Whether a step was refused because the Lease is another one by now, or none.
fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if matches!(status.code, 404 | 409))
}
