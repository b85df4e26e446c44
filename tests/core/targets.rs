//! Everything that people and CI can call has a short run in `scripts/targets.txt`, or a place where it is run.

use std::collections::BTreeSet;
use std::path::Path;

use crate::architecture_support::{read, root};

/// The names of the table. A name stands for what begins with it.
fn names(table: &str) -> Vec<&str> {
    let is_name = |line: &&str| !line.is_empty() && !line.starts_with([' ', '#']);
    table.lines().filter(is_name).collect()
}

fn is_listed(command: &str, names: &[&str]) -> bool {
    names.iter().any(|name| {
        let rest = command.strip_prefix(name);
        rest.is_some_and(|rest| {
            rest.is_empty() || name.ends_with('/') || rest.starts_with([' ', ';'])
        })
    })
}

/// The targets of the Makefile, as `make NAME`.
fn targets(makefile: &str) -> BTreeSet<String> {
    let phony = makefile
        .lines()
        .filter_map(|line| line.strip_prefix(".PHONY: "));
    let names = phony.flat_map(str::split_whitespace);
    names.map(|name| format!("make {name}")).collect()
}

/// What stands below `scripts`, and the programs that compare with Ray which are called by their path.
fn scripts() -> BTreeSet<String> {
    let files = std::fs::read_dir(root().join("scripts")).unwrap();
    let files = files.map(|file| file.unwrap().file_name());
    files
        .map(|file| format!("scripts/{}", file.display()))
        .collect()
}

/// The commands of a page: those in its text between backticks, those that are indented, and those after
/// `$ ` of blocks that are marked console.
fn commands(page: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for line in page.lines() {
        let shown = line
            .strip_prefix("    ")
            .or_else(|| line.strip_prefix("$ "));
        let quoted = line.split('`').skip(1).step_by(2);
        // `rayfit` in a text is what one reads about, not what one is to type.
        let quoted = quoted.filter(|text| !text.starts_with("rayfit"));
        for text in shown.into_iter().chain(quoted) {
            let text = text.split(" # ").next().unwrap().trim_end();
            let text = text.strip_prefix("cd tests && ").unwrap_or(text);
            if text != "scripts/" && CALLED.iter().any(|start| text.starts_with(start)) {
                found.insert(text.to_owned());
            }
        }
    }
    found
}

/// How commands of this project begin.
const CALLED: [&str; 9] = [
    "make ",
    "cargo ",
    "go run ",
    "go test ",
    "scripts/",
    "certs/dev.sh",
    "tests/parity/run.sh",
    ".ci/",
    "rayfit ",
];

fn pages() -> Vec<String> {
    let mut found: Vec<String> = [
        "README.md",
        "README.zh-CN.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "certs/README.md",
        "tests/lab/README.md",
    ]
    .map(str::to_owned)
    .into();
    for folder in ["docs", "docs/research"] {
        let files = std::fs::read_dir(root().join(folder)).unwrap();
        let names = files.map(|file| file.unwrap().file_name().display().to_string());
        let pages =
            names.filter(|name| Path::new(name).extension().is_some_and(|kind| kind == "md"));
        found.extend(pages.map(|name| format!("{folder}/{name}")));
    }
    found
}

#[test]
fn whatever_can_be_called_has_a_short_run_or_a_place_where_it_is_run() {
    let table = read(&root().join("scripts/targets.txt"));
    let names = names(&table);
    let makefile = read(&root().join("Makefile"));
    let (targets, scripts) = (targets(&makefile), scripts());
    assert!(
        targets.len() > 25 && scripts.len() > 12,
        "{targets:?} {scripts:?}"
    );
    let mut missing: Vec<String> = (targets.iter().chain(&scripts))
        .filter(|called| !is_listed(called, &names))
        .cloned()
        .collect();
    let mut count = 0;
    for page in pages() {
        let commands = commands(&read(&root().join(&page)));
        count += commands.len();
        let unknown = commands
            .into_iter()
            .filter(|command| !is_listed(command, &names));
        missing.extend(unknown.map(|command| format!("{page}: {command}")));
    }
    assert!(count > 60, "{count} commands");
    assert!(
        missing.is_empty(),
        "not in scripts/targets.txt:\n{}",
        missing.join("\n")
    );
    // And nothing is listed that there is no longer.
    for name in names {
        let is_there = match name.split_once(' ') {
            Some(("make", _)) => targets.contains(name),
            None => root().join(name).exists(),
            Some(_) => true,
        };
        assert!(is_there, "scripts/targets.txt: there is no {name}");
    }
}

