//! Simulates the sets of `tests/outcome` with both strategies and without delay: `make outcome`. All of them in all settings
//! make docs/outcome.md; a part is printed beside the figures of the page.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr
)]

#[path = "../tests/outcome/mod.rs"]
mod outcome;

use std::io::IsTerminal as _;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Instant;

use clap::Parser;
use outcome::ablation::{self, Ablation};
use outcome::compare::{CPU_HOURS, Metric, WAIT, geometric_mean};
use outcome::figures::{Figures, Results, SetFigures, mean};
use outcome::measure::{Decider, Settings, figures, measure};
use outcome::page::{gone, markdown, number, regret};
use outcome::sets::{self, Cluster, Set};
use outcome::{elastic, pictures};
use rayfit_core::plan::Slice;
use rayfit_core::policy::Policies;
use rayfit_core::raypolicy::compile;
use rayfit_core::simulate::trace::Trace;
use rayfit_core::yaml;

/// The allocator of the program that ships; a simulation allocates much.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Rayfit's strategy beside Ray's, in simulations.
#[derive(Debug, Parser)]
struct Arguments {
    /// The sets: their names, `made`, `recorded`, `growing` (whose pods grow), `rooms` (one workload on nodes with more or less room), or `short` (graphs on nodes with room for few large pods); `none` writes the page again from its figures, and draws those of docs/elastic.md
    /// [default: all]
    #[arg(long, value_delimiter = ',')]
    sets: Vec<String>,

    /// Seconds from a pod's node to its Ray node [default: 1,60,300]
    #[arg(long, value_delimiter = ',')]
    pod_start: Vec<u32>,

    /// `idleTimeoutSeconds` [default: 10,60,300]
    #[arg(long, value_delimiter = ',')]
    idle: Vec<u32>,

    /// Seeds [default: 1]
    #[arg(long, value_delimiter = ',')]
    seeds: Vec<u64>,

    /// A file with a RayPolicy by whose `reconcile` Rayfit scales, such as {inPlace: {learnGaps: false}}
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,

    /// Leaves out each slice of the strategy in turn, with an idle timeout of 60 s, for the table of planner.md
    #[arg(long)]
    ablation: bool,

    /// The folder of downloads
    #[arg(long, default_value = ".work/outcome")]
    traces: PathBuf,

    /// The folder with outcome.md, elastic.md and planner.md, and with the figures of the page
    #[arg(long, default_value = "docs")]
    docs: PathBuf,

    /// Given by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    match Arguments::parse().run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What was given; what the page has if nothing was.
fn or<T: Clone>(given: &[T], page: Vec<T>) -> Vec<T> {
    if given.is_empty() {
        page
    } else {
        given.to_vec()
    }
}

impl Arguments {
    fn run(&self) -> Result<(), String> {
        let docs = &self.docs;
        let known = known(docs);
        if self.sets == ["none"] {
            return write(docs, &known?);
        }
        let commit = commit()?;
        let (sets, settings) = (self.chosen()?, self.settings());
        let (sets, policies) = (self.read(sets)?, self.policies()?);
        let is_whole = self.sets.is_empty() && self.policy.is_none();
        if self.ablation {
            let table = ablate(&commit, &sets, &settings, &policies);
            return if is_whole {
                put(docs, "planner.md", ablation::PLACE, &table)
            } else {
                print!("{table}");
                Ok(())
            };
        }
        let results = Results {
            commit,
            sets: simulate(&sets, &settings, &policies),
            seeds: settings.seeds.clone(),
        };
        if is_whole && settings == Settings::of_page() {
            return write(docs, &results);
        }
        print(&results, &known.unwrap_or_default());
        Ok(())
    }

    fn settings(&self) -> Settings {
        let page = if self.ablation {
            Settings::of_ablation()
        } else {
            Settings::of_page()
        };
        Settings {
            pod_starts: or(&self.pod_start, page.pod_starts),
            idles: or(&self.idle, page.idles),
            seeds: or(&self.seeds, page.seeds),
        }
    }

