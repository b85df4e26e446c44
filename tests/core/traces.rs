//! Recorded workloads of every form become traces, and traces are read as they are written.

use std::path::Path;

use rayfit_core::simulate::trace::{
    self, Job, JobDemand, JobShape, Loss, MemoryUse, PlacementStrategy as Placement, Trace,
};

use crate::outcome_support::wfformat;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;

fn fixture(file: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/traces");
    std::fs::read_to_string(folder.join(file)).unwrap()
}

fn written(trace: &Trace) -> String {
    trace::lines(trace).map(|line| line + "\n").collect()
}

/// What a fixture is read as, with times to the millisecond.
fn imported(file: &str) -> (Trace, Vec<Loss>) {
    let (mut trace, losses) = trace::import(&fixture(file), "named-by-the-file").unwrap();
    for job in &mut trace.jobs {
        job.at = (job.at * 1000.0).round() / 1000.0;
        job.seconds = (job.seconds * 1000.0).round() / 1000.0;
    }
    (trace, losses)
}

#[test]
fn tasks_that_ray_listed() {
    let (trace, losses) = imported("ray-tasks.json");
    insta::assert_snapshot!(written(&trace));
    assert_eq!(losses, [Loss::Strategy(1)]);
}

#[test]
fn a_workflow_is_the_same_in_each_version_of_its_form() {
    let read = |file: &str| trace::read(&wfformat::lines(&fixture(file)).unwrap(), "").unwrap();
    let (new, mut old) = (read("wfformat-1.5.json"), read("wfformat-1.4.json"));
    insta::assert_snapshot!(written(&new));
    for (job, new) in old.jobs.iter_mut().zip(&new.jobs) {
        job.name.clone_from(&new.name);
    }
    assert_eq!(old, new);
}

#[test]
fn an_early_workflow_has_memory_in_kilobytes() {
    let lines = wfformat::lines(
        r#"{"name":"w","schemaVersion":"1.2","workflow":{"jobs":[
            {"name":"b_ID2","id":"ID2","runtime":2.5,"cores":2,"memory":3,"parents":["a_ID1"]},
            {"name":"a_ID1","id":"ID1","runtime":1}]}}"#,
    );
    let trace = trace::read(&lines.unwrap(), "").unwrap();
    let [first, second] = &trace.jobs[..] else {
        panic!("{trace:?}")
    };
    assert_eq!((first.id.as_str(), second.id.as_str()), ("ID1", "ID2"));
    assert_eq!(
        (&second.after[..], second.memory[0].bytes),
        (&[0][..], 3000)
    );
    assert_eq!(second.demand.total("CPU").to_string(), "2");
}

#[test]
fn a_table_of_jobs() {
    let (trace, losses) = imported("jobs.csv");
    insta::assert_snapshot!(written(&trace));
    assert_eq!(losses, []);
}

#[test]
fn our_own_form() {
    let (trace, losses) = imported("trace.jsonl");
    assert_eq!(trace.name, "nightly");
    assert_eq!(trace.jobs.len(), 103);
    assert_eq!(trace.jobs[102].demand.total("GPU").to_string(), "2");
    assert_eq!(losses, []);
    assert_eq!(trace::read(&written(&trace), "x"), Ok(trace));
}

#[test]
fn the_page_on_traces_shows_what_is_read() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/traces.md");
    let page = std::fs::read_to_string(page).unwrap();
    for (language, file) in [("json", "trace.jsonl"), ("csv", "jobs.csv")] {
        let example = format!("```{language}\n{}```\n", fixture(file));
        assert!(page.contains(&example), "docs/traces.md has no {file}");
    }
}

fn amount() -> impl Strategy<Value = f64> {
    prop_oneof![
        (1_u32..9).prop_map(f64::from),
        (1_u32..10_000).prop_map(|steps| f64::from(steps) / 10_000.0),
        (1_u32..).prop_map(|kibibytes| f64::from(kibibytes) * 1024.0),
    ]
}

/// A name that JSON has to escape now and then.
fn name() -> impl Strategy<Value = String> {
    "[a-zA-Z#\"\\\\ä ]{1,6}"
}

fn shape() -> impl Strategy<Value = JobShape> {
    let names = prop_oneof!["CPU", "memory", "[a-z:\"]{1,8}"];
    btree_map(names, amount(), 0..4)
}

