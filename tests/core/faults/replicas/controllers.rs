//! The controller of a world: one process that is always there, or several of which one leads.

use rayfit_core::flow_control::requests::NotAdmitted;
use rayfit_core::reconcile::{Effect, RoundSettings};
use rayfit_core::simulate::moment::Moment;
use rayfit_core::simulate::scaler::Scaler;
use rayfit_core::simulate::world::World;
use rayfit_core::simulate::world::queue::WorldEvent;

use super::replica::Replica;
use super::trust::ProcessState;
use crate::faults::plan::Cut;
use crate::faults::trouble::Troubles;
use crate::lease::played::PlayedLease;

/// The processes that may scale the cluster of a world.
#[derive(Debug, Clone)]
pub(crate) struct Controllers {
    replicas: Vec<Replica>,
    lease: PlayedLease,
    has_lease: bool,
    /// What the world makes of what a process may do and reaches.
    troubles: Troubles,
    /// Whether a write was made while another process trusted that it may write.
    pub(crate) is_overtaken: bool,
}

impl Controllers {
    /// So many processes; a single one needs no Lease.
    pub(crate) fn new(
        settings: &RoundSettings,
        count: usize,
        troubles: &Troubles,
        world: &mut World,
    ) -> Self {
        let has_lease = count > 1;
        let replicas = (0..count.max(1)).map(|number| {
            let mut scaler = Scaler::new(settings.clone());
            scaler.number = number;
            Replica::new(number, scaler, has_lease)
        });
        let mut controllers = Self {
            replicas: replicas.collect(),
            lease: PlayedLease::default(),
            has_lease,
            troubles: troubles.clone(),
            is_overtaken: false,
        };
        for replica in &mut controllers.replicas {
            if has_lease {
                world.after(0.0, WorldEvent::Outside(replica.scaler.number));
            } else {
                replica.scaler.look_after(0.0, world);
            }
        }
        controllers
    }

    /// Takes an event of a scaler, or of a Lease.
    pub(crate) fn happen(&mut self, event: WorldEvent, world: &mut World) {
        let (number, waits) = match event {
            WorldEvent::Look { scaler, .. } => (scaler, true),
            WorldEvent::Answered { scaler, .. } | WorldEvent::Outside(scaler) => (scaler, false),
            _ => return,
        };
        let others = self.replicas.iter().enumerate();
        let mut others = others.filter(|(other, _)| *other != number);
        let is_others = others.any(|(_, replica)| replica.is_trusting(world.now));
        let Some(replica) = self.replicas.get_mut(number) else {
            return;
        };
        // Calls that were sent before arrive all the same, so only what the process itself begins
        // has to wait.
        if waits && replica.is_frozen(world.now) {
            let left = replica.frozen_until.since(world.now);
            return world.after(left, event);
        }
        self.troubles.borrow_mut().process = replica.process;
        match event {
            WorldEvent::Look { token, .. } if replica.is_scaling() => {
                replica.look(token, world);
            }
            WorldEvent::Look { .. } => {}
            WorldEvent::Answered { look, chain, .. } => {
                self.is_overtaken |= is_others && replica.is_arriving(look, chain);
                replica.answered(event, world);
            }
            _ => replica.lease(&mut self.lease, world),
        }
        self.troubles.borrow_mut().process = ProcessState::default();
    }

    /// A call was not let through to the API server; the event is the one by which it would have
    /// arrived.
    pub(crate) fn turned_away(&mut self, event: WorldEvent, why: NotAdmitted) {
        if let WorldEvent::Answered {
            scaler,
            look,
            chain,
        } = event
            && let Some(replica) = self.replicas.get_mut(scaler)
        {
            replica.turned_away(look, chain, why);
        }
    }

    /// Objects have changed.
    pub(crate) fn wake(&mut self, world: &mut World) {
        for replica in &mut self.replicas {
            if replica.is_scaling() && world.now >= replica.started {
                replica.scaler.wake(world);
            }
        }
    }

    /// How many processes trust that they may scale the cluster now.
    pub(crate) fn trusting(&self, now: Moment) -> usize {
        let trusts = |replica: &&Replica| replica.is_trusting(now);
        let count = self.replicas.iter().filter(trusts).count();
        if self.has_lease { count } else { 1 }
    }

    /// The process that scales the cluster, or the first one.
    pub(crate) fn working(&self) -> usize {
        let working = |replica: &Replica| replica.trusted_until().is_some();
        self.replicas.iter().position(working).unwrap_or(0)
    }

    /// The calls of a process that are on their way.
    pub(crate) fn calls(&self, replica: usize) -> Vec<Effect> {
        let replica = self.replicas.get(replica);
        replica.map_or_else(Vec::new, Replica::calls)
    }

    /// The call that arrives with an event, if one does.
    pub(crate) fn arriving(&self, event: WorldEvent) -> Option<Effect> {
        let WorldEvent::Answered {
            scaler,
            look,
            chain,
        } = event
        else {
            return None;
        };
        let replica = self.replicas.get(scaler)?;
        if replica.process.cut == Some(Cut::Requests) {
            return None;
        }
        let round = (replica.scaler.round.as_ref()).filter(|_| look == replica.scaler.round_token);
        round?.sent(chain)
    }

    /// The scalers of all processes.
    pub(crate) fn scalers(&mut self) -> impl Iterator<Item = &mut Scaler> {
        self.replicas.iter_mut().map(|replica| &mut replica.scaler)
    }

    /// The clocks of all processes are set to be so many seconds ahead.
    pub(crate) fn set_clocks(&mut self, ahead_s: f64) {
        for replica in &mut self.replicas {
            replica.set_clock(ahead_s);
        }
    }

    /// A process is killed, and another one starts in its place after so many seconds.
    pub(crate) fn kill(&mut self, replica: usize, seconds: f64, world: &mut World) {
        let has_lease = self.has_lease;
        let Some(replica) = self.at(replica) else {
            return;
        };
        if has_lease {
            replica.die(seconds, world);
        } else {
            replica.scaler = replica.successor();
            replica.started = world.now.plus(seconds);
            replica.scaler.look_after(seconds, world);
        }
    }

    /// The requests of a process reach nobody, or their answers do not reach it, until `None`.
    pub(crate) fn cut_off(&mut self, replica: usize, how: Option<Cut>) {
        if let Some(replica) = self.at(replica) {
            replica.process.cut = how;
        }
    }

    /// Nothing of a process runs for so many seconds.
    pub(crate) fn freeze(&mut self, replica: usize, seconds: f64, now: Moment) {
        if let Some(replica) = self.at(replica) {
            replica.frozen_until = replica.frozen_until.max(now.plus(seconds));
        }
    }

    /// A process is asked to stop.
    pub(crate) fn stop(&mut self, replica: usize) {
        if let Some(replica) = self.at(replica) {
            replica.stop();
        }
    }

    fn at(&mut self, replica: usize) -> Option<&mut Replica> {
        let count = self.replicas.len();
        self.replicas.get_mut(replica % count)
    }
}
