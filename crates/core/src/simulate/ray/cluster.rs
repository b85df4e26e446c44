//! The state of a Ray cluster, and what happens in it.

use std::collections::{BTreeMap, VecDeque};

use super::jobs::{JobNeed, JobOutput, JobState, Jobs};
use super::node::{RayNode, RayNodeStage};
use super::placing;
use super::resources::{Bundle, ResourceNames};
use crate::simulate::moment::Moment;
use crate::simulate::trace::Trace;
use crate::snapshot::gcs::{NodeState, NodeStatus};

/// The number of dead nodes that the GCS goes on listing. It keeps more; the newest are enough here.
const DEAD_NODES: usize = 100;

/// The Ray cluster of a world.
#[derive(Debug, Clone)]
pub struct Ray {
    /// The names of resources.
    pub names: ResourceNames,
    /// All nodes that there ever were.
    pub nodes: Vec<RayNode>,
    /// The numbers of those that are not dead, in their order.
    pub alive: Vec<usize>,
    /// The states that the GCS lists of the nodes that died last.
    pub dead: VecDeque<NodeState>,
    /// All jobs.
    pub jobs: Jobs,
    /// The waiting tasks and actors, by shape.
    pub queues: BTreeMap<usize, VecDeque<usize>>,
    /// The waiting placement groups.
    pub gangs: VecDeque<usize>,
    /// The tasks that waited, counted by shape, when the GCS last collected that.
    pub pulled: Vec<(usize, i64)>,
    /// The nodes as they were then.
    pub reported: BTreeMap<usize, RayNode>,
    /// True if anything has changed since.
    pub has_changed: bool,
    /// True while an event is queued by which agents report the memory in use.
    pub is_report_due: bool,
    /// True if a node was nearly full by the last report.
    pub is_nearly_full: bool,
    /// The version of the GCS's answer: it changes when the answer may differ, idle times aside.
    pub version: u64,
    pub(super) random: fastrand::Rng,
}

impl Ray {
    /// A Ray cluster without nodes, and the jobs of a trace.
    pub fn new(trace: &Trace, seed: u64) -> Self {
        let mut names = ResourceNames::default();
        let jobs = Jobs::of(trace, &mut names);
        Self {
            names,
            nodes: Vec::new(),
            alive: Vec::new(),
            dead: VecDeque::new(),
            jobs,
            queues: BTreeMap::new(),
            gangs: VecDeque::new(),
            pulled: Vec::new(),
            reported: BTreeMap::new(),
            has_changed: false,
            is_report_due: false,
            is_nearly_full: false,
            version: 0,
            random: fastrand::Rng::with_seed(seed),
        }
    }

    /// Something changes.
    pub fn touch(&mut self) {
        self.has_changed = true;
        self.version += 1;
    }

    /// Adds a node.
    pub fn join(&mut self, node: RayNode) {
        self.touch();
        self.alive.push(self.nodes.len());
        self.nodes.push(node);
    }

    /// The nodes that are not dead, with their numbers.
    pub fn living(&self) -> impl Iterator<Item = (usize, &RayNode)> {
        self.alive
            .iter()
            .map(|number| (*number, &self.nodes[*number]))
    }

    /// The number of the node of a pod that is not dead.
    pub fn node_of(&self, pod: usize) -> Option<usize> {
        let mut alive = self.alive.iter().rev().copied();
        alive.find(|number| self.nodes[*number].pod == pod)
    }

    /// A job is submitted.
    pub fn submit(&mut self, job: usize, now: Moment) {
        if self.jobs.may_be_ready(job, now) {
            self.wait(job);
        }
    }

    /// A job waits for resources.
    pub fn wait(&mut self, job: usize) {
        self.touch();
        self.jobs.all[job].is_delayed = false;
        match &self.jobs.all[job].need {
            JobNeed::Shape(shape) => self.queues.entry(*shape).or_default().push_back(job),
            JobNeed::Gang { .. } => self.gangs.push_back(job),
        }
    }

    /// The bundles that wait for room, with the number of each.
    pub fn waiting(&self) -> impl Iterator<Item = (&Bundle, usize)> {
        let shapes = self.queues.iter();
        let shapes = shapes.map(|(shape, queue)| (&self.jobs.shapes[*shape], queue.len()));
        let gangs = self.gangs.iter().map(|job| &self.jobs.all[*job].need);
        let bundles = gangs.flat_map(|need| match need {
            JobNeed::Gang { bundles, .. } => bundles.as_slice(),
            JobNeed::Shape(_) => &[],
        });
        shapes.chain(bundles.map(|bundle| (bundle, 1)))
    }

