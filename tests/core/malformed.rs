//! Whatever stands in any one place of an object, judging it ends without a panic.
//!
//! The API server lets much through that no rule expects, `rayfit check` sees everything that
//! people write, and one odd corner must not hide the findings of the others.

#![allow(
    clippy::unwrap_used,
    reason = "a fixture that cannot be read fails the test"
)]

use std::path::Path;

use rayfit_core::facts::Facts;
use rayfit_core::policy::Settings;
use rayfit_core::ray::RayObject;
use rayfit_core::rules::{self, Subject};
use serde_json::{Value, json};

use crate::settings::part_of;

/// Every violating fixture that describes a single object.
fn fixtures() -> Vec<Value> {
    let folders = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/rules");
    std::fs::read_dir(folders)
        .unwrap()
        .flat_map(|folder| std::fs::read_dir(folder.unwrap().path()).unwrap())
        .map(|file| file.unwrap().path())
        .filter(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            name.starts_with("bad-")
                && name
                    .split_once('.')
                    .is_some_and(|(_, ending)| ending == "yaml")
        })
        .map(|path| serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap())
        .collect()
}

/// The JSON pointers of every place in `value`, itself not among them.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    let mut visit = |key: &str, child: &Value| {
        let place = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
        places(child, &place, found);
        found.push(place);
    };
    match value {
        Value::Object(map) => map.iter().for_each(|(key, child)| visit(key, child)),
        Value::Array(list) => {
            for (index, child) in list.iter().enumerate() {
                visit(&index.to_string(), child);
            }
        }
        _ => {}
    }
}

fn judge(value: &Value) {
    let Some(object) = RayObject::parse(value) else {
        return;
    };
    for old in [None, Some(&object)] {
        rules::run(&Subject {
            object: &object,
            old,
            facts: &Facts::default(),
            settings: &Settings::default(),
            user: None,
        });
    }
}

#[test]
fn a_strange_value_anywhere_hurts_no_rule() {
    let strange = [
        json!(null),
        json!(true),
        json!(-1),
        json!(1e300),
        json!(""),
        json!("ß_\u{301}'{"),
        json!([null, 1, "x", [], {}]),
        json!({"": 1, "cpu": [], "CPU": {}, "name": null}),
    ];
    let fixtures = fixtures();
    assert!(!fixtures.is_empty());
    // Of each place every value, or one of them, another one each time.
    let step = part_of(1, strange.len());
    let mut first = 0;
    for fixture in fixtures {
        let mut found = Vec::new();
        places(&fixture, "", &mut found);
        for place in found {
            let mut object = fixture.clone();
            first = (first + 1) % step;
            for value in strange.iter().skip(first).step_by(step) {
                *object.pointer_mut(&place).unwrap() = value.clone();
                judge(&object);
            }
        }
    }
}
