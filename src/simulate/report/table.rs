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

/// A cost of a simulation.
type CostOf = fn(&SimulationResult) -> Cost;

/// The table of a study: titles, first of the fields that are varied, then of the strategy; and for each
/// simulation a line of as many cells. A cell that says nothing is empty; columns that say nothing are left out.
pub fn table(study: &Study, rows: &[StudyRow]) -> (Vec<String>, Vec<Vec<String>>) {
    let (mut titles, mut lines) = (Vec::new(), vec![Vec::new(); rows.len()]);
    let mut add = |title: &str, cell: &dyn Fn(&StudyRow) -> String| {
        titles.push(title.to_owned());
        for (line, row) in lines.iter_mut().zip(rows) {
            line.push(cell(row));
        }
    };
    for (at, field) in study.variations.iter().enumerate() {
        add(&field.to_string(), &|row| row.set[at].1.to_string());
    }
    add("STRATEGY", &|row| strategy_name(row.strategy).to_owned());
    add("WAIT", &|row| format!("{:.1} s", row.result.wait.mean));
    add("P50", &|row| format!("{:.1} s", row.result.wait.p50));
    add("P99", &|row| format!("{:.1} s", row.result.wait.p99));
    add("MAKESPAN", &|row| duration(row.result.makespan));
    // Hours that were paid for, these as a multiple of the work, and those that were not used.
    let any = |is: fn(&SimulationResult) -> bool| rows.iter().any(|row| is(&row.result));
    let has_memory_work = any(|result| result.gib_hours.work > 0.0);
    let has_gpus = any(|result| result.gpu_hours.paid > 0.0);
    let hours: [(bool, [&str; 3], CostOf); 3] = [
        (true, ["CPU-HOURS", "OF WORK", "SLACK"], |result| {
            result.cpu_hours
        }),
        (
            has_memory_work,
            ["GIB-HOURS", "GIB OF WORK", "GIB SLACK"],
            |result| result.gib_hours,
        ),
        (
            has_gpus,
            ["GPU-HOURS", "GPU OF WORK", "GPU SLACK"],
            |result| result.gpu_hours,
        ),
    ];
    for (_, [paid, of_work, slack], cost) in hours.into_iter().filter(|(is_shown, ..)| *is_shown) {
        add(paid, &|row| format!("{:.2}", cost(&row.result).paid));
        add(of_work, &|row| {
            let ratio = cost(&row.result).ratio();
            ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}x"))
        });
        add(slack, &|row| format!("{:.2}", cost(&row.result).slack));
    }
    if !study.world.pools.is_empty() {
        add("NODE-HOURS", &|row| format!("{:.2}", row.result.node_hours));
    }
    add("PODS", &|row| row.result.pods.to_string());
    add("RESIZES", &|row| row.result.resizes.to_string());
    add("HARMED", &|row| row.result.harmed.to_string());
    if consolidates(study) {
        add(EVICTED.0, &|row| row.result.evicted.to_string());
    }
    if has_memory(&study.trace) {
        add(KILLED.0, &|row| row.result.out_of_memory.to_string());
    }
    add("LOST", &|row| row.result.jobs.lost.to_string());
    add("UNFINISHED", &|row| row.result.jobs.unfinished.to_string());
    if let Some(StudyRow { result: first, .. }) = rows.first() {
        add("WAIT TO FIRST", &|row| {
            let more = row.result.more_than(first).mean_wait;
            to_first(
                format!("{more:+.1} s"),
                row.result.wait.mean,
                first.wait.mean,
            )
        });
        add("COST TO FIRST", &|row| {
            let more = row.result.more_than(first).cpu_hours;
            let (paid, before) = (row.result.cpu_hours.paid, first.cpu_hours.paid);
            to_first(format!("{more:+.2}"), paid, before)
        });
        if has_gpus {
            add("GPU TO FIRST", &|row| {
                let more = row.result.more_than(first).gpu_hours;
                let (paid, before) = (row.result.gpu_hours.paid, first.gpu_hours.paid);
                to_first(format!("{more:+.2}"), paid, before)
            });
        }
    }
    (titles, lines)
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

/// A difference as such, and in percent where there is a base.
pub(super) fn to_first(more: String, now: f64, before: f64) -> String {
    if before <= 0.0 {
        return more;
    }
    let percent = (now / before - 1.0) * 100.0;
    if percent.abs() < 0.05 {
        return "same".to_owned();
    }
    format!("{more} ({percent:+.1} %)")
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
