//! A cluster of the simulator, whose scaler is killed and whose calls fail where a test says so.

use std::collections::BTreeSet;

use rayfit_core::quantity::Quantity;
use rayfit_core::ray::resource::Amounts;
use rayfit_core::reconcile::{Effect, Round, RoundMemory, RoundSettings, round};
use rayfit_core::simulate::moment::Moment;
use rayfit_core::simulate::observed;
use rayfit_core::simulate::ray::jobs::JobState;
use rayfit_core::simulate::settings::{LIVENESS_S, NodePool, WorldSettings};
use rayfit_core::simulate::world::World;
use rayfit_core::simulate::world::queue::WorldEvent;
use rayfit_core::snapshot::{History, Snapshot};

use crate::faults::checker::Checker;
use crate::faults::replicas::controllers::Controllers;
use crate::faults::scene::{Scene, SceneGroup, SceneJob, SceneSettings};
use crate::faults::trouble::{Answer, BadAnswer, Troubles};
use serde_json::{Map, Value, json};

/// How long a job runs that does not end while anybody looks, in seconds.
pub(crate) const FOR_EVER: f64 = 1e6;

/// For how long nothing may move where all has come to rest, in seconds.
const REST_S: u32 = 20;

/// How long that may take, in seconds.
const LONGEST_S: u32 = 600;

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Fate {
    /// It is done.
    Done,
    /// The process is killed before it is sent.
    KilledBefore,
    /// The process is killed after it was done, before the answer.
    KilledAfter,
    /// The API server answers so, or the GCS does not answer; nothing was done.
    Fails(Answer),
    /// It was done, and the answer was lost.
    Lost,
}

/// What is there, and what happens.
#[derive(Debug, Clone)]
pub(crate) struct Story {
    pub(crate) groups: Vec<SceneGroup>,
    pub(crate) jobs: Vec<SceneJob>,
    /// The cores of each Kubernetes node; the head has one of its own.
    pub(crate) nodes: Vec<i64>,
    /// Whether the scaler knows the Kubernetes nodes.
    pub(crate) knows_nodes: bool,
    /// Whether a pod ends with its Ray node.
    pub(crate) pods_exit: bool,
    pub(crate) settings: RoundSettings,
}

impl Default for Story {
    fn default() -> Self {
        Self {
            groups: Vec::new(),
            jobs: Vec::new(),
            nodes: vec![8, 8],
            knows_nodes: true,
            pods_exit: false,
            settings: RoundSettings::default(),
        }
    }
}

/// A group whose pods have so many cores.
pub(crate) fn group(name: &str, cores: i64, min: i64, max: i64) -> SceneGroup {
    SceneGroup {
        name: name.to_owned(),
        cores,
        max_cores: None,
        pod_cores: None,
        min,
        max,
        hosts: 1,
    }
}

/// So many equal jobs, from a moment on.
pub(crate) fn jobs(count: usize, at: f64, cpu: f64, seconds: f64) -> Vec<SceneJob> {
    let job = SceneJob {
        at,
        seconds,
        cpu,
        memory_gi: 0.0,
        uses_gi: Vec::new(),
        actor: false,
        bundles: None,
    };
    vec![job; count]
}

/// A story that is told.
pub(crate) struct Run {
    pub(crate) world: World,
    troubles: Troubles,
    controllers: Controllers,
    story: Story,
    scene: Scene,
    /// What is checked after every event; nothing where settings are such that workers are stopped.
    pub(crate) checker: Option<Checker>,
    pub(crate) began: Moment,
    /// The calls so far that change something.
    pub(crate) calls: Vec<Effect>,
    /// The names of all workers that there ever were.
    pub(crate) made: BTreeSet<String>,
    /// What users of Ray were told last.
    pub(crate) said: String,
}

