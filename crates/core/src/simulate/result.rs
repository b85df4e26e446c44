//! The result of a simulation.

use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};

use crate::simulate::moment::Moment;
use crate::simulate::ray::jobs::{JobState, SimulatedJob};
use crate::simulate::scaler::Scaler;
use crate::simulate::trace::Trace;
use crate::simulate::world::World;
use crate::simulate::world::ledger::Capacity;
use crate::simulate::world::ledger::curves::Point;

const HOUR_S: f64 = 3600.0;
/// The bytes of a gibibyte.
pub const GIB: f64 = 1_073_741_824.0;

/// The result of a simulation.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SimulationResult {
    /// The jobs that ended, were lost, and still waited at the end.
    pub jobs: JobCounts,
    /// The time from when jobs were ready until they started, in seconds. On a cluster without end
    /// each would start at once.
    pub wait: WaitSummary,
    /// The mean wait of each tenth of the jobs, in the order in which they were submitted. With fewer
    /// than ten jobs each is a part of its own.
    pub wait_by_tenth: Vec<f64>,
    /// The time from the first submission to the last end, in seconds.
    pub makespan: f64,
    /// The makespan on a cluster without end, in seconds.
    pub endless_makespan: f64,
    /// CPU-hours of worker pods, and of the jobs themselves.
    pub cpu_hours: Cost,
    /// GiB-hours of worker pods, and of the jobs themselves.
    pub gib_hours: Cost,
    /// GPU-hours of worker pods, and of the jobs themselves.
    pub gpu_hours: Cost,
    /// Hours of Kubernetes nodes.
    pub node_hours: f64,
    /// Worker pods that were made.
    pub pods: u64,
    /// Resizes that were carried out.
    pub resizes: u64,
    /// Jobs that ran when their pod was taken from them.
    pub harmed: u64,
    /// Pods that the node autoscaler evicted, because it needed their node no longer.
    pub evicted: u64,
    /// Processes of jobs that were killed because a pod had too little memory.
    pub out_of_memory: u64,
    /// Writes of the scaler to the API server.
    pub api_writes: u64,
    /// Drains and resizes of raylets.
    pub gcs_writes: u64,
    /// Rounds of the scaler.
    pub rounds: u64,
    /// Demand and capacity over time, counted from the first submission.
    pub curve: Vec<Point>,
}

/// The number of jobs by how they ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobCounts {
    /// They ended.
    pub ended: usize,
    /// They were lost with a node, or waited for one that was.
    pub lost: usize,
    /// They still waited or ran.
    pub unfinished: usize,
}

/// The wait of jobs, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitSummary {
    /// The mean.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The longest.
    pub longest: f64,
}

/// An amount of resource-hours. Programs read [`Cost::ratio`] beside it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cost {
    /// The amounts that worker pods held.
    pub paid: f64,
    /// The amounts that jobs asked for while they ran.
    pub work: f64,
    /// The amounts of worker pods that no job used.
    pub slack: f64,
}

impl Serialize for Cost {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Cost", 4)?;
        fields.serialize_field("paid", &self.paid)?;
        fields.serialize_field("work", &self.work)?;
        fields.serialize_field("slack", &self.slack)?;
        fields.serialize_field("ofWork", &self.ratio())?;
        fields.end()
    }
}

impl Cost {
    /// The paid amount as a multiple of the work; `None` without work.
    pub fn ratio(&self) -> Option<f64> {
        (self.work > 0.0).then(|| self.paid / self.work)
    }
}

impl SimulationResult {
    /// The result of a simulation whose jobs were submitted from `began` on.
    pub(super) fn of(trace: &Trace, world: &World, scaler: &Scaler, began: Moment) -> Self {
        let jobs = &world.ray.jobs.all;
        let count = |is: fn(&SimulatedJob) -> bool| jobs.iter().filter(|job| is(job)).count();
        let ended = count(|job| job.state == JobState::Ended);
        let lost = count(|job| job.state == JobState::Lost);
        let ledger = &world.ledger;
        let ends = jobs.iter().filter_map(|job| job.ended);
        let makespan = ends.max().map_or(0.0, |end| end.since(began));
        let cost = |resource: &str, unit: f64, of: fn(&Capacity) -> f64| Cost {
            paid: of(&ledger.integral) / unit / HOUR_S,
            work: trace.work(resource) / HOUR_S / unit,
            slack: of(&ledger.slack) / unit / HOUR_S,
        };
        // Ten parts are equally large but for one job.
        let parts = jobs.len().min(10);
        let tenth = |number: usize| {
            let part = &jobs[number * jobs.len() / parts..(number + 1) * jobs.len() / parts];
            let waits = part.iter().filter_map(|job| waited(job, world.now));
            let (sum, count) =
                waits.fold((0.0, 0.0), |(sum, count), wait| (sum + wait, count + 1.0));
            if count > 0.0 { sum / count } else { 0.0 }
        };
        Self {
            jobs: JobCounts {
                ended,
                lost,
                unfinished: jobs.len() - ended - lost,
            },
            wait: WaitSummary::of(jobs, world.now),
            wait_by_tenth: (0..parts).map(tenth).collect(),
            makespan,
            endless_makespan: Trace::span(&trace.runs()),
            cpu_hours: cost("CPU", 1.0, |sums| sums.cpus),
            gib_hours: cost("memory", GIB, |sums| sums.memory),
            gpu_hours: cost("GPU", 1.0, |sums| sums.gpus),
            node_hours: ledger.integral.nodes / HOUR_S,
            pods: ledger.pods_made,
            resizes: ledger.resizes,
            harmed: ledger.harmed,
            evicted: ledger.evicted,
            out_of_memory: ledger.out_of_memory,
            api_writes: ledger.api_calls,
            gcs_writes: ledger.gcs_calls,
            rounds: scaler.rounds,
            curve: ledger.curves.points(began.seconds()),
        }
    }
}

/// The wait of a job; `None` if it was never ready.
fn waited(job: &SimulatedJob, now: Moment) -> Option<f64> {
    let ready = job.ready?;
    let waits = job.state == JobState::Ready;
    let until = job.started.filter(|_| !waits).unwrap_or(now);
    Some(until.since(ready))
}

impl WaitSummary {
    /// The waits of all jobs that were ready. One that never started has waited until now.
    fn of(jobs: &[SimulatedJob], now: Moment) -> Self {
        let mut waits: Vec<f64> = jobs.iter().filter_map(|job| waited(job, now)).collect();
        waits.sort_by(f64::total_cmp);
        let Some(last) = waits.len().checked_sub(1) else {
            return Self::default();
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a place in a list"
        )]
        // The nearest rank is a wait that some job really had; a mean of two would be nobody's.
        let at = |part: f64| {
            waits[((waits.len() as f64 * part).ceil() as usize)
                .saturating_sub(1)
                .min(last)]
        };
        Self {
            mean: waits.iter().sum::<f64>() / waits.len() as f64,
            p50: at(0.5),
            p99: at(0.99),
            longest: waits[last],
        }
    }
}
