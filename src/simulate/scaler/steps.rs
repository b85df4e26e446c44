//! The steps of a look, performed on the world.

use super::idle::{IdleRound, ProofContext, Seen, interval_s};
use super::process::{Scaler, Spared};
use crate::manifests::names::NAMESPACE;
use crate::plan::check;
use crate::reconcile::effects::failure::GcsKind;
use crate::reconcile::look::{
    Finishing, JudgedObjects, LookEnd, LookReason, LookStep, Oriented, Rest, RoundStep,
    SeenObjects, round_step, step,
};
use crate::reconcile::{Blind, Failure, HeadPod, Round, ScalerRole, eligibility};
use crate::simulate::observed::{gcs_state, own_pods, snapshot};
use crate::simulate::sending::{Cut, Performing};
use crate::simulate::world::World;
use crate::simulate::world::queue::WorldEvent;
use crate::snapshot::gcs::ClusterResourceState;

/// The most seconds until a head on which Ray does not run yet is looked at again. A GCS has its head's node
/// from the beginning on, and a head that becomes ready changes its pod; the world plays neither. Ray's
/// autoscaler starts with its head, and there is nothing to hand over to it: what strategy `ray` waits for
/// before its first round takes as long.
const HEAD_S: f64 = 1.0;

impl Scaler {
    /// Makes the steps of a look, until its end or until calls are under way.
    pub(super) fn steps(&mut self, world: &mut World) {
        let seen = self.seen(world);
        let mut step = LookStep::begin(&mut self.state, seen);
        loop {
            step = match step {
                LookStep::Judge(judging) => self.orient(judging, world),
                LookStep::WriteRecord(writing) => {
                    let written = self.write_record(&writing.patch, world);
                    writing.wrote(&mut self.state, written)
                }
                LookStep::Ask(asking) => return self.ask(asking, world),
                LookStep::ReadCluster(rereading) => {
                    self.read_cluster(world);
                    rereading.read()
                }
                LookStep::Rest(rest) => return self.rest(&rest, world),
            }
        }
    }

    /// The freshness of the watched objects.
    fn seen(&mut self, world: &World) -> SeenObjects {
        let view = world.view.version;
        if view == 0 {
            SeenObjects::NotListed
        } else if self.judged.replace(view) == Some(view) {
            SeenObjects::Same
        } else {
            SeenObjects::Changed
        }
    }

    /// Finds out whether this scaler owns the cluster.
    fn orient(&mut self, judging: step::Judging, world: &World) -> LookStep {
        let (role, cluster) = (ScalerRole::central(NAMESPACE), world.view.cluster.object());
        let pods = own_pods(&world.view);
        let eligibility = eligibility(cluster, &pods, &role, |image| image.starts_with("rayfit"));
        let judged = JudgedObjects {
            cluster,
            eligibility: &eligibility,
            role: &role,
        };
        let now = world.now.seconds();
        let oriented = judging.judged(&mut self.state, &mut self.handover, judged, now);
        match oriented {
            Oriented::Owns(owning) => {
                let step = owning.owns(&mut self.state, self.settings.clone());
                self.pods = Some(pods);
                step
            }
            Oriented::Not(step) => {
                self.pods = None;
                step
            }
        }
    }

    /// Sends a patch of the hand-over record. The answer shows the RayCluster.
    fn write_record(
        &mut self,
        patch: &json_patch::Patch,
        world: &mut World,
    ) -> Result<(), Failure> {
        if let Some(refusal) = self.trust.refusal(world.now) {
            return Err(refusal);
        }
        let written = match self.cut {
            Some(Cut::Requests) => Ok(()),
            Some(Cut::Answers) | None => world.claim(patch),
        };
        if self.cut.is_some() {
            return Err(Failure::NoAnswer("played: cut off".to_owned()));
        }
        written.inspect(|()| world.learn_cluster())
    }

    fn read_cluster(&self, world: &mut World) {
        if self.cut.is_none() {
            world.read_cluster();
        }
    }

    /// Asks the GCS, and goes on with what it says.
    fn ask(&mut self, asking: step::AskingGcs, world: &mut World) {
        let now = self.clock.seconds(world.now);
        if !self.state.is_idle() {
            self.idle = None;
        }
        let answer = if self.cut.is_some() {
            None
        } else if self.is_known(world) {
            Some(None)
        } else {
            let gcs = gcs_state(world, &self.settings.plan, &self.clock);
            if gcs.as_ref().is_some_and(|gcs| gcs.node_states.is_empty()) {
                // Ray runs on no node yet.
                return self.look_after(HEAD_S, world);
            }
            gcs.map(Some)
        };
        if let Some(answer) = answer {
            let step = asking.answered(&mut self.state, answer, now);
            return self.round(step, world);
        }
        self.idle = None;
        let why = Blind::Gcs {
            head: HeadPod {
                name: "head".to_owned(),
                ready: true,
            },
            kind: GcsKind::Unreachable,
            reason: "it does not answer".to_owned(),
        };
        let finishing = asking.blind(&self.state, &why, now);
        self.finish(finishing, world);
    }

    /// Whether the GCS would say what it said when the last round was made.
    fn is_known(&self, world: &World) -> bool {
        let is_known = |idle: &IdleRound| idle.is_of(Seen::of(world));
        self.state.is_idle() && self.idle.as_ref().is_some_and(is_known)
    }

