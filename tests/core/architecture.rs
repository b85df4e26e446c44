//! The promises of the crate's layout: the core is pure, files are short, the map is complete.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};

/// What the core must not name: clocks, input and output, the environment, clients, runtimes.
const IMPURE: &[&str] = &[
    "tokio",
    "kube::",
    "axum",
    "hyper",
    "rustls",
    "tower",
    "reqwest",
    "tracing",
    "prometheus_client",
    "clap",
    "anstream",
    "std::fs",
    "std::env::",
    "std::net",
    "std::process",
    "std::io",
    "std::thread",
    "std::os",
    "env::var",
    "SystemTime",
    "Instant",
    "println!",
    "crate::cli",
    "crate::admission",
];

/// Derives of data types, in which there is no client.
const DERIVES: &[&str] = &[
    "use kube::KubeSchema;",
    "use kube::{CustomResource, CustomResourceExt as _, KubeSchema};",
];

/// Most lines of one file, its tests not counted.
const LONGEST: usize = 400;

fn src() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every Rust file under `folder`.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The code of a file without its tests and comments.
fn code(text: &str) -> String {
    let body = text.split("#[cfg(test)]\nmod ").next().unwrap_or(text);
    body.lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n")
}

/// The modules that the map in `lib.rs` names: those of the core, then those of the shell.
fn map() -> (Vec<String>, Vec<String>) {
    let lib = read(&src().join("lib.rs"));
    let (core, shell) = lib
        .split_once("//! Around it lies the shell")
        .expect("lib.rs says where the shell begins");
    (listed(core), listed(shell))
}

/// The names in the entries of a list: ``//! - [`path`], [`ray`]: ...``
fn listed(text: &str) -> Vec<String> {
    text.lines()
        .filter_map(|line| line.strip_prefix("//! - [`"))
        .filter_map(|entry| entry.split_once("]:"))
        .flat_map(|(names, _)| names.split(", "))
        .map(|name| name.trim_matches(['[', '`', ']']).to_owned())
        .collect()
}

#[test]
fn the_map_in_lib_rs_names_every_module() {
    let lib = read(&src().join("lib.rs"));
    let (core, shell) = map();
    let declared = lib.lines().filter_map(|line| {
        let name = line.trim_start_matches("pub ").strip_prefix("mod ")?;
        name.strip_suffix(';')
    });
    let declared: Vec<&str> = declared.collect();
    assert!(declared.len() > 5, "{declared:?}");
    for module in &declared {
        let known = core.iter().chain(&shell).any(|name| name == module);
        assert!(known, "the map in src/lib.rs does not name `{module}`");
    }
    for name in core.iter().chain(&shell) {
        assert!(
            declared.contains(&name.as_str()),
            "there is no module `{name}`"
        );
    }
}

#[test]
fn the_core_is_pure() {
    let (core, _) = map();
    for module in core {
        let file = src().join(format!("{module}.rs"));
        let folder = src().join(&module);
        let mut sources = if folder.is_dir() {
            files(&folder)
        } else {
            Vec::new()
        };
        sources.extend(file.exists().then_some(file));
        assert!(!sources.is_empty(), "no file of the module {module}");
        for path in sources.iter().filter(|path| !path.ends_with("tests.rs")) {
            let text = read(path);
            for (number, line) in code(&text).lines().enumerate() {
                if DERIVES.contains(&line) {
                    continue;
                }
                let named = IMPURE.iter().find(|name| line.contains(**name));
                assert_eq!(
                    named,
                    None,
                    "{} is of the pure core (code line {}): {line}",
                    path.display(),
                    number + 1
                );
            }
        }
    }
}

#[test]
fn no_file_is_too_long_to_read() {
    for path in files(&src()) {
        let text = read(&path);
        let body = text.split("#[cfg(test)]\nmod ").next().unwrap_or(&text);
        let lines = body.lines().count();
        assert!(
            lines <= LONGEST,
            "{} has {lines} lines: split it by idea",
            path.display()
        );
    }
}

#[test]
fn main_stays_small() {
    let lines = read(&src().join("main.rs")).lines().count();
    assert!(lines < 25, "{lines} lines: the library is where things go");
}
