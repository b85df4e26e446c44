//! The state of a Ray cluster, and what happens in it.

use std::collections::{BTreeMap, VecDeque};

use super::jobs::{JobPart, JobState, Jobs, Need};
use super::node::{RayNode, RayNodeStage};
use super::placing;
use super::resources::{Bundle, ResourceNames};
use crate::simulate::moment::Moment;
use crate::simulate::trace::Trace;
use crate::snapshot::gcs::NodeState;

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
    pub(super) alive: Vec<usize>,
    /// The states that the GCS lists of the nodes that died last.
    pub(super) dead: VecDeque<NodeState>,
    /// All jobs.
    pub jobs: Jobs,
    /// The waiting tasks and actors, by shape.
    pub(super) queues: BTreeMap<usize, VecDeque<usize>>,
    /// The waiting placement groups.
    pub(super) gangs: VecDeque<usize>,
    /// The tasks that waited, counted by shape, when the GCS last collected that.
    pub(super) pulled: Vec<(usize, i64)>,
    /// The nodes as they were then.
    pub(super) reported: BTreeMap<usize, RayNode>,
    /// The bundles of the driver's `request_resources()`, and their counts.
    pub(super) requested: Vec<(Bundle, i64)>,
    /// Whether anything has changed since.
    pub has_changed: bool,
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
            requested: Vec::new(),
            has_changed: false,
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

    pub(super) fn wait(&mut self, job: usize) {
        self.touch();
        self.jobs.all[job].is_delayed = false;
        match &self.jobs.all[job].need {
            Need::Shape(shape) => self.queues.entry(*shape).or_default().push_back(job),
            Need::Gang { .. } => self.gangs.push_back(job),
        }
    }

    /// Whether any job runs.
    pub fn is_running(&self) -> bool {
        self.living().any(|(_, node)| node.running > 0)
    }

    /// The shapes of tasks and actors that wait, and how many of each do.
    pub fn waiting_shapes(&self) -> impl Iterator<Item = (&Bundle, usize)> {
        let queues = self.queues.iter().filter(|(_, queue)| !queue.is_empty());
        queues.map(|(shape, queue)| (&self.jobs.shapes[*shape], queue.len()))
    }

    /// The demand of each placement group that waits.
    pub fn waiting_gangs(&self) -> impl Iterator<Item = &Need> {
        self.gangs.iter().map(|job| &self.jobs.all[*job].need)
    }

    /// Starts what fits, and returns the jobs that started.
    pub fn schedule(&mut self, now: Moment) -> Vec<usize> {
        let mut started = Vec::new();
        for job in std::mem::take(&mut self.gangs) {
            let Need::Gang { strategy, bundles } = &self.jobs.all[job].need else {
                continue;
            };
            let Some(places) = placing::gang(&self.nodes, &self.alive, *strategy, bundles) else {
                self.gangs.push_back(job);
                continue;
            };
            let shares = places.into_iter().zip(bundles.clone());
            let shares = shares
                .map(|(node, bundle)| JobPart { node, bundle })
                .collect();
            self.start(job, shares, now);
            started.push(job);
        }
        let gpu = self.names.find("GPU");
        let shapes: Vec<usize> = self.queues.keys().copied().collect();
        for shape in shapes {
            let bundle = self.jobs.shapes[shape].clone();
            while let Some(job) = self
                .queues
                .get(&shape)
                .and_then(|queue| queue.front().copied())
            {
                let mut draw = |below: usize| self.random.usize(..below);
                let Some(node) = placing::hybrid(&self.nodes, &self.alive, &bundle, gpu, &mut draw)
                else {
                    break;
                };
                self.queues.get_mut(&shape).map(VecDeque::pop_front);
                let bundle = bundle.clone();
                self.start(job, vec![JobPart { node, bundle }], now);
                started.push(job);
            }
        }
        self.queues.retain(|_, queue| !queue.is_empty());
        started
    }

    fn start(&mut self, number: usize, shares: Vec<JobPart>, now: Moment) {
        self.touch();
        let job = &mut self.jobs.all[number];
        let is_gang = matches!(job.need, Need::Gang { .. });
        job.is_new_process = is_gang;
        // An event that ends a job names its attempt: one of an attempt that was lost meanwhile
        // ends nothing.
        job.attempt += 1;
        job.started = Some(now);
        for share in &shares {
            let node = &mut self.nodes[share.node];
            node.used.add(&share.bundle);
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
        if job.attempt != attempt || !matches!(job.state, JobState::Running(_)) {
            return;
        }
        let ran_on = match &job.state {
            JobState::Running(shares) => shares.first().map(|share| share.node),
            _ => None,
        };
        self.give_back(number, now);
        for ready in self.jobs.end(number, now) {
            self.wait(ready);
        }
        self.keep_output(number, ran_on);
        self.drop_inputs(number, now);
    }

    pub(super) fn give_back(&mut self, number: usize, now: Moment) {
        self.touch();
        let job = &mut self.jobs.all[number];
        // The process of an actor ends with it, and that of a task waits for the next one.
        let is_reused = !job.is_actor && matches!(job.need, Need::Shape(_));
        let JobState::Running(shares) = std::mem::replace(&mut job.state, JobState::Ready) else {
            return;
        };
        let cpu = self.names.find("CPU");
        for share in shares {
            let node = &mut self.nodes[share.node];
            node.used.subtract(&share.bundle);
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
        self.dead.push_back(self.nodes[node].dead_state());
        if self.dead.len() > DEAD_NODES {
            self.dead.pop_front();
        }
        self.lose_objects(node);
        // Most nodes end without work, and what follows goes through all jobs.
        if self.nodes[node].running == 0 {
            return 0;
        }
        let runs_here = |state: &JobState| match state {
            JobState::Running(shares) => shares.iter().any(|share| share.node == node),
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
        self.drop_unneeded(now);
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
        let before = node.total.clone();
        for (name, amount) in sizes {
            let resource = self.names.number(name);
            let least = node.used.get(resource);
            node.total.set(resource, (*amount).max(least));
        }
        // In Ray a resize that changes something restarts the idle time, and one that does not
        // leaves it.
        if node.total != before && node.is_idle() {
            node.idle_since = now;
        }
        let total = node.total.clone();
        (total, self.fail_infeasible(&before))
    }

    /// Fails the tasks that a node could hold before it became smaller, and that no node can now, whatever is free:
    /// Ray takes them for wrongly queued. Actors wait in the GCS, which lets them. (`local_lease_manager.cc`,
    /// `GrantScheduledLeasesToWorkers`.) Returns them.
    fn fail_infeasible(&mut self, before: &Bundle) -> Vec<usize> {
        let Self {
            queues,
            nodes,
            alive,
            jobs,
            ..
        } = self;
        let mut failed = Vec::new();
        for (shape, queue) in queues {
            let shape = &jobs.shapes[*shape];
            let mut living = alive.iter().map(|number| &nodes[*number]);
            if queue.is_empty() || !shape.fits(before) || living.any(|node| shape.fits(&node.total))
            {
                continue;
            }
            failed.extend(queue.iter().copied().filter(|job| !jobs.all[*job].is_actor));
            queue.retain(|job| jobs.all[*job].is_actor);
        }
        for job in &failed {
            self.jobs.lose(*job);
        }
        failed
    }
}
