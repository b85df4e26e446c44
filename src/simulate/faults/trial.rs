//! One simulation with faults.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::checker::{Checker, least_replicas, max_replicas};
use super::plan::{FaultKind, FaultPlan};
use super::scene::Scene;
use super::violation::Violation;
use crate::simulate::moment::Moment;
use crate::simulate::ray::Ray;
use crate::simulate::ray::jobs::{JobState, Need, SimulatedJob};
use crate::simulate::ray::resources::Bundle;
use crate::simulate::scaler::Scaler;
use crate::simulate::settings::WorldSettings;
use crate::simulate::trace::{Strategy, Trace};
use crate::simulate::world::deeds::Deed;
use crate::simulate::world::group::GroupError;
use crate::simulate::world::queue::Event;
use crate::simulate::world::trouble::BadAnswer;
use crate::simulate::world::{View, World};
use crate::snapshot::pod_object::{OwnerReference, PodObject};

/// The annotation that lets pods grow.
const GROWTH: &str = "ray.io/ippr";

/// How long the cluster may take to come up, in seconds.
const START_S: f64 = 600.0;

/// How long after the last fault and the last submission jobs may wait that could run, in seconds:
/// the longest back-off and the longest node's start several times over, and the work itself.
const SERVED_S: f64 = 1200.0;

/// How long after the last job something may still be done, beyond the idle timeout, in seconds: the
/// longest back-off, and what is removed one after the other.
const SETTLING_S: f64 = 150.0;

/// For how long nothing must be done after that, in seconds.
const QUIET_S: f64 = 60.0;

/// How many views are kept for being repeated.
const KEPT_VIEWS: usize = 300;

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
    let scene = plan.scene.clone();
    let trace = scene.trace();
    let mut world = World::new(&scene.cluster(), &trace, scene.world())?;
    world.deeds.is_kept = true;
    if scene.settings.stranger {
        world.strangers.push(stranger());
    }
    let mut scaler = Scaler::new(scene.reconciler());
    scaler.is_checked = true;
    scaler.look_after(0.0, &mut world);
    let mut trial = Trial {
        usual: scene.world(),
        manifest: world.stored_cluster().clone(),
        trace,
        scene,
        world,
        scaler,
        views: VecDeque::new(),
        checker: Checker::default(),
        steps: Vec::new(),
        dying: None,
    };
    Ok(trial.run(plan).err().map(|violation| Failed {
        violation,
        deeds: trial.checker.deeds(),
    }))
}

/// A pod that says that it is of the cluster, and is somebody else's.
fn stranger() -> PodObject {
    let mut pod = PodObject::default();
    pod.metadata.name = "stranger".to_owned();
    pod.metadata.namespace = Some("ray".to_owned());
    pod.metadata.uid = Some("stranger".to_owned());
    pod.metadata.labels.cluster = Some("demo".to_owned());
    pod.metadata.labels.node_type = Some("worker".to_owned());
    pod.metadata.labels.group = Some("small".to_owned());
    pod.metadata.owner_references = vec![OwnerReference {
        kind: "RayCluster".to_owned(),
        name: "demo".to_owned(),
        uid: "another".to_owned(),
        controller: Some(true),
    }];
    pod.status.phase = Some("Running".to_owned());
    pod
}

