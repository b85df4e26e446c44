//! docs/outcome.md is what its figures say, and the figures are what the code leads to.

use std::collections::BTreeSet;

use crate::architecture_support::{read, root};
use crate::outcome_support::figures::{Results, Setting};
use crate::outcome_support::measure::{Settings, measure};
use crate::outcome_support::{page, pictures, sets};

/// What to do when anything of this fails.
const AGAIN: &str = "run `make outcome`, and look at what has changed";

fn results() -> Results {
    serde_json::from_str(&read(&root().join("docs/outcome/results.json"))).unwrap()
}

/// What a strategy decides has changed if this fails, or what the simulated world does.
#[test]
fn the_figures_are_what_the_code_leads_to() {
    let results = results();
    let sets = sets::all();
    for (name, pod_start) in [("gangs", 1), ("bursts-growing", 60)] {
        let set = sets.iter().find(|set| set.name == name).unwrap();
        let settings = Settings {
            pod_starts: vec![pod_start],
            idles: vec![60],
            seeds: results.seeds[..1].to_vec(),
        };
        let found = measure(set, set.trace(&root()).unwrap(), &settings, &mut |_| {});
        let known = results.set(name).expect(AGAIN);
        assert_eq!(
            (found.jobs, found.work),
            (known.jobs, known.work),
            "{name}: {AGAIN}"
        );
        let known = known.setting(pod_start, 60).expect(AGAIN);
        let (found, known) = (first_seed(&found.settings[0]), first_seed(known));
        assert_eq!(found, known, "{name}: {AGAIN}");
    }
}

/// The figures of the first seed, of both strategies.
fn first_seed(setting: &Setting) -> Vec<Option<f64>> {
    let both = [&setting.ray, &setting.rayfit].into_iter();
    let first = |figures: &Vec<f64>| figures.first().copied();
    let figures = both.flat_map(|one| [&one.wait, &one.p99, &one.cpu_hours, &one.pods].map(first));
    figures.collect()
}

#[test]
fn the_page_says_what_its_figures_say() {
    let (results, docs) = (results(), root().join("docs"));
    let names: Vec<&str> = results.sets.iter().map(|set| set.name.as_str()).collect();
    let expected: Vec<&str> = sets::all().iter().map(|set| set.name).collect();
    assert_eq!(names, expected, "{AGAIN}");
    assert_eq!(results.seeds, Settings::of_page().seeds, "{AGAIN}");
    assert_eq!(
        read(&docs.join("outcome/results.json")),
        results.json(),
        "{AGAIN}"
    );
    assert!(
        read(&docs.join("outcome.md")) == page::markdown(&results),
        "docs/outcome.md does not say what its figures say: {AGAIN}"
    );
    let mut files = BTreeSet::from(["outcome/results.json".to_owned()]);
    for (file, picture) in pictures::all(&results) {
        assert!(read(&docs.join(&file)) == picture, "{file}: {AGAIN}");
        roxmltree::Document::parse(&picture).unwrap();
        files.insert(file);
    }
    let there = std::fs::read_dir(docs.join("outcome")).unwrap();
    let there = there.map(|entry| format!("outcome/{}", entry.unwrap().file_name().display()));
    assert_eq!(there.collect::<BTreeSet<String>>(), files, "{AGAIN}");
}