    /// Checks whether any job runs.
    pub fn is_running(&self) -> bool {
        self.living().any(|(_, node)| node.running > 0)
    }

    /// Starts what fits, and returns the jobs that started.
    pub fn schedule(&mut self, now: Moment) -> Vec<usize> {
        let mut started = Vec::new();
        for job in std::mem::take(&mut self.gangs) {
            let JobNeed::Gang { strategy, bundles } = &self.jobs.all[job].need else {
                continue;
            };
            let Some(places) = placing::gang(&self.nodes, &self.alive, *strategy, bundles) else {
                self.gangs.push_back(job);
                continue;
            };
            let shares = places.into_iter().zip(bundles.clone()).collect();
            self.start(job, shares, now);
            started.push(job);
        }
        let gpu = self.names.find("GPU");
        let shapes: Vec<usize> = self.queues.keys().copied().collect();
        for shape in shapes {
            let bundle = self.jobs.shapes[shape].clone();
            loop {
                let queue = self.queues.entry(shape).or_default();
                let Some(job) = queue.front().copied() else {
                    break;
                };
                let draw = |below: usize| self.random.usize(..below);
                let Some(node) = placing::hybrid(&self.nodes, &self.alive, &bundle, gpu, draw)
                else {
                    break;
                };
                queue.pop_front();
                self.start(job, vec![(node, bundle.clone())], now);
                started.push(job);
            }
        }
        self.queues.retain(|_, queue| !queue.is_empty());
        started
    }

    fn start(&mut self, number: usize, shares: Vec<(usize, Bundle)>, now: Moment) {
        self.touch();
        let job = &mut self.jobs.all[number];
        let is_gang = matches!(job.need, JobNeed::Gang { .. });
        job.is_new_process = is_gang;
        // An event that ends a job names its attempt: one of an attempt that was lost meanwhile
        // ends nothing.
        job.attempt += 1;
        job.started = Some(now);
        for (node, bundle) in &shares {
            let node = &mut self.nodes[*node];
            node.used.add(bundle);
            node.running += 1;
            if !job.memory.is_empty() && !node.with_memory.contains(&number) {
                node.with_memory.push(number);
            }
            if is_gang {
                node.gangs.push(number);
            } else if node.idle_processes > 0 {
                // A worker process that waits takes the task at once, and saves the time in which
                // one would start.
                node.idle_processes -= 1;
            } else {
                job.is_new_process = true;
            }
        }
        job.state = JobState::Running(shares);
    }

    /// A job ends, unless it was lost meanwhile and tried again.
    pub fn end(&mut self, number: usize, attempt: u32, now: Moment) {
        let job = &self.jobs.all[number];
        let JobState::Running(shares) = &job.state else {
            return;
        };
        if job.attempt != attempt {
            return;
        }
        let ran_on = shares.first().map(|(node, _)| *node);
        self.give_back(number, now);
        for ready in self.jobs.end(number, now) {
            self.wait(ready);
        }
        // Its output stays on the node where it ran, if it is large and others wait for it.
        let is_large = self.jobs.all[number].output == JobOutput::Large;
        if let Some(node) = ran_on.filter(|_| is_large)
            && self.jobs.is_needed(number)
        {
            self.jobs.all[number].output = JobOutput::Kept(node);
            self.nodes[node].objects += 1;
        }
        // Outputs that nobody but it needed are dropped.
        for parent in self.jobs.all[number].parents.clone() {
            self.drop_if_unneeded(parent, now);
        }
    }

    /// A job no longer runs: what it holds is free.
    pub fn give_back(&mut self, number: usize, now: Moment) {
        self.touch();
        let job = &mut self.jobs.all[number];
        // The process of an actor ends with it, and that of a task waits for the next one.
        let is_reused = !job.is_actor && matches!(job.need, JobNeed::Shape(_));
        let JobState::Running(shares) = std::mem::replace(&mut job.state, JobState::Ready) else {
            return;
        };
        let cpu = self.names.find("CPU");
        for (node, bundle) in shares {
            let node = &mut self.nodes[node];
            node.used.subtract(&bundle);
            node.running -= 1;
            if is_reused {
                // A raylet keeps as many as it has CPUs. (`worker_pool.cc`: `num_workers_soft_limit`.)
                let cpus = cpu.map_or(0, |cpu| node.total.get(cpu)) / 10_000;
                let most = usize::try_from(cpus).unwrap_or_default();
                node.idle_processes = (node.idle_processes + 1).min(most);
            }
            node.gangs.retain(|gang| *gang != number);
            node.with_memory.retain(|job| *job != number);
            if node.is_idle() {
                node.idle_since = now;
            }
        }
    }

