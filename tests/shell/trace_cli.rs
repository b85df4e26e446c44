//! `rayfit trace` as people and pipelines meet it.

use std::path::Path;

use crate::command::{rayfit, rayfit_reading};

const TASKS: &str = "tests/fixtures/traces/ray-tasks.json";
const TRACE: &str = "tests/fixtures/traces/trace.jsonl";

#[test]
fn any_form_becomes_lines_that_are_read_again() {
    let run = rayfit(&["trace", TASKS]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert_eq!(
        run.err,
        "warning: taken as PACK, as Ray does not list their strategy: 1 (placement groups)\n"
    );
    assert!(
        run.out.starts_with(
            "{\"apiVersion\":\"rayfit.dev/v1alpha1\",\"kind\":\"Trace\",\"name\":\"ray-tasks\"}\n{"
        ),
        "{}",
        run.out
    );
    let again = rayfit_reading(&["trace", "-"], &run.out);
    assert_eq!(
        (again.code, again.out, again.err),
        (0, run.out, String::new())
    );
}

#[test]
fn a_summary_is_for_people_or_for_programs() {
    let run = rayfit(&["trace", "--summary", TRACE]);
    assert_eq!(run.code, 0, "{}", run.err);
    insta::assert_snapshot!(run.out);
    let summary = rayfit(&["trace", "--summary", "-o", "json", TRACE]).json();
    assert_eq!(summary["jobs"], 103);
    assert_eq!(summary["widest"]["gpus"], 2.0);
    let format = rayfit(&["trace", "-o", "json", TRACE]);
    assert_eq!(format.code, 2, "a format is of the summary");
    assert!(format.err.contains("--summary"), "{}", format.err);
}

#[test]
fn what_is_none_is_refused_with_what_there_is() {
    let run = rayfit_reading(&["trace", "-"], "jobs: 3\n");
    assert_eq!((run.code, run.out.as_str()), (2, ""));
    insta::assert_snapshot!(run.err);
    let line = "{\"task\":\"t\",\"seconds\":1}\n";
    let run = rayfit_reading(&["trace", "-"], line);
    assert!(
        run.err
            .starts_with("error: <stdin>: line 1: the header is missing"),
        "{}",
        run.err
    );
    assert_eq!(rayfit(&["trace"]).code, 2);
    let run = rayfit(&["trace", "none.json"]);
    assert!(
        run.err.contains("none.json: there is no such file"),
        "{}",
        run.err
    );
}

#[test]
fn names_are_hidden_and_with_a_key_alike_in_all_traces() {
    let hidden = rayfit(&["trace", "--hash-names", TRACE]).out;
    for name in ["nightly", "load", "gang", "server", "Server", "report"] {
        assert!(!hidden.contains(name), "{name}: {hidden}");
    }
    assert_ne!(hidden, rayfit(&["trace", "--hash-names", TRACE]).out);
    let read = rayfit_reading(&["trace", "--summary", "-"], &hidden);
    assert_eq!(read.code, 0, "{}", read.err);
    let key = Path::new(env!("CARGO_TARGET_TMPDIR")).join("trace-key");
    let keyed = || {
        rayfit(&[
            "trace",
            "--hash-names",
            "--hash-key",
            key.to_str().unwrap(),
            TRACE,
        ])
    };
    std::fs::write(&key, [7; 32]).unwrap();
    let first = keyed();
    assert_eq!((first.code, &first.out), (0, &keyed().out), "{}", first.err);
    std::fs::write(&key, "short").unwrap();
    assert!(
        keyed().err.contains("a key has 32 bytes or more"),
        "{}",
        keyed().err
    );
}
