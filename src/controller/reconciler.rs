//! The reconciler of one RayCluster: observe, decide, act, remember. Which of these follows on which is said by
//! [`look`](rayfit_core::reconcile::look); what it needs of a live cluster is in `look_host`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use prometheus_client::metrics::gauge::Gauge;
use rayfit_core::reconcile::look::{LookEnd, LookState, Looked, look, remember};
use rayfit_core::reconcile::observed::users::LastUsers;
use rayfit_core::reconcile::{Blind, Chain, Done, HeadPod, UnchangedCheck};
use rayfit_core::snapshot::pod::PodRole;
use rayfit_core::snapshot::{HeadSight, OwnPods, Snapshot};
use tokio::sync::{Mutex, SemaphorePermit};

use crate::controller::act::perform::{Performer, PermissionState};
use crate::controller::act::writer::Writer;
use crate::controller::clock::Clock;
use crate::controller::driver_log::DriverLog;
use crate::controller::eligibility::EligibilityCheck;
use crate::controller::events::{About, Announcer};
use crate::controller::head::address::Head;
use crate::controller::head::credentials::{Credentials, Refusals};
use crate::controller::head::extras::Extras;
use crate::controller::head::memory_watch::MemoryWatch;
use crate::controller::observe::ClusterTexts;
use crate::controller::tuning::{Basis, Tuning};
use crate::fair_semaphore::FairPermit;
use crate::gcs;
use crate::telemetry::controller::ScalingMetrics;
use crate::telemetry::metrics::CountedGauge;

/// The wait where a time cannot be expressed.
const OTHERWISE: Duration = Duration::from_secs(1);

/// Reconciles one cluster.
pub struct Reconciler {
    /// Judges whether this process may scale the cluster.
    pub judge: EligibilityCheck,
    /// Sends requests to the API server.
    pub writer: Writer,
    /// The credentials for the cluster's GCS.
    pub credentials: Credentials,
    /// The source of the cluster's settings.
    pub tuning: Tuning,
    /// The RayCluster that Events are on.
    pub about: About,
    /// Publishes Events.
    pub announcer: Announcer,
    /// Writes messages for Ray's drivers.
    pub driver_log: DriverLog,
    /// The metrics.
    pub metrics: Arc<ScalingMetrics>,
    /// The clock.
    pub clock: Clock,
    /// The number of clusters of the process that are busy. The more there are, the less often each of them is looked at.
    pub busy_count: Gauge,
    /// The cluster's part in that, as its last look left it. Until the first one has shown whether it is busy, it counts.
    pub busy: Option<CountedGauge>,
    /// Memory of the cluster.
    pub state: ReconcilerState,
}

/// Knowledge of the cluster from look to look, beside the [`LookState`]. All of it may be lost at any
/// time. What follows from the objects is kept while these are unchanged and this process owns the cluster.
#[derive(Default)]
pub struct ReconcilerState {
    pub(super) permission: Mutex<PermissionState>,
    /// The objects that were judged last, as JSON texts, because the parsed trees of a thousand clusters that wait
    /// for an answer were most of the process's memory.
    pub(super) texts: ClusterTexts,
    /// These objects, parsed, from their judgement to the decision, if there is a permit for them.
    pub(super) scene: Option<(Snapshot, SemaphorePermit<'static>)>,
    /// The sources of the settings.
    pub(super) basis: Basis,
    pub(super) head: Option<Result<(Head, HeadPod), Blind>>,
    /// The head pod that is asked.
    pub(super) sight: Option<HeadSight>,
    /// The head pod whose GCS was the last to say that it is passive, as it was seen then. A sidecar
    /// asks no GCS but that of its own pod.
    pub(super) passive: Option<HeadSight>,
    /// Optional queries of Ray.
    pub(super) extras: Extras,
    pub(super) gcs: Option<(Head, gcs::Client)>,
    /// The permit for a large answer, until the answer has been used up.
    pub(super) answer_permit: Option<FairPermit>,
    pub(super) refusals: Refusals,
    pub(super) users: LastUsers,
    /// The memory in use in its pods.
    pub(super) memory_watch: MemoryWatch,
    pub(super) unchanged: Option<UnchangedCheck>,
    /// Deciding takes so long that other tasks must not wait for it.
    pub(super) is_slow: bool,
    /// The time from which settings may be written for the sidecar again, by the steady clock.
    pub(super) tell_again: f64,
    /// The last logged reason why the cluster is not scaled.
    logged_reason: String,
    /// The time at which the last look asked the GCS.
    pub(super) asked_at: Option<Instant>,
    /// The time for which the last look has computed, without its waits.
    pub(super) worked: Duration,
}

impl Reconciler {
    /// Looks at the cluster once, and acts on what it finds. Returns after how long to look again if nothing changes
    /// before, and for how long the look has computed, without its waits.
    pub async fn look(&mut self, state: &mut LookState) -> (Option<Duration>, Duration) {
        (self.state.worked, self.state.asked_at) = (Duration::ZERO, None);
        let end = match look(state, self).await {
            Looked::Rest(end) => end,
            Looked::Effects(mut round, pods) => {
                let chains = std::mem::take(&mut round.chains);
                let done = self.perform(chains, pods).await;
                remember(state, self, *round, &done, None).await
            }
        };
        (self.state.answer_permit, self.state.scene) = (None, None);
        if let Some(asked_at) = self.state.asked_at {
            let took = asked_at.elapsed().as_secs_f64();
            self.metrics.round.observe(took);
        }
        // A time that cannot be expressed is a negative one, or is not a number.
        let delay = |seconds| Duration::try_from_secs_f64(seconds).unwrap_or(OTHERWISE);
        let requeue = match end {
            LookEnd::AtOnce => Some(Duration::ZERO),
            LookEnd::After(seconds) => Some(delay(seconds)),
            LookEnd::UntilChanged => None,
            LookEnd::Paced { busy } => {
                self.busy = busy.then(|| CountedGauge::of(&self.busy_count));
                let clusters = usize::try_from(self.busy_count.get()).unwrap_or(0);
                let busy = busy.then_some(clusters);
                Some(delay(state.interval_s(busy, self.clock.wall())))
            }
        };
        (requeue, self.state.worked)
    }

    async fn perform(&mut self, chains: Vec<Chain>, mut pods: OwnPods) -> Vec<Done> {
        // The answer has been used up, and effects may wait long at the gate: the permit for a large answer goes
        // to the next cluster.
        self.state.answer_permit = None;
        // The judgement on who may scale the cluster needs its heads alone, so ten thousand workers need not be
        // kept until the last effect is done.
        pods.retain(|pod| pod.role == PodRole::Head);
        let Some((_, gcs)) = &self.state.gcs else {
            return Vec::new();
        };
        let performer = Performer {
            writer: &self.writer,
            gcs,
            permission: &self.state.permission,
            judge: &self.judge,
            pods: &pods,
            clock: &self.clock,
        };
        performer.all(chains).await
    }

    /// Logs why the cluster is not scaled, when the reason changes.
    pub(super) fn log_reason(&mut self, why: String) {
        if self.state.logged_reason != why {
            if !why.is_empty() {
                tracing::info!(cluster = %self.about.key, why, "not scaled");
            }
            self.state.logged_reason = why;
        }
    }
}