/// Commands of a page that go to a cluster or to the network, in blocks that do not say whether tests/e2e/walk runs
/// them, or why not.
fn unmarked(page: &str) -> Vec<&str> {
    const STARTS: [&str; 5] = ["kubectl ", "helm ", "docker ", "podman ", "curl "];
    let mut found = Vec::new();
    let (mut mark, mut fence) = ("", "");
    for line in page.lines() {
        let text = line.trim_start();
        let command = match fence {
            "```console" => text.strip_prefix("$ "),
            "```bash" | "```sh" => Some(text),
            "" => line.strip_prefix("    ").map(str::trim_start),
            _ => None,
        };
        if text.starts_with("```") {
            fence = if fence.is_empty() { text } else { "" };
        } else if let Some(command) = command {
            let is_marked = mark.starts_with("<!-- run") || mark.starts_with("<!-- not run: ");
            let mut parts = command.split(" | ");
            if !is_marked && parts.any(|part| STARTS.iter().any(|start| part.starts_with(start))) {
                found.push(command);
            }
        } else if fence.is_empty() && !text.is_empty() {
            mark = text;
        }
    }
    found
}

#[test]
fn each_block_of_commands_is_run_or_says_why_not() {
    let page = "text\n\n    kubectl get pods\n\n```bash\nrayfit vap | kubectl apply -f -\n```\n    rayfit rules\n";
    let commands = ["kubectl get pods", "rayfit vap | kubectl apply -f -"];
    assert_eq!(unmarked(page), commands);
    for mark in ["run", "run RF105", "not run: it needs a GPU"] {
        assert!(unmarked(&page.replace("text", &format!("<!-- {mark} -->"))).is_empty());
    }
    // The whole of the first is walked through, and a translation has the commands of its page.
    let is_walked =
        |page: &&String| page.starts_with("docs/rollout") || page.ends_with(".zh-CN.md");
    let mut missing = Vec::new();
    for page in pages().iter().filter(|page| !is_walked(page)) {
        let text = read(&root().join(page));
        let commands = unmarked(&text).into_iter();
        missing.extend(commands.map(|command| format!("{page}: {command}")));
    }
    assert!(
        missing.is_empty(),
        "write <!-- run --> or <!-- not run: REASON --> before these:\n{}",
        missing.join("\n")
    );
}

/// Of the tests that documents tell one to run, there is a file: `cargo test` is content with none.
#[test]
fn tests_that_documents_name_are_there() {
    let mut count = 0;
    for page in pages() {
        for command in commands(&read(&root().join(&page))) {
            let Some((program, filter)) = command
                .strip_prefix("cargo test --test ")
                .and_then(|rest| rest.split_once(' '))
            else {
                continue;
            };
            let module = filter
                .split(' ')
                .next_back()
                .unwrap()
                .trim_end_matches("::")
                .replace("::", "/");
            let folder = root().join(format!("tests/{program}/{module}"));
            assert!(
                folder.exists() || folder.with_extension("rs").exists(),
                "{page}: {command}: there is no {}",
                folder.display()
            );
            count += 1;
        }
    }
    assert!(count > 5, "{count}");
}

/// Each part of a page that a run has measured says from which commit it is.
#[test]
fn what_was_measured_says_from_which_commit_it_is() {
    for (page, begin, end) in [
        (
            "benchmarks.md",
            "<!-- measured: begin",
            "<!-- measured: end",
        ),
        (
            "benchmarks.md",
            "<!-- compared: begin",
            "<!-- compared: end",
        ),
        (
            "benchmarks.md",
            "<!-- compared outcomes: begin",
            "<!-- compared outcomes: end",
        ),
        ("benchmarks.md", "<!-- latency: begin", "<!-- latency: end"),
        (
            "benchmarks.md",
            "<!-- bench-plan -->",
            "<!-- /bench-plan -->",
        ),
        (
            "integrations.md",
            "<!-- begin of KubeRay's suites",
            "<!-- end of KubeRay's suites",
        ),
        ("outcome.md", "# What Rayfit's strategy brings", "## "),
        ("rollout.md", "# Rolling rules out", "## "),
    ] {
        let text = read(&root().join("docs").join(page));
        let part = text
            .split_once(begin)
            .and_then(|(_, rest)| rest.split_once(end));
        let (part, _) = part.unwrap_or_else(|| panic!("docs/{page} has no {begin}"));
        let after = part.split("commit `").nth(1).unwrap_or_default();
        let hash = after.split('`').next().unwrap();
        let is_hash = hash.len() == 8 && hash.chars().all(|c| c.is_ascii_hexdigit());
        assert!(
            is_hash,
            "docs/{page}, {begin}: it does not say from which commit it is"
        );
    }
}
