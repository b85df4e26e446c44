//! The state of the world, what happens in it, and the seam by which tests let things go wrong.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Debug;
use std::rc::Rc;

use serde_json::{Value, json};

use super::group::{SimulatedGroup, groups};
use super::ledger::{Capacity, CostLedger};
use super::machines::Machines;
use super::objects::{DeletionCause, WorldView};
use super::queue::WorldEvent;
use crate::quantity::Quantity;
use crate::ray::ReconcileMode;
use crate::reconcile::{Effect, Failure, Reply, Round};
use crate::simulate::moment::Moment;
use crate::simulate::ray::Ray;
use crate::simulate::ray::node::RayNodeStage;
use crate::simulate::settings::WorldSettings;
use crate::simulate::trace::Trace;
use crate::snapshot::Snapshot;
use crate::snapshot::cluster_object::ClusterObject;
use crate::snapshot::gcs::ClusterResourceState;

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
    /// The RayCluster as it is stored.
    pub cluster: Rc<ClusterObject>,
    /// Its head group and its worker groups.
    pub groups: Vec<SimulatedGroup>,
    /// The objects as watchers have them.
    pub view: WorldView,
    /// The faults of the world.
    pub disturbance: Rc<dyn Disturbance>,
    /// The source of everything random but Ray's own choices.
    pub random: fastrand::Rng,
    /// The Kubernetes nodes, and the pods on them.
    pub machines: Machines,
    /// The number of the cluster among those that share them.
    pub number: usize,
    /// The number of jobs that are still to be submitted.
    pub submissions: usize,
    /// The events to come, by time; those of one moment in the order in which they were set.
    events: BinaryHeap<Reverse<(Moment, u64, WorldEvent)>>,
    /// The number of events that were ever set.
    event_count: u64,
    version: u64,
    /// The groups that were removed: their pods may still be there.
    pub(super) former: Vec<SimulatedGroup>,
    /// True while an event is queued by which watchers get all changes of objects.
    pub is_watched: bool,
    pub(super) is_pulled: bool,
    pub(super) are_loads_watched: bool,
}

/// The faults of a world, and whoever checks it. By default nothing goes wrong.
pub trait Disturbance: Debug {
    /// Gives a wrong answer to a call; without an effect the call writes the hand-over record.
    fn answer(&self, _effect: Option<&Effect>) -> Option<WrongAnswer> {
        None
    }

    /// Hears of a call of the scaler, whether it was carried out, and how it was answered.
    fn called(
        &self,
        _now: Moment,
        _effect: &Effect,
        _done: bool,
        _result: &Result<Reply, Failure>,
    ) {
    }

    /// Hears how a write of the hand-over record was answered.
    fn claimed(&self, _now: Moment, _result: &Result<(), Failure>) {}

    /// Refuses a write that the scaler would begin now, because its Lease may end before the write does.
    fn fence(&self, _now: Moment) -> Option<Failure> {
        None
    }

    /// Checks whether the scaler's process reaches neither API server nor GCS.
    fn is_cut_off(&self) -> bool {
        false
    }

    /// Hears of a decision of the scaler before anything follows from it.
    fn decided(&self, _snapshot: &Snapshot, _round: &Round) {}

    /// Takes a request to the API server, so that it does not arrive by itself. Returns whether it did.
    fn holds(&self, _event: WorldEvent) -> bool {
        false
    }

    /// The webhook's reason to deny a change of the RayCluster.
    fn denial(
        &self,
        _now: Moment,
        _stored: &Value,
        _changed: &Value,
        _user: &str,
    ) -> Option<String> {
        None
    }

    /// The CPU that a quota leaves to the cluster's namespace, if there is one.
    fn quota_left(&self, _world: &World) -> Option<Quantity> {
        None
    }

    /// Changes what watchers hear of the stored objects.
    fn show(&self, _before: &WorldView, stored: WorldView) -> WorldView {
        stored
    }

    /// Answers a read of the RayCluster by itself, out of date. Returns whether it did.
    fn answers_read(&self, _world: &mut World) -> bool {
        false
    }

