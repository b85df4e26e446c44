//! The jobs of a trace, and how far each is.

use crate::simulate::moment::Moment;
use crate::simulate::ray::resources::{Bundle, ResourceNames};
use crate::simulate::trace::{JobDemand, MemoryUse, PlacementStrategy, Trace};

/// The most retries of a job: one that no pod can hold would be tried for ever.
const MOST_RETRIES: u32 = 100;

/// The progress of a job.
#[derive(Debug, Clone, PartialEq)]
pub enum JobState {
    /// The job is not submitted, or waits for others to end.
    Blocked,
    /// The job waits for resources.
    Ready,
    /// The job runs. Of each of these Ray nodes, by number, it holds a bundle.
    Running(Vec<(usize, Bundle)>),
    /// The job has ended.
    Ended,
    /// Its node was lost too often, or it waited for a job that was lost.
    Lost,
}

/// The demand of a job.
#[derive(Debug, Clone, PartialEq)]
pub enum JobNeed {
    /// One bundle on any node, by the number of its shape.
    Shape(usize),
    /// A placement group.
    Gang {
        /// The placement strategy of its bundles.
        strategy: PlacementStrategy,
        /// Its bundles.
        bundles: Vec<Bundle>,
    },
}

/// A job in a simulation.
#[derive(Debug, Clone)]
pub struct SimulatedJob {
    /// Its demand.
    pub need: JobNeed,
    /// Its duration, in seconds.
    pub seconds: f64,
    /// Its progress.
    pub state: JobState,
    /// The time at which it first became ready.
    pub ready: Option<Moment>,
    /// The time of its last start.
    pub started: Option<Moment>,
    /// The time of its end.
    pub ended: Option<Moment>,
    /// The number of its starts.
    pub attempt: u32,
    /// The retries that it has left.
    pub retries: u32,
    /// The memory that it really uses, in the order of time; empty where that is not known.
    pub memory: Vec<MemoryUse>,
    /// The number of times that its process was killed because there was too little memory.
    pub memory_kills: u32,
    /// True while it waits until it is tried again after that.
    pub is_delayed: bool,
    /// The place of its output.
    pub output: JobOutput,
    /// The number of events until it is ready: its own submission, and the end of each parent.
    pub waits_for: usize,
    /// True if its process ends with it.
    pub is_actor: bool,
    /// True if a worker process had to be started for it.
    pub is_new_process: bool,
    /// The jobs that it needs.
    pub parents: Vec<usize>,
    /// The jobs that need it.
    pub children: Vec<usize>,
    /// The children before this one have ended or were lost.
    first_child_left: usize,
}

/// The output of a job, which others read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobOutput {
    /// Nothing that a node has to keep: a small object is kept by the process that submitted the
    /// task.
    Small,
    /// The output is large, and is not there: the job has not ended, or nobody needs it any more.
    Large,
    /// The output is in the object store of the Ray node with this number.
    Kept(usize),
}

/// The bytes from which on a node keeps an object, and not the process that submitted the task
/// (`max_direct_call_object_size`).
const LARGE: u64 = 100 * 1024;

/// All jobs of a trace.
#[derive(Debug, Clone, Default)]
pub struct Jobs {
    /// The jobs, in the order of the trace.
    pub all: Vec<SimulatedJob>,
    /// The shapes of tasks and actors.
    pub shapes: Vec<Bundle>,
    /// The number of jobs that have neither ended nor been lost.
    pub unended: usize,
}

