//! One simulation with faults.

use std::collections::{BTreeSet, VecDeque};

use rayfit_core::reconcile::RoundSettings;
use rayfit_core::simulate::moment::Moment;
use rayfit_core::simulate::scaler::SparedSteps;
use rayfit_core::simulate::settings::{LIVENESS_S, WorldSettings};
use rayfit_core::simulate::trace::Trace;
use rayfit_core::simulate::world::queue::WorldEvent;
use rayfit_core::simulate::world::{Machines, World, WorldView};
use serde_json::{Value, json};

use super::checker::Checker;
use super::head::{DRIVERS_RETURN, RECONNECT_S};
use super::plan::{Fault, FaultKind, FaultPlan};
use super::scene::{KEEP_SMALL_S, Scene, stranger};
use super::trouble::{Troubles, WATCHED_LATE};
use super::violation::WorldViolation;
use crate::faults::replicas::controllers::Controllers;

/// How long the cluster may take to come up, in seconds.
const START_S: f64 = 600.0;

/// How long after the last job something may still be done, beyond the idle timeout, in seconds: the
/// longest back-off, and what is made smaller, kept and removed, one after the other.
const STABILISATION_S: f64 = 140.0;

/// How much longer that is after lies of the GCS, in seconds: a drain that was accepted by another node
/// is asked for again after five minutes.
const LIED_S: f64 = 330.0;

/// For how long nothing must be done after that, in seconds.
const QUIET_S: f64 = 40.0;

/// How many views are kept for being repeated.
const KEPT_VIEWS: usize = 300;

/// How a trial failed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Failed {
    /// The rule that was broken.
    pub(crate) violation: WorldViolation,
    /// What was done last.
    pub(crate) log: Vec<String>,
}

/// How the cluster of a plan is scaled, and how its world behaves.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Staging {
    /// How the cluster is scaled.
    pub(crate) reconciler: RoundSettings,
    /// How the world behaves while nothing is wrong.
    pub(crate) world: WorldSettings,
    /// Whether rounds that could be spared are made all the same.
    pub(crate) spares_none: bool,
    /// The seconds for which workers look for a head that is lost.
    pub(crate) reconnect_s: f64,
}

impl Staging {
    /// As the scene of a plan says.
    pub(crate) fn of(plan: &FaultPlan) -> Self {
        Self {
            reconciler: plan.scene.reconciler(),
            world: plan.scene.world(),
            spares_none: false,
            reconnect_s: RECONNECT_S,
        }
    }
}

/// Tries a plan as its scene says. Returns the first violation, if there is one.
///
/// # Errors
///
/// A group of the scene cannot be read.
pub(crate) fn trial(plan: &FaultPlan) -> Result<Option<Failed>, String> {
    watched(plan, Staging::of(plan), &mut |_, _| {})
}

/// Tries a plan, and shows the world after each thing that happens, with the moment from which on
/// jobs are submitted, once it has come.
///
/// # Errors
///
/// A group of the scene cannot be read.
pub(crate) fn watched(
    plan: &FaultPlan,
    staging: Staging,
    seen: &mut dyn FnMut(&World, Option<Moment>),
) -> Result<Option<Failed>, String> {
    let mut trial = FaultTrial::new(plan, staging, seen)?;
    Ok(trial.run().err().map(|violation| trial.failed(violation)))
}

/// A simulation with faults.
pub(super) struct FaultTrial<'a> {
    pub(super) scene: Scene,
    pub(super) trace: Trace,
    /// How the world behaves while nothing is wrong.
    pub(super) usual: WorldSettings,
    /// The RayCluster as it was at first.
    pub(super) manifest: Value,
    /// What watchers had, and since when.
    pub(super) views: VecDeque<(Moment, WorldView)>,
    pub(super) world: World,
    pub(super) troubles: Troubles,
    pub(super) controllers: Controllers,
    pub(super) checker: Checker,
    /// Faults that begin or end, the last one first.
    pub(super) steps: Vec<(Moment, Step, FaultKind)>,
    pub(super) dying: Option<Dying>,
    /// What is wrong now.
    ongoing: Vec<FaultKind>,
    /// The event that happened last, if it was not a fault.
    pub(super) happened: Option<WorldEvent>,
    /// The names of pods that hang for good.
    pub(super) hung: BTreeSet<String>,
    /// What will go wrong, once jobs are submitted.
    pub(super) faults: Vec<Fault>,
    phase: Phase,
    /// From when on jobs are submitted.
    began: Option<Moment>,
    /// What is shown the world after each step.
    seen: &'a mut dyn FnMut(&World, Option<Moment>),
}

