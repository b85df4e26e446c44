//! The command line as people and pipelines meet it: exit codes, streams, formats.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::command::{rayfit, rayfit_reading};

const DENIED: &str = "tests/fixtures/cli/denied.yaml";
const FOLDER: &str = "tests/fixtures/cli/folder";
const TEMPLATE: &str = "tests/fixtures/cli/template.yaml";

/// What a command did.
fn read(file: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap()
}

/// An empty folder of a test's own.
fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn a_denied_object_is_exit_code_1_and_shown_in_its_line() {
    let run = rayfit(&["check", DENIED]);
    assert_eq!(run.code, 1, "{}", run.err);
    insta::assert_snapshot!(run.out);
    assert_eq!(run.err, "");
}

#[test]
fn a_rule_that_is_turned_down_denies_nothing() {
    let run = rayfit(&["check", DENIED, "--rule", "RF105=audit"]);
    assert_eq!(run.code, 0, "{}", run.out);
    assert!(run.out.contains("RF105 note"), "{}", run.out);
    let run = rayfit(&["check", DENIED, "--rule", "RF105=off"]);
    assert!(!run.out.contains("RF105"), "{}", run.out);
}

#[test]
fn the_examples_are_what_they_say() {
    for clean in ["good", "rayjob", "rayservice"] {
        let run = rayfit(&["check", &format!("examples/{clean}.yaml")]);
        assert_eq!(run.code, 0, "{}", run.out);
        assert_eq!(run.out, "1 Ray object checked, nothing found\n");
    }
    let run = rayfit(&["check", "examples/bad.yaml"]);
    assert_eq!(run.code, 1, "{}", run.out);
}

/// What each preset of `examples/policies` is for: a change of the good example in a namespace, the rule that speaks of
/// it, and whether the object is refused. Elsewhere the preset says nothing.
#[test]
fn each_preset_does_what_it_is_for() {
    let unbounded = ("    maxReplicas: 10\n", "");
    let many = ("maxReplicas: 10", "maxReplicas: 1000");
    let grown = ("\"max-cpu\": \"8\"", "\"max-cpu\": \"32\"");
    let idle = ("idleTimeoutSeconds: 120", "idleTimeoutSeconds: 3600");
    let sized = ("rayStartParams: {}", "rayStartParams: {num-cpus: \"2\"}");
    let gpus = (" 8Gi}\n", " 8Gi, nvidia.com/gpu: 4}\n");
    for (preset, namespace, (from, to), rule, code) in [
        ("audit-first", "research", unbounded, "RF213", 0),
        ("production", "production", unbounded, "RF213", 1),
        ("production", "production", many, "RF501", 1),
        ("production", "research", many, "", 0),
        ("development", "development", many, "RF501", 1),
        ("development", "development", grown, "RF506", 1),
        ("development", "development", sized, "RF105", 0),
        ("shared-gpus", "gpus", gpus, "RF504", 1),
        ("shared-gpus", "gpus", idle, "RF505", 1),
        ("shared-gpus", "research", idle, "", 0),
        ("kueue", "queues", unbounded, "RF213", 1),
    ] {
        let good = read("examples/good.yaml");
        assert!(good.contains(from), "{from}");
        let changed = good
            .replace(from, to)
            .replace("namespace: research", &format!("namespace: {namespace}"));
        let policy = format!("examples/policies/{preset}.yaml");
        let facts = "tests/fixtures/cli/namespaces.yaml";
        let run = rayfit_reading(
            &["check", "--policy", &policy, "--facts", facts, "-"],
            &changed,
        );
        let case = format!(
            "{preset} {namespace} {from} -> {to}: {}{}",
            run.out, run.err
        );
        assert_eq!(run.code, code, "{case}");
        assert!(run.out.contains(rule), "{case}");
        assert!(
            !rule.is_empty() || run.out.contains("nothing found"),
            "{case}"
        );
    }
    let tried = [
        "audit-first",
        "development",
        "kueue",
        "production",
        "shared-gpus",
    ];
    let folder = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/policies"));
    let mut there: Vec<String> = folder
        .unwrap()
        .map(|file| file.unwrap().file_name().display().to_string())
        .collect();
    there.sort();
    assert_eq!(there, tried.map(|name| format!("{name}.yaml")));
}