struct Trial {
    scene: Scene,
    trace: Trace,
    /// How the world behaves while nothing is wrong.
    usual: WorldSettings,
    /// The RayCluster as it was at first.
    manifest: Value,
    /// What watchers had, and since when.
    views: VecDeque<(Moment, View)>,
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
        self.world.begin(&self.trace);
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
        let idle_s = f64::from(self.scene.settings.idle_timeout_seconds);
        self.pass(last.plus(idle_s + SETTLING_S))?;
        let settled = self.world.now;
        self.pass(settled.plus(QUIET_S))?;
        let seconds = self.world.now.since(last);
        if let Some((at, deed)) = &self.checker.last_change
            && *at > settled
        {
            let deed = deed.clone();
            return Err(Violation::NotQuiet { deed, seconds });
        }
        let cluster = self.world.stored_cluster();
        let groups = || self.world.groups().iter().filter(|group| !group.is_head());
        let wanted = groups().map(|group| least_replicas(cluster, &group.name) * group.hosts);
        let wanted = usize::try_from(wanted.sum::<i64>()).unwrap_or_default();
        // Ray leaves the pods of a group that was removed as they are.
        let is_rayfit = self.scene.settings.strategy.is_rayfit();
        let counts = |of: &str| is_rayfit || groups().any(|group| group.name == of);
        let pods = self
            .world
            .workers()
            .filter(|pod| counts(pod.group()))
            .count();
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
            if self.views.len() == KEPT_VIEWS {
                self.views.pop_front();
            }
            let view = self.world.view.clone();
            self.views.push_back((self.world.now, view));
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
            FaultKind::LeaseLost { seconds } => {
                self.scaler.die(seconds, world);
            }
            FaultKind::CallsRefused { of, answer, .. } => {
                world.trouble.refused = Some((of, answer));
            }
            FaultKind::WatchStops { of, .. } => world.trouble.lost = Some(of),
            FaultKind::WatchRepeats { ago } => {
                let is_old = |(at, _): &&(Moment, View)| world.now.since(*at) >= ago;
                if let Some((_, view)) = self.views.iter().rev().find(is_old) {
                    world.repeat(view);
                    self.scaler.wake(world);
                }
            }
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
            FaultKind::MinReplicas { group, min, .. } => {
                self.set(group, "minReplicas", json!(min));
            }
            FaultKind::ManifestApplied => {
                let manifest = self.manifest.clone();
                world.edit(|cluster| {
                    let spec = manifest["spec"].clone();
                    // What was suspended by hand stays so: the tool does not know of it.
                    cluster["spec"] = spec;
                });
            }
            FaultKind::GrowthRemoved { .. } => world.edit(|cluster| {
                let annotations = cluster.pointer_mut("/metadata/annotations");
                if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
                    annotations.remove(GROWTH);
                }
            }),
            FaultKind::PodDeleted { pick } => {
                let deleted = world.remove_pod(pick);
                self.say(format!("deleted by people: {deleted:?}"));
            }
            FaultKind::NotesRemoved => world.remove_notes(),
            FaultKind::ClockAhead { by, .. } => self.scaler.clock_ahead_s = by,
        }
    }

    fn end(&mut self, kind: FaultKind) {
        let (world, usual) = (&mut self.world, &self.usual);
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
            FaultKind::MinReplicas { group, .. } => {
                let min = self.scene.groups.get(group).map_or(0, |group| group.min);
                self.set(group, "minReplicas", json!(min));
            }
            FaultKind::GroupSuspended { group, .. } => self.set(group, "suspend", json!(false)),
            FaultKind::GrowthRemoved { .. } => {
                if let Some(growth) = self.manifest["metadata"]["annotations"].get(GROWTH) {
                    let growth = growth.clone();
                    world.edit(|cluster| cluster["metadata"]["annotations"][GROWTH] = growth);
                }
            }
            FaultKind::CallsRefused { .. } => world.trouble.refused = None,
            FaultKind::ClockAhead { .. } => self.scaler.clock_ahead_s = 0.0,
            FaultKind::LeaseLost { .. }
            | FaultKind::WatchRepeats { .. }
            | FaultKind::NodeLost { .. }
            | FaultKind::PodFails { .. }
            | FaultKind::PodDeleted { .. }
            | FaultKind::GroupRemoved
            | FaultKind::ManifestApplied
            | FaultKind::NotesRemoved
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

    /// How many jobs wait that fit in pods as the groups make them.
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

    /// Whether new pods of the groups would hold a job, if nothing else ran.
    fn fits(&self, job: &SimulatedJob) -> bool {
        let (ray, one) = (&self.world.ray, Strategy::Pack);
        let (bundles, strategy) = match &job.need {
            Need::Shape(shape) => (std::slice::from_ref(&ray.jobs.shapes[*shape]), one),
            Need::Gang { bundles, strategy } => (&bundles[..], *strategy),
        };
        let workers = || self.world.groups().iter().filter(|group| !group.is_head());
        let cluster = self.world.stored_cluster();
        let least: i64 = workers()
            .map(|group| least_replicas(cluster, &group.name) * group.hosts)
            .sum();
        // Workers that a minimum keeps may be of no use.
        let max = self.scene.settings.max_workers.unwrap_or(u64::MAX);
        let mut room = i64::try_from(max).unwrap_or(i64::MAX).saturating_sub(least);
        let mut places = 0;
        for group in workers() {
            let each = places_in(&bundles[0], &group.resources, ray);
            let each = if strategy == Strategy::StrictSpread {
                each.min(1)
            } else {
                each
            };
            let most = max_replicas(cluster, &group.name).min(room / group.hosts) * group.hosts;
            if each > 0 && most > 0 {
                places += each * most;
                room -= most;
            }
        }
        usize::try_from(places).unwrap_or_default() >= bundles.len()
    }
}

/// How often a bundle fits in a new pod.
fn places_in(bundle: &Bundle, resources: &[(String, f64)], ray: &Ray) -> i64 {
    let amounts = ray.names.amounts(bundle).into_iter();
    let counts = amounts.map(|(name, amount)| {
        let there = resources.iter().find(|(known, _)| *known == name);
        #[expect(clippy::cast_possible_truncation, reason = "a small count")]
        let count = there.map_or(0, |(_, there)| (there / amount) as i64);
        count
    });
    counts.min().unwrap_or_default()
}
