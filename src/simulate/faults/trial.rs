//! One simulation with faults.

use serde_json::{Value, json};

use super::checker::Checker;
use super::plan::{FaultKind, FaultPlan};
use super::scene::Scene;
use super::violation::Violation;
use crate::simulate::moment::Moment;
use crate::simulate::ray::jobs::{JobState, Need, SimulatedJob};
use crate::simulate::scaler::Scaler;
use crate::simulate::world::World;
use crate::simulate::world::deeds::Deed;
use crate::simulate::world::group::GroupError;
use crate::simulate::world::queue::Event;
use crate::simulate::world::trouble::BadAnswer;

/// How long the cluster may take to come up, in seconds.
const START_S: f64 = 600.0;

/// How long after the last fault and the last submission jobs may wait that could run, in seconds:
/// the longest back-off and the longest node's start several times over, and the work itself.
const SERVED_S: f64 = 1800.0;

/// How long after the last job something may still be done, beyond the idle timeout, in seconds: the
/// longest back-off, and what is removed one after the other.
const SETTLING_S: f64 = 240.0;

/// For how long nothing must be done after that, in seconds.
const QUIET_S: f64 = 120.0;

/// How a trial failed.
#[derive(Debug, Clone, PartialEq)]
pub struct Failed {
    /// The rule that was broken.
    pub violation: Violation,
    /// What was done last.
    pub deeds: Vec<String>,
}

/// Tries a plan. Returns the first violation, if there is one.
///
/// # Errors
///
/// A group of the scene cannot be read.
pub fn trial(plan: &FaultPlan) -> Result<Option<Failed>, GroupError> {
    let scene = Scene::of(plan.seed);
    let mut world = World::new(&scene.cluster, &scene.trace, scene.world.clone())?;
    world.deeds.is_kept = true;
    let mut scaler = Scaler::new(scene.reconciler);
    scaler.is_checked = true;
    scaler.look_after(0.0, &mut world);
    let mut trial = Trial {
        scene,
        world,
        scaler,
        checker: Checker::default(),
        steps: Vec::new(),
        dying: None,
    };
    Ok(trial.run(plan).err().map(|violation| Failed {
        violation,
        deeds: trial.checker.deeds(),
    }))
}

struct Trial {
    scene: Scene,
    world: World,
    scaler: Scaler,
    checker: Checker,
    /// Faults that begin or end, the last one first.
    steps: Vec<(Moment, Step, FaultKind)>,
    dying: Option<Dying>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Step {
    Begins,
    Ends,
}

/// The scaler is about to be killed.
#[derive(Debug, Clone, Copy)]
struct Dying {
    calls: u32,
    is_done: bool,
    seconds: f64,
}

impl Trial {
    fn run(&mut self, plan: &FaultPlan) -> Result<(), Violation> {
        let limit = Moment::at(START_S);
        while self.world.now < limit && !self.world.is_up() {
            self.step()?;
        }
        self.world.begin(&self.scene.trace);
        let began = self.world.now;
        for fault in &plan.faults {
            let at = began.plus(fault.at);
            let end = at.plus(fault.kind.seconds());
            self.steps.push((at, Step::Begins, fault.kind));
            self.steps.push((end, Step::Ends, fault.kind));
        }
        self.steps.sort_by_key(|(at, ..)| std::cmp::Reverse(*at));
        while !self.steps.is_empty() || self.world.has_submissions() {
            self.step()?;
        }
        let calm = self.world.now;
        while self.waiting() > 0 || self.world.ray.is_running() {
            self.step()?;
            let seconds = self.world.now.since(calm);
            if seconds > SERVED_S {
                let jobs = self.waiting();
                return Err(Violation::NotServed { jobs, seconds });
            }
        }
        self.settle()
    }