    fn chosen(&self) -> Result<Vec<Set>, String> {
        let mut sets = sets::all();
        let page: Vec<&str> = sets.iter().map(|set| set.name).collect();
        let is_on_page = |set: &Set| page.contains(&set.name);
        if !self.sets.is_empty() {
            sets.extend(sets::rooms().into_iter().chain(sets::short()));
        }
        let is = |set: &Set, name: &str| match name {
            "rooms" => set.name.starts_with("shapes-") && !is_on_page(set),
            "short" => set.cluster == Cluster::Wide,
            "made" => set.recording().is_none() && is_on_page(set),
            "recorded" => set.recording().is_some() && is_on_page(set),
            "growing" => set.cluster.grows() && is_on_page(set),
            name => set.name == name,
        };
        if let Some(name) = (self.sets.iter()).find(|name| !sets.iter().any(|set| is(set, name))) {
            let names: Vec<&str> = sets.iter().map(|set| set.name).collect();
            return Err(format!(
                "there is no set {name:?}; these are: made, recorded, growing, rooms, short, {}",
                names.join(", ")
            ));
        }
        // The day with GPUs takes as long as all other sets.
        sets.retain(|set| !self.ablation || set.cluster != Cluster::Gpu);
        sets.retain(|set| self.sets.is_empty() || self.sets.iter().any(|name| is(set, name)));
        Ok(sets)
    }

    /// What Rayfit scales by besides its defaults.
    fn policies(&self) -> Result<Policies, String> {
        let Some(path) = &self.policy else {
            return Ok(Policies::default());
        };
        let error = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let text = std::fs::read_to_string(path).map_err(|found| error(&found))?;
        let document = yaml::read(&text).into_iter().next();
        let document = document.ok_or_else(|| error(&"there is nothing in it"))?;
        let document = document.map_err(|found| error(&found))?;
        let written = compile::read(&document.value).map_err(|found| error(&found))?;
        match compile(&written) {
            (Some(policy), faults) if faults.is_empty() => Ok(Policies::new(vec![policy])),
            (_, faults) => Err(faults.iter().map(|fault| error(&fault)).collect()),
        }
    }

    /// Reads all workloads, so that a missing one is told before anything runs.
    fn read(&self, sets: Vec<Set>) -> Result<Vec<(Set, Trace)>, String> {
        let (mut read, mut missing) = (Vec::new(), Vec::new());
        for set in sets {
            match set.trace(&self.traces) {
                Ok(trace) => read.push((set, trace)),
                Err(error) if !missing.contains(&error) => missing.push(error),
                Err(_) => {}
            }
        }
        if missing.is_empty() {
            return Ok(read);
        }
        Err(format!(
            "{}\nor run only those that need no download: make outcome SETS=made",
            missing.join("\n")
        ))
    }
}

/// Simulates the sets.
fn simulate(sets: &[(Set, Trace)], settings: &Settings, policies: &Policies) -> Vec<SetFigures> {
    let progress = Progress::of(sets.len());
    in_parallel(sets.len(), |number| {
        let (set, trace) = &sets[number];
        let mut told = |part| progress.share(number, part);
        let figures = measure(set, trace, settings, policies, &mut told);
        progress.done(set.name, figures.jobs, settings.simulations());
        figures
    })
}

/// Simulates the sets with all slices, and without each of them, and returns the table.
fn ablate(commit: &str, sets: &[(Set, Trace)], settings: &Settings, policies: &Policies) -> String {
    let progress = Progress::of(sets.len());
    let found = in_parallel(sets.len(), |number| {
        let (set, trace) = &sets[number];
        let mut count = 0;
        let mut decided = |decider| {
            count += settings.pod_starts.len() * settings.idles.len() * settings.seeds.len();
            figures((set, trace), decider, settings, policies, &mut |_| {})
        };
        let with_all = decided(Decider::Rayfit);
        let mut without = Vec::new();
        // What changes nothing together changes nothing alone: most slices have nothing to do in a set.
        let mut untold: Vec<&'static [Slice]> = Slice::ALL.chunks(5).rev().collect();
        while let Some(slices) = untold.pop() {
            let found = decided(Decider::Without(slices));
            if slices.len() == 1 || found == with_all {
                without.extend(slices.iter().map(|slice| (*slice, found.clone())));
            } else {
                let (first, second) = slices.split_at(slices.len() / 2);
                untold.extend([second, first]);
            }
        }
        progress.share(number, 1.0);
        progress.done(set.name, trace.jobs.len(), count);
        (with_all, without)
    });
    let of = |slice: usize| {
        found
            .iter()
            .map(move |(_, without)| without[slice].1.clone())
    };
    let without = Slice::ALL.iter().enumerate();
    let ablation = Ablation {
        commit,
        sets: sets.iter().map(|(set, _)| set.name).collect(),
        settings,
        without: without
            .map(|(number, slice)| (*slice, of(number).collect()))
            .collect(),
        with_all: found.iter().map(|(with_all, _)| with_all.clone()).collect(),
    };
    ablation.table()
}

/// Does so many pieces of work, as many at a time as there are cores, and returns what each gives.
fn in_parallel<T: Send + Sync>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let found: Vec<OnceLock<T>> = (0..count).map(|_| OnceLock::new()).collect();
    let worker = || {
        // The last piece takes longest, and so begins first.
        while let Some(number) = count.checked_sub(1 + next.fetch_add(1, Ordering::Relaxed)) {
            found[number].get_or_init(|| work(number));
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(worker);
        }
    });
    let found = found.into_iter().map(OnceLock::into_inner);
    found.flatten().collect()
}

