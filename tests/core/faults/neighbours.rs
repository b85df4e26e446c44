//! Several clusters that one process scales: each has its own jobs and faults, and their requests to the
//! API server pass one gate. Each has a world of its own, or all of them share one.

use rayfit_core::flow_control::requests::{AT_ONCE, UNDER_WAY_OF_ONE};
use rayfit_core::simulate::moment::Moment;
use rayfit_core::simulate::world::queue::WorldEvent;
use rayfit_core::simulate::world::{Machines, World};

use super::plan::{FaultKind, FaultPlan};
use super::shared::SharedParts;
use super::trial::{Failed, FaultTrial, Staging};
use super::violation::WorldViolation;
use crate::faults::gate::{Passed, SimulatedGate};

/// What the process may send to the API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GateRate {
    /// Requests in a second.
    pub(crate) rate: u32,
    /// Requests at once after a quiet time.
    pub(crate) burst: u32,
}

/// What became of several clusters.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Neighbourhood {
    /// The first violation, and the number of the cluster.
    pub(crate) failed: Option<(usize, Failed)>,
    /// For each cluster, how long each job waited, in seconds; none if it never started.
    pub(crate) waits_s: Vec<Vec<Option<f64>>>,
    /// For each cluster, the longest time that a request waited at the gate, in seconds.
    pub(crate) at_gate_s: Vec<f64>,
}

/// Tries several plans at the same time, in one process. What happens to a process (it is killed, loses
/// a Lease, has a wrong clock) would happen to all of them, and is left out of the plans.
///
/// # Errors
///
/// A group of a scene cannot be read.
pub(crate) fn trial(plans: &[FaultPlan], rate: GateRate) -> Result<Neighbourhood, String> {
    unwatched(plans, |plans, stagings, seen| {
        played(plans, stagings, rate, None, seen)
    })
}

/// The same in one world: the clusters are of several tenants, each with a namespace, and their pods are on
/// the same Kubernetes nodes, which are as the first scene says.
///
/// # Errors
///
/// A group of a scene cannot be read.
pub(crate) fn shared(plans: &[FaultPlan], rate: GateRate) -> Result<Neighbourhood, String> {
    unwatched(plans, |plans, stagings, seen| {
        watched(plans, stagings, rate, seen)
    })
}

/// Tries plans in one world, whose nodes are as the first staging says, and shows the part of each cluster
/// after each thing that happens to it.
///
/// # Errors
///
/// A group of a scene cannot be read.
pub(crate) fn watched<S: FnMut(&World, Option<Moment>)>(
    plans: &[FaultPlan],
    mut stagings: Vec<Staging>,
    rate: GateRate,
    seen: &mut [S],
) -> Result<Neighbourhood, String> {
    let pools = stagings.first().map(|one| one.world.pools.clone());
    let pools = pools.unwrap_or_default();
    for staging in &mut stagings {
        staging.world.pools.clone_from(&pools);
    }
    let machines = Machines::new(&pools);
    played(plans, stagings, rate, Some(machines), seen)
}

/// Tries plans without what happens to the process, as their scenes say, while nobody looks.
fn unwatched<T>(
    plans: &[FaultPlan],
    tried: impl FnOnce(&[FaultPlan], Vec<Staging>, &mut [fn(&World, Option<Moment>)]) -> T,
) -> T {
    let plans: Vec<FaultPlan> = plans.iter().map(without_process).collect();
    let stagings = plans.iter().map(Staging::of).collect();
    let mut seen: Vec<fn(&World, Option<Moment>)> = vec![|_, _| {}; plans.len()];
    tried(&plans, stagings, &mut seen)
}

fn played<S: FnMut(&World, Option<Moment>)>(
    plans: &[FaultPlan],
    stagings: Vec<Staging>,
    rate: GateRate,
    mut machines: Option<Machines>,
    seen: &mut [S],
) -> Result<Neighbourhood, String> {
    let mut clusters = Vec::with_capacity(plans.len());
    for ((plan, staging), seen) in plans.iter().zip(stagings).zip(seen) {
        let trial = match &mut machines {
            None => FaultTrial::new(plan, staging, seen)?,
            Some(machines) => {
                let lent = std::mem::take(machines);
                let mut trial = FaultTrial::beside(plan, staging, lent, seen)?;
                std::mem::swap(&mut trial.world.machines, machines);
                trial
            }
        };
        trial.troubles.borrow_mut().outgoing = Some(Vec::new());
        clusters.push(trial);
    }
    let mut neighbours = Neighbours {
        clusters,
        gate: SimulatedGate::new(rate.rate, rate.burst),
        shared: machines.map(|machines| SharedParts { machines }),
    };
    let failed = neighbours.run().err();
    let failed = failed.map(|(number, violation)| {
        let failed = neighbours.clusters[number].failed(violation);
        (number, failed)
    });
    Ok(Neighbourhood {
        failed,
        waits_s: neighbours.clusters.iter().map(waits).collect(),
        at_gate_s: (0..plans.len())
            .map(|number| {
                let longest = neighbours.gate.longest_s.get(&number);
                longest.copied().unwrap_or_default()
            })
            .collect(),
    })
}