impl Run {
    /// The cluster is up, and the first jobs are submitted.
    pub(crate) fn new(story: Story, fate: &mut dyn FnMut(usize) -> Fate) -> Self {
        let scene = Scene {
            settings: SceneSettings {
                seed: 1,
                strategy: story.settings.plan.strategy,
                idle_timeout_seconds: 5,
                ..SceneSettings::default()
            },
            groups: story.groups.clone(),
            jobs: story.jobs.clone(),
        };
        let mut cluster = scene.cluster();
        for group in cluster["spec"]["workerGroupSpecs"].as_array_mut().unwrap() {
            group["template"]["spec"]["nodeSelector"] = json!({"for": "workers"});
        }
        cluster["spec"]["headGroupSpec"]["template"]["spec"]["nodeSelector"] =
            json!({"for": "head"});
        let pools = story.nodes.iter().map(|cores| pool(*cores, "workers"));
        let settings = WorldSettings {
            pod_end_s: if story.pods_exit { 0.5 } else { LIVENESS_S },
            pools: pools.chain([pool(1, "head")]).collect(),
            ..WorldSettings::default()
        };
        let trace = scene.trace();
        let mut world = World::new(&cluster, &trace, settings).unwrap();
        let troubles = Troubles::of(&mut world);
        let controllers = Controllers::new(&story.settings, 1, &troubles, &mut world);
        let mut run = Self {
            began: world.now,
            world,
            troubles,
            controllers,
            story,
            scene,
            checker: Some(Checker::default()),
            calls: Vec::new(),
            made: BTreeSet::new(),
            said: String::new(),
        };
        while !run.world.is_up() {
            run.step(fate);
        }
        run.world.begin(&trace);
        run.began = run.world.now;
        run
    }

    /// Lets the next thing happen.
    fn step(&mut self, fate: &mut dyn FnMut(usize) -> Fate) {
        let event = self.world.advance().expect("something happens");
        let arriving = self.controllers.arriving(event);
        let fate = match &arriving {
            None | Some(Effect::Report(_)) => Fate::Done,
            Some(Effect::PutError(text)) => {
                self.said.clone_from(text);
                Fate::Done
            }
            Some(effect) => {
                self.calls.push(effect.clone());
                fate(self.calls.len() - 1)
            }
        };
        let bad = match fate {
            Fate::Fails(answer) => Some((answer, false)),
            Fate::Lost => Some((Answer::Silence, true)),
            Fate::Done | Fate::KilledBefore | Fate::KilledAfter => None,
        };
        let bad = bad.map(|(answer, is_done)| BadAnswer { answer, is_done });
        self.troubles.borrow_mut().answers.extend(bad);
        if let (Fate::KilledAfter, Some(effect)) = (fate, arriving) {
            let _ = self.world.call(&effect);
        }
        match event {
            _ if matches!(fate, Fate::KilledBefore | Fate::KilledAfter) => {
                self.controllers.kill(0, 1.0, &mut self.world);
            }
            WorldEvent::Look { .. } | WorldEvent::Answered { .. } => {
                self.controllers.happen(event, &mut self.world);
            }
            event => self.world.happen(event),
        }
        if self.world.wakes(event) {
            self.controllers.wake(&mut self.world);
        }
        if !self.story.knows_nodes {
            self.world.view.nodes = None;
        }
        let workers = self.world.workers().map(|pod| pod.name().to_owned());
        self.made.extend(workers);
        self.check(fate != Fate::Done);
    }

    /// Nothing is harmed, no plan breaks a rule, and no call is one that may not be.
    fn check(&mut self, is_disturbed: bool) {
        let Some(checker) = &mut self.checker else {
            return;
        };
        let (world, controllers) = (&self.world, &self.controllers);
        let troubles = &self.troubles;
        let result = checker.check(&self.scene, world, troubles, controllers, is_disturbed);
        if let Err(violation) = result {
            panic!("{violation}, after:\n{}", checker.log().join("\n"));
        }
    }

    /// Lets so many seconds pass.
    pub(crate) fn pass(&mut self, seconds: f64, fate: &mut dyn FnMut(usize) -> Fate) {
        let end = self.world.now.plus(seconds);
        while self.world.next_at().is_some_and(|next| next <= end) {
            self.step(fate);
        }
        self.world.pass_to(end);
    }

    /// The same, where all calls are done.
    pub(crate) fn wait(&mut self, seconds: f64) {
        self.pass(seconds, &mut |_| Fate::Done);
    }

