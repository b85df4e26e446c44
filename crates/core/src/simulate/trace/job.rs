//! The parts of a trace.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A workload, in the order in which its parts were submitted.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Trace {
    /// Its name for people.
    pub name: String,
    /// Its parts, by the time at which they were submitted. Parents come before their children.
    pub jobs: Vec<Job>,
}

impl Trace {
    /// The amount of a resource that the jobs ask for while they run, times seconds.
    pub fn work(&self, resource: &str) -> f64 {
        let jobs = self.jobs.iter();
        jobs.fold(0.0, |sum, job| {
            sum + job.demand.total(resource) * job.seconds
        })
    }

    /// The start and the end of each job, in seconds, if it had a place as soon as it was ready.
    pub fn runs(&self) -> Vec<(f64, f64)> {
        let mut runs: Vec<(f64, f64)> = Vec::with_capacity(self.jobs.len());
        for job in &self.jobs {
            // Parents come first in a trace, so that their runs are known.
            let parents = job.after.iter().map(|index| runs[*index].1);
            let start = parents.fold(job.at, f64::max);
            runs.push((start, start + job.seconds));
        }
        runs
    }

    /// The end of the last of these runs, in seconds.
    pub fn span(runs: &[(f64, f64)]) -> f64 {
        runs.iter().map(|(_, end)| *end).fold(0.0, f64::max)
    }
}

/// A task, an actor or a placement group.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// The name by which others of the trace refer to it; unique in the trace.
    pub id: String,
    /// A name for people, such as that of the function; not unique.
    pub name: String,
    /// The time of its submission, in seconds from the start of the trace; never before its parents.
    pub at: f64,
    /// The jobs, by index and in order, that must have ended before it is ready. All are smaller
    /// than its own.
    pub after: Vec<usize>,
    /// Its duration once it has started, in seconds.
    pub seconds: f64,
    /// Its demand.
    pub demand: JobDemand,
    /// The memory that it really uses, in the order of time; empty where that is not known.
    pub memory: Vec<MemoryUse>,
    /// The bytes of what it returns to those that wait for it; 0 where that is not known.
    pub output: u64,
    /// The number of its retries when its node is lost; [`u32::MAX`] is without end. Ray's default
    /// is 3 for tasks, 0 for actors; a placement group is placed again without end.
    pub retries: u32,
}

/// Amounts of logical resources by name, such as `CPU`; memory in bytes.
pub type JobShape = BTreeMap<String, f64>;

/// The demand of a job.
#[derive(Debug, Clone, PartialEq)]
pub enum JobDemand {
    /// A task.
    Task(JobShape),
    /// An actor, which holds its resources until it ends.
    Actor(JobShape),
    /// A placement group, which gets all of its bundles at once, and holds them until it is removed.
    PlacementGroup {
        /// The placement strategy of its bundles.
        strategy: PlacementStrategy,
        /// The resources of each bundle.
        bundles: Vec<JobShape>,
    },
}

impl JobDemand {
    /// The retries that Ray makes by default after the loss of a node.
    pub fn usual_retries(&self) -> u32 {
        match self {
            Self::Task(_) => 3,
            Self::Actor(_) => 0,
            Self::PlacementGroup { .. } => u32::MAX,
        }
    }

    /// The resources that it takes from nodes: the shape of a task or an actor, or those of all bundles.
    pub fn shapes(&self) -> &[JobShape] {
        match self {
            Self::Task(shape) | Self::Actor(shape) => std::slice::from_ref(shape),
            Self::PlacementGroup { bundles, .. } => bundles,
        }
    }

    /// The amount of a resource that it takes in all.
    pub fn total(&self, resource: &str) -> f64 {
        let amounts = self.shapes().iter().filter_map(|shape| shape.get(resource));
        // The sum of nothing would be -0.
        amounts.fold(0.0, |sum, amount| sum + amount)
    }
}

/// The placement of a placement group's bundles on nodes, written as Ray does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
pub enum PlacementStrategy {
    /// On as few nodes as possible.
    Pack,
    /// On as many nodes as possible.
    Spread,
    /// All on one node.
    StrictPack,
    /// Each on a node of its own.
    StrictSpread,
}

/// The memory that a job uses from some moment on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MemoryUse {
    /// Seconds since the job started.
    pub at: f64,
    /// Bytes.
    pub bytes: u64,
}
