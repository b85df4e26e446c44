//! A scaler of one cluster, and what becomes of its process.

use crate::flow_control::requests::NotAdmitted;
use crate::plan::check::Violation;
use crate::reconcile::look::LookState;
use crate::reconcile::observed::cadence;
use crate::reconcile::{Effect, Failure, Handover, RoundSettings};
use crate::simulate::moment::{Moment, ScalerClock};
use crate::simulate::scaler::idle::IdleRound;
use crate::simulate::sending::{ChainCall, Cut, Performing, Trust};
use crate::simulate::world::World;
use crate::simulate::world::queue::WorldEvent;
use crate::snapshot::OwnPods;

/// The steps that a scaler leaves out because they would find nothing to do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Spared {
    /// Nothing, for comparisons.
    Nothing,
    /// Rounds.
    #[default]
    Rounds,
    /// Rounds, and looks that would see nothing new: nothing may add events to the world from outside.
    Looks,
}

/// A scaler of one cluster.
#[derive(Debug, Clone, Default)]
pub struct Scaler {
    pub(super) settings: RoundSettings,
    pub(super) state: LookState,
    pub(super) handover: Handover,
    /// The last round, if it found nothing to do.
    pub(super) idle: Option<IdleRound>,
    /// The number of the view that was judged last.
    pub(super) judged: Option<u64>,
    /// The cluster's pods in that view.
    pub(super) pods: Option<OwnPods>,
    /// The time since which there has been nothing to do, if the present round was made by looking ahead.
    pub(super) idle_since: Option<f64>,
    pub(super) performing: Option<Performing>,
    /// The number of the next look; earlier ones do not count any more.
    pub(super) token: u64,
    /// The number of the look whose round is being performed.
    pub(super) looked: u64,
    /// Its number among all scalers of the world.
    pub number: usize,
    /// The time until which it may write.
    pub trust: Trust,
    /// The messages that are lost while it is cut off.
    pub cut: Option<Cut>,
    pub(super) is_retired: bool,
    /// The number of busy clusters that its process scales.
    pub busy_clusters: usize,
    /// Whether the last look found the cluster busy.
    pub is_busy: bool,
    /// Its clock.
    pub clock: ScalerClock,
    /// The steps that are left out where nothing happens.
    pub spared: Spared,
    /// The rules that plans broke, where plans are to be checked here too.
    pub broken: Option<Vec<Violation>>,
    pub(super) last_look: Moment,
    /// The start of the process.
    pub(super) started: Moment,
    /// The number of rounds made.
    pub rounds: u64,
}

impl Scaler {
    /// A scaler that has just been started.
    pub fn new(settings: RoundSettings) -> Self {
        Self {
            settings,
            busy_clusters: 1,
            is_busy: true,
            ..Self::default()
        }
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
            && self.settings.plan.strategy.is_rayfit()
            && world.now >= self.started
            && self.trust != Trust::Until(None)
        {
            #[expect(clippy::cast_precision_loss, reason = "some milliseconds")]
            let together = cadence::TOGETHER_MS as f64 / 1000.0;
            let rested = world.now.since(self.last_look);
            self.look_after((together - rested).max(0.0), world);
        }
    }

    /// A call of a chain was not let through to the API server. Its event tells the chain.
    pub fn turned_away(&mut self, look: u64, chain: usize, why: NotAdmitted) {
        let performing = self.performing.as_mut().filter(|_| look == self.looked);
        let chain = performing.and_then(|performing| performing.chains.get_mut(chain));
        if let Some((_, call @ ChainCall::Sent)) = chain {
            *call = ChainCall::Refused(Failure::NotAdmitted(why.to_string()));
        }
    }

    /// The calls that are on their way.
    pub fn calls(&self) -> Vec<Effect> {
        let performing = self.performing.iter();
        let chains = performing.flat_map(|performing| &performing.chains);
        let sent = chains.filter(|(_, call)| matches!(call, ChainCall::Sent));
        sent.filter_map(|(chain, _)| chain.next()).collect()
    }

    /// Whether the next thing that happens to a chain is that its call arrives.
    pub fn is_arriving(&self, look: u64, chain: usize) -> bool {
        let performing = self.performing.as_ref().filter(|_| look == self.looked);
        performing.is_some_and(|performing| performing.sent(chain).is_some())
    }

    /// Whether a call is on its way.
    pub fn is_writing(&self) -> bool {
        let mut chains = (self.performing.iter()).flat_map(|performing| &performing.chains);
        chains.any(|(_, call)| matches!(call, ChainCall::Sent | ChainCall::Made(_)))
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
            // The machine's clock stays wrong, and what the process had heard of the API server's
            // is lost.
            clock: ScalerClock::ahead(self.clock.ahead_s),
            spared: self.spared,
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
}
