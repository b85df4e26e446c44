//! The reconciler of one RayCluster: observe, decide, act, remember.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use crate::budget::limit::BudgetLimit;
use crate::controller::act::perform::Performer;
use crate::controller::act::permission::{PermissionState, WritePermission};
use crate::controller::act::writer::Writer;
use crate::controller::budget::cluster::{ClusterBudgets, is_more, uses_nothing};
use crate::controller::budget::read::read_anew;
use crate::controller::busy_count::BusyPlace;
use crate::controller::clock::Clock;
use crate::controller::driver_log::DriverLog;
use crate::controller::eligibility::{Duty, EligibilityCheck};
use crate::controller::events::{About, Announcer};
use crate::controller::head::address::{Head, NoHead};
use crate::controller::head::credentials::Credentials;
use crate::controller::head::extras::Extras;
use crate::controller::head::memory_watch::MemoryWatch;
use crate::controller::head::{address, blind};
use crate::controller::metrics::RoundMetrics;
use crate::controller::observe::{ClusterTexts, ClusterView};
use crate::controller::offload::{is_slow_to_plan, is_slow_to_read, offload_if};
use crate::controller::requeue::Requeue;
use crate::controller::tuning::{Basis, Tuning};
use crate::reconcile::observed::cadence;
use crate::reconcile::observed::users::LastUsers;
use crate::reconcile::ownership::handover::HandoverStep;
use crate::reconcile::{
    Blind, Done, Eligibility, HeadPod, Meaning, Round, RoundMemory, RoundSettings, UnchangedCheck,
};
use crate::snapshot::gcs::ClusterResourceState;
use crate::snapshot::pod::PodRole;
use crate::snapshot::{API_VERSION, Snapshot};
use crate::{gcs, reconcile};

/// How long to wait while the first list of pods is incomplete, since a pod that is not known yet
/// is not missing; and while policies are not known, since they may say how the cluster is scaled.
const LISTING: Duration = Duration::from_millis(100);

/// How long to wait after a failed write of the hand-over record.
const RECORD_RETRY: Duration = Duration::from_secs(1);

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
    /// What budgets let the cluster use.
    pub budgets: ClusterBudgets,
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
    /// What is remembered of the cluster.
    pub state: ReconcilerState,
}

/// What is remembered of a cluster from look to look. All of it may be lost at any time.
#[derive(Default)]
pub struct ReconcilerState {
    permission: Mutex<PermissionState>,
    memory: RoundMemory,
    observation: Option<Observation>,
    pub(super) gcs: Option<(Head, gcs::Client)>,
    pub(super) users: LastUsers,
    /// How much memory is in use in its pods.
    pub(super) memory_watch: MemoryWatch,
    /// The settings by which the cluster is scaled, and what they were made from.
    settings: RoundSettings,
    /// What budgets let it use.
    limits: Arc<[BudgetLimit]>,
    basis: Basis,
    duty: Duty,
    /// The last logged reason why the cluster is not scaled.
    logged_reason: String,
}

/// What was derived from the objects; it is kept while they are unchanged and this process owns the
/// cluster. Objects are kept as JSON texts, because the parsed trees of a thousand clusters that
/// wait for an answer were most of the process's memory.
struct Observation {
    texts: ClusterTexts,
    head: Result<(Head, HeadPod), NoHead>,
    unchanged: Option<UnchangedCheck>,
    /// What else Ray is asked.
    extras: Extras,
}

impl Reconciler {
    /// Waits until a pod is nearly full, so that it is looked at soon.
    pub async fn nearly_full(&self) {
        self.state.memory_watch.nearly_full().await;
    }

    /// Looks at the cluster once, and acts on what it finds.
    pub async fn look(&mut self) -> Requeue {
        let key = &self.judge.key;
        let texts = {
            let store = self.judge.observed.read();
            if !store.knows_pods(&key.namespace) || !self.tuning.is_known() {
                return Requeue::For(LISTING);
            }
            store.texts(key)
        };
        let Some(texts) = texts else {
            return Requeue::UntilChanged;
        };
        let retuned = self.tuning.has_changed(&mut self.state.basis)
            | self.judge.stand_in.has_changed(&mut self.state.duty);
        let known = |observation: &Observation| !retuned && observation.texts.are(&texts);
        if !self.state.observation.as_ref().is_some_and(known)
            && let Some(requeue) = self.orient(texts).await
        {
            return requeue;
        }
        match self.state.observation.take() {
            Some(observation) => self.act(observation).await,
            None => Requeue::UntilChanged,
        }
    }

