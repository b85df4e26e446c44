//! The jobs of a trace, and how far each is.

use crate::simulate::moment::Moment;
use crate::simulate::ray::resources::{Bundle, ResourceNames};
use crate::simulate::trace::{JobDemand, PlacementStrategy, Trace};

/// How far a job is.
#[derive(Debug, Clone, PartialEq)]
pub enum JobState {
    /// It is not submitted, or waits for others to end.
    Blocked,
    /// It waits for resources.
    Ready,
    /// It runs.
    Running(Vec<JobPart>),
    /// It has ended.
    Ended,
    /// Its node was lost too often, or it waited for a job that was lost.
    Lost,
}

/// What a job holds of a Ray node.
#[derive(Debug, Clone, PartialEq)]
pub struct JobPart {
    /// The number of the Ray node.
    pub node: usize,
    /// The amounts.
    pub bundle: Bundle,
}

/// What a job asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum Need {
    /// One bundle on any node, by the number of its shape.
    Shape(usize),
    /// A placement group.
    Gang {
        /// How its bundles lie on nodes.
        strategy: PlacementStrategy,
        /// Its bundles.
        bundles: Vec<Bundle>,
    },
}

/// A job in a simulation.
#[derive(Debug, Clone)]
pub struct SimulatedJob {
    /// What it asks for.
    pub need: Need,
    /// For how long it runs, in seconds.
    pub seconds: f64,
    /// How far it is.
    pub state: JobState,
    /// When it first became ready.
    pub ready: Option<Moment>,
    /// When it last started.
    pub started: Option<Moment>,
    /// When it ended.
    pub ended: Option<Moment>,
    /// How often it has started.
    pub attempt: u32,
    /// How often it may be tried again.
    pub retries: u32,
    /// What has to happen until it is ready: its own submission, and the end of each parent.
    waits_for: usize,
    children: Vec<usize>,
}

/// All jobs of a trace.
#[derive(Debug, Clone, Default)]
pub struct Jobs {
    /// The jobs, in the order of the trace.
    pub all: Vec<SimulatedJob>,
    /// The shapes of tasks and actors.
    pub shapes: Vec<Bundle>,
    /// How many jobs have neither ended nor been lost.
    pub left: usize,
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
                    let bundle = names.of_shape(shape);
                    let next = shapes.len();
                    let number = *numbers.entry(bundle.clone()).or_insert(next);
                    if number == next {
                        shapes.push(bundle);
                    }
                    Need::Shape(number)
                }
                JobDemand::PlacementGroup { strategy, bundles } => Need::Gang {
                    strategy: *strategy,
                    bundles: bundles.iter().map(|shape| names.of_shape(shape)).collect(),
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
                retries: job.retries,
                waits_for: 1 + job.after.len(),
                children: Vec::new(),
            });
        }
        for (number, job) in trace.jobs.iter().enumerate() {
            for parent in &job.after {
                all[*parent].children.push(number);
            }
        }
        let left = all.len();
        Self { all, shapes, left }
    }

    /// One of the things that a job waits for has happened. Returns whether it is ready.
    pub fn may_be_ready(&mut self, number: usize, now: Moment) -> bool {
        let job = &mut self.all[number];
        job.waits_for = job.waits_for.saturating_sub(1);
        let ready = job.waits_for == 0 && job.state == JobState::Blocked;
        if ready {
            job.state = JobState::Ready;
            job.ready = Some(now);
        }
        ready
    }

    /// A job has ended. Returns the jobs that are ready because of it.
    pub fn end(&mut self, number: usize, now: Moment) -> Vec<usize> {
        self.left -= 1;
        self.all[number].state = JobState::Ended;
        self.all[number].ended = Some(now);
        let children = std::mem::take(&mut self.all[number].children);
        let ready = children.into_iter();
        ready
            .filter(|child| self.may_be_ready(*child, now))
            .collect()
    }

    /// A job, and all that wait for it, will never end.
    pub fn lose(&mut self, number: usize) {
        let mut lost = vec![number];
        while let Some(number) = lost.pop() {
            if self.all[number].state != JobState::Lost {
                self.all[number].state = JobState::Lost;
                self.left -= 1;
                lost.append(&mut self.all[number].children);
            }
        }
    }
}