    /// After the last job everything comes to rest.
    fn settle(&mut self) -> Result<(), Violation> {
        let last = self.world.now;
        self.pass(last.plus(self.scene.idle_s + SETTLING_S))?;
        let settled = self.world.now;
        self.pass(settled.plus(QUIET_S))?;
        let seconds = self.world.now.since(last);
        if let Some((at, deed)) = &self.checker.last_change
            && *at > settled
        {
            let deed = deed.clone();
            return Err(Violation::NotQuiet { deed, seconds });
        }
        let groups = self.world.groups().iter().filter(|group| !group.is_head());
        let wanted = groups.map(|group| {
            let known = self
                .scene
                .groups
                .iter()
                .find(|known| known.name == group.name);
            known.map_or(0, |known| known.min * known.hosts)
        });
        let wanted = usize::try_from(wanted.sum::<i64>()).unwrap_or_default();
        let pods = self.world.workers();
        let is_needed = self.unservable() > 0;
        if pods != wanted && !is_needed {
            return Err(Violation::NotScaledDown {
                pods,
                wanted,
                seconds,
            });
        }
        Ok(())
    }

    fn pass(&mut self, end: Moment) -> Result<(), Violation> {
        while self.world.next_at().is_some_and(|next| next <= end) {
            self.step()?;
        }
        self.world.pass_to(end);
        Ok(())
    }

    /// Lets the next event or the next fault happen, and checks what came of it.
    fn step(&mut self) -> Result<(), Violation> {
        let next = self.world.next_at();
        let due = self.steps.last().map(|(at, ..)| *at);
        if let Some(due) = due
            && next.is_none_or(|next| due <= next)
        {
            self.world.pass_to(due);
            if let Some((_, step, kind)) = self.steps.pop() {
                self.carry_out(step, kind);
            }
        } else if let Some(event) = self.world.advance() {
            self.happen(event);
        }
        (self.checker).check(&self.scene, &mut self.world, &mut self.scaler)
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Look(token) => self.scaler.look(token, &mut self.world),
            Event::Answered { look, chain } => match &mut self.dying {
                Some(dying) if dying.calls == 0 => self.die(),
                Some(dying) => {
                    dying.calls -= 1;
                    self.scaler.answered(look, chain, &mut self.world);
                }
                None => self.scaler.answered(look, chain, &mut self.world),
            },
            event => self.world.happen(event),
        }
        if event == Event::Watched {
            self.scaler.wake(&mut self.world);
        }
    }

    /// The process is killed, with what is under way.
    fn die(&mut self) {
        let Some(dying) = self.dying.take() else {
            return;
        };
        self.say(format!(
            "the scaler is killed, calls done: {}",
            dying.is_done
        ));
        if dying.is_done {
            for effect in self.scaler.calls() {
                let _ = self.world.call(&effect);
            }
        }
        self.scaler.die(dying.seconds, &mut self.world);
    }

    fn say(&mut self, text: String) {
        self.world.deeds.add(self.world.now, || Deed::Fault(text));
    }

    fn carry_out(&mut self, step: Step, kind: FaultKind) {
        self.say(format!("{step:?}: {kind:?}"));
        match step {
            Step::Begins => self.begin(kind),
            Step::Ends => self.end(kind),
        }
    }

    fn begin(&mut self, kind: FaultKind) {
        let world = &mut self.world;
        match kind {
            FaultKind::ScalerDies {
                calls,
                is_done,
                seconds,
            } => {
                self.dying = Some(Dying {
                    calls,
                    is_done,
                    seconds,
                });
            }
            FaultKind::CallsFail {
                calls,
                answer,
                is_done,
            } => {
                let bad = BadAnswer { answer, is_done };
                let answers = std::iter::repeat_n(bad, calls.min(1000) as usize);
                world.trouble.answers.extend(answers);
            }
            FaultKind::WatchLags { lag, .. } => world.settings.watch_lag_s = lag,
            FaultKind::WatchStops { .. } => world.trouble.is_watch_lost = true,
            FaultKind::GcsAway { .. } | FaultKind::GcsRestarts { .. } => {
                world.trouble.is_gcs_away = true;
            }
            FaultKind::ResizesRefused { refusal, .. } => world.trouble.resizes = Some(refusal),
            FaultKind::NodeLost { pick } => {
                let lost = world.lose_node(pick);
                self.say(format!("lost: {lost:?}"));
            }
            FaultKind::PodFails { pick } => {
                let failed = world.fail_pod(pick);
                self.say(format!("failed: {failed:?}"));
            }
            FaultKind::PodsStartSlowly { takes, .. } => world.settings.pod_start_s = takes,
            FaultKind::MaxReplicas { group, max, .. } => {
                self.set(group, "maxReplicas", json!(max));
            }
            FaultKind::GroupSuspended { group, .. } => self.set(group, "suspend", json!(true)),
            FaultKind::GroupRemoved => world.edit(|cluster| {
                let groups = cluster.pointer_mut("/spec/workerGroupSpecs");
                if let Some(groups) = groups.and_then(Value::as_array_mut) {
                    groups.truncate(1);
                }
            }),
            FaultKind::ReplicasReset { group, replicas } => {
                self.set(group, "replicas", json!(replicas));
            }
            FaultKind::ClockAhead { by, .. } => self.scaler.clock_ahead_s = by,
        }
    }

