//! The reconciler of one RayCluster: observe, decide, act, remember. Which of these follows on which is said by
//! [`look`](crate::reconcile::look); here, and in `round`, its steps are performed.

use std::time::Duration;

use tokio::sync::Mutex;

use crate::controller::act::permission::PermissionState;
use crate::controller::act::writer::Writer;
use crate::controller::busy_count::BusyPlace;
use crate::controller::clock::Clock;
use crate::controller::driver_log::DriverLog;
use crate::controller::eligibility::EligibilityCheck;
use crate::controller::events::{About, Announcer};
use crate::controller::head::address::{Head, NoHead, head_in};
use crate::controller::head::blind;
use crate::controller::head::credentials::{Credentials, Refusals};
use crate::controller::head::extras::Extras;
use crate::controller::head::memory_watch::MemoryWatch;
use crate::controller::metrics::RoundMetrics;
use crate::controller::observe::{ClusterTexts, ClusterView};
use crate::controller::offload::{is_slow_to_read, offload_if};
use crate::controller::requeue::Requeue;
use crate::controller::tuning::{Basis, Tuning};
use crate::gcs;
use crate::reconcile::look::{
    Finishing, JudgedObjects, LookEnd, LookReason, LookState, LookStep, Oriented, Rest,
    SeenObjects, step,
};
use crate::reconcile::observed::users::LastUsers;
use crate::reconcile::ownership::sidecar_settings;
use crate::reconcile::{HeadPod, Meaning, Round, ScalerRole, UnchangedCheck};
use crate::snapshot::{HeadSight, Snapshot, leading_head};

/// The wait after settings could not be written for a sidecar, in seconds.
const TELL_AGAIN_S: f64 = 60.0;

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
    pub metrics: RoundMetrics,
    /// The clock.
    pub clock: Clock,
    /// The cluster's part in the busy count, as its last look left it.
    pub place: BusyPlace,
    /// Memory of the cluster.
    pub state: ReconcilerState,
}

/// Memory of the cluster from look to look. All of it may be lost at any time.
#[derive(Default)]
pub struct ReconcilerState {
    pub(super) permission: Mutex<PermissionState>,
    pub(super) look: LookState,
    pub(super) observation: Option<Observation>,
    pub(super) gcs: Option<(Head, gcs::Client)>,
    pub(super) refusals: Refusals,
    pub(super) users: LastUsers,
    /// The head pod whose GCS was the last to say that it is passive, as it was seen then. A sidecar
    /// asks no GCS but that of its own pod.
    pub(super) passive: Option<HeadSight>,
    /// The memory in use in its pods.
    pub(super) memory_watch: MemoryWatch,
    /// The sources of the settings.
    basis: Basis,
    /// The time from which settings may be written for the sidecar again, by the steady clock.
    tell_again: f64,
    /// The last logged reason why the cluster is not scaled.
    logged_reason: String,
    /// See [`Reconciler::worked`].
    pub(super) worked: Duration,
}

/// Facts derived from the objects; they are kept while these are unchanged and this process owns
/// the cluster. Objects are kept as JSON texts, because the parsed trees of a thousand clusters
/// that wait for an answer were most of the process's memory.
pub(super) struct Observation {
    pub(super) texts: ClusterTexts,
    pub(super) head: Result<(Head, HeadPod), NoHead>,
    /// The head pod that is asked.
    pub(super) sight: Option<HeadSight>,
    pub(super) unchanged: Option<UnchangedCheck>,
    /// Optional queries of Ray.
    pub(super) extras: Extras,
}

impl Reconciler {
    /// Waits until a pod is nearly full, so that it is looked at soon.
    pub async fn nearly_full(&self) {
        self.state.memory_watch.nearly_full().await;
    }

    /// The time for which the last look has computed, without its waits.
    pub fn worked(&self) -> Duration {
        self.state.worked
    }

