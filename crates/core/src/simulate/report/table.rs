//! The results of each simulation of a study, in columns.

use std::fmt::Write as _;

use crate::report::counted;
use crate::report::table::Table;
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

/// The title of the column for the price, and what it means.
const PRICE: (&str, &str) = (
    "PRICE",
    "PRICE: of the hours of worker pods, by --price; PRICE TO FIRST: more or less than that of the first line.",
);

/// The title of the column for pods that the node autoscaler evicted, and what it means.
const EVICTED: (&str, &str) = (
    "EVICTED",
    "EVICTED: worker pods that the node autoscaler evicted, because their jobs could run on other nodes.",
);

/// Adds a column: its title, and the cell of a result.
type AddColumn<'a> = dyn FnMut(&str, &dyn Fn(&SimulationResult) -> String) + 'a;

/// The table of a study: titles, first of the fields that are varied, then of the strategy; and a line for each
/// simulation. Columns that say nothing are left out.
pub fn table(study: &Study, rows: &[StudyRow]) -> Table {
    let mut table = Table {
        titles: Vec::new(),
        lines: vec![Vec::new(); rows.len()],
    };
    for (at, field) in study.variations.iter().enumerate() {
        let values = rows.iter().map(|row| row.set[at].1.to_string());
        table.column(&field.to_string(), values);
    }
    let strategies = rows.iter().map(|row| row.strategy.to_string());
    table.column("STRATEGY", strategies);
    let results: Vec<&SimulationResult> = rows.iter().map(|row| &row.result).collect();
    let mut add = |title: &str, cell: &dyn Fn(&SimulationResult) -> String| {
        table.column(title, results.iter().map(|result| cell(result)));
    };
    add("WAIT", &|result| format!("{:.1} s", result.wait.mean));
    add("P50", &|result| format!("{:.1} s", result.wait.p50));
    add("P99", &|result| format!("{:.1} s", result.wait.p99));
    add("MAKESPAN", &|result| duration(result.makespan));
    add_hours(&results, &mut add);
    if let Some(price) = study.price {
        add(PRICE.0, &|result| format!("{:.2}", price.of(result)));
    }
    if !study.world.pools.is_empty() {
        add("NODE-HOURS", &|result| format!("{:.2}", result.node_hours));
    }
    add("PODS", &|result| result.pods.to_string());
    add("RESIZES", &|result| result.resizes.to_string());
    add("HARMED", &|result| result.harmed.to_string());
    if consolidates(study) {
        add(EVICTED.0, &|result| result.evicted.to_string());
    }
    if has_memory(&study.trace) {
        add(KILLED.0, &|result| result.out_of_memory.to_string());
    }
    add("LOST", &|result| result.jobs.lost.to_string());
    add("UNFINISHED", &|result| result.jobs.unfinished.to_string());
    compare_to_first(study, &results, &mut add);
    table
}

/// Adds waits and costs as more or less than those of the first line.
fn compare_to_first(study: &Study, results: &[&SimulationResult], add: &mut AddColumn<'_>) {
    let Some(first) = results.first() else {
        return;
    };
    let base = first.wait.mean;
    add("WAIT TO FIRST", &|result| {
        let more = format!("{:+.1} s", result.wait.mean - base);
        to_first(more, result.wait.mean, base)
    });
    let mut add_cost = |title, base: f64, paid: &dyn Fn(&SimulationResult) -> f64| {
        add(title, &|result| {
            let more = format!("{:+.2}", paid(result) - base);
            to_first(more, paid(result), base)
        });
    };
    let base = first.cpu_hours.paid;
    add_cost("COST TO FIRST", base, &|result| result.cpu_hours.paid);
    if has_gpus(results) {
        let base = first.gpu_hours.paid;
        add_cost("GPU TO FIRST", base, &|result| result.gpu_hours.paid);
    }
    if let Some(price) = study.price {
        let base = price.of(first);
        add_cost("PRICE TO FIRST", base, &|result| price.of(result));
    }
}

/// Adds hours that were paid for, these as a multiple of the work, and those that were not used.
fn add_hours(results: &[&SimulationResult], add: &mut AddColumn<'_>) {
    let mut add = |[paid, of_work, slack]: [&str; 3], cost: fn(&SimulationResult) -> Cost| {
        add(paid, &|result| format!("{:.2}", cost(result).paid));
        add(of_work, &|result| {
            let ratio = cost(result).ratio();
            ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}x"))
        });
        add(slack, &|result| format!("{:.2}", cost(result).slack));
    };
    add(["CPU-HOURS", "OF WORK", "SLACK"], |result| result.cpu_hours);
    // Without jobs that ask for memory, a pod's memory is neither used nor idle.
    if results.iter().any(|result| result.gib_hours.work > 0.0) {
        let titles = ["GIB-HOURS", "GIB OF WORK", "GIB SLACK"];
        add(titles, |result| result.gib_hours);
    }
    if has_gpus(results) {
        let titles = ["GPU-HOURS", "GPU OF WORK", "GPU SLACK"];
        add(titles, |result| result.gpu_hours);
    }
}

fn has_gpus(results: &[&SimulationResult]) -> bool {
    results.iter().any(|result| result.gpu_hours.paid > 0.0)
}

/// The meaning of the columns, in sentences.
pub fn legend(study: &Study) -> Vec<&'static str> {
    let killed = has_memory(&study.trace).then_some(KILLED.1);
    let evicted = consolidates(study).then_some(EVICTED.1);
    let price = study.price.map(|_| PRICE.1);
    let further = evicted.into_iter().chain(killed).chain(price);
    LEGEND.into_iter().chain(further).collect()
}

/// Checks whether the node autoscaler evicts pods.
fn consolidates(study: &Study) -> bool {
    let mut pools = study.world.pools.iter();
    pools.any(|pool| pool.consolidate_after_s.is_some())
}

/// Checks whether the trace says of any job how much memory it uses.
fn has_memory(trace: &Trace) -> bool {
    trace.jobs.iter().any(|job| !job.memory.is_empty())
}

/// A difference as such, and in percent where there is a base.
pub(super) fn to_first(more: String, now: f64, base: f64) -> String {
    if base <= 0.0 {
        return more;
    }
    let percent = (now / base - 1.0) * 100.0;
    // Rounded it would be `+0.0 %`, which looks like a difference.
    if percent.abs() < 0.05 {
        return "same".to_owned();
    }
    format!("{more} ({percent:+.1} %)")
}

/// The workload, in a line; the trace is named elsewhere.
pub fn headline(study: &Study, rows: &[StudyRow]) -> String {
    let jobs = counted(study.trace.jobs.len(), "job");
    let Some(StudyRow { result, .. }) = rows.first() else {
        return jobs;
    };
    format!(
        "{jobs}, {:.2} CPU-hours of work, {} if nothing ever waited",
        result.cpu_hours.work,
        duration(result.endless_makespan),
    )
}

/// The name of a row: `ray, idleTimeoutSeconds=60`.
pub fn row_name(row: &StudyRow) -> String {
    let mut name = row.strategy.to_string();
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
