//! The state of the world, and what happens in it.

use std::rc::Rc;

use serde_json::{Value, json};

use super::disturbance::{Disturbance, Undisturbed};
use super::group::{SimulatedGroup, SimulatedGroupError, groups};
use super::ledger::{Capacity, CostLedger};
use super::log::EventLog;
use super::machines::Machines;
use super::memory_reports::MemoryReports;
use super::objects::{SimulatedPod, WorldView};
use super::queue::{EventQueue, WorldEvent};
use crate::ray::ReconcileMode;
use crate::simulate::moment::Moment;
use crate::simulate::ray::Ray;
use crate::simulate::ray::node::RayNodeStage;
use crate::simulate::settings::WorldSettings;
use crate::simulate::trace::Trace;
use crate::snapshot::cluster_object::{ClusterObject, DEFAULT_IDLE_TIMEOUT_S};

/// The world.
#[derive(Debug, Clone)]
pub struct World {
    /// The settings of the world.
    pub settings: WorldSettings,
    /// The present moment.
    pub now: Moment,
    /// The costs of the cluster.
    pub ledger: CostLedger,
    /// The Ray cluster.
    pub ray: Ray,
    /// The objects as watchers have them.
    pub view: WorldView,
    /// The faults of the world now.
    pub disturbance: Rc<dyn Disturbance>,
    /// The log of the world's changes.
    pub log: EventLog,
    /// The source of everything random but Ray's own choices.
    pub random: fastrand::Rng,
    /// The Kubernetes nodes, and the pods on them.
    pub machines: Machines,
    /// The number of the cluster among those that share them.
    pub number: usize,
    pub(super) queue: EventQueue,
    pub(super) cluster: ClusterObject,
    pub(super) version: u64,
    pub(super) groups: Vec<SimulatedGroup>,
    /// The groups that were removed: their pods may still be there.
    pub(super) former: Vec<SimulatedGroup>,
    /// The number of jobs that are still to be submitted.
    pub(super) submissions: usize,
    /// Whether watchers or the GCS will act on a change anyway.
    pub(super) is_watched: bool,
    pub(super) is_pulled: bool,
    pub(super) are_loads_watched: bool,
    pub(super) memory_reports: MemoryReports,
    pub(super) lost_head: LostHead,
}

/// The consequences of the loss of a head.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LostHead {
    /// Whether a head was lost, and whether there is another one.
    pub(super) head: HeadLoss,
    /// Whether drivers start again once there is another head.
    pub(super) returns: bool,
    /// Whether they have not done so since the last loss.
    pub(super) is_awaited: bool,
}

/// Whether a head was lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum HeadLoss {
    /// None ever was.
    #[default]
    Never,
    /// One was, and no other has joined since.
    Gone,
    /// One was, and another one has joined.
    Replaced,
}

impl World {
    /// The world at its beginning: the RayCluster has just been made, and has no pods yet.
    ///
    /// # Errors
    ///
    /// A group of the RayCluster cannot be read.
    pub fn new(
        cluster: &Value,
        trace: &Trace,
        settings: WorldSettings,
    ) -> Result<Self, SimulatedGroupError> {
        let machines = Machines::new(&settings.pools);
        Self::beside(cluster, trace, settings, machines)
    }

    /// The same, on nodes that other clusters use too. The RayCluster has a UID and a namespace and name
    /// of its own.
    ///
    /// # Errors
    ///
    /// A group of the RayCluster cannot be read.
    pub fn beside(
        cluster: &Value,
        trace: &Trace,
        settings: WorldSettings,
        mut machines: Machines,
    ) -> Result<Self, SimulatedGroupError> {
        let mut world = Self {
            now: Moment::START,
            ledger: CostLedger::default(),
            ray: Ray::new(trace, settings.seed),
            view: WorldView::default(),
            disturbance: Rc::new(Undisturbed),
            log: EventLog::default(),
            number: machines.join(),
            machines,
            // Another seed than Ray's, or both would draw the same numbers.
            random: fastrand::Rng::with_seed(settings.seed.wrapping_add(1)),
            queue: EventQueue::default(),
            cluster: ClusterObject::default(),
            version: 0,
            groups: Vec::new(),
            former: Vec::new(),
            submissions: 0,
            is_watched: false,
            is_pulled: false,
            are_loads_watched: false,
            memory_reports: MemoryReports::default(),
            lost_head: LostHead::default(),
            settings,
        };
        world.set_cluster(prepared(cluster))?;
        let head = world
            .groups
            .iter()
            .find(|group| group.name == crate::ray::group::HEAD_NAME);
        if let Some(head) = head.cloned() {
            world.make_head(&head);
        }
        Ok(world)
    }

    /// The next thing that happens by itself, and the world at its moment.
    pub fn advance(&mut self) -> Option<WorldEvent> {
        let (at, event) = self.queue.take()?;
        if at > self.now {
            self.settle();
        }
        self.now = at.max(self.now);
        Some(event)
    }