/// Tells on standard error how far all sets are.
struct Progress {
    began: Instant,
    shares: Mutex<Vec<f64>>,
    is_terminal: bool,
}

impl Progress {
    fn of(sets: usize) -> Self {
        Self {
            began: Instant::now(),
            shares: Mutex::new(vec![0.0; sets]),
            is_terminal: std::io::stderr().is_terminal(),
        }
    }

    fn share(&self, number: usize, part: f64) {
        let mut shares = self.shares.lock().unwrap();
        shares[number] = part;
        if self.is_terminal {
            eprint!("\rsimulated {:.0} %", mean(&shares) * 100.0);
        }
    }

    fn done(&self, set: &str, jobs: usize, simulations: usize) {
        let shares = self.shares.lock().unwrap();
        let (line, percent) = (
            if self.is_terminal { "\r" } else { "" },
            mean(&shares) * 100.0,
        );
        let seconds = self.began.elapsed().as_secs();
        eprintln!(
            "{line}{set}: {jobs} jobs, {simulations} simulations; all sets: {percent:.0} % in {seconds} s"
        );
    }
}

/// From which commit this is, as all pages say it.
fn commit() -> Result<String, String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/commit.sh");
    let said = std::process::Command::new(&script).output();
    let said = said.map_err(|error| format!("{}: {error}", script.display()))?;
    if !said.status.success() {
        return Err(String::from_utf8_lossy(&said.stderr).into_owned());
    }
    Ok(String::from_utf8_lossy(&said.stdout).trim().to_owned())
}

/// The figures of the page.
fn known(docs: &Path) -> Result<Results, String> {
    let path = docs.join("outcome/results.json");
    let error = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let text = std::fs::read_to_string(&path).map_err(|found| error(&found))?;
    serde_json::from_str(&text).map_err(|found| error(&found))
}

/// Writes the page with its figures and pictures, in place of all that there were.
fn write(docs: &Path, results: &Results) -> Result<(), String> {
    let mut files = vec![
        ("outcome.md".to_owned(), markdown(results)),
        ("outcome/results.json".to_owned(), results.json()),
    ];
    files.extend(pictures::all(results));
    let (drawn, said) = elastic::all();
    files.extend(drawn);
    let replace = || -> std::io::Result<()> {
        for folder in ["outcome", "elastic"].map(|folder| docs.join(folder)) {
            std::fs::create_dir_all(&folder)?;
            for old in std::fs::read_dir(folder)? {
                std::fs::remove_file(old?.path())?;
            }
        }
        for (file, text) in &files {
            std::fs::write(docs.join(file), text)?;
        }
        Ok(())
    };
    replace().map_err(|error| format!("{}: {error}", docs.display()))?;
    put(docs, "elastic.md", elastic::PLACE, &said)?;
    let docs = docs.display();
    println!("written: {docs}/outcome.md, {docs}/outcome/, and the pictures of {docs}/elastic.md");
    Ok(())
}

/// Writes a text into its place on a page.
fn put(docs: &Path, page: &str, place: (&str, &str), text: &str) -> Result<(), String> {
    let path = docs.join(page);
    let error = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let old = std::fs::read_to_string(&path).map_err(|found| error(&found))?;
    let new = elastic::page_with(&old, place, text);
    let new = new.ok_or_else(|| error(&format!("it has no {:?}", place.0)))?;
    std::fs::write(&path, new).map_err(|found| error(&found))
}