    /// Looks at the cluster once, and acts on what it finds. What follows on what is decided by
    /// [`look`](crate::reconcile::look); here the steps are performed.
    pub async fn look(&mut self) -> Requeue {
        self.state.worked = Duration::ZERO;
        let (seen, mut texts) = self.seen();
        let mut step = LookStep::begin(&mut self.state.look, seen);
        loop {
            step = match step {
                LookStep::Judge(judging) => match texts.take() {
                    Some(texts) => self.orient(judging, texts).await,
                    None => return Requeue::UntilChanged,
                },
                LookStep::WriteRecord(writing) => {
                    let written = self.writer.patch_cluster(&writing.patch).await;
                    let written = written.map(|cluster| self.judge.learn(&cluster));
                    writing.wrote(&mut self.state.look, written)
                }
                LookStep::Ask(asking) => return self.act(asking).await,
                LookStep::ReadCluster(rereading) => {
                    self.look_up().await;
                    rereading.read()
                }
                LookStep::Rest(rest) => return self.rest(rest),
            }
        }
    }

    /// Freshness of the objects, and the objects themselves, if there are any.
    fn seen(&mut self) -> (SeenObjects, Option<ClusterTexts>) {
        let key = &self.judge.key;
        let texts = {
            let store = self.judge.observed.read();
            if !store.knows_pods(&key.namespace) || !self.tuning.is_known() {
                return (SeenObjects::NotListed, None);
            }
            store.texts(key)
        };
        let Some(texts) = texts else {
            return (SeenObjects::Gone, None);
        };
        let retuned = self.tuning.has_changed(&mut self.state.basis);
        let known = |observation: &Observation| !retuned && observation.texts.are(&texts);
        let seen = if self.state.observation.as_ref().is_some_and(known) {
            SeenObjects::Same
        } else {
            SeenObjects::Changed
        };
        (seen, Some(texts))
    }

    /// Finds out whether this process owns the cluster, and where its GCS is.
    async fn orient(&mut self, judging: step::Judging, texts: ClusterTexts) -> LookStep {
        self.state.observation = None;
        let namespace = &self.judge.key.namespace;
        let (is_slow, worked) = (is_slow_to_read(&texts), &mut self.state.worked);
        let scene = offload_if(namespace, is_slow, worked, || texts.read()).await;
        self.tell_sidecar(&scene).await;
        let cluster = scene.cluster.object();
        let eligibility = self.judge.eligibility(cluster, &scene.pods);
        let judged = JudgedObjects {
            cluster,
            eligibility: &eligibility,
            role: &self.judge.role,
        };
        let handover = &mut self.state.permission.get_mut().handover;
        let now = self.clock.steady();
        let owning = match judging.judged(&mut self.state.look, handover, judged, now) {
            Oriented::Owns(owning) => owning,
            Oriented::Not(step) => return step,
        };
        let step = self.tune(owning, &scene);
        let leader = leading_head(&scene.pods, self.state.passive.as_ref());
        let head = head_in(&self.judge.key, cluster, leader.as_ref());
        self.state.observation = Some(Observation {
            head: head.map(|head| {
                let pod = blind::head_pod(&head, &scene.pods);
                (head, pod)
            }),
            sight: leader.as_ref().map(HeadSight::of),
            texts,
            unchanged: None,
            extras: Extras::of(&scene.cluster, &self.state.look.settings.plan),
        });
        step
    }

    /// Makes the settings anew, because the policies or the labels that they match may have
    /// changed.
    fn tune(&mut self, owning: step::Owning, scene: &ClusterView) -> LookStep {
        let settings = self.tuning.of(scene.cluster.object());
        if settings != self.state.look.settings {
            let cluster = self.judge.key.to_string();
            let (plan, backoff) = (&settings.plan, settings.backoff);
            tracing::info!(cluster, ?plan, ?backoff, "scaled by new settings");
        }
        owning.owns(&mut self.state.look, settings)
    }