    /// The next event, without letting it happen.
    pub fn peek(&self) -> Option<WorldEvent> {
        self.queue.peek().map(|(_, event)| event)
    }

    /// The time of the next event.
    pub fn next_at(&self) -> Option<Moment> {
        self.queue.peek().map(|(at, _)| at)
    }

    /// Whether jobs are still to be submitted.
    pub fn has_submissions(&self) -> bool {
        self.submissions > 0 || self.awaits_drivers()
    }

    /// Goes on to a moment before which nothing happens, and adds up the costs until then.
    pub fn pass_to(&mut self, moment: Moment) {
        self.settle();
        self.now = moment.max(self.now);
        // Nothing changes at this moment, but the curves have to reach up to it.
        self.ledger.set(self.ledger.rate(), self.now);
        self.draw();
        self.settle();
    }

    /// Sets an event so many seconds from now.
    pub fn after(&mut self, seconds: f64, event: WorldEvent) {
        self.queue.add(self.now.plus(seconds), event);
    }

    /// Sets an event at a moment.
    pub fn at(&mut self, moment: Moment, event: WorldEvent) {
        self.queue.add(moment.max(self.now), event);
    }

    /// Sends a call of the scaler, which arrives with that event.
    pub fn send(&mut self, is_kubernetes: bool, event: WorldEvent) {
        if !is_kubernetes || !self.disturbance.holds(event) {
            self.after(self.settings.call_s, event);
        }
    }

    /// Lets an event happen. Looks and answers are the scaler's, and change nothing here.
    pub fn happen(&mut self, event: WorldEvent) {
        match event {
            WorldEvent::Submitted(job) => {
                self.submissions -= 1;
                self.ray.submit(job, self.now);
                self.ray_changed();
            }
            WorldEvent::JobEnds { job, attempt } => {
                self.ray.end(job, attempt, self.now);
                self.ray_changed();
            }
            WorldEvent::MemoryStep { job, attempt, step } => self.memory_step(job, attempt, step),
            WorldEvent::MemoryReport => self.report_memory(),
            WorldEvent::Retried(job) => self.retried(job),
            WorldEvent::DriversReturn => self.drivers_return(),
            WorldEvent::Operator => self.operate(),
            WorldEvent::Scheduler => self.schedule_pods(),
            WorldEvent::PodRuns(pod) => self.pod_runs(pod),
            WorldEvent::RayJoins(pod) => self.ray_joins(pod),
            WorldEvent::RayEnds(pod) => self.ray_ends(pod),
            WorldEvent::PodEnds(pod) => self.pod_ends(pod),
            WorldEvent::PodGone(pod) => self.pod_gone(pod),
            WorldEvent::Kubelet(pod) => self.kubelet(pod),
            WorldEvent::Resized { pod, generation } => self.resized(pod, generation),
            WorldEvent::NodeReady(node) => self.node_ready(node),
            WorldEvent::NodeAutoscaler => self.scan_nodes(),
            WorldEvent::Pull => {
                self.is_pulled = false;
                self.ray.pull();
            }
            WorldEvent::Watched => self.watched(),
            WorldEvent::LoadsWatched => self.loads_watched(),
            WorldEvent::Look { .. }
            | WorldEvent::Answered { .. }
            | WorldEvent::Lease(_)
            | WorldEvent::WatchedLate => {}
        }
    }

    /// Whether the head and all workers that the RayCluster asks for have joined.
    pub fn is_up(&self) -> bool {
        let wanted = self.groups.iter().filter(|group| !group.is_suspended);
        let wanted: i64 = wanted.map(|group| group.replicas * group.hosts).sum();
        let alive = self
            .ray
            .living()
            .filter(|(_, node)| node.stage == RayNodeStage::Alive);
        i64::try_from(alive.count()).is_ok_and(|alive| alive >= wanted)
    }

    /// The jobs are submitted, each at its time from now on, and costs are counted from now on.
    pub fn begin(&mut self, trace: &Trace) {
        self.submissions = trace.jobs.len();
        for (number, job) in trace.jobs.iter().enumerate() {
            self.after(job.at, WorldEvent::Submitted(number));
        }
        let rate = self.ledger.rate();
        self.ledger = CostLedger::default();
        self.ledger.set(Capacity::default(), self.now);
        self.ledger.set(rate, self.now);
        self.draw();
    }

    /// The longest time for which an idle worker is kept, in seconds.
    pub fn longest_idle_s(&self) -> f64 {
        let mut spec = self.cluster.spec.iter();
        let own = spec.clone().flat_map(|spec| &spec.groups);
        let own = own.filter_map(|group| group.idle_timeout.seconds());
        let common = spec.find_map(|spec| spec.idle_timeout.seconds());
        own.fold(common.unwrap_or(DEFAULT_IDLE_TIMEOUT_S), f64::max)
            // A RayCluster may say any number, and the simulation goes on for so long after its
            // last job.
            .clamp(0.0, 86_400.0)
    }

