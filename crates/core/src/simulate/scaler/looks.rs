//! Looks at the world: its objects and its GCS, the rounds that are spared, and the calls of the others.

use futures_util::FutureExt as _;
use json_patch::Patch;

use super::idle::{IdleRound, ObservedVersions, Proof, interval_s};
use super::process::{Scaler, SparedSteps};
use crate::manifests::names::NAMESPACE;
use crate::reconcile::effects::failure::GcsKind;
use crate::reconcile::events::event::Announcements;
use crate::reconcile::look::{Freshness, LookEnd, LookHost, LookState, Looked, look, remember};
use crate::reconcile::{
    Blind, Chain, Done, Effect, Failure, HandoverStep, HeadPod, Round, ScalerRole, eligibility,
    round,
};
use crate::simulate::observed::{gcs_state, own_pods, snapshot};
use crate::simulate::sending::{ChainCall, RoundInProgress};
use crate::simulate::world::World;
use crate::simulate::world::queue::WorldEvent;
use crate::snapshot::Snapshot;
use crate::snapshot::gcs::ClusterResourceState;

/// The most seconds until a head on which Ray does not run yet is looked at again. A GCS has its head's node
/// from the beginning on, and a head that becomes ready changes its pod; the world plays neither. Ray's
/// autoscaler starts with its head, and there is nothing to hand over to it: what strategy `ray` waits for
/// before its first round takes as long.
const HEAD_S: f64 = 1.0;

/// A scaler that looks at the world. Whatever it reads, asks or claims is answered at once.
struct WorldHost<'a> {
    scaler: &'a mut Scaler,
    world: &'a mut World,
}

impl LookHost for WorldHost<'_> {
    /// Nothing where the GCS says the same as before.
    type Answer = Option<ClusterResourceState>;

    fn wall(&self) -> f64 {
        self.scaler.seconds(self.world.now)
    }

    fn jitter(&mut self) -> f64 {
        self.world.random.f64()
    }

    fn freshness(&mut self) -> Freshness {
        let view = self.world.view.version;
        // The first view is number 1: at 0 the watches have shown nothing yet.
        if view == 0 {
            Freshness::NotListed
        } else if self.scaler.judged.replace(view) == Some(view) {
            Freshness::Same
        } else {
            Freshness::Changed
        }
    }

    async fn judge(&mut self, state: &mut LookState) -> (HandoverStep, f64) {
        let view = &self.world.view;
        let (role, cluster) = (ScalerRole::central(NAMESPACE), view.cluster.object());
        let pods = own_pods(view);
        let eligibility = eligibility(cluster, &pods, &role, |image| image.starts_with("rayfit"));
        let handover = &mut self.scaler.handover;
        let now = self.world.now.seconds();
        let step = handover.step(cluster, eligibility.is_ok(), &role, now);
        let is_owner = step == HandoverStep::Act;
        self.scaler.pods = is_owner.then_some(pods);
        if is_owner {
            state.settings = self.scaler.settings.clone();
        }
        (step, now)
    }

    /// The answer shows the RayCluster.
    async fn write_record(&mut self, patch: &Patch, _: bool) -> Result<(), Failure> {
        if let Some(refusal) = self.world.disturbance.fence(self.world.now) {
            return Err(refusal);
        }
        let written = self.world.claim(patch);
        written.inspect(|()| self.world.learn_cluster())
    }

    async fn read_cluster(&mut self) {
        self.world.read_cluster();
    }

    async fn ask(&mut self, state: &mut LookState) -> Result<Self::Answer, Option<Blind>> {
        let (scaler, world) = (&mut *self.scaler, &*self.world);
        if !state.is_idle {
            scaler.idle = None;
        }
        if !world.disturbance.is_cut_off() {
            // As long as no version differs, the answer would be that of the last round again.
            let versions = ObservedVersions::of(world);
            if scaler.idle.as_ref().is_some_and(|idle| idle.of == versions) {
                return Ok(None);
            }
            match gcs_state(world, &scaler.settings.plan, scaler.ahead_s) {
                // Ray runs on no node yet.
                Some(gcs) if gcs.node_states.is_empty() => return Err(None),
                Some(gcs) => return Ok(Some(gcs)),
                None => {}
            }
        }
        Err(Some(Blind::Gcs {
            head: HeadPod {
                name: "head".to_owned(),
                ready: true,
                closed: false,
            },
            kind: GcsKind::Unreachable,
            reason: "it does not answer".to_owned(),
        }))
    }

    async fn unchanged(&mut self, state: &LookState, answer: &Self::Answer) -> Option<bool> {
        let (now, versions) = (self.wall(), ObservedVersions::of(self.world));
        let scaler = &mut *self.scaler;
        let spares = scaler.spared != SparedSteps::Nothing;
        scaler.idle = scaler.idle.take().filter(|_| spares);
        let idle = scaler.idle.as_mut()?;
        idle.holds(versions, answer.as_ref(), now, state, scaler.busy_clusters)
    }

    async fn decide(&mut self, state: &LookState, answer: Self::Answer) -> (Round, Box<Snapshot>) {
        let (scaler, world) = (&mut *self.scaler, &*self.world);
        let time = world.now.text(scaler.ahead_s);
        let idle = scaler.idle.take();
        let foreseen = idle.and_then(|idle| idle.foreseen(ObservedVersions::of(world), &time));
        scaler.idle_since = foreseen.as_ref().map(|(_, since)| *since);
        let (round, snapshot) = if let Some((then, _)) = foreseen {
            then
        } else {
            // An answer that was the same as before was not kept, and is made again for the new round.
            let again = || gcs_state(world, &scaler.settings.plan, scaler.ahead_s);
            let gcs = answer.or_else(again).unwrap_or_default();
            let pods = scaler.pods.take().unwrap_or_else(|| own_pods(&world.view));
            let snapshot = snapshot(world, pods, gcs, time, &state.memory.history);
            scaler.rounds += 1;
            (round(&snapshot, &state.memory, &state.settings), snapshot)
        };
        world.disturbance.decided(&snapshot, &round);
        (round, Box::new(snapshot))
    }

    /// Nobody here reads the announcements.
    async fn finish(
        &mut self,
        _: &LookState,
        round: Round,
        _: &[Done],
        _: Announcements,
        idle: Option<Box<Snapshot>>,
    ) {
        let since = self.scaler.idle_since.take();
        let since = since.unwrap_or_else(|| self.wall());
        let of = ObservedVersions::of(self.world);
        self.scaler.idle = idle.map(|snapshot| IdleRound {
            of,
            since,
            proof: Proof::Unknown(Box::new((round, *snapshot))),
        });
    }
}

