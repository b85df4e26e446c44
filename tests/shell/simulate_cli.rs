//! `rayfit simulate` as people and pipelines meet it.

use std::path::{Path, PathBuf};

use crate::command::{Run, rayfit, rayfit_reading};

const EXAMPLE: [&str; 4] = [
    "simulate",
    "examples/trace.jsonl",
    "--cluster",
    "examples/good.yaml",
];

fn simulate(arguments: &[&str]) -> Run {
    rayfit(&[&EXAMPLE, arguments].concat())
}

/// A file with that in it.
fn file(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// The page shows what the command prints.
#[test]
fn the_example_is_simulated() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let run = simulate(&["--vary", "idleTimeoutSeconds=10,120"]);
    assert_eq!(
        (run.code, run.err.as_str()),
        (0, ""),
        "progress is not for pipes"
    );
    let page = std::fs::read_to_string(root.join("docs/simulate.md")).unwrap();
    assert!(
        page.contains(&run.out),
        "docs/simulate.md shows something else than {}",
        run.out
    );
}

#[test]
fn programs_get_everything_and_the_same_each_time() {
    let arguments = ["--vary", "maxReplicas=2,10", "-o", "json"];
    let run = simulate(&arguments);
    assert_eq!(run.code, 0, "{}", run.err);
    let study = run.json();
    assert_eq!(study["kind"], "Simulation");
    assert_eq!(study["jobs"], 57);
    let rows = study["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    for row in rows {
        assert_eq!(row["set"][0][0], "maxReplicas");
        assert_eq!(row["result"]["jobs"]["ended"], 57);
        assert!(row["result"]["curve"].as_array().unwrap().len() > 10);
    }
    let wait = |row: usize| rows[row]["result"]["wait"]["mean"].as_f64().unwrap();
    assert!(
        wait(0) > 2.0 * wait(2),
        "fewer pods, longer waits: {}",
        run.out
    );
    assert_eq!(simulate(&arguments).out, run.out);
}