#[test]
fn a_folder_is_searched_in_order_without_what_is_hidden() {
    let run = rayfit(&["check", "-o", "json", FOLDER]);
    assert_eq!(run.code, 1, "{}", run.err);
    let report = run.json();
    let files: Vec<&Value> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| &finding["file"])
        .collect();
    assert_eq!(files, ["tests/fixtures/cli/folder/deeper/denied.yaml"]);
    assert_eq!(report["summary"]["checked"], 2);
    assert_eq!(report["summary"]["passedOver"], 1);
}

#[cfg(unix)]
#[test]
fn links_in_a_circle_end() {
    let folder = scratch("circle");
    std::fs::write(folder.join("denied.yaml"), read(DENIED)).unwrap();
    std::os::unix::fs::symlink(&folder, folder.join("again")).unwrap();
    let run = rayfit(&["check", "-o", "json", folder.to_str().unwrap()]);
    assert_eq!(run.json()["summary"]["checked"], 1, "{}", run.out);
}

#[test]
fn a_folder_without_manifests_is_a_mistake() {
    let run = rayfit(&["check", scratch("empty").to_str().unwrap()]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("no *.yaml"), "{}", run.err);
}

#[test]
fn standard_input_takes_documents_lists_and_json() {
    let object = read(DENIED);
    let twice = format!("{object}---\nkind: Namespace\n---\n{object}");
    let stored = rayfit(&["default", DENIED]).out;
    let as_json = |kind: &str, text: &str| {
        let item: Value = serde_json::from_str(text).unwrap();
        serde_json::json!({"apiVersion": "v1", "kind": kind, "items": [item.clone(), item]})
            .to_string()
    };
    let json = rayfit_reading(&["default", "-"], &to_json(&stored)).out;
    for (input, checked, passed) in [
        (twice, 2, 1),
        (as_json("List", &json), 2, 0),
        (as_json("RayClusterList", &json), 2, 0),
        (format!("{json}{json}{json}"), 3, 0),
    ] {
        let run = rayfit_reading(&["check", "-o", "json", "-"], &input);
        assert_eq!(run.code, 1, "{}", run.err);
        let report = run.json();
        assert_eq!(report["summary"]["checked"], checked);
        assert_eq!(report["summary"]["passedOver"], passed);
        let findings = report["findings"].as_array().unwrap();
        assert!(findings.iter().all(|finding| finding["file"] == "<stdin>"));
        for finding in findings.iter().filter(|finding| finding["rule"] == "RF105") {
            let line = usize::try_from(finding["line"].as_u64().unwrap()).unwrap();
            let text = input.lines().nth(line - 1).unwrap();
            assert!(text.contains("num-cpus"), "{finding}: {text}");
        }
    }
}

fn to_json(yaml: &str) -> String {
    let document = rayfit_core::yaml::read(yaml).remove(0).unwrap();
    document.value.to_string()
}

#[test]
fn what_cannot_be_read_is_exit_code_2_and_hides_nothing() {
    let run = rayfit(&["check", "none.yaml", TEMPLATE, "examples/good.yaml"]);
    assert_eq!(run.code, 2);
    assert!(run.out.starts_with("1 Ray object checked"), "{}", run.out);
    insta::assert_snapshot!(run.err);
    // That an object is denied is said, whatever else there is.
    let run = rayfit(&["check", "none.yaml", DENIED]);
    assert_eq!(run.code, 1, "{}", run.err);
    assert!(run.out.contains("RF105 error"), "{}", run.out);
}