    /// Checks whether the GCS is out of reach.
    fn is_gcs_away(&self) -> bool {
        false
    }

    /// Changes what the GCS says. `head` is the name of the head's pod.
    fn falsify(&self, _state: &mut ClusterResourceState, _head: &str) {}

    /// The reason for which kubelets refuse every resize, if they do not try.
    fn resize_refusal(&self) -> Option<&'static str> {
        None
    }

    /// Hears that KubeRay's operator deletes a pod.
    fn pod_deleted(&self, _world: &World, _pod: usize, _cause: DeletionCause) {}

    /// Hears that a pod is gone, or that its containers have ended by themselves.
    fn pod_ended(&self, _world: &mut World, _pod: usize) {}

    /// Hears that a head takes work.
    fn head_joined(&self, _world: &mut World) {}

    /// Hears that the process of a job was killed because its pod had too little memory.
    fn memory_killed(&self, _now: Moment, _pod: &str) {}

    /// Hears that Ray has failed tasks that waited, because its node that could hold them became smaller.
    fn tasks_failed(&self, _world: &World, _pod: &str, _tasks: &[usize]) {}
}

/// Nothing goes wrong, and nobody checks.
impl Disturbance for () {}

/// An answer that a call should not get.
#[derive(Debug, Clone)]
pub struct WrongAnswer {
    /// The answer.
    pub failure: Failure,
    /// True if the call is carried out all the same.
    pub is_done: bool,
}

impl World {
    /// The world at its beginning: the RayCluster has just been made, and has no pods yet.
    ///
    /// # Errors
    ///
    /// A group of the RayCluster cannot be read.
    pub fn new(cluster: &Value, trace: &Trace, settings: WorldSettings) -> Result<Self, String> {
        let machines = Machines::new(&settings.pools);
        Self::beside(cluster, trace, settings, machines)
    }

    /// The world of a further cluster on nodes that other clusters use too. The RayCluster has a UID and a
    /// namespace and name of its own.
    ///
    /// # Errors
    ///
    /// A group of the RayCluster cannot be read.
    pub fn beside(
        cluster: &Value,
        trace: &Trace,
        settings: WorldSettings,
        mut machines: Machines,
    ) -> Result<Self, String> {
        machines.present.push(std::collections::BTreeMap::new());
        let mut world = Self {
            now: Moment::START,
            ledger: CostLedger::default(),
            ray: Ray::new(trace, settings.seed),
            cluster: Rc::default(),
            groups: Vec::new(),
            view: WorldView::default(),
            disturbance: Rc::new(()),
            number: machines.present.len() - 1,
            machines,
            // Another seed than Ray's, or both would draw the same numbers.
            random: fastrand::Rng::with_seed(settings.seed.wrapping_add(1)),
            submissions: 0,
            events: BinaryHeap::new(),
            event_count: 0,
            version: 0,
            former: Vec::new(),
            is_watched: false,
            is_pulled: false,
            are_loads_watched: false,
            settings,
        };
        // The RayCluster is as Rayfit scales it, with what the API server would add.
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
        world.set_cluster(cluster)?;
        if let Some(head) = world.groups.iter().find(|group| group.is_head()).cloned() {
            world.make_replica(&head);
        }
        Ok(world)
    }

    /// The next thing that happens by itself, and the world at its moment.
    pub fn advance(&mut self) -> Option<WorldEvent> {
        let Reverse((at, _, event)) = self.events.pop()?;
        // All events of one moment make one point of the curves.
        if at > self.now {
            self.settle();
        }
        self.now = at.max(self.now);
        Some(event)
    }

    /// The time of the next event.
    pub fn next_at(&self) -> Option<Moment> {
        let Reverse((at, ..)) = self.events.peek()?;
        Some(*at)
    }

    /// Goes on to a moment before which nothing happens, and adds up the costs until then.
    pub fn pass_to(&mut self, moment: Moment) {
        self.settle();
        self.now = moment.max(self.now);
        // Nothing changes at this moment, but the curves have to reach up to it.
        self.ledger.set(self.ledger.rate, self.now);
        self.settle();
    }