/// A table of what there is now, and of what Rayfit has now as a multiple of what it has on the page.
fn print(results: &Results, page: &Results) {
    println!(
        "{:<20} {:>6} {:>5}  {:>8} {:>8} {:>6}  {:>8} {:>8} {:>6}  {:>8} {:>8} {:>6}  {:>9} {:>9}",
        "",
        "POD",
        "",
        "WAIT",
        "WAIT",
        "",
        "CPU-H",
        "CPU-H",
        "",
        "WAIT",
        "CPU-H",
        "WAIT",
        "WAIT",
        "CPU-H"
    );
    println!(
        "{:<20} {:>6} {:>5}  {:>8} {:>8} {:>6}  {:>8} {:>8} {:>6}  {:>8} {:>8} {:>6}  {:>9} {:>9}",
        "SET",
        "START",
        "IDLE",
        "ray",
        "rayfit",
        "RATIO",
        "ray",
        "rayfit",
        "RATIO",
        "limit",
        "limit",
        "GONE",
        "TO PAGE",
        "TO PAGE"
    );
    let has_seeds = page.seeds.starts_with(&results.seeds);
    for set in &results.sets {
        for setting in &set.settings {
            let known = page.set(&set.name).filter(|_| has_seeds);
            let known = known.and_then(|set| set.setting(setting.pod_start, setting.idle));
            let cells = |metric: Metric| {
                let (ray, rayfit) = (metric.mean(&setting.ray), metric.mean(&setting.rayfit));
                let ratio = metric.ratio(setting);
                format!("{:>8} {:>8} {ratio:>6.2}", number(ray), number(rayfit))
            };
            let to_page = |metric: Metric| {
                let known = known.map(|known| since(metric, &known.rayfit, &setting.rayfit));
                known.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.3}"))
            };
            let limit = |metric: Metric| {
                let limit = setting.limit.as_ref().map(|limit| metric.mean(limit));
                limit.map_or_else(|| "-".to_owned(), number)
            };
            println!(
                "{:<20} {:>6} {:>5}  {}  {}  {:>8} {:>8} {:>6}  {:>9} {:>9}",
                set.name,
                setting.pod_start,
                setting.idle,
                cells(WAIT),
                cells(CPU_HOURS),
                limit(WAIT),
                limit(CPU_HOURS),
                gone([setting]),
                to_page(WAIT),
                to_page(CPU_HOURS),
            );
        }
    }
    means(results, page);
    println!(
        "\nRATIO: rayfit to ray. GONE: of the wait that can be avoided, see docs/outcome.md; means of limit and GONE: rayfit to limit, and of all sets. TO PAGE: rayfit now to rayfit in docs/outcome.md, with the same seeds."
    );
}

/// The geometric means of all sets with equal settings, where there are several.
fn means(results: &Results, page: &Results) {
    let Some(first) = results.sets.first().filter(|_| results.sets.len() > 1) else {
        return;
    };
    let has_seeds = page.seeds.starts_with(&results.seeds);
    for one in &first.settings {
        let (pod_start, idle) = (one.pod_start, one.idle);
        let settings = || {
            let sets = results.sets.iter();
            sets.filter_map(move |set| Some((set, set.setting(pod_start, idle)?)))
        };
        let ratio = |metric: Metric| {
            geometric_mean(settings().map(|(_, setting)| metric.ratio(setting))).unwrap_or(1.0)
        };
        let of_sets: Vec<_> = settings().map(|(_, setting)| setting).collect();
        let to_page = |metric: Metric| {
            let known = settings().map(|(set, setting)| {
                let known = page.set(&set.name).filter(|_| has_seeds)?;
                let known = known.setting(pod_start, idle)?;
                Some(since(metric, &known.rayfit, &setting.rayfit))
            });
            let known: Option<Vec<f64>> = known.collect();
            let mean = known.and_then(geometric_mean);
            mean.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.3}"))
        };
        println!(
            "{:<20} {pod_start:>6} {idle:>5}  {:>8} {:>8} {:>6.2}  {:>8} {:>8} {:>6.2}  {:>8} {:>8} {:>6}  {:>9} {:>9}",
            "geometric mean",
            "",
            "",
            ratio(WAIT),
            "",
            "",
            ratio(CPU_HOURS),
            regret(WAIT, &of_sets),
            regret(CPU_HOURS, &of_sets),
            gone(of_sets),
            to_page(WAIT),
            to_page(CPU_HOURS),
        );
    }
}

/// What there is now as a multiple of what there was with the same seeds.
fn since(metric: Metric, before: &Figures, now: &Figures) -> f64 {
    let (before, now) = ((metric.of)(before), (metric.of)(now));
    let seeds = now.len().min(before.len());
    mean(now).max(metric.floor) / mean(&before[..seeds]).max(metric.floor)
}
