//! The results of each simulation of a study, in columns.

use std::fmt::Write as _;

use crate::plan::Strategy;
use crate::simulate::result::{Cost, SimulationResult};
use crate::simulate::study::{Study, StudyRow};
use crate::simulate::trace::Trace;

/// The meaning of the columns that are always there.
const LEGEND: [&str; 5] = [
    "WAIT: from when a job was ready until it started, as the mean, the median, and what 99 of 100 jobs \
     waited at most.",
    "CPU-HOURS: of worker pods; OF WORK: as a multiple of what jobs asked for; SLACK: those of them that no \
     job used.",
    "WAIT TO FIRST, COST TO FIRST: mean wait and CPU-hours, more or less than those of the first line.",
    "HARMED: jobs that ran when their pod went.",
    "LOST: those of them that were not tried again, and jobs that waited for these.",
];

/// The title of the column for processes that were killed, and what it means.
const KILLED: (&str, &str) = (
    "OUT OF MEMORY",
    "OUT OF MEMORY: processes of jobs that the kernel or Ray's memory monitor killed because their pod \
     had too little.",
);

/// The same for pods that the node autoscaler evicted.
const EVICTED: (&str, &str) = (
    "EVICTED",
    "EVICTED: worker pods that the node autoscaler evicted, because their jobs could run on other nodes.",
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
        let has = Shown::of(study, rows);
        let fields = study.variations.iter();
        let mut titles: Vec<String> = fields.map(ToString::to_string).collect();
        let mut add = |names: &[&str]| titles.extend(names.iter().map(|name| (*name).to_owned()));
        add(&["STRATEGY", "WAIT", "P50", "P99", "MAKESPAN"]);
        add(&["CPU-HOURS", "OF WORK", "SLACK"]);
        if has.memory_work {
            add(&["GIB-HOURS", "GIB OF WORK", "GIB SLACK"]);
        }
        if has.gpus {
            add(&["GPU-HOURS", "GPU OF WORK", "GPU SLACK"]);
        }
        if has.nodes {
            add(&["NODE-HOURS"]);
        }
        add(&["PODS", "RESIZES", "HARMED"]);
        if has.evictions {
            add(&[EVICTED.0]);
        }
        if has.memory_use {
            add(&[KILLED.0]);
        }
        add(&["LOST", "UNFINISHED", "WAIT TO FIRST", "COST TO FIRST"]);
        if has.gpus {
            add(&["GPU TO FIRST"]);
        }
        let lines = rows.iter().map(|row| {
            let first = rows.first().unwrap_or(row);
            cells(row, &first.result, has)
        });
        Self {
            titles,
            lines: lines.collect(),
        }
    }
}

/// The meaning of the columns, in sentences.
pub fn legend(study: &Study) -> Vec<&'static str> {
    let killed = has_memory(&study.trace).then_some(KILLED.1);
    let evicted = consolidates(study).then_some(EVICTED.1);
    LEGEND.into_iter().chain(evicted).chain(killed).collect()
}

/// Whether the node autoscaler evicts pods.
fn consolidates(study: &Study) -> bool {
    let mut pools = study.world.pools.iter();
    pools.any(|pool| pool.consolidate_after_s.is_some())
}

/// Whether it is known of any job how much memory it uses.
fn has_memory(trace: &Trace) -> bool {
    trace.jobs.iter().any(|job| !job.memory.is_empty())
}

/// The columns that are shown.
#[derive(Debug, Clone, Copy)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "columns, each of which is there or not"
)]
struct Shown {
    /// Jobs ask for memory.
    memory_work: bool,
    /// Pods have GPUs.
    gpus: bool,
    /// Kubernetes nodes are simulated.
    nodes: bool,
    /// The node autoscaler evicts pods.
    evictions: bool,
    /// It is known how much memory jobs use.
    memory_use: bool,
}

impl Shown {
    fn of(study: &Study, rows: &[StudyRow]) -> Self {
        let any = |is: fn(&SimulationResult) -> bool| rows.iter().any(|row| is(&row.result));
        Self {
            memory_work: any(|result| result.gib_hours.work > 0.0),
            gpus: any(|result| result.gpu_hours.paid > 0.0),
            nodes: !study.world.pools.is_empty(),
            evictions: consolidates(study),
            memory_use: has_memory(&study.trace),
        }
    }
}

fn cells(row: &StudyRow, first: &SimulationResult, has: Shown) -> Vec<String> {
    let result = &row.result;
    let mut cells: Vec<String> = row.set.iter().map(|(_, value)| value.to_string()).collect();
    cells.push(strategy_name(row.strategy).to_owned());
    let wait = result.wait;
    cells.extend([wait.mean, wait.p50, wait.p99].map(|seconds| format!("{seconds:.1} s")));
    cells.push(duration(result.makespan));
    cells.extend(hours(result.cpu_hours));
    cells.extend(
        has.memory_work
            .then(|| hours(result.gib_hours))
            .into_iter()
            .flatten(),
    );
    cells.extend(
        has.gpus
            .then(|| hours(result.gpu_hours))
            .into_iter()
            .flatten(),
    );
    cells.extend(has.nodes.then(|| format!("{:.2}", result.node_hours)));
    cells.extend([result.pods, result.resizes, result.harmed].map(|count| count.to_string()));
    cells.extend(has.evictions.then(|| result.evicted.to_string()));
    cells.extend(has.memory_use.then(|| result.out_of_memory.to_string()));
    cells.extend([result.jobs.lost, result.jobs.unfinished].map(|count| count.to_string()));
    let (more, gpus) = (result.more_than(first), first.gpu_hours.paid);
    cells.push(to_first(
        format!("{:+.1} s", more.mean_wait),
        result.wait.mean,
        first.wait.mean,
    ));
    let cpus = (result.cpu_hours.paid, first.cpu_hours.paid);
    cells.push(to_first(format!("{:+.2}", more.cpu_hours), cpus.0, cpus.1));
    let gpus = has.gpus.then(|| {
        to_first(
            format!("{:+.2}", more.gpu_hours),
            result.gpu_hours.paid,
            gpus,
        )
    });
    cells.extend(gpus);
    cells
}

/// Hours that were paid for, these as a multiple of the work, and those that were not used.
fn hours(cost: Cost) -> [String; 3] {
    [
        format!("{:.2}", cost.paid),
        times(cost),
        format!("{:.2}", cost.slack),
    ]
}

/// A difference as such, and in percent.
pub(super) fn to_first(more: String, now: f64, before: f64) -> String {
    match change(now, before) {
        percent if percent.is_empty() => more,
        percent if percent == SAME => percent,
        percent => format!("{more} ({percent})"),
    }
}

/// The number of jobs of a trace, in words.
pub fn jobs(trace: &Trace) -> String {
    match trace.jobs.len() {
        1 => "1 job".to_owned(),
        count => format!("{count} jobs"),
    }
}

/// The workload, in a line; the trace is named elsewhere.
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

/// The name of a row: `ray, idleTimeoutSeconds=60`.
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

/// The word for amounts that do not differ.
const SAME: &str = "same";

/// The change in percent; empty where there is no base.
pub(super) fn change(now: f64, before: f64) -> String {
    if before <= 0.0 {
        return String::new();
    }
    let percent = (now / before - 1.0) * 100.0;
    if percent.abs() < 0.05 {
        SAME.to_owned()
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
