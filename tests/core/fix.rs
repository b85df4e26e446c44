//! Fixes of the fixtures of all rules, each of whose lines has a comment.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rayfit_core::facts::Facts;
use rayfit_core::finding::Finding;
use rayfit_core::fix::{FixedText, fix};
use rayfit_core::judge::judge;
use rayfit_core::objects;
use rayfit_core::policy::Settings;
use rayfit_core::ray::RayObject;
use rayfit_core::yaml;
use serde_json::Value;

fn find(object: &Value) -> Option<Vec<Finding>> {
    let settings = Settings::default();
    RayObject::parse(object)?;
    let admitted = objects::admitted(object, None, &settings).ok()?;
    let verdict = judge(
        &RayObject::parse(&admitted)?,
        None,
        None,
        &Facts::default(),
        &settings,
    );
    Some(verdict.findings().map(|(_, found)| found.clone()).collect())
}

/// The bad fixtures, with a comment at the end of each line where that changes nothing of what is read.
fn commented() -> BTreeMap<String, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/rules");
    let mut texts = BTreeMap::new();
    for rule in std::fs::read_dir(folder).unwrap() {
        for file in std::fs::read_dir(rule.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if !name.starts_with("bad-") || name.matches('.').count() > 1 {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let lines = text.lines().enumerate();
            let lines = lines.map(|(number, line)| format!("{line} # c{number}.\n"));
            let commented: String = lines.collect();
            let values = |text: &str| -> Vec<Option<Value>> {
                let documents = yaml::read(text).into_iter();
                documents.map(|one| Some(one.ok()?.value)).collect()
            };
            if values(&commented) == values(&text) {
                texts.insert(path.display().to_string(), commented);
            }
        }
    }
    texts
}

fn found(text: &str) -> Vec<Finding> {
    let documents = yaml::read(text).into_iter().filter_map(Result::ok);
    documents
        .filter_map(|document| find(&document.value))
        .flatten()
        .collect()
}

/// The lines by the number of their comment, and those without one.
fn by_comment(text: &str) -> (BTreeMap<usize, &str>, usize) {
    let mut numbered = BTreeMap::new();
    let mut others = 0;
    for line in text.lines() {
        match line.rsplit_once("# c") {
            Some((before, number)) => {
                let number: usize = number.trim_end_matches('.').parse().unwrap();
                let last = numbered.last_key_value().map(|(last, _)| *last);
                assert!(last < Some(number), "the order changes: {text}");
                numbered.insert(number, before);
            }
            None => others += 1,
        }
    }
    (numbered, others)
}

#[test]
fn fixes_mend_their_findings_and_keep_all_else() {
    let (mut mended, texts) = (BTreeSet::new(), commented());
    assert!(texts.len() > 50, "{} fixtures", texts.len());
    for (name, text) in &texts {
        let FixedText {
            text: after,
            fixed,
            refused,
        } = fix(text, find);
        let left = found(&after);
        let (before, _) = by_comment(text);
        let (after, added) = by_comment(&after);
        // A comment whose line goes stays; a line is changed by a fix, or by its last key or item.
        let changed = before.iter().filter(|(number, line)| {
            let now = after.get(number);
            let now = now.unwrap_or_else(|| panic!("{name}: comment {number} is lost"));
            now != *line && !now.trim().is_empty()
        });
        assert!(changed.count() + added <= 2 * fixed, "{name}: {after:?}");
        assert_eq!(found(text).len(), left.len() + fixed, "{name}");
        if refused.is_empty() {
            let left = left.iter().find(|finding| finding.mend.is_some());
            assert_eq!(left, None, "{name}");
        }
        if fixed > 0 {
            mended.extend(found(text).into_iter().map(|finding| finding.rule));
            for rule in left.iter().map(|finding| finding.rule) {
                mended.remove(&rule);
            }
        }
    }
    assert!(mended.len() > 5, "{mended:?}");
}
