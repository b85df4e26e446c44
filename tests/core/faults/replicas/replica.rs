//! One replica of the controller: what it knows of the Lease, its requests about it, its scaler.

use std::time::Duration;

use rayfit_core::flow_control::requests::NotAdmitted;
use rayfit_core::reconcile::ownership::lease::leader::{Leadership, LeaseRequest};
use rayfit_core::reconcile::ownership::lease::record::{LeaseRecord, Terms};
use rayfit_core::reconcile::ownership::lease::trust::LONGEST_WRITE;
use rayfit_core::reconcile::{Chain, Effect, Failure};
use rayfit_core::simulate::moment::Moment;
use rayfit_core::simulate::scaler::Scaler;
use rayfit_core::simulate::sending::ChainCall;
use rayfit_core::simulate::world::World;
use rayfit_core::simulate::world::queue::WorldEvent;

use crate::lease::played::PlayedLease;

use super::clock::ProcessClock;
use super::trust::{ProcessState, Trust};
use crate::faults::plan::Cut;

/// One replica of the controller.
#[derive(Debug, Clone)]
pub(super) struct Replica {
    name: String,
    number: usize,
    pub(super) scaler: Scaler,
    clock: ProcessClock,
    leadership: Leadership,
    call: Call,
    /// A request of an earlier process that is still under way.
    orphan: Option<LeaseRequest>,
    /// Until when nothing of the process runs.
    pub(super) frozen_until: Moment,
    /// What it may do, and reaches.
    pub(super) process: ProcessState,
    /// When its process begins.
    pub(super) started: Moment,
    /// Whether it scales the cluster by its Lease.
    is_working: bool,
}

/// The request about the Lease that is under way. A replica waits for its answer.
#[derive(Debug, Clone, Default)]
enum Call {
    #[default]
    None,
    Sent(Duration, LeaseRequest),
    /// The Lease as it was written, or else as it is; `None` if the answer is lost.
    Served(Duration, Option<Result<LeaseRecord, Option<LeaseRecord>>>),
}

impl Replica {
    /// A replica that scales the cluster without a Lease, or once it has it.
    pub(super) fn new(number: usize, scaler: Scaler, has_lease: bool) -> Self {
        let name = format!("replica-{number}");
        let trust = if has_lease {
            Trust::Until(None)
        } else {
            Trust::Always
        };
        Self {
            leadership: Leadership::new(name.clone(), Terms::default()),
            name,
            number,
            scaler,
            clock: ProcessClock::default(),
            call: Call::None,
            orphan: None,
            frozen_until: Moment::START,
            process: ProcessState { trust, cut: None },
            started: Moment::START,
            is_working: false,
        }
    }

    /// The process is killed, and another one of its name starts after so many seconds.
    pub(super) fn die(&mut self, seconds: f64, world: &mut World) {
        let (number, cut) = (self.number, self.process.cut);
        // What was sent arrives, and nobody hears the answer.
        let orphan = match std::mem::take(&mut self.call) {
            Call::Sent(_, request) if cut != Some(Cut::Requests) => Some(request),
            _ => None,
        };
        let mut next = Self::new(number, self.successor(), true);
        // The machine stays cut off, and its clock wrong.
        (next.orphan, next.process.cut, next.clock) = (orphan, cut, self.clock);
        *self = next;
        self.frozen_until = world.now.plus(seconds);
    }

    /// Another scaler in the place of this one, which knows nothing of its rounds.
    pub(super) fn successor(&mut self) -> Scaler {
        let mut next = Scaler::new(self.scaler.settings.clone());
        (next.number, next.token) = (self.scaler.number, self.scaler.token);
        (next.spared, next.rounds) = (self.scaler.spared, self.scaler.rounds);
        // The machine's clock stays wrong, and what the process had heard of the API server's is lost.
        let ahead_s = self.clock.ahead_s;
        self.clock = ProcessClock::default();
        self.clock.ahead_s = ahead_s;
        next.ahead_s = self.clock.beyond_s();
        next
    }

    /// The machine's clock is set to be so many seconds ahead.
    pub(super) fn set_clock(&mut self, ahead_s: f64) {
        self.clock.ahead_s = ahead_s;
        self.scaler.ahead_s = self.clock.beyond_s();
    }

    /// Its scaler looks at the cluster.
    pub(super) fn look(&mut self, token: u64, world: &mut World) {
        if self.process.cut.is_none() {
            self.clock.renew(world.now);
        }
        self.scaler.ahead_s = self.clock.beyond_s();
        self.scaler.look(token, world);
    }

    /// Whether it may look at the cluster. One that has lost its Lease does not; what it has sent goes on.
    pub(super) fn is_scaling(&self) -> bool {
        self.is_working || self.process.trust == Trust::Always
    }

    fn chains(&self) -> impl Iterator<Item = &(Chain, ChainCall)> {
        self.scaler.round.iter().flat_map(|round| &round.chains)
    }

    /// The calls that are on their way.
    pub(super) fn calls(&self) -> Vec<Effect> {
        let sent = self.chains();
        let sent = sent.filter(|(_, call)| matches!(call, ChainCall::Sent));
        sent.filter_map(|(chain, _)| chain.next()).collect()
    }

