//! What each simulation of a study led to, in columns.

use std::fmt::Write as _;

use crate::plan::Strategy;
use crate::simulate::result::{Cost, SimulationResult};
use crate::simulate::study::{Study, StudyRow};
use crate::simulate::trace::Trace;

/// What the titles of the columns mean that are always there.
const LEGEND: [&str; 3] = [
    "WAIT: from when a job was ready until it started, as the mean, the median, and what 99 of 100 jobs \
     waited at most.",
    "OF WORK: CPU-hours of worker pods as a multiple of what jobs asked for. HARMED: jobs that ran when \
     their pod went.",
    "LOST: those of them that were not tried again, and jobs that waited for these.",
];

/// The title of the column for processes that were killed, and what it means.
const KILLED: (&str, &str) = (
    "OUT OF MEMORY",
    "OUT OF MEMORY: processes of jobs that the kernel or Ray's memory monitor killed because their pod \
     had too little.",
);

/// Titles, and for each simulation a line of as many cells. A cell that says nothing is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StudyTable {
    /// The titles: first the fields that are varied, then the strategy.
    pub titles: Vec<String>,
    /// The cells, by line.
    pub lines: Vec<Vec<String>>,
}

impl StudyTable {
    /// The table of a study. Columns that say nothing about it are left out.
    pub fn of(study: &Study, rows: &[StudyRow]) -> Self {
        let has_gpus = rows.iter().any(|row| row.result.gpu_hours.paid > 0.0);
        let has_nodes = !study.world.pools.is_empty();
        let has_memory = has_memory(&study.trace);
        let fields = study.variations.iter();
        let mut titles: Vec<String> = fields.map(|one| one.field.to_string()).collect();
        let mut add = |names: &[&str]| titles.extend(names.iter().map(|name| (*name).to_owned()));
        add(&[
            "STRATEGY",
            "WAIT",
            "P50",
            "P99",
            "MAKESPAN",
            "CPU-HOURS",
            "OF WORK",
        ]);
        if has_gpus {
            add(&["GPU-HOURS"]);
        }
        if has_nodes {
            add(&["NODE-HOURS"]);
        }
        add(&["PODS", "RESIZES", "HARMED"]);
        if has_memory {
            add(&[KILLED.0]);
        }
        add(&["LOST", "UNFINISHED", "WAIT TO FIRST", "COST TO FIRST"]);
        let lines = rows.iter().map(|row| {
            let first = rows.first().unwrap_or(row);
            cells(row, &first.result, [has_gpus, has_nodes, has_memory])
        });
        Self {
            titles,
            lines: lines.collect(),
        }
    }
}

/// What the titles of the columns mean, in sentences.
pub fn legend(study: &Study) -> Vec<&'static str> {
    let killed = has_memory(&study.trace).then_some(KILLED.1);
    LEGEND.into_iter().chain(killed).collect()
}

/// Whether it is known of any job how much memory it uses.
fn has_memory(trace: &Trace) -> bool {
    trace.jobs.iter().any(|job| !job.memory.is_empty())
}

fn cells(row: &StudyRow, first: &SimulationResult, has: [bool; 3]) -> Vec<String> {
    let [has_gpus, has_nodes, has_memory] = has;
    let result = &row.result;
    let mut cells: Vec<String> = row.set.iter().map(|(_, value)| value.to_string()).collect();
    cells.push(strategy_name(row.strategy).to_owned());
    let wait = result.wait;
    cells.extend([wait.mean, wait.p50, wait.p99].map(|seconds| format!("{seconds:.1} s")));
    cells.push(duration(result.makespan));
    cells.push(format!("{:.2}", result.cpu_hours.paid));
    cells.push(times(result.cpu_hours));
    cells.extend(has_gpus.then(|| format!("{:.2}", result.gpu_hours.paid)));
    cells.extend(has_nodes.then(|| format!("{:.2}", result.node_hours)));
    cells.extend([result.pods, result.resizes, result.harmed].map(|count| count.to_string()));
    cells.extend(has_memory.then(|| result.out_of_memory.to_string()));
    cells.extend([result.jobs.lost, result.jobs.unfinished].map(|count| count.to_string()));
    cells.push(change(result.wait.mean, first.wait.mean));
    cells.push(change(result.cpu_hours.paid, first.cpu_hours.paid));
    cells
}

/// How many jobs a trace has, in words.
pub fn jobs(trace: &Trace) -> String {
    match trace.jobs.len() {
        1 => "1 job".to_owned(),
        count => format!("{count} jobs"),
    }
}

/// What was simulated, in a line; the trace is named elsewhere.
pub fn headline(study: &Study, rows: &[StudyRow]) -> String {
    let jobs = jobs(&study.trace);
    let Some(StudyRow { result, .. }) = rows.first() else {
        return jobs;
    };
    format!(
        "{jobs}, {:.2} CPU-hours of work, {} if nothing ever waited",
        result.cpu_hours.work,
        duration(result.endless_makespan),
    )
}

/// The name of a strategy, as it is given on the command line.
pub fn strategy_name(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::Rayfit => "rayfit",
        Strategy::Ray => "ray",
    }
}

/// What a simulation was of: `ray, idleTimeoutSeconds=60`.
pub fn row_name(row: &StudyRow) -> String {
    let mut name = strategy_name(row.strategy).to_owned();
    for (field, value) in &row.set {
        let _ = write!(name, ", {field}={value}");
    }
    name
}

fn times(cost: Cost) -> String {
    cost.ratio()
        .map(|ratio| format!("{ratio:.2}x"))
        .unwrap_or_default()
}

/// How much more or less than before; nothing where that says nothing.
pub(super) fn change(now: f64, before: f64) -> String {
    if before <= 0.0 {
        return String::new();
    }
    let percent = (now / before - 1.0) * 100.0;
    if percent.abs() < 0.05 {
        "same".to_owned()
    } else {
        format!("{percent:+.1} %")
    }
}

/// Seconds as people say them.
pub fn duration(seconds: f64) -> String {
    if seconds < 120.0 {
        format!("{seconds:.1} s")
    } else if seconds < 7200.0 {
        format!("{:.1} min", seconds / 60.0)
    } else {
        format!("{:.1} h", seconds / 3600.0)
    }
}