    /// Goes on with a round. The answer of the GCS is left out where it is the same as before.
    pub(super) fn round(
        &mut self,
        mut step: RoundStep<Option<ClusterResourceState>>,
        world: &mut World,
    ) {
        let now = self.clock.seconds(world.now);
        let mut foreseen: Option<Round> = None;
        loop {
            step = match step {
                RoundStep::Compare(mut comparing) => {
                    let answer = comparing.answer().as_ref();
                    if self.is_unchanged(answer, now, world) {
                        let busy = self.idle.as_ref().is_some_and(IdleRound::is_busy);
                        comparing.same(&mut self.state, busy, now)
                    } else {
                        comparing.differs(&mut self.state)
                    }
                }
                RoundStep::Observe(observing) => {
                    let (answer, observing) = observing.answer();
                    let time = self.clock.text(world.now);
                    let idle = self.idle.take();
                    let idle = idle.filter(|idle| idle.foresees(Seen::of(world), &time));
                    let snapshot = if let Some((then, since)) = idle.and_then(IdleRound::foreseen) {
                        foreseen = Some(then.round);
                        self.idle_since = Some(since);
                        then.snapshot
                    } else {
                        let said = || gcs_state(world, &self.settings.plan, &self.clock);
                        let gcs = answer.or_else(said).unwrap_or_default();
                        let pods = self.pods.take().unwrap_or_else(|| own_pods(&world.view));
                        self.idle_since = None;
                        snapshot(world, pods, gcs, time, &self.state.memory.history)
                    };
                    observing.observed(snapshot)
                }
                RoundStep::Decide(deciding) => {
                    let round = foreseen.take().unwrap_or_else(|| {
                        self.rounds += 1;
                        deciding.round(&self.state)
                    });
                    // Changes that are barred show as skipped for long.
                    let has_lasting = round.skipped.iter().any(|skipped| skipped.lasting);
                    if let Some(broken) = self.broken.as_mut().filter(|_| has_lasting) {
                        broken.extend(check::check(deciding.snapshot(), &round.plan));
                    }
                    deciding.decided(round)
                }
                RoundStep::Perform(performing, _) => return self.perform(performing, world),
                RoundStep::ReadCluster(rereading) => {
                    self.read_cluster(world);
                    rereading.read()
                }
                RoundStep::Finish(finishing) => return self.finish(finishing, world),
                RoundStep::Rest(rest) => return self.rest(&rest, world),
            }
        }
    }

    /// Sends the first call of each chain.
    fn perform(&mut self, step: round_step::PerformingEffects, world: &mut World) {
        let (scaler, look) = (self.number, self.token);
        self.looked = look;
        let performing = Performing::new(step, self.trust, world.now);
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
        let Some(mut idle) = self.idle.take().filter(|_| self.spared != Spared::Nothing) else {
            return false;
        };
        let holds = idle.holds(Seen::of(world), gcs, now, |busy| ProofContext {
            memory: &self.state.memory,
            settings: &self.state.settings,
            interval_s: interval_s(&self.state, busy.then_some(self.busy_clusters), now),
        });
        self.idle = Some(idle);
        holds
    }

    fn finish(&mut self, finishing: Finishing, world: &mut World) {
        let now = self.clock.seconds(world.now);
        let since = self.idle_since.take().unwrap_or(now);
        let random = &mut world.random;
        // Nobody here reads its announcements.
        let finished = finishing.finish(&mut self.state, now, || random.f64());
        let idle = finished.idle;
        self.idle =
            idle.map(|(round, snapshot)| IdleRound::new(Seen::of(world), since, round, *snapshot));
        self.rest(&finished.rest, world);
    }

    /// The look is over.
    fn rest(&mut self, rest: &Rest, world: &mut World) {
        let now = self.clock.seconds(world.now);
        let is_written = matches!(rest.why, LookReason::RecordWritten { .. });
        let seconds = match rest.end {
            // The world answers this write at once. What a call takes is made up for here.
            LookEnd::After(_) if self.is_rayfit() && is_written => world.settings.watch_lag_s,
            LookEnd::After(seconds) if self.is_rayfit() => seconds,
            LookEnd::UntilChanged if self.is_rayfit() => {
                self.is_busy = false;
                return;
            }
            LookEnd::After(_) | LookEnd::UntilChanged => HEAD_S,
            LookEnd::Paced { busy } => {
                self.is_busy = busy;
                self.paced(busy.then_some(self.busy_clusters), now, world)
            }
        };
        self.look_after(seconds, world);
    }

    /// The seconds until the next look that can see something new, if nothing else happens before.
    fn paced(&self, busy: Option<usize>, now: f64, world: &World) -> f64 {
        let interval = interval_s(&self.state, busy, now);
        let spared_until = self
            .idle
            .as_ref()
            .filter(|_| self.spared == Spared::Looks && world.ray.jobs.left > 0)
            .and_then(|idle| idle.spared_until(Seen::of(world), now));
        let Some((next, until)) = world.next_at().zip(spared_until) else {
            return interval;
        };
        let spared = next.since(world.now).min(until - now);
        // The looks come as often until then.
        if (interval_s(&self.state, busy, now + spared) - interval).abs() > f64::EPSILON {
            return interval;
        }
        (spared / interval).ceil().max(1.0) * interval
    }
}