    /// Sets an event so many seconds from now.
    pub fn after(&mut self, seconds: f64, event: WorldEvent) {
        self.at(self.now.plus(seconds), event);
    }

    /// Sets an event at a moment.
    pub fn at(&mut self, moment: Moment, event: WorldEvent) {
        self.event_count += 1;
        let at = moment.max(self.now);
        self.events.push(Reverse((at, self.event_count, event)));
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
            WorldEvent::MemoryCheck(node) => self.relieve(node, true),
            WorldEvent::MemoryReport => self.report_memory(),
            WorldEvent::Retried(job) => {
                self.ray.retry(job);
                self.ray_changed();
            }
            WorldEvent::Operator => self.operate(),
            WorldEvent::Scheduler => self.schedule_pods(),
            WorldEvent::PodRuns(pod) => self.pod_runs(pod),
            WorldEvent::RayJoins(pod) => self.ray_joins(pod),
            WorldEvent::RayEnds(pod) => self.ray_ends(pod),
            WorldEvent::PodEnds(pod) => {
                Rc::clone(&self.disturbance).pod_ended(self, pod);
                self.end_pod(pod, "Succeeded");
            }
            WorldEvent::PodGone(pod) => self.pod_gone(pod),
            WorldEvent::Kubelet(pod) => self.kubelet(pod),
            WorldEvent::Resized { pod, generation } => self.resized(pod, generation),
            WorldEvent::NodeReady(node) => self.node_ready(node),
            WorldEvent::NodeAutoscaler => self.scan_nodes(),
            WorldEvent::Pull => {
                self.is_pulled = false;
                self.ray.pull();
            }
            WorldEvent::Watched => {
                self.is_watched = false;
                let shown = self.disturbance.show(&self.view, self.stored());
                self.set_view(shown);
            }
            WorldEvent::LoadsWatched => self.loads_watched(),
            WorldEvent::Look { .. } | WorldEvent::Answered { .. } | WorldEvent::Outside(_) => {}
        }
    }

    /// Checks whether the head and all workers that the RayCluster asks for have joined.
    pub fn is_up(&self) -> bool {
        let wanted = self.groups.iter().filter(|group| !group.is_suspended);
        let wanted: i64 = wanted.map(|group| group.replicas * group.hosts).sum();
        let living = self.ray.living();
        let alive = living.filter(|(_, node)| node.stage == RayNodeStage::Alive);
        i64::try_from(alive.count()).is_ok_and(|alive| alive >= wanted)
    }

    /// The number of workers that the minima of all groups keep.
    pub fn least_workers(&self) -> i64 {
        let workers = self.groups.iter().filter(|group| !group.is_head());
        workers.map(|group| group.least * group.hosts).sum()
    }

    /// The jobs are submitted, each at its time from now on, and costs are counted from now on.
    pub fn begin(&mut self, trace: &Trace) {
        self.submissions = trace.jobs.len();
        for (number, job) in trace.jobs.iter().enumerate() {
            self.after(job.at, WorldEvent::Submitted(number));
        }
        // The cost of bringing the cluster up is not that of the workload.
        let rate = self.ledger.rate;
        self.ledger = CostLedger::default();
        self.ledger.set(Capacity::default(), self.now);
        self.ledger.set(rate, self.now);
    }

    /// A field of the RayCluster's metadata.
    pub fn metadata(&self, key: &str) -> String {
        let text = self.cluster.object()["metadata"][key].as_str();
        text.unwrap_or_default().to_owned()
    }

    /// Stores the RayCluster as it was changed.
    ///
    /// # Errors
    ///
    /// A group of it cannot be read.
    pub fn set_cluster(&mut self, mut cluster: Value) -> Result<(), String> {
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
        self.cluster = Rc::new(cluster);
        self.after(self.settings.operator_s, WorldEvent::Operator);
        self.objects_changed();
        Ok(())
    }
}
