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

/// Runs a step as the runner does, with the binary on the PATH and the environment that the step gives.
fn step(script: &str, env: &[(&str, &str)], folder: &Path) -> Output {
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_rayfit"));
    let path = format!(
        "{}:{}",
        binary.parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    Command::new("bash")
        .args(["-e", "-o", "pipefail", "-c", script])
        .current_dir(folder)
        .env("PATH", path)
        .envs(env.iter().copied())
        .output()
        .unwrap()
}

fn yaml(file: &str) -> Value {
    serde_saphyr::from_str(&std::fs::read_to_string(root().join(file)).unwrap()).unwrap()
}

#[test]
fn the_workflow_fails_for_a_bad_manifest_and_uploads_what_was_found() {
    let workflow = yaml("examples/github/rayfit.yaml");
    assert_eq!(
        workflow["on"]["pull_request"]["paths"],
        json!(["deploy/**"])
    );
    assert_eq!(workflow["permissions"]["security-events"], "write");
    let steps = workflow["jobs"]["check"]["steps"].as_array().unwrap();
    let [_, check, upload] = &steps[..] else {
        panic!("not three steps: {steps:?}");
    };
    let version = concat!("@v", env!("CARGO_PKG_VERSION"));
    assert!(check["uses"].as_str().unwrap().ends_with(version));
    let paths = check["with"]["paths"].as_str().unwrap();

    let action = yaml("action.yaml");
    let sarif = action["inputs"]["sarif"]["default"].as_str().unwrap();
    let script = action["runs"]["steps"][1]["run"].as_str().unwrap();
    let folder = checkout();
    let env = [("PATHS", paths), ("ARGUMENTS", ""), ("SARIF", sarif)];
    let run = step(script, &env, folder.path());
    assert_eq!(run.status.code(), Some(1), "{run:?}");
    let said = String::from_utf8(run.stdout).unwrap();
    assert!(
        said.starts_with("::error file=deploy/bad.yaml,line="),
        "{said}"
    );
    let turned_down = [
        ("PATHS", paths),
        ("ARGUMENTS", "--policy ../audit.yaml"),
        ("SARIF", sarif),
    ];
    std::fs::copy(
        root().join("examples/policies/audit-first.yaml"),
        folder.path().join("audit.yaml"),
    )
    .unwrap();
    let inside = folder.path().join("deploy");
    let run = step(&script.replace("$PATHS", "."), &turned_down, &inside);
    assert_eq!(run.status.code(), Some(0), "{run:?}");

    assert!(
        upload["uses"]
            .as_str()
            .unwrap()
            .starts_with("github/codeql-action/upload-sarif@v")
    );
    assert_eq!(upload["with"]["sarif_file"], sarif);
    let log: Value =
        serde_json::from_str(&std::fs::read_to_string(folder.path().join(sarif)).unwrap()).unwrap();
    has_the_shape(&log);
    let results = log["runs"][0]["results"].as_array().unwrap();
    let uri = &results[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
    assert_eq!(uri, "deploy/bad.yaml");
}

/// The steps of a release and of the action fit together: what one packs, the other installs, and nothing else.
#[test]
fn what_a_release_packs_the_action_installs() {
    let out = tempfile::tempdir().unwrap();
    let release = |arguments: &str| {
        let command = format!("{}/scripts/release.sh {arguments}", root().display());
        let env = [("RAYFIT_RELEASE_BINARY", env!("CARGO_BIN_EXE_rayfit"))];
        let run = step(&command, &env, out.path());
        assert!(run.status.success(), "{command}: {run:?}");
        String::from_utf8(run.stdout).unwrap()
    };
    let version = release("version");
    assert_eq!(version.trim(), env!("CARGO_PKG_VERSION"));
    let folder = out.path().join("out");
    let to = folder.display();
    release(&format!("binary host {to}"));
    release(&format!("krew {to} https://example.org"));
    release(&format!("checksums {to}"));
    let downloads = format!("file://{to}");
    let install = format!("{}/scripts/install.sh installed", root().display());
    let tag = concat!("v", env!("CARGO_PKG_VERSION"));
    let env = [("VERSION", tag), ("DOWNLOADS", &*downloads)];
    let run = step(&install, &env, out.path());
    assert!(run.status.success(), "{run:?}");
    let said = String::from_utf8(run.stdout).unwrap();
    assert_eq!(said, concat!("rayfit ", env!("CARGO_PKG_VERSION"), "\n"));
    is_a_plugin_that_completes(out.path());

    let archive = std::fs::read_dir(&folder)
        .unwrap()
        .map(|file| file.unwrap().path())
        .find(|path| path.extension().is_some_and(|kind| kind == "gz"));
    std::fs::write(archive.unwrap(), "something else").unwrap();
    let run = step(&install.replace("installed", "other"), &env, out.path());
    assert!(!run.status.success(), "{run:?}");
    assert!(!out.path().join("other").exists());
}

/// What krew takes from the release in `out` is a plugin that kubectl completes as its `__complete` does.
fn is_a_plugin_that_completes(folder: &Path) {
    let manifest = std::fs::read_to_string(folder.join("out/rayfit.yaml")).unwrap();
    let manifest: Value = serde_saphyr::from_str(&manifest).unwrap();
    let platform = &manifest["spec"]["platforms"][0];
    let archive = platform["uri"].as_str().unwrap();
    let archive = archive.strip_prefix("https://example.org/").unwrap();
    let sum = platform["sha256"].as_str().unwrap();
    let files = platform["files"].as_array().unwrap().iter();
    let files: Vec<&str> = files.map(|file| file["from"].as_str().unwrap()).collect();
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", folder.join("krew").display());
    let run = |script: &str| {
        let run = step(script, &[("PATH", &*path)], folder);
        assert!(run.status.success(), "{script}: {run:?}");
        String::from_utf8(run.stdout).unwrap()
    };
    run(&format!("echo '{sum}  out/{archive}' | sha256sum --check"));
    let files = files.join(" ");
    run(&format!(
        "mkdir krew && tar -xzf out/{archive} -C krew {files}"
    ));
    // As kubectl does it.
    let kubectl =
        r#"printf '#!/bin/sh\nshift; exec rayfit "$@"' >krew/kubectl && chmod +x krew/kubectl"#;
    run(kubectl);
    let completed = |words: &str| run(&format!("kubectl_complete-rayfit {words}"));
    assert_eq!(completed("ex"), "explain\n");
    assert_eq!(completed("check -o s"), "sarif\n");
    let commands = completed("''");
    assert!(commands.contains("\nstatus\n"), "{commands}");
    let options = completed("check ''");
    assert!(options.contains("\n--policy\n"), "{options}");
    assert!(
        !options.contains(['[', '<']),
        "names of arguments: {options}"
    );
    assert_eq!(completed("check --policy ''"), "", "the shell finds files");
}

/// Wherever a document, an example or a manifest names a released version, it is that of Cargo.toml.
#[test]
fn versions_come_from_one_place() {
    let files = [
        "README.md",
        "README.zh-CN.md",
        "docs/rollout.md",
        "docs/rollout.zh-CN.md",
        "docs/install.md",
        "docs/integrations.md",
        "docs/resize.md",
        "docs/runbook.md",
        "crates/core/src/defaults/rayfit_sidecar.md",
        "action.yaml",
        ".github/ISSUE_TEMPLATE/bug.yml",
        "examples/github/rayfit.yaml",
        "manifests/helm/Chart.yaml",
    ];
    let mut count = 0;
    for file in files {
        let text = std::fs::read_to_string(root().join(file)).unwrap();
        let marks = [
            "rayfit:",
            "rayfit@v",
            "rev: v",
            "placeholder: rayfit ",
            "version: ",
            "appVersion: ",
            "At version ",
            "at\nversion ",
        ];
        for mark in marks {
            for after in text.split(mark).skip(1) {
                let is_part = |c: char| c.is_ascii_digit() || c == '.';
                let found = after.split(|c| !is_part(c)).next().unwrap();
                let found = found.trim_end_matches('.');
                if found.matches('.').count() == 2 {
                    assert_eq!(found, env!("CARGO_PKG_VERSION"), "{file}: {mark}{found}");
                    count += 1;
                }
            }
        }
    }
    assert!(count > 20, "{count}");
    let changelog = std::fs::read_to_string(root().join("CHANGELOG.md")).unwrap();
    assert!(changelog.contains(concat!("\n## ", env!("CARGO_PKG_VERSION"), "\n")));
}

#[test]
fn sarif_of_files_that_cannot_be_read_has_the_shape_too() {
    let folder = checkout();
    std::fs::write(
        folder.path().join("deploy/broken.yaml"),
        "kind: [RayCluster",
    )
    .unwrap();
    let out = step("rayfit check -o sarif deploy/", &[], folder.path());
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
