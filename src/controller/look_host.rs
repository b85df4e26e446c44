//! A look at a live cluster: what is observed of it, how its GCS is asked, and what is told of a round.

use std::time::Instant;

use json_patch::Patch;
use rayfit_core::plan::PlanWait;
use rayfit_core::reconcile::effects::failure::GcsKind;
use rayfit_core::reconcile::events::event::Announcements;
use rayfit_core::reconcile::look::{Freshness, LookHost, LookState};
use rayfit_core::reconcile::observed::users::LastUsers;
use rayfit_core::reconcile::ownership::sidecar_settings;
use rayfit_core::reconcile::{
    Blind, Done, Failure, HandoverStep, Meaning, Round, ScalerRole, UnchangedCheck, round,
};
use rayfit_core::snapshot::gcs::ClusterResourceState;
use rayfit_core::snapshot::{HeadSight, Snapshot, leading_head};
use rayfit_core::text::Misread;
use serde_json::Value;
use tokio::sync::Semaphore;

use super::reconciler::Reconciler;
use crate::controller::head::address::{Head, head_in};
use crate::controller::head::blind;
use crate::controller::head::credentials::Refusals;
use crate::controller::head::extras::Extras;
use crate::controller::head::memory_watch::MemoryWatch;
use crate::controller::metrics;
use crate::controller::observe::{ClusterTexts, MANY};
use crate::controller::offload::{offload_if, parts};
use crate::gcs::{Client, GcsFault};

/// The number of clusters whose objects stay parsed from their judgement to their decision.
// A change of one cluster is thus read once. When all change at once, the others wait for their GCSs as texts: the
// parsed trees of a thousand clusters were most of the process's memory.
static PARSED: Semaphore = Semaphore::const_new(16);

/// The wait after settings could not be written for a sidecar, in seconds.
const TELL_AGAIN_S: f64 = 60.0;

impl LookHost for Reconciler {
    type Answer = ClusterResourceState;

    fn wall(&self) -> f64 {
        self.clock.wall()
    }

    fn jitter(&mut self) -> f64 {
        fastrand::f64()
    }

    fn freshness(&mut self) -> Freshness {
        let key = &self.about.key;
        let texts = {
            let store = self.judge.observed.read();
            if !store.knows_pods(&key.namespace) || !self.tuning.is_known() {
                return Freshness::NotListed;
            }
            store.texts(key)
        };
        let Some(texts) = texts else {
            return Freshness::Gone;
        };
        if !self.tuning.has_changed(&mut self.state.basis) && self.state.texts.are(&texts) {
            return Freshness::Same;
        }
        self.state.texts = texts;
        Freshness::Changed
    }

    async fn judge(&mut self, look: &mut LookState) -> (HandoverStep, f64) {
        let (texts, worked) = (&self.state.texts, &mut self.state.worked);
        let namespace = &self.about.key.namespace;
        let read = || texts.read();
        let scene = offload_if(namespace, texts.is_slow(), worked, read).await;
        let cluster = scene.ray_cluster.object();
        self.write_sidecar_settings(cluster).await;
        let eligibility = self.judge.eligibility(cluster, &scene.pods);
        let (role, now) = (&self.judge.role, self.clock.steady());
        let handover = &mut self.state.permission.get_mut().handover;
        let step = handover.step(cluster, eligibility.is_ok(), role, now);
        match &step {
            HandoverStep::Act => {}
            HandoverStep::Claim(_) | HandoverStep::Release(_) => return (step, now),
            HandoverStep::Wait { why, .. } => {
                self.log_reason(why.clone());
                return (step, now);
            }
            HandoverStep::Rest => {
                self.metrics.by_cluster.forget(&self.about.uid);
                self.busy = None;
                self.state.gcs = None;
                self.state.memory_watch = MemoryWatch::default();
                if let Err(reason) = eligibility {
                    self.log_reason(reason.to_string());
                }
                return (step, now);
            }
        }
        let settings = self.tuning.of(cluster);
        if settings != look.settings {
            let (plan, backoff) = (&settings.plan, settings.backoff);
            tracing::info!(cluster = %self.about.key, ?plan, ?backoff, "scaled by new settings");
            look.settings = settings;
        }
        let leader = leading_head(&scene.pods, self.state.passive.as_ref());
        let head = head_in(&self.about.key, cluster, leader.as_ref());
        self.state.head = Some(head.map(|head| {
            let pod = blind::head_pod(&head, cluster, &scene.pods);
            (head, pod)
        }));
        self.state.sight = leader.as_ref().map(HeadSight::of);
        self.state.extras = Extras::of(&scene.ray_cluster, &look.settings.plan);
        // A large one takes megabytes, and waits for its GCS as a text in any case.
        let permit = PARSED.try_acquire().ok();
        let permit = permit.filter(|_| !self.state.texts.is_slow());
        self.state.scene = permit.map(|permit| (scene, permit));
        (step, now)
    }

