//! A scaler of one cluster: its state between looks, and when it looks next.

use crate::reconcile::look::LookState;
use crate::reconcile::observed::cadence;
use crate::reconcile::{Handover, RoundSettings};
use crate::simulate::moment::Moment;
use crate::simulate::scaler::idle::IdleRound;
use crate::simulate::sending::RoundInProgress;
use crate::simulate::world::World;
use crate::simulate::world::queue::WorldEvent;
use crate::snapshot::OwnPods;

/// The steps that a scaler leaves out because they would find nothing to do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SparedSteps {
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
    /// The settings by which it scales the cluster.
    pub settings: RoundSettings,
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
    /// The round whose calls are under way.
    pub round: Option<RoundInProgress>,
    /// The number of the next look; earlier ones do not count any more.
    pub token: u64,
    /// The number of the look that led to the round under way. Answers to calls of other looks are not heard.
    pub round_token: u64,
    /// Its number among all scalers of the world.
    pub number: usize,
    /// The number of busy clusters that its process scales.
    pub busy_clusters: usize,
    /// True if the last look found the cluster busy.
    pub is_busy: bool,
    /// Seconds by which its clock is ahead of the API server's without its knowledge; 0 unless faults are played.
    pub ahead_s: f64,
    /// The steps that are left out where nothing happens.
    pub spared: SparedSteps,
    pub(super) last_look: Moment,
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

    /// The time by its clock, in seconds since 1970.
    pub(super) fn seconds(&self, now: Moment) -> f64 {
        now.epoch_seconds() + self.ahead_s
    }

    /// Sets the next look so many seconds from now, instead of any that was set before.
    pub fn look_after(&mut self, seconds: f64, world: &mut World) {
        // A queue of events has no removal: a look with an earlier number finds that it no longer counts.
        self.token += 1;
        let (scaler, token) = (self.number, self.token);
        world.after(seconds, WorldEvent::Look { scaler, token });
    }

    /// Objects have changed: the controller looks at once. Ray's autoscaler watches nothing.
    pub fn wake(&mut self, world: &mut World) {
        // A round under way ends with a look of its own, which sees the change too.
        if self.round.is_none() && self.settings.plan.strategy.is_rayfit() {
            let together = if world.settings.tells_at_once {
                0.0
            } else {
                cadence::TOGETHER_MS as f64 / 1000.0
            };
            let rested = world.now.since(self.last_look);
            self.look_after((together - rested).max(0.0), world);
        }
    }
}