    /// Whether a call is on its way, or its answer.
    fn is_writing(&self) -> bool {
        let mut chains = self.chains();
        chains.any(|(_, call)| matches!(call, ChainCall::Sent | ChainCall::Made(_)))
    }

    /// Whether the next thing that happens to a chain is that its call arrives.
    pub(super) fn is_arriving(&self, look: u64, chain: usize) -> bool {
        let round = (self.scaler.round.as_ref()).filter(|_| look == self.scaler.round_token);
        round.is_some_and(|round| round.sent(chain).is_some())
    }

    /// A call of a chain was not let through to the API server. Its event tells the chain.
    pub(super) fn turned_away(&mut self, look: u64, chain: usize, why: NotAdmitted) {
        let round = (self.scaler.round.as_mut()).filter(|_| look == self.scaler.round_token);
        let chain = round.and_then(|round| round.chains.get_mut(chain));
        if let Some((_, call @ ChainCall::Sent)) = chain {
            *call = ChainCall::Refused(Failure::NotAdmitted(why.to_string()));
        }
    }

    /// A call arrives, or its answer: that waits as long as the process does not run, or for as long as a request
    /// has at the most where no answer comes.
    pub(super) fn answered(&mut self, event: WorldEvent, world: &mut World) {
        let WorldEvent::Answered { look, chain, .. } = event else {
            return;
        };
        let patient_s = self
            .process
            .cut
            .map_or(0.0, |_| LONGEST_WRITE.as_secs_f64());
        let waits_s = self.frozen_until.since(world.now).max(patient_s);
        if waits_s > 0.0 && self.is_arriving(look, chain) {
            if let Some(round) = &mut self.scaler.round {
                round.arrive(chain, world);
            }
            return world.after(waits_s, event);
        }
        let round = (self.scaler.round.as_ref()).filter(|_| look == self.scaler.round_token);
        let call = round.and_then(|round| round.chains.get(chain)?.0.next());
        if self.process.cut.is_none() && call.is_some_and(|effect| effect.is_kubernetes()) {
            self.clock.hear(world.now);
            self.scaler.ahead_s = self.clock.beyond_s();
        }
        self.scaler.answered(look, chain, world);
    }

    /// The process is asked to stop: it gives back the Lease.
    pub(super) fn stop(&mut self) {
        self.leadership.is_stopping = true;
    }

    /// Until when this replica trusts that it may write, if it does.
    pub(super) fn trusted_until(&self) -> Option<Moment> {
        let until = self.leadership.leads_until()?;
        Some(Moment::at(until.as_secs_f64()))
    }

    /// Whether this replica trusts now that it may write.
    pub(super) fn is_trusting(&self, now: Moment) -> bool {
        self.trusted_until().is_some_and(|until| now < until)
    }

    /// Whether nothing of the process runs now.
    pub(super) fn is_frozen(&self, now: Moment) -> bool {
        now < self.frozen_until
    }

    /// Something about the Lease is due: a request arrives, is answered, or is to be made.
    pub(super) fn lease(&mut self, lease: &mut PlayedLease, world: &mut World) {
        let now = Duration::from_secs_f64(world.now.seconds());
        let duration = Terms::default().duration;
        if let Some(request) = self.orphan.take() {
            // Nobody hears what comes of it.
            let _ = lease.serve(&self.name, &request, duration);
        }
        match std::mem::take(&mut self.call) {
            Call::Sent(sent, request) => {
                let arrives = self.process.cut != Some(Cut::Requests);
                let answer = arrives.then(|| lease.serve(&self.name, &request, duration));
                self.call = Call::Served(sent, answer.filter(|_| self.process.cut.is_none()));
                let delay = match self.process.cut {
                    None => world.settings.call_s / 2.0,
                    Some(_) => Terms::default().renew.as_secs_f64(),
                };
                return world.after(delay, WorldEvent::Outside(self.number));
            }
            kept @ (Call::Served(..) | Call::None) if self.is_frozen(world.now) => {
                self.call = kept;
                let left = self.frozen_until.since(world.now);
                return world.after(left, WorldEvent::Outside(self.number));
            }
            Call::Served(sent, Some(Ok(record))) => {
                self.leadership.wrote(record, sent);
            }
            Call::Served(_, Some(Err(record))) => self.leadership.note(record, now),
            Call::Served(_, None) | Call::None => {}
        }
        // Where answers are lost, the watch is cut off as well.
        if self.process.cut.is_none() && lease.stored.is_some() {
            self.leadership.note(lease.stored.clone(), now);
        }
        self.update(world);
        let request = self.leadership.request(now, self.is_writing());
        let delay = if let Some(request) = request {
            self.leadership.asks(&request, now);
            self.call = Call::Sent(now, request);
            world.settings.call_s / 2.0
        } else {
            let again = self.leadership.look_again(now);
            again.saturating_sub(now).as_secs_f64()
        };
        world.after(delay, WorldEvent::Outside(self.number));
    }

    /// Begins to scale the cluster, or ends to, as the Lease says.
    fn update(&mut self, world: &mut World) {
        let until = self.trusted_until();
        self.process.trust = Trust::Until(until);
        if until.is_some() == self.is_working {
            return;
        }
        self.is_working = until.is_some();
        if self.is_working {
            self.scaler = self.successor();
            self.scaler.look_after(0.0, world);
        }
    }
}