    async fn write_record(&mut self, patch: &Patch, is_claim: bool) -> Result<(), Failure> {
        let cluster = self.about.key.to_string();
        match self.writer.patch_cluster(patch).await {
            Ok(written) => {
                self.judge.observed.learn(&written);
                tracing::info!(
                    cluster,
                    claimed = is_claim,
                    "the hand-over record rayfit.dev/scaled-by was written"
                );
                Ok(())
            }
            Err(failure @ Failure::Api(_)) if failure.meaning() == Meaning::Stale => {
                tracing::debug!(?failure, cluster, "the hand-over record is written again");
                Err(failure)
            }
            Err(failure) => {
                self.log_reason(format!(
                    "the hand-over record cannot be written: {failure:?}"
                ));
                Err(failure)
            }
        }
    }

    async fn read_cluster(&mut self) {
        match self.writer.get_cluster().await {
            Ok(cluster) => self.judge.observed.learn(&cluster),
            Err(failure) => tracing::debug!(?failure, cluster = %self.about.key, "not read"),
        }
    }

    async fn ask(&mut self, look: &mut LookState) -> Result<ClusterResourceState, Option<Blind>> {
        self.state.asked_at = Some(Instant::now());
        let answer = self.cluster_state(look).await;
        match &answer {
            Ok(_) => self.log_reason(String::new()),
            Err(Blind::Gcs {
                kind: GcsKind::Passive,
                ..
            }) if matches!(self.judge.role, ScalerRole::Central { .. }) => {
                // Without the objects, the next look finds another head pod to ask.
                self.state.passive = self.state.sight.take();
                self.state.texts = ClusterTexts::default();
            }
            Err(_) => {}
        }
        answer.map_err(Some)
    }

    async fn unchanged(&mut self, _: &LookState, answer: &ClusterResourceState) -> Option<bool> {
        let now = self.clock.wall();
        let check = self.state.unchanged?;
        let (namespace, worked) = (&self.about.key.namespace, &mut self.state.worked);
        let holds = || check.holds(answer, now);
        // Of nodes and requests that are not very many, comparing takes less than the wait for a permit.
        let is_slow = parts(answer) >= 10 * MANY;
        let holds = offload_if(namespace, is_slow, worked, holds).await;
        holds.then_some(check.is_busy)
    }

    async fn decide(
        &mut self,
        look: &LookState,
        gcs: ClusterResourceState,
    ) -> (Round, Box<Snapshot>) {
        self.state.is_slow = self.state.texts.is_slow() || parts(&gcs) >= MANY;
        let scene = self.state.scene.take().map(|(scene, _)| scene);
        let (texts, worked) = (&self.state.texts, &mut self.state.worked);
        let decide = || {
            let snapshot = Snapshot {
                time: self.clock.rfc3339(),
                gcs,
                history: look.memory.history.clone(),
                ..scene.unwrap_or_else(|| texts.read())
            };
            let round = round(&snapshot, &look.memory, &look.settings);
            (round, Box::new(snapshot))
        };
        offload_if(
            &self.about.key.namespace,
            self.state.is_slow,
            worked,
            decide,
        )
        .await
    }

    async fn finish(
        &mut self,
        look: &LookState,
        round: Round,
        done: &[Done],
        announcements: Announcements,
        idle: Option<Box<Snapshot>>,
    ) {
        metrics::done(&self.metrics, &self.about, done);
        metrics::decided(&self.metrics, &self.about, &round);
        if let Some(waiting @ PlanWait::Blind(_)) = &round.plan.waiting {
            self.log_reason(waiting.to_string());
        }
        self.announcer.announce(&self.about, &announcements.events);
        let gcs = self.state.gcs.as_ref().map(|(_, client)| client);
        self.driver_log.write(&announcements.messages, gcs);
        self.state.unchanged = None;
        if let Some(snapshot) = idle {
            let (namespace, worked) = (&self.about.key.namespace, &mut self.state.worked);
            let check = || UnchangedCheck::of(&round, *snapshot, &look.memory, &look.settings);
            self.state.unchanged = offload_if(namespace, self.state.is_slow, worked, check).await;
        }
    }
}