    /// Writes the settings for a sidecar on the RayCluster, where they have changed. It has no effect but on
    /// that sidecar, so whether it succeeds changes nothing for this look; a refusal waits for a while.
    async fn tell_sidecar(&mut self, scene: &ClusterView) {
        let now = self.clock.steady();
        if !matches!(self.judge.role, ScalerRole::Central { .. }) || now < self.state.tell_again {
            return;
        }
        let cluster = scene.cluster.object();
        let told = || self.tuning.for_sidecar(cluster);
        let Some(patch) = sidecar_settings::patch(cluster, told) else {
            return;
        };
        match self.writer.patch_cluster(&patch).await {
            Ok(cluster) => {
                self.judge.learn(&cluster);
                tracing::info!(cluster = %self.judge.key, "its settings were written for its sidecar");
            }
            // It is tried again with the object as it is by then.
            Err(failure) if failure.meaning() == Meaning::Stale => {}
            Err(failure) => {
                self.state.tell_again = now + TELL_AGAIN_S;
                tracing::warn!(?failure, cluster = %self.judge.key, "its settings cannot be written for its sidecar");
            }
        }
    }

    /// Logs why the cluster is not scaled, when the reason changes.
    pub(super) fn log_reason(&mut self, why: String) {
        if self.state.logged_reason != why {
            let cluster = self.judge.key.to_string();
            if !why.is_empty() {
                tracing::info!(cluster, why, "not scaled");
            }
            self.state.logged_reason = why;
        }
    }

    /// Reads the RayCluster again.
    pub(super) async fn look_up(&self) {
        // A watch may lag, and a sidecar has none for the RayCluster.
        match self.writer.get_cluster().await {
            Ok(cluster) => self.judge.learn(&cluster),
            Err(failure) => tracing::debug!(?failure, cluster = %self.judge.key, "not read"),
        }
    }

    /// Remembers the round, announces it, and says when to look again. Also returns the round and the
    /// state that it is made of, if it found nothing to do.
    pub(super) fn finish(
        &mut self,
        finishing: Finishing,
    ) -> (Requeue, Option<(Round, Box<Snapshot>)>) {
        self.metrics.done(finishing.done());
        self.metrics.decided(&self.about.uid, finishing.round());
        let now = self.clock.wall();
        let finished = finishing.finish(&mut self.state.look, now, fastrand::f64);
        let announcements = finished.announcements;
        self.announcer.announce(&self.about, &announcements.events);
        let gcs = self.state.gcs.as_ref().map(|(_, client)| client);
        self.driver_log.write(&announcements.messages, gcs);
        (self.rest(finished.rest), finished.idle)
    }

    /// The end of a look: what it ended for is logged, and when to look again.
    pub(super) fn rest(&mut self, rest: Rest) -> Requeue {
        match rest.why {
            LookReason::NotOurs(reason) => {
                self.forget();
                self.log_reason(reason.to_string());
            }
            LookReason::NoRecord => self.forget(),
            LookReason::Waits(why) => self.log_reason(why),
            LookReason::RecordWritten { is_claim } => {
                let cluster = self.judge.key.to_string();
                tracing::info!(
                    cluster,
                    claimed = is_claim,
                    "the hand-over record rayfit.dev/scaled-by was written"
                );
            }
            LookReason::RecordOutdated(failure) => {
                tracing::debug!(?failure, cluster = %self.judge.key, "the hand-over record is written again");
            }
            LookReason::RecordNotWritten(failure) => self.log_reason(format!(
                "the hand-over record cannot be written: {failure:?}"
            )),
            LookReason::NotListed
            | LookReason::Gone
            | LookReason::Unchanged
            | LookReason::RoundMade => {}
        }
        match rest.end {
            LookEnd::After(seconds) => Requeue::seconds(seconds),
            LookEnd::UntilChanged => Requeue::UntilChanged,
            LookEnd::Paced { busy } => {
                let busy = busy.then_some(self.place.note(busy));
                let now = self.clock.wall();
                Requeue::seconds(self.state.look.interval_s(busy, now))
            }
        }
    }

    /// Forgets what concerns a cluster that is not scaled here.
    fn forget(&mut self) {
        self.metrics.forget(&self.about.uid);
        self.place.note(false);
        self.state.gcs = None;
        self.state.memory_watch = MemoryWatch::default();
    }
}