    /// Finds out whether this process owns the cluster, and where its GCS is. If the ownership
    /// record has to be written or waited for, that is done here, and the requeue is returned.
    async fn orient(&mut self, texts: ClusterTexts) -> Option<Requeue> {
        self.state.observation = None;
        let scene = offload_if(is_slow_to_read(&texts), || texts.read()).await;
        let eligibility = self.judge.eligibility(&scene.cluster, &scene.pods);
        let now = self.clock.steady();
        let step = self.state.permission.get_mut().handover.step(
            &scene.cluster,
            &eligibility,
            &self.judge.role,
            now,
        );
        match step {
            HandoverStep::Act => {
                self.tune(&scene);
                self.state.observation = Some(Observation {
                    head: address::head(&self.judge.key, &scene.cluster, &scene.pods).map(|head| {
                        let pod = blind::head_pod(&head, &scene.pods);
                        (head, pod)
                    }),
                    texts,
                    unchanged: None,
                    extras: Extras::of(&scene.cluster, &self.state.settings.plan),
                });
                None
            }
            HandoverStep::Claim(patch) | HandoverStep::Release(patch) => {
                drop((scene, texts));
                Some(self.write_record(&patch, &eligibility).await)
            }
            HandoverStep::Wait { until, why } => {
                self.log_reason(why);
                Some(Requeue::seconds(until - now))
            }
            HandoverStep::Rest => {
                self.rest(&eligibility);
                if uses_nothing(&scene) {
                    self.budgets.leave(&self.writer).await;
                }
                Some(Requeue::UntilChanged)
            }
        }
    }

    /// Writes the hand-over record. No effect is under way between two looks, so ownership can be
    /// released at once.
    async fn write_record(
        &mut self,
        patch: &json_patch::Patch,
        eligibility: &Eligibility,
    ) -> Requeue {
        let claimed = *eligibility == Eligibility::Ours;
        match self.writer.patch_cluster(patch).await {
            Ok(cluster) => {
                self.judge.learn(&cluster);
                let cluster = self.judge.key.to_string();
                tracing::info!(
                    cluster,
                    claimed,
                    "the hand-over record rayfit.dev/scaled-by was written"
                );
                Requeue::For(Duration::ZERO)
            }
            Err(failure) => {
                if failure.meaning() == Meaning::Stale {
                    self.look_up().await;
                }
                self.log_reason(format!(
                    "the hand-over record cannot be written: {failure:?}"
                ));
                Requeue::For(RECORD_RETRY)
            }
        }
    }

    fn rest(&mut self, eligibility: &Eligibility) {
        self.metrics.gcs_is_well(&self.judge.key);
        self.place.note(false);
        self.state.gcs = None;
        self.state.memory_watch = MemoryWatch::default();
        self.state.memory = RoundMemory::default();
        if let Eligibility::Leave(reason) = eligibility {
            self.log_reason(reason.to_string());
        }
    }

    /// Logs why the cluster is not scaled, when the reason changes.
    fn log_reason(&mut self, why: String) {
        if self.state.logged_reason != why {
            let cluster = self.judge.key.to_string();
            if !why.is_empty() {
                tracing::info!(cluster, why, "not scaled");
            }
            self.state.logged_reason = why;
        }
    }

    async fn act(&mut self, mut observation: Observation) -> Requeue {
        let began = Instant::now();
        let requeue = match self.ask(&observation.head, &observation.extras).await {
            Ok((client, gcs, place)) => {
                self.log_reason(String::new());
                let now = self.clock.wall();
                if self.state.memory.changed_at == 0.0 {
                    // For how long the cluster has been quiet is not known after a start.
                    self.state.memory.changed_at = now;
                }
                let limits = self.budgets.keep(&self.writer).await;
                let unchanged = observation.unchanged;
                let unchanged = unchanged.filter(|_| limits == self.state.limits);
                self.state.limits = limits;
                if let Some(check) = unchanged.filter(|check| check.holds(&gcs, now)) {
                    self.state.memory.is_the_same(check.is_busy(), now);
                    self.requeue(check.is_busy(), now)
                } else {
                    self.round(&mut observation, &client, gcs, place).await
                }
            }
            Err(why) => {
                observation.unchanged = None;
                self.blind(&why)
            }
        };
        self.state.observation = Some(observation);
        self.metrics.round(began.elapsed());
        requeue
    }

    /// Makes the settings anew, because the policies or the labels that they match may have
    /// changed.
    fn tune(&mut self, scene: &ClusterView) {
        let settings = self.tuning.of(&scene.cluster);
        if settings != self.state.settings {
            let cluster = self.judge.key.to_string();
            let (plan, backoff) = (&settings.plan, settings.backoff);
            tracing::info!(cluster, ?plan, ?backoff, "scaled by new settings");
            self.state.settings = settings;
        }
        self.budgets.set(&self.state.settings);
    }

