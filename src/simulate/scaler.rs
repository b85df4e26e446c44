//! The reconciler in a simulated world: the same rounds, hand-over, memory and intervals as in the
//! controller, with calls that the world answers.

use crate::flow_control::requests::NotAdmitted;
use crate::plan::Strategy;
use crate::plan::check::{self, Violation};
use crate::reconcile::effects::failure::GcsKind;
use crate::reconcile::observed::cadence;
use crate::reconcile::ownership::lease::trust::LONGEST_WRITE;
use crate::reconcile::{
    Blind, Done, Effect, Eligibility, Failure, Handover, HandoverStep, HeadPod, Meaning, Round,
    RoundMemory, RoundSettings, ScalerRole, blind,
};
use crate::simulate::idle::{IdleRound, ProofContext, Seen, interval_s};
use crate::simulate::keeping::{LimitChange, Reach, ScalerBudgets};
use crate::simulate::moment::{Moment, ScalerClock};
use crate::simulate::observed::{gcs_state, snapshot};
use crate::simulate::sending::{Cut, Performing, Trust};
use crate::simulate::world::World;
use crate::simulate::world::queue::WorldEvent;
use crate::snapshot::gcs::ClusterResourceState;

/// How long a look waits for a head, or for the hand-over.
const RETRY_S: f64 = 1.0;

/// A scaler of one cluster.
#[derive(Debug, Clone)]
pub struct Scaler {
    settings: RoundSettings,
    memory: RoundMemory,
    budgets: ScalerBudgets,
    handover: Handover,
    /// What spares a round.
    idle: Option<IdleRound>,
    /// The view that shows that this scaler owns the cluster: it is asked anew of another one only.
    owned: Option<u64>,
    performing: Option<Performing>,
    /// The number of the next look; earlier ones do not count any more.
    token: u64,
    /// The number of the look whose round is being performed.
    looked: u64,
    /// Its number among all scalers of the world.
    pub number: usize,
    /// Until when it may write.
    pub trust: Trust,
    /// What it is cut off from.
    pub cut: Option<Cut>,
    is_retired: bool,
    /// How many clusters its process scales that are busy.
    pub busy_clusters: usize,
    /// Whether the last look found the cluster busy.
    pub is_busy: bool,
    /// Its clock.
    pub clock: ScalerClock,
    /// Whether rounds that could be spared are made too, for who compares.
    pub spares_none: bool,
    /// The rules that plans broke, for who wants plans checked here too.
    pub broken: Option<Vec<Violation>>,
    last_look: Moment,
    /// Since when the process runs.
    started: Moment,
    /// How many rounds were made.
    pub rounds: u64,
}

impl Scaler {
    /// A scaler that has just been started.
    pub fn new(settings: RoundSettings) -> Self {
        Self {
            settings,
            memory: RoundMemory::default(),
            budgets: ScalerBudgets::default(),
            handover: Handover::default(),
            idle: None,
            owned: None,
            performing: None,
            token: 0,
            looked: 0,
            number: 0,
            trust: Trust::Always,
            cut: None,
            is_retired: false,
            busy_clusters: 1,
            is_busy: true,
            clock: ScalerClock::default(),
            spares_none: false,
            broken: None,
            last_look: Moment::START,
            started: Moment::START,
            rounds: 0,
        }
    }

    fn is_rayfit(&self) -> bool {
        self.settings.plan.strategy == Strategy::Rayfit
    }

    /// Sets the next look so many seconds from now, instead of any that was set before.
    pub fn look_after(&mut self, seconds: f64, world: &mut World) {
        self.token += 1;
        let (scaler, token) = (self.number, self.token);
        world.after(seconds, WorldEvent::Look { scaler, token });
    }

    /// Objects have changed: the controller looks at once. Ray's autoscaler watches nothing.
    pub fn wake(&mut self, world: &mut World) {
        let is_resting = self.performing.is_none() && !self.is_retired;
        if is_resting
            && self.is_rayfit()
            && world.now >= self.started
            && self.trust != Trust::Until(None)
        {
            #[expect(clippy::cast_precision_loss, reason = "some milliseconds")]
            let together = cadence::TOGETHER_MS as f64 / 1000.0;
            let rested = world.now.since(self.last_look);
            self.look_after((together - rested).max(0.0), world);
        }
    }

