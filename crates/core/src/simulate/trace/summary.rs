//! A trace in a few numbers. None of them depends on a cluster.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use super::job::{Job, JobDemand, JobShape, Trace};
use crate::quantity::Quantity;

/// Seconds of an hour.
const HOUR: f64 = 3600.0;

/// A trace in numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Its name for people.
    pub name: String,
    /// The number of its jobs.
    pub jobs: usize,
    /// The jobs by what they ask for; those that take the most time come first.
    pub shapes: Vec<ShapeTotal>,
    /// The CPUs that they ask for, in hours of one CPU.
    pub cpu_hours: f64,
    /// The GPUs that they ask for, in hours of one GPU.
    pub gpu_hours: f64,
    /// Seconds to the end of the last, if each had a place as soon as it was ready.
    pub span: f64,
    /// The most that would run at once then.
    pub widest: Widest,
    /// The jobs that follow each other for the longest time.
    pub chain: JobChain,
}

/// The jobs that ask for the same.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShapeTotal {
    /// Their demand, in words.
    pub shape: String,
    /// The number of jobs.
    pub jobs: usize,
    /// The seconds that they run in all.
    pub seconds: f64,
}

/// The most at once; each at a moment of its own.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Widest {
    /// Jobs.
    pub jobs: usize,
    /// CPUs.
    pub cpus: f64,
    /// GPUs.
    pub gpus: f64,
}

/// Jobs of which each waits for the one before.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobChain {
    /// The number of jobs.
    pub jobs: usize,
    /// The seconds that they take in all.
    pub seconds: f64,
}

impl Summary {
    /// The summary of a trace.
    pub fn of(trace: &Trace) -> Self {
        let hours = |resource: &str| trace.work(resource) / HOUR;
        let runs = trace.runs();
        Self {
            name: trace.name.clone(),
            jobs: trace.jobs.len(),
            shapes: shapes(&trace.jobs),
            cpu_hours: hours("CPU"),
            gpu_hours: hours("GPU"),
            span: Trace::span(&runs),
            widest: widest(&trace.jobs, &runs),
            chain: longest(&trace.jobs),
        }
    }
}

fn shapes(jobs: &[Job]) -> Vec<ShapeTotal> {
    let mut shapes: BTreeMap<String, (usize, f64)> = BTreeMap::new();
    for job in jobs {
        let (count, seconds) = shapes.entry(describe(&job.demand)).or_default();
        *count += 1;
        *seconds += job.seconds;
    }
    let totals = shapes
        .into_iter()
        .map(|(shape, (jobs, seconds))| ShapeTotal {
            shape,
            jobs,
            seconds,
        });
    let mut totals: Vec<ShapeTotal> = totals.collect();
    // A stable sort: shapes of equal time stay in the order of their names.
    totals.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    totals
}

/// The demand of a job in words: `task CPU 1, memory 4Gi`.
fn describe(demand: &JobDemand) -> String {
    match demand {
        JobDemand::Task(shape) => format!("task {}", amounts(shape)),
        JobDemand::Actor(shape) => format!("actor {}", amounts(shape)),
        JobDemand::PlacementGroup { strategy, bundles } => {
            let mut text = format!("placement group {strategy}");
            for alike in bundles.chunk_by(|one, next| one == next) {
                let _ = write!(text, " {} x ({})", alike.len(), amounts(&alike[0]));
            }
            text
        }
    }
}

fn amounts(shape: &JobShape) -> String {
    if shape.is_empty() {
        return "of nothing".to_owned();
    }
    let amounts = shape.iter().map(|(resource, amount)| {
        if resource.ends_with("memory") {
            #[expect(clippy::cast_possible_truncation, reason = "amounts are below 9e14")]
            let bytes = Quantity::from_units(amount.ceil() as i64);
            return format!("{resource} {}", bytes.display_memory());
        }
        format!("{resource} {amount}")
    });
    amounts.collect::<Vec<String>>().join(", ")
}