    /// Makes the round of a cluster that cannot be observed; nothing is done on missing data.
    fn blind(&mut self, why: &Blind) -> Requeue {
        let now = self.clock.wall();
        let round = reconcile::blind(&self.state.memory, why, now);
        let why = round.plan.waiting.as_ref().map(ToString::to_string);
        self.log_reason(why.unwrap_or_default());
        self.finish(&round, &[], now)
    }

    async fn round(
        &mut self,
        observation: &mut Observation,
        gcs: &gcs::Client,
        state: ClusterResourceState,
        place: Option<gcs::ClientPlace>,
    ) -> Requeue {
        let is_slow = is_slow_to_plan(&observation.texts, &state);
        let snapshot = || self.snapshot(observation.texts.read(), state);
        let snapshot = offload_if(is_slow, snapshot).await;
        let (round, settings) = self.decide(&snapshot, is_slow).await;
        if round.chains.is_empty() {
            let requeue = self.finish(&round, &[], self.clock.wall());
            let memory = &self.state.memory;
            observation.unchanged = offload_if(is_slow, || {
                UnchangedCheck::of(&round, snapshot, memory, &settings)
            })
            .await;
            return requeue;
        }
        observation.unchanged = None;
        drop(place);
        let mut pods = snapshot.pods;
        pods.retain(|pod| pod.role == PodRole::Head);
        let permission = WritePermission {
            state: &self.state.permission,
            judge: &self.judge,
            pods: &pods,
            clock: &self.clock,
        };
        let performer = Performer {
            writer: &self.writer,
            gcs,
            permission: &permission,
            clock: &self.clock,
        };
        let done = performer.all(round.chains.clone()).await;
        if done.iter().any(Done::is_stale) {
            self.look_up().await;
        }
        self.finish(&round, &done, self.clock.wall())
    }

    /// Decides what to do within what budgets allow. Where they leave too little, more is asked for
    /// first.
    async fn decide(&mut self, snapshot: &Snapshot, is_slow: bool) -> (Round, RoundSettings) {
        if !self.state.limits.is_empty() {
            let (judge, memory) = (&self.judge, &mut self.state.memory);
            read_anew(judge, &self.writer, memory, snapshot, &self.clock).await;
        }
        let (round, settings) = self.within(snapshot, is_slow).await;
        let limits = self.budgets.keep(&self.writer).await;
        let before = std::mem::replace(&mut self.state.limits, limits);
        if is_more(&self.state.limits, &before) {
            return self.within(snapshot, is_slow).await;
        }
        (round, settings)
    }

    async fn within(&mut self, snapshot: &Snapshot, is_slow: bool) -> (Round, RoundSettings) {
        let (state, limits) = (&self.state, self.state.limits.clone());
        let settings = state.settings.within(limits);
        let decide = || reconcile::round(snapshot, &state.memory, &settings);
        let round = offload_if(is_slow, decide).await;
        self.budgets.plans(round.budget);
        (round, settings)
    }

    fn snapshot(&self, scene: ClusterView, gcs: ClusterResourceState) -> Snapshot {
        Snapshot {
            api_version: API_VERSION.to_owned(),
            kind: "Snapshot".to_owned(),
            time: self.clock.rfc3339(),
            ray_cluster: scene.cluster.into(),
            pods: scene.pods,
            nodes: scene.nodes,
            loads: scene.loads,
            gcs,
            history: self.state.memory.history.clone(),
        }
    }

    /// Reads the RayCluster again: a watch may lag, and a sidecar has none for the RayCluster.
    async fn look_up(&self) {
        match self.writer.get_cluster().await {
            Ok(cluster) => self.judge.learn(&cluster),
            Err(failure) => tracing::debug!(?failure, cluster = %self.judge.key, "not read"),
        }
    }

    /// Remembers the round, announces it, and says when to look again.
    fn finish(&mut self, round: &Round, done: &[Done], now: f64) -> Requeue {
        let (memory, settings) = (&mut self.state.memory, &self.state.settings);
        let announcements = memory.fold(round, done, settings, now, fastrand::f64);
        self.metrics.done(done);
        self.metrics.decided(&self.judge.key, round);
        self.announcer.announce(&self.about, &announcements.events);
        self.driver_log.write(&announcements.messages);
        self.requeue(round.busy, now)
    }

    fn requeue(&mut self, busy: bool, now: f64) -> Requeue {
        let busy_count = self.place.note(busy);
        let (changed_at, pace) = (self.state.memory.changed_at, &self.state.settings.pace);
        Requeue::seconds(if busy {
            cadence::busy_s(busy_count, pace)
        } else {
            cadence::quiet_s(changed_at, now, pace)
        })
    }
}