/// A folder as repositories have them: what has nothing to do with Ray is passed over.
#[test]
fn in_a_folder_only_files_that_name_a_ray_kind_must_be_readable() {
    let folder = scratch("repository");
    let good = read("examples/good.yaml");
    let write = |name: &str, text: &[u8]| {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let check = |arguments: &[&str]| {
        let run = rayfit(
            &[
                &["check", folder.to_str().unwrap(), "-o", "json"],
                arguments,
            ]
            .concat(),
        );
        let summary = run.json()["summary"].clone();
        let number = |key: &str| summary[key].as_u64().unwrap();
        let numbers = (number("checked"), number("filesPassedOver"));
        (run.code, numbers, run.err)
    };
    write("good.yaml", good.as_bytes());
    write(
        "chart/service.yaml",
        b"kind: Service\nmetadata: {{ toYaml .Values.metadata }}\n",
    );
    write("data.json", b"{\"bytes\": \"\xff\"}\n");
    write(
        "dashboard.json",
        b"{\"title\": \"see docs.ray.io\", \"title\": \"Ray\"}\n",
    );
    assert_eq!(check(&[]), (0, (1, 2), String::new()));
    // A file that is named must be readable.
    let run = rayfit(&["check", folder.join("data.json").to_str().unwrap()]);
    assert_eq!(run.code, 2, "{}", run.out);

    write(
        "chart/raycluster.yaml",
        b"{{- if .Values.on }}\nkind: RayCluster\n{{- end }}\n",
    );
    let (code, numbers, error) = check(&[]);
    assert_eq!((code, numbers), (2, (1, 2)));
    assert!(error.contains("render it first"), "{error}");
    assert_eq!(check(&["--exclude", "chart/"]), (0, (1, 1), String::new()));
    assert_eq!(
        check(&["--exclude", "ray*.yaml"]),
        (0, (1, 2), String::new())
    );
    let run = rayfit(&["check", folder.to_str().unwrap(), "--exclude", "a[b"]);
    assert!(run.err.contains("--exclude"), "{}", run.err);

    // As in a repository of git.
    std::fs::create_dir(folder.join(".git")).unwrap();
    write(".gitignore", b"/chart/\n");
    write("chart/.hidden.yaml", b"kind: RayCluster: {{ x }}\n");
    assert_eq!(check(&[]), (0, (1, 1), String::new()));
}

/// kubectl sends the last value, and so it is the one that is checked.
#[test]
fn a_key_that_occurs_twice_is_read_as_kubectl_reads_it() {
    let denied = read(DENIED).replace("num-cpus: \"2\"", "num-cpus: \"1\"\n      num-cpus: \"2\"");
    assert_ne!(denied, read(DENIED));
    let run = rayfit_reading(&["check", "-"], &denied);
    assert_eq!(run.code, 1, "{}", run.out);
    assert!(run.out.contains("RF105 error"), "{}", run.out);
    assert!(run.err.contains("warning: <stdin>: line "), "{}", run.err);
    assert!(run.err.contains("\"num-cpus\" occurs twice"), "{}", run.err);
    let github = rayfit_reading(&["check", "-o", "github", "-"], &denied).out;
    assert!(github.contains("::warning file=<stdin>,line="), "{github}");
    let log = rayfit_reading(&["check", "-o", "sarif", "-"], &denied).json();
    let told = &log["runs"][0]["invocations"][0]["toolExecutionNotifications"][0];
    assert_eq!(told["level"], "warning");
}

#[test]
fn placeholders_that_nothing_has_filled_in_are_told() {
    let text = read("examples/good.yaml");
    let text = text.replace("maxReplicas: ", "maxReplicas: ${MAX} # ");
    let text = text.replacen("name: ", "name: ${NAME} # ", 1);
    let run = rayfit_reading(&["check", "-o", "json", "-"], &text);
    let report = run.json();
    let name = &report["findings"][0];
    assert_eq!(name["path"], "metadata.name", "{report}");
    assert!(name["fix"].to_string().contains("envsubst"), "{name}");
    let count = &report["remarks"][0];
    assert!(count["reason"].to_string().contains("${MAX}"), "{count}");
    assert!(count["remedy"].to_string().contains("envsubst"), "{count}");
}

#[test]
fn binary_files_are_refused_with_their_line() {
    let file = scratch("binary").join("x.yaml");
    std::fs::write(&file, b"a: 1\nb: \xff\n").unwrap();
    let run = rayfit(&["check", file.to_str().unwrap()]);
    assert_eq!(run.code, 2);
    assert!(
        run.err.contains("line 2: this is not UTF-8 text"),
        "{}",
        run.err
    );
}

#[test]
fn an_update_is_not_denied_for_what_was_there() {
    let stored = rayfit(&["default", DENIED]).out;
    let file = scratch("old").join("stored.yaml");
    std::fs::write(&file, &stored).unwrap();
    let changed = stored.replace("maxReplicas: 10", "maxReplicas: 11");
    assert_ne!(changed, stored);
    let old = file.to_str().unwrap();
    let run = rayfit_reading(&["check", "--old", old, "-"], &changed);
    assert_eq!(run.code, 0, "{}", run.out);
    assert!(run.out.contains("RF105 warning"), "{}", run.out);
    let renamed = changed.replace("name: denied", "name: other");
    let run = rayfit_reading(&["check", "--old", old, "-"], &renamed);
    assert_eq!(run.code, 1, "{}", run.out);
}

#[test]
fn facts_that_are_none_are_refused() {
    let file = scratch("facts").join("facts.yaml");
    std::fs::write(&file, "speed: 3\n").unwrap();
    let run = rayfit(&["check", DENIED, "--facts", file.to_str().unwrap()]);
    assert_eq!(run.code, 2);
    assert!(
        run.err.contains("not a file of facts about a cluster"),
        "{}",
        run.err
    );
}

#[test]
fn sarif_and_github_name_the_place() {
    let run = rayfit(&["check", "-o", "sarif", DENIED]);
    assert_eq!(run.code, 1);
    let log = run.json();
    assert_eq!(log["version"], "2.1.0");
    let result = &log["runs"][0]["results"][0];
    assert_eq!(result["ruleId"], "RF105");
    let location = &result["locations"][0]["physicalLocation"];
    assert_eq!(location["artifactLocation"]["uri"], DENIED);
    assert!(
        location["region"]["snippet"]["text"]
            .as_str()
            .unwrap()
            .contains("num-cpus")
    );
    let run = rayfit(&["check", "-o", "github", DENIED]);
    assert!(
        run.out.starts_with(&format!("::error file={DENIED},line=")),
        "{}",
        run.out
    );
}

/// A report has teams and patches, and a later one what is gone since then.
#[test]
fn a_rollout_has_teams_patches_and_progress() {
    let folder = scratch("rollout");
    let stored = "tests/e2e/walk/testdata/stored.yaml";
    let facts = folder.join("facts.yaml");
    let namespace = "{kind: Namespace, metadata: {name: research, labels: {owner: ada}}}";
    std::fs::write(&facts, format!("namespaces: [{namespace}]")).unwrap();
    let facts = ["--team-label", "owner", "--facts", facts.to_str().unwrap()];
    let time = "2026-01-01T00:00:00Z";
    let run = rayfit(&[&["rollout", stored, "-o", "json", "--at", time][..], &facts].concat());
    assert_eq!(run.code, 1, "{}", run.err);
    let report: Value = serde_json::from_str(&run.out).unwrap();
    let denied = |of: &str, key: &str| {
        let rows = report[of].as_array().unwrap().iter();
        let row = |row: &Value| (row[key].as_str().unwrap().to_owned(), row["denied"].clone());
        rows.map(row).collect::<Vec<_>>()
    };
    let team = |name: &str, denied: i64| (name.to_owned(), Value::from(denied));
    assert_eq!(
        denied("teams", "team"),
        [team("ada", 1), team("sandbox", 1), team("serving", 0)]
    );
    let group = serde_json::json!({"op": "test", "path": "/spec/workerGroupSpecs/0/groupName", "value": "cpu"});
    let place = "/spec/workerGroupSpecs/0/rayStartParams/num-cpus";
    assert_eq!(
        report["findings"][0]["patch"],
        serde_json::json!([group, {"op": "remove", "path": place}])
    );

    let (earlier, now) = (folder.join("earlier.json"), folder.join("now.yaml"));
    std::fs::write(&earlier, &run.out).unwrap();
    let mended = read(stored).replace("minReplicas: 5", "minReplicas: 1");
    std::fs::write(&now, mended).unwrap();
    let (earlier, now) = (earlier.to_str().unwrap(), now.to_str().unwrap());
    let run = rayfit(&["rollout", now, "--earlier", earlier]);
    let line = format!("since the report of {time}: 1 finding gone, 0 new\n");
    assert!(run.out.ends_with(&line), "{}", run.out);
    let run = rayfit(&["rollout", now, "--earlier", now]);
    assert_eq!(run.code, 2, "{}", run.out);
    assert!(
        run.err.contains("no report of rayfit rollout -o json"),
        "{}",
        run.err
    );
}

#[test]
fn defaults_are_shown_as_a_diff_or_as_the_whole_object() {
    let job = "examples/rayjob.yaml";
    let diff = rayfit(&["default", "--diff", job]);
    assert_eq!(diff.code, 0, "{}", diff.err);
    for line in [
        "# DF05 ",
        "+      idleTimeoutSeconds: 60",
        "+++ examples/rayjob.yaml",
    ] {
        assert!(diff.out.contains(line), "{}", diff.out);
    }
    let once = rayfit(&["default", job]).out;
    assert!(once.contains("idleTimeoutSeconds: 60"), "{once}");
    let twice = rayfit_reading(&["default", "-"], &once).out;
    assert_eq!(once, twice);
    let nothing = rayfit_reading(&["default", "--diff", "-"], &once).out;
    assert_eq!(nothing, "");
}

#[test]
fn defaulting_keeps_what_it_does_not_know() {
    let secret =
        "kind: Secret\nz: 1\na: ['010', \"yes\", 1e3]\nunknown: {max: 12345678901234567890}\n";
    let run = rayfit_reading(&["default", "-"], &format!("{secret}---\nkind: Two\n"));
    assert_eq!(
        run.out,
        "kind: Secret\nz: 1\na:\n- '010'\n- 'yes'\n- 1000\nunknown:\n  max: 12345678901234567890\n---\nkind: Two\n"
    );
}

/// A null is no change of a default, and stays as it is written wherever none is filled in.
#[test]
fn nulls_are_in_no_diff() {
    let text = read("examples/rayjob.yaml").replace("template:", "template:\n        metadata:");
    let diff = rayfit_reading(&["default", "--diff", "-"], &text).out;
    assert!(diff.contains("+      idleTimeoutSeconds: 60"), "{diff}");
    assert!(!diff.contains("-        metadata"), "{diff}");
    let whole = rayfit_reading(&["default", "-"], &text).out;
    assert!(whole.contains("metadata: null"), "{whole}");
}

#[test]
fn rules_are_explained_and_typos_suggested() {
    let run = rayfit(&["explain", "RF105"]);
    assert_eq!(run.code, 0);
    insta::assert_snapshot!(run.out);
    assert_eq!(rayfit(&["explain", "ippr-start-params"]).out, run.out);
    let typo = rayfit(&["explain", "ippr-start-parms"]);
    assert_eq!(typo.code, 2);
    assert!(
        typo.err.contains("did you mean ippr-start-params?"),
        "{}",
        typo.err
    );
}

#[test]
fn the_catalogue_comes_in_every_format() {
    let text = rayfit(&["rules"]).out;
    assert!(text.starts_with("RF"), "{text}");
    let json = rayfit(&["rules", "-o", "json"]).json();
    assert_eq!(json.as_array().unwrap().len(), text.lines().count());
    let page = rayfit(&["rules", "-o", "markdown"]).out;
    assert!(page.starts_with("# Rules and defaults\n"), "{page}");
}

#[test]
fn wrong_usage_is_exit_code_2_and_help_has_examples() {
    for wrong in [
        &["check"][..],
        &["nonsense"],
        &["check", DENIED, "--rule", "RF105"],
    ] {
        assert_eq!(rayfit(wrong).code, 2, "{wrong:?}");
    }
    for command in [
        "check",
        "default",
        "explain",
        "rules",
        "trace",
        "completions",
    ] {
        let run = rayfit(&[command, "--help"]);
        assert_eq!(run.code, 0);
        assert!(run.out.contains("Examples:\n  rayfit "), "{}", run.out);
    }
}

#[test]
fn completions_are_made_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let run = rayfit(&["completions", shell]);
        assert_eq!(run.code, 0);
        assert!(run.out.contains("explain"), "{shell}");
    }
}

#[test]
fn there_are_no_colours_in_a_pipe() {
    for arguments in [&["check", DENIED][..], &["explain", "RF105"], &["rules"]] {
        let run = rayfit(arguments);
        assert!(!run.out.contains('\u{1b}'), "{}", run.out);
    }
}

/// `scripts/demo.sh` shows what is recorded here until there is a program to ask.
#[test]
fn the_example_of_the_demo() {
    let run = rayfit(&["check", "examples/bad.yaml"]);
    assert_eq!(run.code, 1);
    insta::assert_snapshot!(run.out);
}