/// How far a simulation is.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Phase {
    /// The cluster comes up.
    Starting,
    /// Jobs are submitted, and faults happen.
    Playing,
    /// Since so long nothing is wrong any more: all jobs have to be served.
    Serving { calm: Moment },
    /// Since so long all jobs have ended: until then everything has to come to rest.
    Stabilising { last: Moment, until: Moment },
    /// From the second moment until the third nothing may be done.
    Quiet {
        last: Moment,
        stable: Moment,
        until: Moment,
    },
    /// All was well.
    Over,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Step {
    Begins,
    Ends,
}

/// The scaler is about to be killed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dying {
    pub(super) calls: u32,
    pub(super) is_done: bool,
    pub(super) seconds: f64,
}

impl<'a> FaultTrial<'a> {
    pub(super) fn new(
        plan: &FaultPlan,
        staging: Staging,
        seen: &'a mut dyn FnMut(&World, Option<Moment>),
    ) -> Result<Self, String> {
        let machines = Machines::new(&staging.world.pools);
        Self::beside(plan, staging, machines, seen)
    }

    /// A simulation on nodes that the clusters of others use too. Its world has them.
    pub(super) fn beside(
        plan: &FaultPlan,
        staging: Staging,
        machines: Machines,
        seen: &'a mut dyn FnMut(&World, Option<Moment>),
    ) -> Result<Self, String> {
        let scene = plan.scene.clone();
        let trace = scene.trace();
        let cluster = tenant(scene.cluster(), machines.present.len());
        let mut world = World::beside(&cluster, &trace, staging.world.clone(), machines)?;
        let troubles = Troubles::of(&mut world);
        if scene.settings.stranger {
            troubles.borrow_mut().strangers.push(stranger());
        }
        let mut trouble = troubles.borrow_mut();
        trouble.is_judged = scene.settings.judged;
        trouble.lost_head.reconnect_s = staging.reconnect_s;
        drop(trouble);
        let replicas = scene.settings.replicas.unwrap_or(1);
        let mut controllers =
            Controllers::new(&staging.reconciler, replicas, &troubles, &mut world);
        for scaler in controllers.scalers() {
            if staging.spares_none {
                scaler.spared = SparedSteps::Nothing;
            }
        }
        Ok(Self {
            usual: staging.world,
            manifest: world.cluster.object().clone(),
            trace,
            scene,
            world,
            troubles,
            controllers,
            views: VecDeque::new(),
            checker: Checker::default(),
            steps: Vec::new(),
            dying: None,
            ongoing: Vec::new(),
            happened: None,
            hung: BTreeSet::new(),
            faults: plan.faults.clone(),
            phase: Phase::Starting,
            began: None,
            seen,
        })
    }

    fn run(&mut self) -> Result<(), WorldViolation> {
        while self.go_on()? {}
        Ok(())
    }

    /// The violation, with what was done last.
    pub(super) fn failed(&self, violation: WorldViolation) -> Failed {
        Failed {
            violation,
            log: self.checker.log(),
        }
    }

    /// When the next event or the next fault happens.
    pub(super) fn next_at(&self) -> Option<Moment> {
        let due = self.steps.last().map(|(at, ..)| *at);
        self.world.next_at().into_iter().chain(due).min()
    }

    /// Whether the simulation is over.
    pub(super) fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// Lets the next thing happen. Returns whether there may be more.
    pub(super) fn go_on(&mut self) -> Result<bool, WorldViolation> {
        loop {
            self.phase = match self.phase {
                Phase::Starting => {
                    if self.world.now < Moment::at(START_S) && !self.world.is_up() {
                        return self.step().map(|()| true);
                    }
                    self.play();
                    Phase::Playing
                }
                Phase::Playing => {
                    let awaits_drivers = self.troubles.borrow().lost_head.is_awaited;
                    if !self.steps.is_empty() || self.world.submissions > 0 || awaits_drivers {
                        return self.step().map(|()| true);
                    }
                    let calm = self.world.now;
                    Phase::Serving { calm }
                }
                Phase::Serving { calm } => {
                    if self.waiting() > 0 || self.world.ray.is_running() {
                        self.step()?;
                        let goes_on = self.is_served_in_time(calm)?;
                        if !goes_on {
                            self.phase = Phase::Over;
                        }
                        return Ok(goes_on);
                    }
                    let standby = self.scene.settings.standby.clone().unwrap_or_default();
                    let last = self.world.now.max(Moment::at(standby.ends()));
                    // Pods below their resize limits are kept for longer than others.
                    let idle_s = f64::from(self.scene.settings.idle_timeout_seconds);
                    let kept = self.scene.settings.in_place.as_ref();
                    let keep_s =
                        kept.map_or(KEEP_SMALL_S, |kept| f64::from(kept.keep_small_seconds));
                    let longer_s = self.faults.iter().map(|fault| match fault.kind {
                        FaultKind::GcsLies { .. } => LIED_S,
                        // Nobody may know any more that a raylet was drained.
                        FaultKind::HeadLost { .. } => LIVENESS_S,
                        _ => 0.0,
                    });
                    let longer_s = longer_s.fold(0.0, f64::max);
                    let until = last.plus(idle_s.max(keep_s) + STABILISATION_S + longer_s);
                    Phase::Stabilising { last, until }
                }
                // What could not be served for now has been served after all.
                Phase::Stabilising { .. } if self.world.ray.is_running() => Phase::Serving {
                    calm: self.world.now,
                },
                Phase::Stabilising { last, until } => {
                    if self.next_at().is_some_and(|next| next <= until) {
                        return self.step().map(|()| true);
                    }
                    self.world.pass_to(until);
                    let stable = self.world.now;
                    let until = stable.plus(QUIET_S);
                    Phase::Quiet {
                        last,
                        stable,
                        until,
                    }
                }
                Phase::Quiet {
                    last,
                    stable,
                    until,
                } => {
                    if self.next_at().is_some_and(|next| next <= until) {
                        return self.step().map(|()| true);
                    }
                    self.world.pass_to(until);
                    self.is_at_rest(last, stable)?;
                    Phase::Over
                }
                Phase::Over => return Ok(false),
            };
        }
    }