    /// A node is gone. Returns how many jobs ran on it; each is tried again, or lost.
    pub fn lose(&mut self, node: usize, now: Moment) -> usize {
        self.touch();
        self.nodes[node].stage = RayNodeStage::Dead;
        self.alive.retain(|alive| *alive != node);
        let dead = &self.nodes[node];
        self.dead.push_back(NodeState {
            node_id: dead.id.to_string(),
            instance_id: dead.pod_name.clone(),
            ray_node_type_name: dead.group.clone(),
            status: NodeStatus::Dead,
            ..NodeState::default()
        });
        if self.dead.len() > DEAD_NODES {
            self.dead.pop_front();
        }
        self.lose_objects(node);
        // Most nodes end without work, and what follows goes through all jobs.
        if self.nodes[node].running == 0 {
            return 0;
        }
        let runs_here = |state: &JobState| match state {
            JobState::Running(shares) => shares.iter().any(|(on, _)| *on == node),
            _ => false,
        };
        let jobs = self.jobs.all.iter().enumerate();
        let here: Vec<usize> = jobs
            .filter(|(_, job)| runs_here(&job.state))
            .map(|(number, _)| number)
            .collect();
        for number in &here {
            self.give_back(*number, now);
            let job = &mut self.jobs.all[*number];
            if job.retries == 0 {
                self.jobs.lose(*number);
            } else {
                job.retries -= 1;
                self.wait(*number);
            }
        }
        // Jobs that were lost read nothing any more, so outputs that were kept for them alone are dropped.
        for number in 0..self.jobs.all.len() {
            self.drop_if_unneeded(number, now);
        }
        here.len()
    }

    /// A node is drained: an idle one only, if so asked. Returns whether it accepts.
    pub fn drain(&mut self, number: usize, only_idle: bool) -> bool {
        self.touch();
        let node = &mut self.nodes[number];
        if only_idle && !node.is_idle() {
            return false;
        }
        if node.stage == RayNodeStage::Alive {
            node.stage = RayNodeStage::Draining;
        }
        true
    }

    /// A node is to end whatever work it has. Returns its pod, unless it ends already.
    pub fn stop(&mut self, number: usize) -> Option<usize> {
        self.touch();
        let node = &mut self.nodes[number];
        node.stage = RayNodeStage::Draining;
        let is_first = !std::mem::replace(&mut node.is_ending, true);
        is_first.then_some(node.pod)
    }

    /// The pods of drained nodes whose work has ended since this was last asked.
    pub fn ending(&mut self) -> Vec<usize> {
        let mut ending = Vec::new();
        for number in &self.alive {
            let node = &mut self.nodes[*number];
            if node.stage == RayNodeStage::Draining && node.running == 0 && !node.is_ending {
                node.is_ending = true;
                ending.push(node.pod);
            }
        }
        ending
    }

    /// A raylet is told its size. It never gives up what is in use. Returns what it has then, and the jobs
    /// that Ray fails because of it.
    pub fn resize(
        &mut self,
        number: usize,
        sizes: &[(&str, i64)],
        now: Moment,
    ) -> (Bundle, Vec<usize>) {
        self.touch();
        let node = &mut self.nodes[number];
        let old_total = node.total.clone();
        for (name, amount) in sizes {
            let resource = self.names.number(name);
            let least = node.used.get(resource);
            node.total.set(resource, (*amount).max(least));
        }
        // In Ray a resize that changes something restarts the idle time, and one that does not
        // leaves it.
        if node.total != old_total && node.is_idle() {
            node.idle_since = now;
        }
        let total = node.total.clone();
        // Ray fails the tasks that the node could hold before it became smaller, and that no node can now,
        // whatever is free: it takes them for wrongly queued. Actors wait in the GCS, which lets them.
        // (`local_lease_manager.cc`, `GrantScheduledLeasesToWorkers`.)
        let mut failed = Vec::new();
        for (shape, queue) in &mut self.queues {
            let shape = &self.jobs.shapes[*shape];
            let mut living = self.alive.iter().map(|number| &self.nodes[*number]);
            if !shape.fits(&old_total) || living.any(|node| shape.fits(&node.total)) {
                continue;
            }
            let jobs = &self.jobs.all;
            failed.extend(queue.iter().copied().filter(|job| !jobs[*job].is_actor));
            queue.retain(|job| jobs[*job].is_actor);
        }
        for job in &failed {
            self.jobs.lose(*job);
        }
        (total, failed)
    }
}