/// The plan without what happens to the process.
fn without_process(plan: &FaultPlan) -> FaultPlan {
    let mut plan = plan.clone();
    plan.scene.settings.replicas = None;
    plan.faults.retain(|fault| !fault.kind.is_of_the_process());
    plan
}

fn waits(cluster: &FaultTrial<'_>) -> Vec<Option<f64>> {
    let jobs = cluster.world.ray.jobs.all.iter();
    jobs.map(|job| Some(job.started?.since(job.ready?)))
        .collect()
}

struct Neighbours<'a> {
    clusters: Vec<FaultTrial<'a>>,
    gate: SimulatedGate,
    /// What they share, if they are in one world.
    shared: Option<SharedParts>,
}

impl Neighbours<'_> {
    fn run(&mut self) -> Result<(), (usize, WorldViolation)> {
        while self.clusters.iter().any(|cluster| !cluster.is_over()) {
            let clusters = self.clusters.iter().enumerate();
            // In a world that others still use, a cluster goes on when it has nothing left to do.
            let goes_on = |of: &FaultTrial<'_>| self.shared.is_some() || !of.is_over();
            let clusters = clusters.filter(|(_, cluster)| goes_on(cluster));
            let clusters =
                clusters.filter_map(|(number, cluster)| Some((cluster.next_at()?, number)));
            let (gate, cluster) = (self.gate.next_at(), clusters.min());
            match (gate, cluster) {
                (Some(gate), cluster) if cluster.is_none_or(|(at, _)| gate < at) => {
                    self.pass(gate);
                }
                (_, Some((at, number))) => {
                    self.step(number).map_err(|violation| (number, violation))?;
                    self.pass(at);
                }
                (_, None) => return Ok(()),
            }
        }
        Ok(())
    }

    /// The next thing happens to a cluster, and its requests go to the gate.
    fn step(&mut self, number: usize) -> Result<(), WorldViolation> {
        let busy = self.clusters.iter_mut();
        let busy =
            busy.filter_map(|cluster| cluster.controllers.scalers().next().map(|one| one.is_busy));
        let busy = busy.filter(|busy| *busy).count();
        let cluster = &mut self.clusters[number];
        for scaler in cluster.controllers.scalers() {
            scaler.busy_clusters = busy.max(1);
        }
        let act = |cluster: &mut FaultTrial<'_>| {
            if cluster.is_over() {
                cluster.step()
            } else {
                cluster.go_on().map(|_| ())
            }
        };
        match &mut self.shared {
            Some(shared) => shared.with(&mut self.clusters, number, act)?,
            None => act(cluster)?,
        }
        let cluster = &mut self.clusters[number];
        let now = cluster.world.now;
        if let Some(event @ WorldEvent::Answered { .. }) = cluster.happened {
            self.gate.answered((number, event));
        }
        let mut trouble = cluster.troubles.borrow_mut();
        if let Some(seconds) = trouble.patience_asked.take() {
            self.gate.ask_patience(number, now, seconds);
        }
        let outgoing = trouble.outgoing.as_mut();
        let outgoing = outgoing.map(std::mem::take).unwrap_or_default();
        drop(trouble);
        for event in outgoing {
            if let Some(passed) = self.gate.join((number, event), now) {
                self.take(passed, now);
            }
        }
        Ok(())
    }

    /// Lets through what may pass now.
    fn pass(&mut self, now: Moment) {
        for passed in self.gate.proceed(now) {
            self.take(passed, now);
        }
        let (all, of_one) = self.gate.under_way();
        debug_assert!(all <= AT_ONCE && of_one <= UNDER_WAY_OF_ONE);
    }

    fn take(&mut self, passed: Passed, now: Moment) {
        match passed {
            Passed::Sent((number, event)) => {
                let world = &mut self.clusters[number].world;
                world.at(now.plus(world.settings.call_s), event);
            }
            Passed::Refused((number, event), why) => {
                let cluster = &mut self.clusters[number];
                cluster.controllers.turned_away(event, why);
                cluster.world.at(now, event);
            }
        }
    }
}

impl FaultKind {
    /// Whether it happens to the process that scales, and so to all clusters that it scales.
    fn is_of_the_process(self) -> bool {
        matches!(
            self,
            Self::ScalerDies { .. }
                | Self::LeaseLost { .. }
                | Self::ClockAhead { .. }
                | Self::ReplicaCut { .. }
                | Self::ReplicaFrozen { .. }
                | Self::ReplicaDies { .. }
                | Self::ReplicaStops { .. }
        )
    }
}