    /// Jobs are submitted from now on, and what will go wrong has its times.
    fn play(&mut self) {
        self.world.begin(&self.trace);
        let began = self.world.now;
        self.began = Some(began);
        for fault in &self.faults {
            let at = began.plus(fault.at);
            self.steps.push((at, Step::Begins, fault.kind));
            (self.steps).push((at.plus(fault.kind.seconds()), Step::Ends, fault.kind));
        }
        self.steps.sort_by_key(|(at, ..)| std::cmp::Reverse(*at));
    }

    /// Lets the next event or the next fault happen, and checks what came of it.
    pub(super) fn step(&mut self) -> Result<(), WorldViolation> {
        self.happened = None;
        let next = self.world.next_at();
        let due = self.steps.last().map(|(at, ..)| *at);
        if let Some(due) = due
            && next.is_none_or(|next| due <= next)
        {
            self.world.pass_to(due);
            if let Some((_, step, kind)) = self.steps.pop() {
                self.carry_out(step, kind);
                match step {
                    Step::Begins => self.ongoing.push(kind),
                    Step::Ends => self.ongoing.retain(|of| *of != kind),
                }
            }
        } else if let Some(event) = self.world.advance() {
            self.happened = Some(event);
            self.happen(event);
        }
        (self.seen)(&self.world, self.began);
        if self.troubles.borrow().lie.is_some() {
            self.checker.harm.lied = Some(self.world.now);
        }
        let is_disturbed = !self.ongoing.is_empty();
        let (world, controllers) = (&self.world, &self.controllers);
        let troubles = &self.troubles;
        (self.checker).check(&self.scene, world, troubles, controllers, is_disturbed)
    }

    fn happen(&mut self, event: WorldEvent) {
        let dies = self.dying.is_some_and(|dying| dying.calls == 0);
        if let Some(effect) = self.controllers.arriving(event).filter(|_| !dies) {
            self.troubles.meet(&effect, &mut self.world);
        }
        match event {
            WorldEvent::Watched if !self.troubles.watched(&mut self.world) => {}
            WorldEvent::Answered { scaler, .. } => match &mut self.dying {
                Some(dying) if dying.calls == 0 => self.die(scaler),
                Some(dying) => {
                    dying.calls -= 1;
                    self.controllers.happen(event, &mut self.world);
                }
                None => self.controllers.happen(event, &mut self.world),
            },
            WorldEvent::Outside(WATCHED_LATE) => self.troubles.watched_late(&mut self.world),
            WorldEvent::Outside(DRIVERS_RETURN) => self.troubles.drivers_return(&mut self.world),
            WorldEvent::Look { .. } | WorldEvent::Outside(_) => {
                self.controllers.happen(event, &mut self.world);
            }
            event if self.begins_to_hang(event) => {}
            event => self.world.happen(event),
        }
        if event == WorldEvent::Watched {
            if self.views.len() == KEPT_VIEWS {
                self.views.pop_front();
            }
            let view = self.world.view.clone();
            self.views.push_back((self.world.now, view));
        }
        if self.world.wakes(event) || event == WorldEvent::Outside(WATCHED_LATE) {
            self.controllers.wake(&mut self.world);
        }
    }
}

/// The RayCluster of one of several tenants, each of which has a namespace.
fn tenant(mut cluster: Value, number: usize) -> Value {
    if number > 0 {
        cluster["metadata"]["namespace"] = json!(format!("ray-{number}"));
        cluster["metadata"]["uid"] = json!(format!("cluster-{number}"));
    }
    cluster
}