    /// A look is due.
    pub fn look(&mut self, token: u64, world: &mut World) {
        if token != self.token || self.performing.is_some() || self.is_retired {
            return;
        }
        self.last_look = world.now;
        if self.cut.is_none() {
            self.clock.renew(world.now);
        }
        if !self.may_act(world) {
            return self.look_after(RETRY_S, world);
        }
        let reach = self.reach(world);
        if self.budgets.keep(&self.settings, reach, world) != LimitChange::None {
            self.idle = None;
        }
        if self.cut.is_some() {
            return self.blind(world);
        }
        let now = self.clock.seconds(world.now);
        if self.is_unchanged(None, now, world) {
            return self.rest(world);
        }
        let time = self.clock.text(world.now);
        let foreseen = self
            .idle
            .take_if(|idle| idle.foresees(Seen::of(world), &time));
        let (snapshot, round, since) =
            if let Some((then, since)) = foreseen.and_then(IdleRound::foreseen) {
                (then.snapshot, then.round, since)
            } else {
                let plan = &self.settings.plan;
                let Some(gcs) = gcs_state(world, plan, &self.clock) else {
                    return self.blind(world);
                };
                if gcs.node_states.is_empty() {
                    return self.look_after(RETRY_S, world);
                }
                if self.memory.changed_at == 0.0 {
                    self.memory.changed_at = now;
                }
                if self.is_unchanged(Some(&gcs), now, world) {
                    return self.rest(world);
                }
                self.idle = None;
                let snapshot = snapshot(world, gcs, time, &self.memory.history);
                let round = {
                    let (memory, settings) = (&mut self.memory, &self.settings);
                    self.budgets
                        .decide(&snapshot, memory, settings, reach, world)
                };
                self.rounds += 1;
                (snapshot, round, now)
            };
        // What is barred shows as skipped for long.
        let has_lasting = round.skipped.iter().any(|skipped| skipped.lasting);
        if let Some(broken) = self.broken.as_mut().filter(|_| has_lasting) {
            broken.extend(check::check(&snapshot, &round.plan));
        }
        if round.chains.is_empty() {
            self.finish(&round, &[], world);
            self.idle = Some(IdleRound::new(Seen::of(world), since, round, snapshot));
            return;
        }
        let (scaler, look) = (self.number, token);
        self.looked = look;
        let performing = Performing::new(round, self.trust, world.now);
        for chain in 0..performing.chains.len() {
            let event = WorldEvent::Answered {
                scaler,
                look,
                chain,
            };
            world.send(performing.is_kubernetes(chain), event);
        }
        self.performing = Some(performing);
    }

    /// Whether the last round found nothing to do, and one of now would find nothing either, as far as
    /// can be told without or with what the GCS says.
    fn is_unchanged(
        &mut self,
        gcs: Option<&ClusterResourceState>,
        now: f64,
        world: &World,
    ) -> bool {
        let Some(mut idle) = self.idle.take().filter(|_| !self.spares_none) else {
            return false;
        };
        let settings = self.budgets.bound(&self.settings);
        let holds = idle.holds(Seen::of(world), gcs, now, |busy| ProofContext {
            memory: &self.memory,
            settings: &settings,
            interval_s: interval_s(
                &self.settings,
                &self.memory,
                busy.then_some(self.busy_clusters),
                now,
            ),
        });
        self.idle = Some(idle);
        holds
    }

    /// Whether this scaler owns the cluster. The hand-over record is written if it has to be.
    fn may_act(&mut self, world: &mut World) -> bool {
        if self.owned == Some(world.view.version) {
            return true;
        }
        if self.cut.is_some() || self.trust.refusal(world.now).is_some() {
            return false;
        }
        let (view, now) = (world.view.cluster.clone(), world.now.seconds());
        let (ours, role) = (Eligibility::Ours, ScalerRole::Central);
        match self.handover.step(view.object(), &ours, &role, now) {
            HandoverStep::Act => {
                self.owned = Some(world.view.version);
                true
            }
            // A record that cannot be written is tried again at the next look.
            HandoverStep::Claim(patch) | HandoverStep::Release(patch) => {
                let _ = world.claim(&patch);
                world.learn_cluster();
                false
            }
            HandoverStep::Wait { .. } | HandoverStep::Rest => false,
        }
    }

