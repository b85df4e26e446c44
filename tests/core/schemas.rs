//! The published schemas (`docs/schema/`) are those of the code, and they fit what is read and
//! written.

use std::io::Read as _;
use std::path::Path;

use flate2::read::GzDecoder;
use jsonschema::Validator;
use rayfit_core::plan::check::check;
use rayfit_core::plan::{PlanLine, PlanSettings, Strategy, decide, schema};
use rayfit_core::report::json::pretty;
use rayfit_core::simulate::trace;
use rayfit_core::snapshot::Snapshot;
use serde_json::Value;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The published schema, as a validator that refuses keys that it does not know.
fn published(name: &str) -> Validator {
    let path = root().join(format!("docs/schema/{name}.schema.json"));
    let mut schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    close(&mut schema);
    jsonschema::validator_for(&schema).unwrap()
}

/// A key that was forgotten in a schema would pass unseen otherwise.
fn close(schema: &mut Value) {
    if let Some(fields) = schema.as_object_mut() {
        if fields.contains_key("properties") {
            fields.insert("additionalProperties".to_owned(), false.into());
        }
        fields.values_mut().for_each(close);
    } else if let Some(list) = schema.as_array_mut() {
        list.iter_mut().for_each(close);
    }
}

fn faults(validator: &Validator, value: &Value) -> Vec<String> {
    let faults = validator.iter_errors(value);
    faults
        .map(|fault| format!("{}: {fault}", fault.instance_path()))
        .collect()
}

fn is_of_kubernetes(fault: &str) -> bool {
    fault.starts_with("/pods/") || fault.starts_with("/nodes/")
}

/// A quarter of the recorded snapshots; there are some of every kind of object among them.
fn recorded() -> Vec<Value> {
    let file = std::fs::File::open(root().join("tests/parity/corpus.jsonl.gz")).unwrap();
    let mut text = String::new();
    GzDecoder::new(file).read_to_string(&mut text).unwrap();
    let snapshot = |line: &str| serde_json::from_str::<Value>(line).unwrap()["snapshot"].take();
    text.lines().step_by(4).map(snapshot).collect()
}

#[test]
fn the_schemas_are_up_to_date() {
    for (name, schema) in [
        ("snapshot", schema::snapshot()),
        ("plan", schema::line()),
        ("trace", trace::schema()),
    ] {
        let file = format!("docs/schema/{name}.schema.json");
        let published = std::fs::read_to_string(root().join(&file)).unwrap();
        assert!(
            published == pretty(&schema),
            "{file} has drifted: make generate"
        );
    }
}

#[test]
fn snapshots_fit_their_schema_as_they_come_and_as_they_are_written() {
    let validator = published("snapshot");
    let example = std::fs::read_to_string(root().join("examples/snapshot.yaml")).unwrap();
    let mut all = recorded();
    all.push(serde_saphyr::from_str(&example).unwrap());
    for value in all {
        // Pods and nodes come with more than is kept of them.
        let mut come = faults(&validator, &value);
        come.retain(|fault| !fault.contains("Additional") || !is_of_kubernetes(fault));
        assert_eq!(come, [""; 0], "{value}");
        let snapshot: Snapshot = serde_json::from_value(value).unwrap();
        let written = serde_json::to_value(&snapshot).unwrap();
        assert_eq!(faults(&validator, &written), [""; 0], "{written}");
    }
}

#[test]
fn plans_and_reports_fit_their_schema() {
    let validator = published("plan");
    for value in recorded() {
        let snapshot: Snapshot = serde_json::from_value(value).unwrap();
        for strategy in [Strategy::Ray, Strategy::Rayfit] {
            let settings = PlanSettings {
                strategy,
                pending_idle_timeout_s: Some(60.0),
                ..PlanSettings::default()
            };
            let (plan, report) = decide(&snapshot, &settings);
            let violations = check(&snapshot, &plan);
            let line = PlanLine {
                violations: violations.iter().map(ToString::to_string).collect(),
                plan,
                report,
            };
            let line = serde_json::to_value(&line).unwrap();
            assert_eq!(faults(&validator, &line), [""; 0], "{line}");
        }
    }
}

#[test]
fn lines_of_traces_fit_their_schema_and_what_is_refused_does_not() {
    let validator = published("trace");
    let text = std::fs::read_to_string(root().join("tests/fixtures/traces/trace.jsonl")).unwrap();
    let read = trace::read(&text, "x").unwrap();
    let written: Vec<String> = trace::lines(&read).collect();
    for line in text.lines().chain(written.iter().map(String::as_str)) {
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!(faults(&validator, &line), [""; 0], "{line}");
    }
    for line in [
        r#"{"task":"t"}"#,
        r#"{"task":"t","seconds":1,"secnds":1}"#,
        r#"{"task":"t","actor":"a","seconds":1}"#,
        r#"{"seconds":1}"#,
        r#"{"task":"t","seconds":-1}"#,
        r#"{"task":"t","seconds":1,"count":0}"#,
        r#"{"placementGroup":"t","seconds":1,"strategy":"SOME"}"#,
    ] {
        let header = r#"{"apiVersion":"rayfit.dev/v1alpha1","kind":"Trace"}"#;
        assert!(
            trace::read(&format!("{header}\n{line}"), "x").is_err(),
            "{line}"
        );
        let line: Value = serde_json::from_str(line).unwrap();
        assert_ne!(faults(&validator, &line), [""; 0], "{line}");
    }
}