    fn end(&mut self, kind: FaultKind) {
        let (world, usual) = (&mut self.world, &self.scene.world);
        match kind {
            FaultKind::ScalerDies { .. } => self.die(),
            FaultKind::CallsFail { .. } => world.trouble.answers.clear(),
            FaultKind::WatchLags { .. } => world.settings.watch_lag_s = usual.watch_lag_s,
            FaultKind::WatchStops { .. } => world.watch_again(),
            FaultKind::GcsAway { .. } => world.trouble.is_gcs_away = false,
            FaultKind::GcsRestarts { .. } => {
                world.trouble.is_gcs_away = false;
                world.gcs_restarted();
            }
            FaultKind::ResizesRefused { .. } => {
                world.trouble.resizes = None;
                world.kubelets_retry();
            }
            FaultKind::PodsStartSlowly { .. } => world.settings.pod_start_s = usual.pod_start_s,
            FaultKind::MaxReplicas { group, .. } => {
                let max = self.scene.groups.get(group).map_or(1, |group| group.max);
                self.set(group, "maxReplicas", json!(max));
            }
            FaultKind::GroupSuspended { group, .. } => self.set(group, "suspend", json!(false)),
            FaultKind::ClockAhead { .. } => self.scaler.clock_ahead_s = 0.0,
            FaultKind::NodeLost { .. }
            | FaultKind::PodFails { .. }
            | FaultKind::GroupRemoved
            | FaultKind::ReplicasReset { .. } => {}
        }
    }

    /// People set a field of a group, if the group is still there.
    fn set(&mut self, group: usize, field: &str, value: Value) {
        self.world.edit(|cluster| {
            let group = cluster.pointer_mut(&format!("/spec/workerGroupSpecs/{group}"));
            if let Some(group) = group.and_then(Value::as_object_mut) {
                group.insert(field.to_owned(), value);
            }
        });
    }

    /// How many jobs wait that fit in a pod as a group makes it.
    fn waiting(&self) -> usize {
        let jobs = self.world.ray.jobs.all.iter();
        jobs.filter(|job| job.state == JobState::Ready && self.fits(job))
            .count()
    }

    /// How many jobs wait that fit only in pods that have grown, or nowhere any more.
    fn unservable(&self) -> usize {
        let jobs = self.world.ray.jobs.all.iter();
        jobs.filter(|job| job.state == JobState::Ready && !self.fits(job))
            .count()
    }

    fn fits(&self, job: &SimulatedJob) -> bool {
        let ray = &self.world.ray;
        let bundles = match &job.need {
            Need::Shape(shape) => std::slice::from_ref(&ray.jobs.shapes[*shape]),
            Need::Gang { bundles, .. } => bundles,
        };
        let cpu = ray.names.find("CPU");
        let needs = bundles.iter().filter_map(|bundle| Some(bundle.get(cpu?)));
        let needs = needs.max().unwrap_or_default();
        let groups = self.world.groups().iter().filter(|group| !group.is_head());
        let cores = groups.filter_map(|group| {
            let known = self
                .scene
                .groups
                .iter()
                .find(|known| known.name == group.name);
            known.map(|known| known.cores)
        });
        cores.max().is_some_and(|cores| needs <= cores * 10_000)
    }
}