impl Reconciler {
    /// Writes the settings for a sidecar on the RayCluster, where they have changed. It has no effect but on
    /// that sidecar, so whether it succeeds changes nothing for this look; a refusal waits for a while.
    async fn write_sidecar_settings(&mut self, cluster: &Value) {
        let now = self.clock.steady();
        if !matches!(self.judge.role, ScalerRole::Central { .. }) || now < self.state.tell_again {
            return;
        }
        let settings = || self.tuning.for_sidecar(cluster);
        let Some(patch) = sidecar_settings::patch(cluster, settings) else {
            return;
        };
        match self.writer.patch_cluster(&patch).await {
            Ok(cluster) => {
                self.judge.observed.learn(&cluster);
                tracing::info!(cluster = %self.about.key, "its settings were written for its sidecar");
            }
            // It is tried again with the object as it is by then.
            Err(failure) if failure.meaning() == Meaning::Stale => {}
            Err(failure) => {
                self.state.tell_again = now + TELL_AGAIN_S;
                tracing::warn!(?failure, cluster = %self.about.key, "its settings cannot be written for its sidecar");
            }
        }
    }

    /// The state of the Ray cluster, with who uses it if an unused one ends, or the reason why it cannot
    /// be obtained.
    async fn cluster_state(&mut self, look: &mut LookState) -> Result<ClusterResourceState, Blind> {
        let head = self.state.head.clone().unwrap_or(Err(Blind::NoHead));
        let (head, pod) = head.inspect_err(|_| {
            // A cluster without a head has no GCS that could be silent.
            self.metrics.by_cluster.gcs_is_well(&self.about.uid);
        })?;
        let client = self.client(look, &head).await;
        let client = client.map_err(|error| Blind::Credentials {
            head: pod.clone(),
            reason: error.to_string(),
        })?;
        let (mut state, place) = match client.whole_state().await {
            Ok(answer) => answer,
            Err(error) => {
                metrics::gcs_error(&self.metrics, &self.about, &error.fault);
                let is_refused = matches!(
                    error.fault,
                    GcsFault::Unauthenticated(_) | GcsFault::Credentials(_) | GcsFault::Tls(_)
                );
                // The Secret may have been replaced.
                if is_refused && self.state.refusals.read_again() {
                    self.state.gcs = None;
                }
                return Err(blind::no_answer(&pod, &error));
            }
        };
        if let Some(another) = Blind::to_another(&pod, &state) {
            return Err(another);
        }
        if self.state.extras.ends_unused {
            let now = self.clock.steady();
            state.users = self.state.users.serving(now);
            if state.users.is_none() {
                state.users = client.users(place.as_ref()).await.ok();
                self.state.users.note(state.users, now);
            }
        }
        let (watch, follows) = (&mut self.state.memory_watch, &self.state.extras.follows);
        watch.fill(&client, follows, &mut state, &self.clock);
        self.metrics.by_cluster.gcs_is_well(&self.about.uid);
        self.state.refusals = Refusals::default();
        self.state.answer_permit = place;
        Ok(state)
    }

    /// The client of the GCS of a head; another one of a new head, whose GCS knows nothing of the one before.
    async fn client(&mut self, look: &mut LookState, head: &Head) -> Result<Client, Misread> {
        if let Some((of, client)) = &self.state.gcs
            && of == head
        {
            return Ok(client.clone());
        }
        let client = self.credentials.client(&self.about.key, head).await?;
        // Its subscription is at the GCS of the head before.
        self.state.memory_watch = MemoryWatch::default();
        if (self.state.gcs.as_ref()).is_some_and(|(of, _)| of.uid != head.uid) {
            look.memory.forget_gcs();
            self.state.users = LastUsers::default();
        }
        self.state.gcs = Some((head.clone(), client.clone()));
        Ok(client)
    }
}