/// Resize limits and fields of RayPolicies change what comes of it, and each simulation says how much more it
/// took than the first one.
#[test]
fn limits_and_policies_are_varied() {
    let run = simulate(&[
        "--strategy=rayfit",
        "--vary=cpu/max-cpu=2,8",
        "--vary=headroomCpus=0,16",
        "-o=json",
    ]);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    let study = run.json();
    let rows = study["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    assert_eq!(rows[3]["set"][0][0], "cpu/max-cpu");
    let number = |row: usize, pointer: &str| rows[row].pointer(pointer).unwrap().as_f64().unwrap();
    assert!(number(0, "/result/resizes") < 0.5 && number(2, "/result/resizes") > 0.0);
    assert!(
        number(1, "/toFirst/cpuHours") > 0.1,
        "headroom costs: {}",
        run.out
    );
    let (paid, slack) = (
        number(3, "/result/cpuHours/paid"),
        number(3, "/result/cpuHours/slack"),
    );
    let work = number(3, "/result/cpuHours/work");
    assert!(
        (paid - slack - work).abs() < 0.02,
        "{paid} - {slack} is the work of {work}"
    );
    assert!(number(0, "/toFirst/cpuHours").abs() < 1e-9);
}

#[test]
fn readers_get_a_page() {
    let run = simulate(&["--strategy", "rayfit", "-o", "html"]);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    assert!(run.out.starts_with("<!DOCTYPE html>\n"), "{}", run.out);
    assert!(run.out.ends_with("</html>\n"));
    assert!(run.out.contains("<section id=\"row-0\"><h3>rayfit</h3>"));
    assert!(!run.out.contains("id=\"row-1\""));
    assert_eq!(
        run.out,
        simulate(&["--strategy", "rayfit", "-o", "html"]).out
    );
}

#[test]
fn node_pools_are_read_and_counted() {
    let pools = file(
        "simulate-pools.yaml",
        "- {name: cpu, cpu: 16, memory: 64Gi, max: 3, min: 1}\n",
    );
    let run = simulate(&["--nodes", pools.to_str().unwrap()]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.out.contains("NODE-HOURS"), "{}", run.out);
    let pools = file(
        "simulate-bad-pools.yaml",
        "- {name: cpu, cpu: 16, memory: 64Gi, maximum: 3}\n",
    );
    let run = simulate(&["--nodes", pools.to_str().unwrap()]);
    assert_eq!(run.code, 2);
    assert!(
        run.err
            .contains("simulate-bad-pools.yaml: node pools are a list of {name, cpu, memory,"),
        "{}",
        run.err
    );
}

/// What cannot be simulated is refused before anything is printed, with what to write instead.
#[test]
fn mistakes_are_reported_with_what_to_write() {
    let many = format!("minReplicas={}", [const { "1" }; 50].join(","));
    let more = format!("maxReplicas={}", [const { "9" }; 6].join(","));
    for (arguments, says) in [
        (
            vec!["--vary", "idleTimeoutSecond=1"],
            "did you mean idleTimeoutSeconds?",
        ),
        (
            vec!["--vary", "idleTimeoutSeconds"],
            "write for example idleTimeoutSeconds=10,60,300",
        ),
        (
            vec!["--vary", "minReplicas=1.5"],
            "write a whole number from 0 to 100000",
        ),
        (
            vec!["--vary", &many, "--vary", &more],
            "these are 600 simulations: vary less, up to 500",
        ),
        (
            vec!["--strategy", "ray", "--vary", "keepSmallSeconds=60"],
            "no effect with strategy ray: add --strategy rayfit",
        ),
        (
            vec!["--vary", "gpu/max-cpu=4"],
            "there is no worker group \"gpu\" to vary; there are: \"cpu\"",
        ),
        (
            vec!["--vary", "max-cpu=1"],
            "its pods start with 2; write no less",
        ),
        (vec!["--vary", "nodeStartSeconds=9"], "--nodes pools.yaml"),
        (vec!["--pod-start", "soon"], "write seconds from 0 to 86400"),
        (vec!["--strategy", "fast"], "[possible values: rayfit, ray]"),
    ] {
        let run = simulate(&arguments);
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{arguments:?}");
        assert!(run.err.contains(says), "{arguments:?}: {}", run.err);
    }
}

#[test]
fn files_without_required_objects_are_reported() {
    let trace = "examples/trace.jsonl";
    let run = rayfit(&["simulate", trace, "--cluster", "examples/rayjob.yaml"]);
    assert_eq!((run.code, run.out.as_str()), (2, ""));
    assert!(
        run.err
            .contains("examples/rayjob.yaml: there is no RayCluster in it"),
        "{}",
        run.err
    );
    let run = rayfit(&["simulate", trace]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("--cluster <FILE>"), "{}", run.err);

    let header = "{\"apiVersion\":\"rayfit.dev/v1alpha1\",\"kind\":\"Trace\",\"name\":\"none\"}\n";
    let cluster = ["simulate", "-", "--cluster", "examples/good.yaml"];
    let run = rayfit_reading(&cluster, header);
    assert_eq!((run.code, run.out.as_str()), (2, ""));
    assert!(
        run.err.contains("<stdin>: there is no job in it"),
        "{}",
        run.err
    );
    let run = rayfit_reading(&cluster, "at,seconds,cpu\nsoon,1,1\n");
    assert_eq!((run.code, run.out.as_str()), (2, ""));
    assert!(run.err.contains("<stdin>: line 2"), "{}", run.err);
}

/// Prices add columns, and change nothing else.
#[test]
fn hours_have_a_price_where_one_is_given() {
    let price = "--price=cpu-hour=0.5,gib-hour=0.25";
    let run = simulate(&["--strategy=rayfit", "--vary=maxReplicas=2,10", price]);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    for words in ["  PRICE  ", "  PRICE TO FIRST", "\nPRICE: of the hours"] {
        assert!(run.out.contains(words), "{words}: {}", run.out);
    }
    let study = simulate(&[
        "--strategy=rayfit",
        "--vary=maxReplicas=2,10",
        price,
        "-o=json",
    ])
    .json();
    let number = |pointer: &str| study.pointer(pointer).unwrap().as_f64().unwrap();
    let money = 0.5 * number("/rows/1/result/cpuHours/paid")
        + 0.25 * number("/rows/1/result/gibHours/paid");
    assert!((number("/rows/1/price") - money).abs() < 1e-9, "{study}");
    let more = number("/rows/1/price") - number("/rows/0/price");
    assert!(
        (number("/rows/1/toFirst/price") - more).abs() < 1e-9,
        "{study}"
    );
    let run = simulate(&["--price=node-hour=1"]);
    assert_eq!(run.code, 2);
    assert!(
        run.err.contains("write cpu-hour, gib-hour or gpu-hour"),
        "{}",
        run.err
    );
}