    /// Lets time pass until nothing has moved for some time; fails if that takes too long.
    pub(crate) fn settle(&mut self, fate: &mut dyn FnMut(usize) -> Fate) {
        let (mut rested, mut outcome) = (0, Value::Null);
        for _ in 0..LONGEST_S {
            let before = self.calls.len();
            self.pass(1.0, fate);
            let now = self.outcome();
            let moves = self.calls.len() > before || self.works() || now != outcome;
            rested = if moves { 0 } else { rested + 1 };
            outcome = now;
            if rested >= REST_S {
                return;
            }
        }
        panic!("it does not come to rest:\n{}\n{outcome:#}", self.log());
    }

    /// Whether a job runs or waits that will end.
    fn works(&self) -> bool {
        let jobs = self.world.ray.jobs.all.iter().zip(&self.story.jobs);
        let mut ending = jobs.filter(|(_, job)| job.seconds < FOR_EVER);
        ending.any(|(job, _)| !matches!(job.state, JobState::Ended | JobState::Lost))
    }

    /// How many jobs neither run nor have ended.
    pub(crate) fn waiting(&self) -> usize {
        let jobs = self.world.ray.jobs.all.iter();
        let waits = |state: &JobState| matches!(state, JobState::Blocked | JobState::Ready);
        jobs.filter(|job| waits(&job.state)).count()
    }

    pub(crate) fn workers(&self) -> usize {
        self.world.workers().count()
    }

    /// The kinds of the calls so far.
    pub(crate) fn kinds(&self) -> Vec<&'static str> {
        self.calls.iter().map(Effect::kind).collect()
    }

    /// What was done last, for people.
    pub(crate) fn log(&self) -> String {
        let log = self.checker.as_ref().map(Checker::log);
        log.unwrap_or_default().join("\n")
    }

    /// The cluster as it is, without names and dates.
    pub(crate) fn outcome(&self) -> Value {
        let mut groups = Map::new();
        for group in &self.story.groups {
            let pods = self.world.workers().filter(|pod| pod.group() == group.name);
            let pods = pods.map(|pod| {
                let cores = |amounts: Amounts| amounts.cpu.unwrap_or_default().to_string();
                let mut nodes = self.world.ray.living();
                let node = nodes.find(|(_, node)| node.pod_name == pod.name());
                let names = &self.world.ray.names;
                let total = node.map(|(_, node)| names.amounts(&node.total)["CPU"]);
                let (wants, has) = (cores(pod.spec_requests()), cores(pod.limits()));
                format!("wants {wants}, has {has}, Ray has {total:?}")
            });
            let mut pods: Vec<String> = pods.collect();
            pods.sort();
            let known = self.world.groups.iter();
            let known = known.filter(|known| known.name == group.name);
            let known = known.map(|known| (known.replicas, known.to_delete.len()));
            let told = json!({"pods": pods, "replicas and to delete": known.collect::<Vec<_>>()});
            groups.insert(group.name.clone(), told);
        }
        json!({"groups": groups, "waiting": self.waiting()})
    }

    /// What the scaler sees.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let world = &self.world;
        let gcs = observed::gcs_state(world, &self.story.settings.plan, 0.0).unwrap();
        let pods = observed::own_pods(&world.view);
        let time = world.now.text(0.0);
        observed::snapshot(world, pods, gcs, time, &History::default())
    }

    /// The round that a process makes which has just been started.
    pub(crate) fn first_round(&self, snapshot: &Snapshot) -> Round {
        round(snapshot, &RoundMemory::default(), &self.story.settings)
    }
}

/// A pool of a single node.
fn pool(cores: i64, of: &str) -> NodePool {
    NodePool {
        name: of.to_owned(),
        allocatable: Amounts::new(
            Quantity::from_units(cores),
            Quantity::from_units((4 * cores) << 30),
        ),
        labels: [("for".to_owned(), of.to_owned())].into(),
        min: 1,
        max: 1,
        start_s: 60.0,
        idle_s: FOR_EVER,
        ..NodePool::default()
    }
}
