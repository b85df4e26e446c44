//! `rayfit recommend` as people and pipelines meet it.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::command::{Run, rayfit};

/// Few, because each takes long where nothing is optimised.
fn recommend(arguments: &[&str]) -> Run {
    recommend_of("4", arguments)
}

fn recommend_of(simulations: &str, arguments: &[&str]) -> Run {
    let example = [
        "recommend",
        "examples/trace.jsonl",
        "--cluster",
        "examples/good.yaml",
        "--simulations",
        simulations,
    ];
    rayfit(&[&example, arguments].concat())
}

/// The page shows what the command prints.
#[test]
fn the_example_is_recommended() {
    let run = recommend_of("60", &[]);
    assert_eq!(
        (run.code, run.err.as_str()),
        (0, ""),
        "progress is not for pipes"
    );
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/recommend.md");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(
        page.contains(&run.out),
        "docs/recommend.md shows something else than {}",
        run.out
    );
}

#[test]
fn programs_get_everything_and_the_same_each_time() {
    let run = recommend(&["-o", "json"]);
    assert_eq!(run.code, 0, "{}", run.err);
    let found = run.json();
    assert_eq!(found["kind"], "Recommendation");
    assert_eq!(
        (&found["strategy"], &found["simulations"]),
        (&"ray".into(), &4.into())
    );
    let front = found["front"].as_array().unwrap();
    let costs: Vec<f64> = front
        .iter()
        .map(|choice| choice["cost"].as_f64().unwrap())
        .collect();
    assert!(costs.is_sorted(), "{costs:?}");
    for choice in front {
        assert_eq!(choice["risk"]["parts"], 10);
        let is_today = choice["isToday"].as_bool().unwrap();
        assert_eq!(choice["patch"].as_array().unwrap().is_empty(), is_today);
    }
    assert_eq!(recommend(&["-o", "json"]).out, run.out);
    let other = recommend(&["-o", "json", "--strategy", "rayfit", "--seed", "2"]);
    assert_ne!(other.json()["today"], found["today"]);
}

/// With strategy rayfit, what a choice changes in the RayPolicy is a patch of its own; with several seeds it
/// is said on how many of them a choice was better.
#[test]
fn policies_have_a_patch_of_their_own() {
    let only = [
        "idleTimeoutSeconds",
        "minReplicas",
        "maxReplicas",
        "podCpus",
        "resizeCpus",
    ];
    let mut arguments = vec![
        "--strategy".to_owned(),
        "rayfit".into(),
        "--seeds".into(),
        "2".into(),
    ];
    arguments.extend(only.map(|field| format!("--within={field}=today")));
    let with = |more: &[&str]| {
        let arguments = arguments.iter().map(String::as_str);
        let arguments: Vec<&str> = arguments.chain(more.iter().copied()).collect();
        recommend_of("8", &arguments)
    };
    let found = with(&["-o", "json"]).json();
    assert_eq!(found["seeds"], 2);
    let simulations = found["simulations"].as_u64().unwrap();
    assert!(
        simulations <= 8 && simulations.is_multiple_of(2),
        "{simulations}"
    );
    let front = found["front"].as_array().unwrap();
    let changed = front
        .iter()
        .position(|choice| choice["policyPatch"].is_object());
    let changed = changed.expect("a choice with another policy");
    assert_eq!(front[changed]["risk"]["seeds"], 2);
    let number = (changed + 1).to_string();
    let run = with(&["--choose", &number, "-o", "policy-patch"]);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    assert!(run.out.starts_with("spec:\n  reconcile:\n"), "{}", run.out);
    let shown = with(&["--choose", &number]).out;
    assert!(
        shown.ends_with(&run.out) && shown.contains("BETTER ON"),
        "{shown}"
    );
    assert!(
        shown.contains("kubectl patch raypolicy NAME --type merge"),
        "{shown}"
    );
    assert!(!shown.contains("kubectl patch raycluster"), "{shown}");
}

