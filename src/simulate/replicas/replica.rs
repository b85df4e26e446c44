//! One replica of the controller: what it knows of the Leases, its requests about them, its scaler.

use std::time::Duration;

use super::store::{LeaseAnswer, LeaseStore};
use crate::reconcile::ownership::lease::ledger::LeaseLedger;
use crate::reconcile::ownership::lease::record::{LeaseStep, Terms};
use crate::simulate::moment::Moment;
use crate::simulate::scaler::Scaler;
use crate::simulate::sending::{Cut, Trust};
use crate::simulate::world::World;
use crate::simulate::world::queue::WorldEvent;

/// Into how many shards clusters are divided.
pub(super) const SHARDS: u32 = 2;

/// One replica of the controller.
#[derive(Debug, Clone)]
pub(super) struct Replica {
    name: String,
    number: usize,
    pub(super) scaler: Scaler,
    ledger: LeaseLedger,
    shard: u32,
    requests: Requests,
    /// Requests of an earlier process that are still under way.
    orphans: Vec<LeaseStep>,
    /// Until when nothing of the process runs.
    pub(super) frozen_until: Moment,
    /// Whether it scales the cluster.
    is_working: bool,
}

/// The requests about Leases that are under way. A replica waits for all of them.
#[derive(Debug, Clone, Default)]
enum Requests {
    #[default]
    None,
    Sent(Duration, Vec<LeaseStep>),
    Served(Duration, Vec<(LeaseStep, Option<LeaseAnswer>)>),
}

impl Replica {
    pub(super) fn new(number: usize, shard: u32, scaler: Scaler) -> Self {
        let name = format!("replica-{number}");
        let mut ledger = LeaseLedger::new(name.clone(), SHARDS, Terms::default());
        ledger.complete();
        Self {
            name,
            number,
            scaler,
            ledger,
            shard,
            requests: Requests::None,
            orphans: Vec::new(),
            frozen_until: Moment::START,
            is_working: false,
        }
    }

    /// The process is killed, and another one of its name starts after so many seconds.
    pub(super) fn die(&mut self, seconds: f64, world: &mut World) {
        let number = self.number;
        self.scaler.retire();
        let scaler = self.scaler.successor();
        // What was sent arrives, and nobody hears the answers.
        let orphans = match std::mem::take(&mut self.requests) {
            Requests::Sent(_, steps) if self.scaler.cut != Some(Cut::Requests) => steps,
            _ => Vec::new(),
        };
        *self = Self {
            orphans,
            ..Self::new(number, self.shard, scaler)
        };
        self.frozen_until = world.now.plus(seconds);
    }

    /// The process is asked to stop: it gives back its Leases.
    pub(super) fn stop(&mut self) {
        self.ledger.stop();
    }

    /// Until when this replica trusts that it may write, if it does.
    pub(super) fn trusted_until(&self) -> Option<Moment> {
        let mut trusted = self.ledger.trusted();
        let (_, until) = trusted.find(|(shard, _)| *shard == self.shard)?;
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

    /// Something about Leases is due: requests arrive, are answered, or are to be made.
    pub(super) fn lease(&mut self, store: &mut LeaseStore, world: &mut World) {
        let now = Duration::from_secs_f64(world.now.seconds());
        for step in std::mem::take(&mut self.orphans) {
            store.serve(&self.name, SHARDS, &step);
        }
        match std::mem::take(&mut self.requests) {
            Requests::Sent(sent, steps) => {
                let served = steps.into_iter().map(|step| {
                    let arrives = self.scaler.cut != Some(Cut::Requests);
                    let answer = arrives.then(|| store.serve(&self.name, SHARDS, &step));
                    (step, answer.filter(|_| self.scaler.cut.is_none()))
                });
                self.requests = Requests::Served(sent, served.collect());
                let delay = match self.scaler.cut {
                    None => world.settings.call_s / 2.0,
                    Some(_) => Terms::default().renew.as_secs_f64(),
                };
                return world.after(delay, WorldEvent::Lease(self.number));
            }
            kept if self.is_frozen(world.now) => {
                self.requests = kept;
                let left = self.frozen_until.since(world.now);
                return world.after(left, WorldEvent::Lease(self.number));
            }
            Requests::Served(sent, answers) => {
                for (step, answer) in answers {
                    self.take_in(step, answer, sent, now, store);
                }
            }
            Requests::None => {}
        }
        // Where answers are lost, the watch is cut off as well.
        if self.scaler.cut.is_none() {
            self.watch(store, now);
        }
        self.update(world);
        let busy = self.scaler.is_writing();
        let steps = self.ledger.steps(now, |_| busy);
        self.update(world);
        let delay = if steps.is_empty() {
            self.ledger
                .look_again(now)
                .saturating_sub(now)
                .as_secs_f64()
        } else {
            for step in &steps {
                self.ledger.attempted(step, now);
            }
            self.requests = Requests::Sent(now, steps);
            world.settings.call_s / 2.0
        };
        world.after(delay, WorldEvent::Lease(self.number));
    }

    /// A watch shows the Leases as they are.
    fn watch(&mut self, store: &LeaseStore, now: Duration) {
        for (name, record) in &store.leases {
            self.ledger.note(name.clone(), record.clone(), now);
        }
    }

    fn take_in(
        &mut self,
        step: LeaseStep,
        answer: Option<LeaseAnswer>,
        sent: Duration,
        now: Duration,
        store: &LeaseStore,
    ) {
        match (step, answer) {
            (_, Some(LeaseAnswer::Listed(leases))) => self.ledger.listed(leases, sent, now),
            (step, Some(LeaseAnswer::Conflict)) => match store.leases.get(step.name()) {
                Some(record) => self.ledger.note(step.name().clone(), record.clone(), now),
                None => self.ledger.gone(step.name()),
            },
            (
                LeaseStep::Create(name) | LeaseStep::Hold(name, _),
                Some(LeaseAnswer::Written(record)),
            ) => self.ledger.holds(name, record, sent),
            (LeaseStep::Release(name, _), Some(LeaseAnswer::Written(record))) => {
                self.ledger.released(&name, record, now);
            }
            (LeaseStep::ReleaseDead(name, _), Some(LeaseAnswer::Written(record))) => {
                self.ledger.released_dead(&name, record, sent, now);
            }
            (LeaseStep::Remove(name, _), Some(LeaseAnswer::Written(_))) => self.ledger.gone(&name),
            (_, None) | (LeaseStep::Look(_), Some(LeaseAnswer::Written(_))) => {}
        }
    }

    /// Begins to scale the cluster, or ends to, as the Leases say.
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
