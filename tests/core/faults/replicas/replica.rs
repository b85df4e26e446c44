//! One replica of the controller: what it knows of the Lease, its requests about it, its scaler.

use std::time::Duration;

use rayfit::reconcile::ownership::lease::leader::{Leadership, LeaseRequest};
use rayfit::reconcile::ownership::lease::played::PlayedLease;
use rayfit::reconcile::ownership::lease::record::{LeaseRecord, Terms};
use rayfit::simulate::moment::Moment;
use rayfit::simulate::scaler::Scaler;
use rayfit::simulate::sending::{Cut, Trust};
use rayfit::simulate::world::World;
use rayfit::simulate::world::queue::WorldEvent;

/// One replica of the controller.
#[derive(Debug, Clone)]
pub(super) struct Replica {
    name: String,
    number: usize,
    pub(super) scaler: Scaler,
    leadership: Leadership,
    call: Call,
    /// A request of an earlier process that is still under way.
    orphan: Option<LeaseRequest>,
    /// Until when nothing of the process runs.
    pub(super) frozen_until: Moment,
    /// Whether it scales the cluster.
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
    pub(super) fn new(number: usize, scaler: Scaler) -> Self {
        let name = format!("replica-{number}");
        Self {
            leadership: Leadership::new(name.clone(), Terms::default()),
            name,
            number,
            scaler,
            call: Call::None,
            orphan: None,
            frozen_until: Moment::START,
            is_working: false,
        }
    }

    /// The process is killed, and another one of its name starts after so many seconds.
    pub(super) fn die(&mut self, seconds: f64, world: &mut World) {
        let number = self.number;
        self.scaler.retire();
        let scaler = self.scaler.successor();
        // What was sent arrives, and nobody hears the answer.
        let orphan = match std::mem::take(&mut self.call) {
            Call::Sent(_, request) if self.scaler.cut != Some(Cut::Requests) => Some(request),
            _ => None,
        };
        *self = Self {
            orphan,
            ..Self::new(number, scaler)
        };
        self.frozen_until = world.now.plus(seconds);
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
                let arrives = self.scaler.cut != Some(Cut::Requests);
                let answer = arrives.then(|| lease.serve(&self.name, &request, duration));
                self.call = Call::Served(sent, answer.filter(|_| self.scaler.cut.is_none()));
                let delay = match self.scaler.cut {
                    None => world.settings.call_s / 2.0,
                    Some(_) => Terms::default().renew.as_secs_f64(),
                };
                return world.after(delay, WorldEvent::Lease(self.number));
            }
            kept @ (Call::Served(..) | Call::None) if self.is_frozen(world.now) => {
                self.call = kept;
                let left = self.frozen_until.since(world.now);
                return world.after(left, WorldEvent::Lease(self.number));
            }
            Call::Served(sent, Some(Ok(record))) => {
                self.leadership.wrote(record, sent);
            }
            Call::Served(_, Some(Err(record))) => self.leadership.note(record, now),
            Call::Served(_, None) | Call::None => {}
        }
        // Where answers are lost, the watch is cut off as well.
        if self.scaler.cut.is_none() && lease.stored.is_some() {
            self.leadership.note(lease.stored.clone(), now);
        }
        self.update(world);
        let request = self.leadership.request(now, self.scaler.is_writing());
        let delay = if let Some(request) = request {
            self.leadership.asks(&request, now);
            self.call = Call::Sent(now, request);
            world.settings.call_s / 2.0
        } else {
            let again = self.leadership.look_again(now);
            again.saturating_sub(now).as_secs_f64()
        };
        world.after(delay, WorldEvent::Lease(self.number));
    }

    /// Begins to scale the cluster, or ends to, as the Lease says.
    fn update(&mut self, world: &mut World) {
        let until = self.trusted_until();
        self.scaler.trust = Trust::Until(until);
        if until.is_some() == self.is_working {
            return;
        }
        self.is_working = until.is_some();
        if self.is_working {
            self.scaler = self.scaler.successor();
            self.scaler.trust = Trust::Until(until);
            self.scaler.look_after(0.0, world);
        } else {
            self.scaler.retire();
        }
    }
}