impl Scaler {
    /// A look is due.
    pub fn look(&mut self, token: u64, world: &mut World) {
        if token != self.token || self.round.is_some() {
            return;
        }
        self.last_look = world.now;
        let mut state = std::mem::take(&mut self.state);
        let mut host = WorldHost {
            scaler: self,
            world,
        };
        // The world answers at once whatever is asked up to here, so this never waits.
        let looked = look(&mut state, &mut host).now_or_never();
        self.state = state;
        match looked {
            Some(Looked::Effects(mut round, _)) => {
                // Chains do not depend on each other, so the first call of each is sent at once.
                self.round_token = self.token;
                let first = |chain| (chain, ChainCall::next(world));
                let sending = RoundInProgress {
                    chains: round.chains.drain(..).map(first).collect(),
                    round: *round,
                    done: Vec::new(),
                };
                for chain in 0..sending.chains.len() {
                    self.send(&sending, chain, world);
                }
                self.round = Some(sending);
            }
            Some(Looked::Rest(end)) => self.rest(end, world),
            None => {}
        }
    }

    /// Sends the call of a chain to the API server, or to where else it goes.
    fn send(&self, sending: &RoundInProgress, chain: usize, world: &mut World) {
        let event = WorldEvent::Answered {
            scaler: self.number,
            look: self.round_token,
            chain,
        };
        let effect = sending.sent(chain);
        world.send(effect.is_some_and(|effect| effect.is_kubernetes()), event);
    }

    /// The next call of a chain has arrived, unless it had before: the world does it, and answers.
    pub fn answered(&mut self, look: u64, chain: usize, world: &mut World) {
        // The answer may be to a call of a process that has been killed since.
        if look != self.round_token {
            return;
        }
        let Some(mut sending) = self.round.take() else {
            return;
        };
        sending.arrive(chain, world);
        if sending.take_in(chain, self.seconds(world.now), world) {
            self.send(&sending, chain, world);
        }
        let has_ended = |(_, call): &(Chain, ChainCall)| matches!(call, ChainCall::None);
        if !sending.chains.iter().all(has_ended) {
            self.round = Some(sending);
            return;
        }
        let RoundInProgress { round, done, .. } = sending;
        // The answer to a patch shows the RayCluster, so that the next look need not wait for the watch.
        let is_patched =
            |done: &Done| matches!(done.effect, Effect::PatchCluster(_)) && done.result.is_ok();
        if done.iter().any(is_patched) {
            world.learn_cluster();
        }
        let mut state = std::mem::take(&mut self.state);
        let mut host = WorldHost {
            scaler: self,
            world,
        };
        let end = remember(&mut state, &mut host, round, &done, None).now_or_never();
        self.state = state;
        if let Some(end) = end {
            self.rest(end, world);
        }
    }

    /// The look is over: sets the time of the next one that can see something new, if nothing else happens before.
    fn rest(&mut self, end: LookEnd, world: &mut World) {
        let now = self.seconds(world.now);
        let is_rayfit = self.settings.plan.strategy.is_rayfit();
        let busy = match end {
            LookEnd::Paced { busy } => busy,
            // The world answers this write at once. What a call takes is made up for here.
            LookEnd::AtOnce if is_rayfit => {
                return self.look_after(world.settings.watch_lag_s, world);
            }
            LookEnd::After(seconds) if is_rayfit => return self.look_after(seconds, world),
            LookEnd::UntilChanged if is_rayfit => {
                self.is_busy = false;
                return;
            }
            LookEnd::AtOnce | LookEnd::After(_) | LookEnd::UntilChanged => {
                return self.look_after(HEAD_S, world);
            }
        };
        self.is_busy = busy;
        let busy = busy.then_some(self.busy_clusters);
        let interval = interval_s(&self.state, busy, now);
        let mut seconds = interval;
        let spared_until = (self.idle.as_ref())
            .filter(|_| self.spared == SparedSteps::Looks && world.ray.jobs.unended > 0)
            .and_then(|idle| idle.spared_until(ObservedVersions::of(world), now));
        if let Some((next, until)) = world.next_at().zip(spared_until) {
            let spared = next.since(world.now).min(until - now);
            let later = interval_s(&self.state, busy, now + spared);
            // The looks come as often until then.
            if (later - interval).abs() <= f64::EPSILON {
                seconds = (spared / interval).ceil().max(1.0) * interval;
            }
        }
        self.look_after(seconds, world);
    }
}