fn demand() -> impl Strategy<Value = JobDemand> {
    let strategy = prop_oneof![
        Just(Placement::Pack),
        Just(Placement::Spread),
        Just(Placement::StrictPack),
        Just(Placement::StrictSpread),
    ];
    let full = shape().prop_filter("bundles are not empty", |shape| !shape.is_empty());
    prop_oneof![
        shape().prop_map(JobDemand::Task),
        shape().prop_map(JobDemand::Actor),
        (strategy, vec(full, 1..4))
            .prop_map(|(strategy, bundles)| JobDemand::PlacementGroup { strategy, bundles }),
    ]
}

fn memory() -> impl Strategy<Value = Vec<MemoryUse>> {
    btree_map(0_u32..100_000, 0_u64..1 << 49, 0..4).prop_map(|moments| {
        let moments = moments.into_iter();
        moments
            .map(|(at, bytes)| MemoryUse {
                at: f64::from(at) / 7.0,
                bytes,
            })
            .collect()
    })
}

fn retries() -> impl Strategy<Value = u32> {
    prop_oneof![0_u32..5, Just(u32::MAX)]
}

/// A trace as reading makes it: by time, with parents before their children.
fn traces() -> impl Strategy<Value = Trace> {
    let times = (0.0..1e9_f64, 0.0..1e9_f64);
    let job = (
        name(),
        times,
        demand(),
        memory(),
        retries(),
        vec(any::<prop::sample::Index>(), 0..4),
    );
    (option::of(name()), vec(job, 1..12)).prop_map(|(name, jobs)| {
        let mut jobs = jobs;
        jobs.sort_by(|one, other| one.1.0.total_cmp(&other.1.0));
        let jobs = jobs.into_iter().enumerate();
        let jobs = jobs.map(
            |(index, (name, (at, seconds), demand, memory, retries, parents))| {
                let parents = parents.iter().filter(|_| index > 0);
                let mut after: Vec<usize> = parents.map(|parent| parent.index(index)).collect();
                after.sort_unstable();
                after.dedup();
                Job {
                    id: format!("{index}{name}"),
                    name,
                    at,
                    after,
                    seconds,
                    demand,
                    memory,
                    output: (index as u64 % 3) << 20,
                    retries,
                }
            },
        );
        Trace {
            name: name.unwrap_or_default(),
            jobs: jobs.collect(),
        }
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(trace in traces()) {
        let text = written(&trace);
        let read = trace::read(&text, "");
        prop_assert_eq!(read.as_ref(), Ok(&trace), "{}", text);
    }

    /// Whatever the order of lines and times, a second reading changes nothing more.
    #[test]
    fn order_is_settled_by_reading_once(
        lines in vec((0_u32..4, vec(any::<prop::sample::Index>(), 0..3), 1_usize..4), 1..10),
        rotated in 0_usize..10,
    ) {
        let mut jobs: Vec<String> = Vec::new();
        for (index, (at, parents, count)) in lines.iter().enumerate() {
            let parents = parents.iter().filter(|_| index > 0);
            let after: Vec<String> =
                parents.map(|parent| format!("\"j{}\"", parent.index(index))).collect();
            let after = after.join(",");
            jobs.push(format!(
                "{{\"task\":\"j{index}\",\"at\":{at},\"seconds\":1,\"after\":[{after}],\"count\":{count}}}"
            ));
        }
        jobs.rotate_left(rotated % lines.len());
        let header = r#"{"apiVersion":"rayfit.dev/v1alpha1","kind":"Trace","name":"t"}"#;
        let once = trace::read(&format!("{header}\n{}", jobs.join("\n")), "").unwrap();
        for (index, job) in once.jobs.iter().enumerate() {
            prop_assert!(job.after.iter().all(|parent| *parent < index), "{:?}", job);
            prop_assert!(index == 0 || once.jobs[index - 1].at <= job.at, "{:?}", job);
        }
        prop_assert_eq!(trace::read(&written(&once), ""), Ok(once));
    }

    /// A file of any form that was cut or changed somewhere is read or refused.
    #[test]
    fn broken_files_do_no_harm(
        file in prop::sample::select(vec![
            "ray-tasks.json", "jobs.csv", "trace.jsonl",
        ]),
        at in any::<prop::sample::Index>(),
        patch in "[-\\[\\]{}\",:0-9e#\n]{0,3}",
        cut in 0_usize..40,
    ) {
        let mut bytes = fixture(file).into_bytes();
        let at = at.index(bytes.len());
        let end = (at + cut).min(bytes.len());
        bytes.splice(at..end, patch.into_bytes());
        let text = String::from_utf8_lossy(&bytes);
        if let Ok(trace) = trace::read(&text, "broken") {
            prop_assert_eq!(trace::read(&written(&trace), ""), Ok(trace));
        }
    }
}
