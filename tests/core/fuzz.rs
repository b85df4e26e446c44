//! The targets of `fuzz/` with the inputs that other tests have, whole and broken: `make fuzz`, which invents
//! inputs, needs a nightly compiler.

use std::ffi::OsStr;
use std::io::Read as _;

use base64::Engine as _;
use flate2::read::GzDecoder;
use serde_json::Value;

use crate::architecture_support::{all_files, files, read, root};

#[path = "../../fuzz/bodies.rs"]
mod bodies;

/// What an input becomes: itself, cut, and with a byte that is another one.
fn broken(input: &[u8]) -> [Vec<u8>; 3] {
    let (cut, mut changed) = (&input[..input.len() / 2], input.to_vec());
    if let Some(byte) = changed.get_mut(input.len() / 3) {
        *byte = byte.wrapping_add(1);
    }
    [input.to_vec(), cut.to_vec(), changed]
}

#[test]
fn bodies_of_fuzz_targets_take_manifests_objects_and_traces() {
    let folders = [
        "examples",
        "tests/fixtures/cli",
        "tests/fixtures/rules",
        "tests/fixtures/traces",
    ];
    let found = folders
        .map(|folder| all_files(&root().join(folder)))
        .concat();
    assert!(found.len() > 100, "{}", found.len());
    for file in &found {
        let text = std::fs::read(file).unwrap();
        for input in broken(&text) {
            bodies::review(&input);
            bodies::answer(&input);
            let Ok(text) = std::str::from_utf8(&input) else {
                continue;
            };
            bodies::ippr(text);
            bodies::yaml(text);
            bodies::trace(text);
            for document in rayfit_core::yaml::read(text).into_iter().flatten() {
                bodies::object(document.value.to_string().as_bytes());
            }
        }
    }
}

/// Random cluster states as Ray itself writes them.
#[test]
fn bodies_of_fuzz_targets_take_answers_of_a_gcs() {
    let recorded = std::fs::File::open(root().join("tests/parity/wire.jsonl.gz")).unwrap();
    let mut text = String::new();
    GzDecoder::new(recorded).read_to_string(&mut text).unwrap();
    let mut count = 0;
    for line in text.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let bytes = base64::prelude::BASE64_STANDARD.decode(case["bytes"].as_str().unwrap());
        for (number, input) in broken(&bytes.unwrap()).iter().enumerate() {
            bodies::answer(input);
            let most = [10, 0, i64::MAX][number];
            bodies::decide(([0, most, 1, -1, 5, i64::MIN], input));
        }
        count += 1;
    }
    assert!(count > 100, "{count}");
}

/// A target that is added here is one that `scripts/fuzz.sh` runs.
#[test]
fn every_fuzz_target_is_run() {
    let script = read(&root().join("scripts/fuzz.sh"));
    let manifest = read(&root().join("fuzz/Cargo.toml"));
    for file in files(&root().join("fuzz/fuzz_targets")) {
        let name = file.file_stem().and_then(OsStr::to_str).unwrap();
        assert!(
            script
                .split_whitespace()
                .any(|word| word.trim_end_matches(['}', ';']) == name),
            "{name}: scripts/fuzz.sh"
        );
        assert!(
            manifest.contains(&format!("name = {name:?}")),
            "{name}: fuzz/Cargo.toml"
        );
    }
}