    /// The next call of a chain has arrived: the world does it, and answers. Nothing of the process runs
    /// for so many seconds, if any.
    pub fn answered(&mut self, look: u64, chain: usize, frozen_s: f64, world: &mut World) {
        let now = (world.now, self.clock.seconds(world.now));
        if look != self.looked {
            return;
        }
        let Some(performing) = &mut self.performing else {
            return;
        };
        let scaler = self.number;
        if performing.arrive(chain, self.cut, world) {
            let patient_s = self.cut.map_or(0.0, |_| LONGEST_WRITE.as_secs_f64());
            let waits_s = frozen_s.max(patient_s);
            if waits_s > 0.0 {
                let event = WorldEvent::Answered {
                    scaler,
                    look,
                    chain,
                };
                return world.after(waits_s, event);
            }
        }
        if performing.take_in(chain, self.trust, now) {
            let event = WorldEvent::Answered {
                scaler,
                look,
                chain,
            };
            return world.send(performing.is_kubernetes(chain), event);
        }
        if performing.left == 0
            && let Some(Performing { round, done, .. }) = self.performing.take()
        {
            // The answer to a patch shows the RayCluster, and after a stale one it is read.
            let shows = |done: &Done| match &done.result {
                Ok(_) => matches!(done.effect, Effect::PatchCluster(_)),
                Err(failure) => failure.meaning() == Meaning::Stale,
            };
            if done.iter().any(shows) {
                world.learn_cluster();
            }
            let has_answered = |done: &Done| done.effect.is_kubernetes() && done.result.is_ok();
            if done.iter().any(has_answered) {
                self.clock.hear(world.now);
            }
            self.finish(&round, &done, world);
        }
    }

    /// A call of a chain was not let through to the API server. Its event tells the chain.
    pub fn turned_away(&mut self, look: u64, chain: usize, why: NotAdmitted) {
        let performing = self.performing.as_mut().filter(|_| look == self.looked);
        if let Some(performing) = performing {
            performing.turn_away(chain, Failure::NotAdmitted(why.to_string()));
        }
    }

    /// The calls that are on their way.
    pub fn calls(&self) -> Vec<Effect> {
        let performing = self.performing.iter();
        performing.flat_map(Performing::calls).collect()
    }

    /// Whether the next thing that happens to a chain is that its call arrives.
    pub fn is_arriving(&self, look: u64, chain: usize) -> bool {
        let performing = self.performing.as_ref().filter(|_| look == self.looked);
        performing.is_some_and(|performing| performing.is_arriving(chain))
    }

    /// Whether a call is on its way.
    pub fn is_writing(&self) -> bool {
        self.performing.as_ref().is_some_and(Performing::is_writing)
    }

    /// The process no longer scales the cluster. What is under way goes on.
    pub fn retire(&mut self) {
        self.is_retired = true;
    }

    /// Another scaler in its place, which knows nothing of its rounds.
    #[must_use]
    pub fn successor(&self) -> Self {
        Self {
            number: self.number,
            token: self.token,
            trust: self.trust,
            cut: self.cut,
            clock: ScalerClock::ahead(self.clock.ahead_s),
            spares_none: self.spares_none,
            broken: self.broken.clone(),
            rounds: self.rounds,
            ..Self::new(self.settings.clone())
        }
    }

    /// The process is killed, and another one starts after so many seconds.
    pub fn die(&mut self, seconds: f64, world: &mut World) {
        *self = Self {
            started: world.now.plus(seconds),
            ..self.successor()
        };
        self.look_after(seconds, world);
    }

    /// The round of a cluster whose GCS does not answer.
    fn blind(&mut self, world: &mut World) {
        self.idle = None;
        let why = Blind::Gcs {
            head: HeadPod {
                name: "head".to_owned(),
                ready: true,
            },
            kind: GcsKind::Unreachable,
            reason: "it does not answer".to_owned(),
        };
        let round = blind(&self.memory, &why, self.clock.seconds(world.now));
        self.finish(&round, &[], world);
    }

    fn reach(&self, world: &World) -> Reach {
        Reach {
            cut: self.cut,
            trust: self.trust,
            now: self.clock.seconds(world.now),
        }
    }

    fn finish(&mut self, round: &Round, done: &[Done], world: &mut World) {
        let now = self.clock.seconds(world.now);
        let (settings, random) = (&self.settings, &mut world.random);
        // What it would announce interests nobody here.
        let _ = (self.memory).fold(round, done, settings, now, || random.f64());
        self.requeue(round.busy, world);
    }

    /// No round is made.
    fn rest(&mut self, world: &mut World) {
        let busy = self.idle.as_ref().is_some_and(IdleRound::is_busy);
        self.memory.is_the_same(busy, self.clock.seconds(world.now));
        self.requeue(busy, world);
    }

    fn requeue(&mut self, busy: bool, world: &mut World) {
        self.is_busy = busy;
        let (busy, now) = (
            busy.then_some(self.busy_clusters),
            self.clock.seconds(world.now),
        );
        self.look_after(interval_s(&self.settings, &self.memory, busy, now), world);
    }
}