impl Jobs {
    /// The jobs of a trace, before its beginning.
    pub fn of(trace: &Trace, names: &mut ResourceNames) -> Self {
        let mut shapes: Vec<Bundle> = Vec::new();
        let mut numbers = std::collections::BTreeMap::new();
        let mut all: Vec<SimulatedJob> = Vec::with_capacity(trace.jobs.len());
        for job in &trace.jobs {
            let need = match &job.demand {
                JobDemand::Task(shape) | JobDemand::Actor(shape) => {
                    let bundle = names.bundle(shape);
                    let next = shapes.len();
                    let number = *numbers.entry(bundle.clone()).or_insert(next);
                    // Jobs of one shape wait in one queue, and a trace of a million tasks has few shapes.
                    if number == next {
                        shapes.push(bundle);
                    }
                    JobNeed::Shape(number)
                }
                JobDemand::PlacementGroup { strategy, bundles } => JobNeed::Gang {
                    strategy: *strategy,
                    bundles: bundles.iter().map(|shape| names.bundle(shape)).collect(),
                },
            };
            all.push(SimulatedJob {
                need,
                seconds: job.seconds,
                state: JobState::Blocked,
                ready: None,
                started: None,
                ended: None,
                attempt: 0,
                retries: job.retries.min(MOST_RETRIES),
                memory: job.memory.clone(),
                memory_kills: 0,
                is_delayed: false,
                output: if job.output >= LARGE {
                    JobOutput::Large
                } else {
                    JobOutput::Small
                },
                waits_for: 1 + job.after.len(),
                parents: job.after.clone(),
                is_actor: matches!(job.demand, JobDemand::Actor(_)),
                is_new_process: false,
                children: Vec::new(),
                first_child_left: 0,
            });
        }
        for (number, job) in trace.jobs.iter().enumerate() {
            for parent in &job.after {
                all[*parent].children.push(number);
            }
        }
        let unended = all.len();
        Self {
            all,
            shapes,
            unended,
        }
    }

    /// One of the things that a job waits for has happened. Returns whether it is ready.
    pub fn may_be_ready(&mut self, number: usize, now: Moment) -> bool {
        let job = &mut self.all[number];
        job.waits_for = job.waits_for.saturating_sub(1);
        let ready = job.waits_for == 0 && job.state == JobState::Blocked;
        if ready {
            job.state = JobState::Ready;
            job.ready = job.ready.or(Some(now));
        }
        ready
    }

    /// A job has ended. Returns the jobs that are ready because of it.
    pub fn end(&mut self, number: usize, now: Moment) -> Vec<usize> {
        self.unended -= 1;
        self.all[number].state = JobState::Ended;
        self.all[number].ended = Some(now);
        let children = self.all[number].children.clone().into_iter();
        children
            .filter(|child| self.may_be_ready(*child, now))
            .collect()
    }

    /// A job, and all that wait for it, will never end. Those that have ended wait for nothing any
    /// more, also where the job runs again because what it returned was lost.
    pub fn lose(&mut self, number: usize) {
        let mut lost = vec![number];
        while let Some(number) = lost.pop() {
            if !matches!(self.all[number].state, JobState::Ended | JobState::Lost) {
                self.all[number].state = JobState::Lost;
                self.unended -= 1;
                lost.extend(&self.all[number].children);
            }
        }
    }

    /// Checks whether the output of a job is needed: by a job that waits, or that may have to be tried again.
    pub fn is_needed(&mut self, number: usize) -> bool {
        let job = &self.all[number];
        let mut children = job.children.iter().skip(job.first_child_left);
        let is_over =
            |child: &usize| matches!(self.all[*child].state, JobState::Ended | JobState::Lost);
        // None of those that were passed over comes back, so that all of this takes a time in
        // proportion to the children.
        let over = children.by_ref().take_while(|child| is_over(child)).count();
        let first = job.first_child_left + over;
        self.all[number].first_child_left = first;
        first < self.all[number].children.len()
    }

    /// Runs an ended job again whose output is gone; jobs that need that wait for it anew. Returns
    /// those that were ready.
    pub fn again(&mut self, number: usize) -> Vec<usize> {
        self.unended += 1;
        let job = &mut self.all[number];
        job.state = JobState::Ready;
        job.ended = None;
        let mut were_ready = Vec::new();
        for child in job.children.clone() {
            let child_job = &mut self.all[child];
            match child_job.state {
                JobState::Blocked => child_job.waits_for += 1,
                JobState::Ready => {
                    child_job.waits_for += 1;
                    child_job.state = JobState::Blocked;
                    were_ready.push(child);
                }
                // A child that runs has read its inputs already.
                JobState::Running(_) | JobState::Ended | JobState::Lost => {}
            }
        }
        were_ready
    }
}
