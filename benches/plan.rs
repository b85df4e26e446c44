//! Times `decide` on snapshot files: `cargo bench --bench plan -- [ray|rayfit] FILE..`. One JSON
//! line per file: seconds of the first decision and the median of some more, launches by group,
//! and the process's peak memory. Reading the file is not counted in the time.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout
)]

use std::time::Instant;

use rayfit_core::plan::{Plan, PlanSettings, Strategy, decide};
use rayfit_core::snapshot::read_all;
use serde_json::json;

/// The allocator of the program that ships.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Decisions after the first one.
const REPEATS: usize = 5;

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    let (strategy, files) = match arguments.split_first() {
        Some((way, files)) if way == "ray" => (Strategy::Ray, files),
        Some((way, files)) if way == "rayfit" => (Strategy::Rayfit, files),
        _ => {
            println!("usage: cargo bench --bench plan -- ray|rayfit SNAPSHOT..");
            return;
        }
    };
    for file in files {
        let text = std::fs::read_to_string(file).unwrap_or_else(|e| panic!("{file}: {e}"));
        let before = memory("VmHWM");
        for snapshot in read_all(&text) {
            let snapshot = snapshot.unwrap_or_else(|e| panic!("{file}: {e}"));
            let settings = PlanSettings {
                strategy,
                // What is measured is what launches cost, however many.
                max_workers: u64::MAX,
                ..PlanSettings::default()
            };
            let loaded = memory("VmRSS");
            let mut seconds = Vec::new();
            let mut plan = Plan::default();
            for _ in 0..=REPEATS {
                let start = Instant::now();
                plan = decide(&snapshot, &settings).0;
                seconds.push(start.elapsed().as_secs_f64());
            }
            let first = seconds.remove(0);
            seconds.sort_by(f64::total_cmp);
            let launch: serde_json::Map<_, _> = (plan.groups.iter())
                .filter(|group| group.launch > 0)
                .map(|group| (group.name.clone(), json!(group.launch)))
                .collect();
            let peak = memory("VmHWM").max(before);
            println!(
                "{}",
                json!({
                    "file": file, "first_s": first, "median_s": seconds[REPEATS / 2],
                    "launch": launch, "unmet": plan.unmet.iter().map(|unmet| unmet.count).sum::<u64>(),
                    "peak_mib": peak / 1024, "deciding_mib": peak.saturating_sub(loaded) / 1024,
                })
            );
        }
    }
}

/// A size of this process in KiB, or 0 where the system does not tell.
fn memory(key: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(key));
    let digits = line.map(|line| {
        line.chars()
            .filter(char::is_ascii_digit)
            .collect::<String>()
    });
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}