/// kubectl takes the patch, and makes of the cluster what it says.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "tests are told by the environment where kubectl is"
)]
fn kubectl_applies_the_patch() {
    let cheapest = ["--choose", "1"];
    let run = recommend(&[&cheapest[..], &["-o", "patch"]].concat());
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    let shown = recommend(&cheapest).out;
    assert!(shown.ends_with(&run.out), "{shown}");
    assert!(shown.contains("kubectl patch raycluster notebook -n research --type json"));
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("recommend-patch.yaml");
    std::fs::write(&file, &run.out).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let kubectl = std::env::var("RAYFIT_KUBECTL").unwrap_or_else(|_| "kubectl".to_owned());
    let arguments = ["patch", "--local", "--type", "json", "-o", "json", "-f"];
    let output = Command::new(kubectl)
        .args(arguments)
        .arg(root.join("examples/good.yaml"))
        .arg("--patch-file")
        .arg(&file)
        .output()
        .expect("kubectl runs: say where it is with RAYFIT_KUBECTL");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let patched: Value = serde_json::from_slice(&output.stdout).unwrap();
    let choices = recommend(&["-o", "json"]).json();
    for operation in choices["front"][0]["patch"].as_array().unwrap() {
        let path = operation["path"].as_str().unwrap();
        assert_eq!(patched.pointer(path), Some(&operation["value"]), "{path}");
    }
}

/// What cannot be searched is refused before anything is printed, with what to write instead.
#[test]
fn mistakes_are_reported_with_what_to_write() {
    for (arguments, says) in [
        (
            vec!["--within", "idleTimeout=1..2"],
            "there is no field \"idleTimeout\" to search",
        ),
        (vec!["--within", "minReplicas=3..1"], "the lower one first"),
        (
            vec!["--within", "minReplicas"],
            "write for example idleTimeoutSeconds=30..600",
        ),
        (
            vec!["--within", "keepSmallSeconds=0..60"],
            "no effect with strategy ray: add --strategy rayfit",
        ),
        (vec!["--seeds", "0"], "0 is not in 1..=20"),
        (vec!["--max-wait", "soon"], "write seconds from 0 to 86400"),
        (vec!["--max-cost=-1"], "write hours from 0 to 1e9"),
        (
            vec!["--choose", "99"],
            "there is no choice 99: choose one from 1 to",
        ),
        (
            vec!["--max-cost", "0", "-o", "patch"],
            "no choice is as wanted",
        ),
    ] {
        let run = recommend(&arguments);
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{arguments:?}");
        assert!(run.err.contains(says), "{arguments:?}: {}", run.err);
    }
    let trace = ["recommend", "examples/trace.jsonl"];
    let run = rayfit(
        &[
            &trace[..],
            &["--cluster", "examples/good.yaml", "--simulations", "0"],
        ]
        .concat(),
    );
    assert_eq!((run.code, run.out.as_str()), (2, ""));
    assert!(
        run.err.contains("write a whole number from 1 to 5000"),
        "{}",
        run.err
    );
    let run = rayfit(&trace);
    assert_eq!((run.code, run.out.as_str()), (2, ""));
    assert!(run.err.contains("--cluster FILE"), "{}", run.err);
    let fields = [
        "idleTimeoutSeconds",
        "minReplicas",
        "maxReplicas",
        "podCpus",
        "resizeCpus",
    ];
    let fixed = fields.map(|field| format!("--within={field}=today"));
    let run = recommend(&fixed.each_ref().map(String::as_str));
    assert_eq!(run.code, 2);
    assert!(
        run.err.contains("nothing to search within these bounds"),
        "{}",
        run.err
    );
}

#[test]
fn choices_have_a_price_where_one_is_given() {
    let run = recommend(&["--price=cpu-hour=0.5"]);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    let titles = run.out.lines().find(|line| line.starts_with("CHOICE"));
    let titles: Vec<&str> = titles.unwrap().split("  ").map(str::trim).collect();
    let at = |title: &str| titles.iter().position(|one| *one == title);
    assert!(
        at("CPU-HOURS") < at("PRICE") && at("COST TO TODAY") < at("PRICE TO TODAY"),
        "{}",
        run.out
    );
    assert!(at("PRICE").is_some(), "{}", run.out);
    let found = recommend(&["--price=cpu-hour=0.5", "-o", "json"]).json();
    let paid = found["today"]["result"]["cpuHours"]["paid"]
        .as_f64()
        .unwrap();
    assert!((found["today"]["price"].as_f64().unwrap() - 0.5 * paid).abs() < 1e-9);
}