    /// The UID of the RayCluster.
    pub fn uid(&self) -> String {
        self.cluster_text("/metadata/uid").unwrap_or_default()
    }

    /// The name of the RayCluster.
    pub fn name(&self) -> String {
        self.cluster_text("/metadata/name").unwrap_or_default()
    }

    /// The namespace of the RayCluster.
    pub fn namespace(&self) -> String {
        self.cluster_text("/metadata/namespace").unwrap_or_default()
    }

    pub(super) fn cluster_text(&self, pointer: &str) -> Option<String> {
        let text = self
            .cluster
            .object()
            .pointer(pointer)
            .and_then(Value::as_str);
        text.map(str::to_owned)
    }

    /// The number of the pod that has this name now.
    pub fn pod_named(&self, name: &str) -> Option<usize> {
        let own = self.machines.present.get(self.number)?;
        own.get(name).copied()
    }

    /// Stores the RayCluster as it was changed.
    pub(super) fn set_cluster(&mut self, mut cluster: Value) -> Result<(), SimulatedGroupError> {
        cluster["metadata"]["resourceVersion"] = json!((self.version + 1).to_string());
        let before = self.cluster.object();
        // The API server raises the generation for changes of the spec alone.
        let is_changed = before["spec"] != cluster["spec"];
        let generation = before["metadata"]["generation"].as_i64().unwrap_or(0);
        cluster["metadata"]["generation"] = json!(generation + i64::from(is_changed));
        let cluster = ClusterObject::from(cluster);
        let groups = groups(&cluster)?;
        let before = std::mem::replace(&mut self.groups, groups);
        let is_gone =
            |group: &SimulatedGroup| !self.groups.iter().any(|known| known.name == group.name);
        // KubeRay goes on with the groups that are there, and does not touch pods of the others.
        self.former.extend(before.into_iter().filter(is_gone));
        self.version += 1;
        self.cluster = cluster;
        self.after(self.settings.operator_s, WorldEvent::Operator);
        self.objects_changed();
        Ok(())
    }

    /// Something about Ray has changed: what fits is started, and drained nodes without work end.
    pub(super) fn ray_changed(&mut self) {
        for job in self.ray.schedule(self.now) {
            let started = &mut self.ray.jobs.all[job];
            let begins = if started.is_new_process {
                self.settings.worker_start_s
            } else {
                0.0
            };
            started.started = Some(self.now.plus(begins));
            let (seconds, attempt) = (begins + started.seconds, started.attempt);
            self.after(seconds, WorldEvent::JobEnds { job, attempt });
            self.follow_memory(job);
        }
        for pod in self.ray.ending() {
            self.after(self.settings.ray_stop_s, WorldEvent::RayEnds(pod));
        }
        // The GCS pulls once a second in any case; only pulls that bring something new are events.
        if self.ray.has_changed && !self.is_pulled {
            self.is_pulled = true;
            self.queue.add(
                self.now.next_multiple(self.settings.gcs_pull_s),
                WorldEvent::Pull,
            );
        }
        self.draw();
    }

    /// Counts from now on what worker pods and nodes take now.
    #[expect(clippy::cast_precision_loss, reason = "costs are reckoned in floats")]
    pub(super) fn count_cost(&mut self) {
        let mut rate = Capacity::default();
        let pods = self.own().map(|pod| &self.machines.pods[pod]);
        for (cpus, memory, gpus) in pods.filter_map(SimulatedPod::paid) {
            rate.cpus += cpus;
            rate.memory += memory;
            rate.gpus += gpus;
        }
        rate.nodes = self
            .machines
            .nodes
            .iter()
            .filter(|node| node.removed.is_none())
            .count() as f64;
        self.ledger.set(rate, self.now);
        self.draw();
    }
}

/// The RayCluster as Rayfit scales it, with what the API server would add.
fn prepared(cluster: &Value) -> Value {
    let mut cluster = cluster.clone();
    let metadata = &mut cluster["metadata"];
    for (key, value) in [
        ("name", "cluster"),
        ("namespace", "default"),
        ("uid", "cluster"),
    ] {
        if !metadata[key].is_string() {
            metadata[key] = json!(value);
        }
    }
    metadata["annotations"][crate::ray::reconcile::ANNOTATION] =
        json!(ReconcileMode::Central.name());
    let spec = &mut cluster["spec"];
    // Without it KubeRay deletes workers at random, and Rayfit does not scale the cluster.
    spec["enableInTreeAutoscaling"] = json!(true);
    spec["autoscalerOptions"]["version"] = json!("v2");
    cluster
}