fn widest(jobs: &[Job], runs: &[(f64, f64)]) -> Widest {
    // At one moment those that end go before those that begin.
    let mut changes: Vec<(f64, bool, usize)> = Vec::with_capacity(2 * jobs.len());
    for (index, (start, end)) in runs.iter().enumerate().filter(|(_, run)| run.0 < run.1) {
        changes.push((*start, true, index));
        changes.push((*end, false, index));
    }
    changes.sort_unstable_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
    let (mut now, mut most) = (Widest::default(), Widest::default());
    for (_, begins, index) in changes {
        let demand = &jobs[index].demand;
        let (cpus, gpus) = (demand.total("CPU"), demand.total("GPU"));
        if begins {
            now.jobs += 1;
            now.cpus += cpus;
            now.gpus += gpus;
            most.jobs = most.jobs.max(now.jobs);
            most.cpus = most.cpus.max(now.cpus);
            most.gpus = most.gpus.max(now.gpus);
        } else {
            now.jobs -= 1;
            now.cpus -= cpus;
            now.gpus -= gpus;
        }
    }
    most
}

fn longest(jobs: &[Job]) -> JobChain {
    let longer = |one: JobChain, other: JobChain| {
        let order = one.seconds.total_cmp(&other.seconds);
        if order.then(one.jobs.cmp(&other.jobs)).is_lt() {
            other
        } else {
            one
        }
    };
    let mut chains: Vec<JobChain> = Vec::with_capacity(jobs.len());
    for job in jobs {
        let longest_parent = job.after.iter().map(|index| chains[*index]);
        let longest_parent = longest_parent.fold(JobChain::default(), longer);
        chains.push(JobChain {
            jobs: longest_parent.jobs + 1,
            seconds: longest_parent.seconds + job.seconds,
        });
    }
    chains.into_iter().fold(JobChain::default(), longer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::trace::read::read;

    const TRACE: &str = r#"{"apiVersion":"rayfit.dev/v1alpha1","kind":"Trace","name":"n"}
        {"task":"a","seconds":3600,"resources":{"CPU":2,"memory":1073741824}}
        {"task":"b","seconds":1800,"resources":{"CPU":1},"after":["a"],"count":3}
        {"actor":"c","at":3600,"seconds":1800,"resources":{"GPU":0.5}}
        {"placementGroup":"d","at":9000,"seconds":60,"strategy":"SPREAD","bundles":[{"CPU":1},{"CPU":1},{"GPU":2}]}
        {"task":"e","at":9000,"seconds":0}"#;

    #[test]
    fn a_trace_in_numbers() {
        let summary = Summary::of(&read(TRACE, "x").unwrap());
        let shapes: Vec<(&str, usize)> = summary
            .shapes
            .iter()
            .map(|total| (total.shape.as_str(), total.jobs))
            .collect();
        let expected = [
            ("task CPU 1", 3),
            ("task CPU 2, memory 1Gi", 1),
            ("actor GPU 0.5", 1),
            ("placement group SPREAD 2 x (CPU 1) 1 x (GPU 2)", 1),
            ("task of nothing", 1),
        ];
        assert_eq!(shapes, expected);
        let hours = 2.0 + 1.5 + 2.0 / 60.0;
        assert!((summary.cpu_hours - hours).abs() < 1e-9, "{summary:?}");
        assert_eq!(summary.span.to_string(), "9060");
        let widest = Widest {
            jobs: 4,
            cpus: 3.0,
            gpus: 2.0,
        };
        assert_eq!(summary.widest, widest);
        assert_eq!(
            summary.chain,
            JobChain {
                jobs: 2,
                seconds: 5400.0
            }
        );
    }

    #[test]
    fn what_nobody_asks_for_is_nothing_and_not_less() {
        let text = "seconds\n1\n";
        let summary = Summary::of(&read(text, "x").unwrap());
        assert_eq!(summary.gpu_hours.to_string(), "0");
        assert_eq!(summary.widest.gpus.to_string(), "0");
    }
}
