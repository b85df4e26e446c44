//! What pipelines take: the example of a workflow does what it says, and SARIF has the shape that
//! code scanning reads.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A repository with a bad manifest in `deploy/`.
fn checkout() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let deploy = folder.path().join("deploy");
    std::fs::create_dir(&deploy).unwrap();
    std::fs::copy(root().join("examples/bad.yaml"), deploy.join("bad.yaml")).unwrap();
    folder
}

/// Runs a step as the runner does in a container.
fn step(script: &str, folder: &Path) -> Output {
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_rayfit"));
    let path = format!(
        "{}:{}",
        binary.parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    Command::new("sh")
        .args(["-e", "-c", script])
        .current_dir(folder)
        .env("PATH", path)
        .output()
        .unwrap()
}

#[test]
fn the_workflow_fails_for_a_bad_manifest_and_uploads_what_was_found() {
    let text = std::fs::read_to_string(root().join("examples/github/rayfit.yaml")).unwrap();
    let workflow: Value = serde_saphyr::from_str(&text).unwrap();
    assert_eq!(
        workflow["on"]["pull_request"]["paths"],
        json!(["deploy/**"])
    );
    assert_eq!(workflow["permissions"]["security-events"], "write");
    let steps = workflow["jobs"]["check"]["steps"].as_array().unwrap();
    let scripts: Vec<&str> = steps
        .iter()
        .filter_map(|step| step["run"].as_str())
        .collect();
    let [annotate, write] = scripts[..] else {
        panic!("two steps run something, not {scripts:?}");
    };
    let folder = checkout();

    let annotated = step(annotate, folder.path());
    assert_eq!(annotated.status.code(), Some(1), "{annotated:?}");
    let said = String::from_utf8(annotated.stdout).unwrap();
    assert!(
        said.starts_with("::error file=deploy/bad.yaml,line="),
        "{said}"
    );

    // What was found fails the job once: the file is uploaded all the same.
    let written = step(write, folder.path());
    assert_eq!(written.status.code(), Some(0), "{written:?}");
    let upload = steps.last().unwrap();
    assert!(
        upload["uses"]
            .as_str()
            .unwrap()
            .starts_with("github/codeql-action/upload-sarif@v")
    );
    let file = upload["with"]["sarif_file"].as_str().unwrap();
    let log: Value =
        serde_json::from_str(&std::fs::read_to_string(folder.path().join(file)).unwrap()).unwrap();
    has_the_shape(&log);
    let results = log["runs"][0]["results"].as_array().unwrap();
    let uri = &results[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
    assert_eq!(uri, "deploy/bad.yaml");
}

#[test]
fn sarif_of_files_that_cannot_be_read_has_the_shape_too() {
    let folder = checkout();
    std::fs::write(
        folder.path().join("deploy/broken.yaml"),
        "kind: [RayCluster",
    )
    .unwrap();
    let out = step("rayfit check -o sarif deploy/", folder.path());
    // Another object is denied.
    assert_eq!(out.status.code(), Some(1));
    let log: Value = serde_json::from_slice(&out.stdout).unwrap();
    has_the_shape(&log);
    let invocation = &log["runs"][0]["invocations"][0];
    assert_eq!(invocation["executionSuccessful"], false);
    assert_eq!(
        invocation["toolExecutionNotifications"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

/// SARIF 2.1.0, as far as a log of ours uses it: which fields must be there, of what type, and
/// that each result names one of the rules that are described.
fn has_the_shape(log: &Value) {
    let text = json!({ "type": "object", "required": ["text"], "properties": { "text": { "type": "string", "minLength": 1 } } });
    let level = json!({ "enum": ["none", "note", "warning", "error"] });
    let line = json!({ "type": "integer", "minimum": 1 });
    let region = json!({
        "type": "object", "required": ["startLine"],
        "properties": { "startLine": line, "startColumn": line, "endLine": line, "endColumn": line, "snippet": text }
    });
    let location = json!({
        "type": "object", "required": ["physicalLocation"],
        "properties": { "physicalLocation": {
            "type": "object", "required": ["artifactLocation"],
            "properties": {
                "artifactLocation": { "type": "object", "required": ["uri"], "properties": { "uri": { "type": "string" } } },
                "region": region
            }
        } }
    });
    let result = json!({
        "type": "object", "required": ["ruleId", "ruleIndex", "level", "message", "locations"],
        "properties": {
            "ruleId": { "type": "string" }, "ruleIndex": { "type": "integer", "minimum": 0 },
            "level": level, "message": text,
            "locations": { "type": "array", "minItems": 1, "items": location }
        }
    });
    let rule = json!({
        "type": "object", "required": ["id", "shortDescription", "fullDescription", "help", "defaultConfiguration"],
        "properties": {
            "id": { "type": "string" }, "name": { "type": "string" },
            "shortDescription": text, "fullDescription": text, "help": text,
            "defaultConfiguration": { "type": "object", "required": ["level"], "properties": { "level": level } }
        }
    });
    let notification = json!({ "type": "object", "required": ["message"], "properties": { "message": text, "level": level } });
    let schema = json!({
        "type": "object", "required": ["$schema", "version", "runs"],
        "properties": {
            "version": { "const": "2.1.0" },
            "runs": { "type": "array", "minItems": 1, "maxItems": 1, "items": {
                "type": "object", "required": ["tool", "results", "invocations"],
                "properties": {
                    "tool": { "type": "object", "required": ["driver"], "properties": { "driver": {
                        "type": "object", "required": ["name", "version", "rules"],
                        "properties": { "rules": { "type": "array", "uniqueItems": true, "items": rule } }
                    } } },
                    "columnKind": { "enum": ["utf16CodeUnits", "unicodeCodePoints"] },
                    "invocations": { "type": "array", "items": {
                        "type": "object", "required": ["executionSuccessful"],
                        "properties": {
                            "executionSuccessful": { "type": "boolean" },
                            "toolExecutionNotifications": { "type": "array", "items": notification }
                        }
                    } },
                    "results": { "type": "array", "items": result }
                }
            } }
        }
    });
    let validator = jsonschema::validator_for(&schema).unwrap();
    let faults: Vec<String> = validator
        .iter_errors(log)
        .map(|fault| format!("{}: {fault}", fault.instance_path()))
        .collect();
    assert!(faults.is_empty(), "{faults:#?}");
    let run = &log["runs"][0];
    for result in run["results"].as_array().unwrap() {
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(
            result["ruleId"],
            run["tool"]["driver"]["rules"][index]["id"]
        );
    }
}
