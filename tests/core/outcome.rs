//! docs/outcome.md is what its figures say, and the figures are what the code leads to.

use std::collections::BTreeSet;

use rayfit_core::plan::{PlanSettings, Slice, Strategy};
use rayfit_core::policy::Policies;
use rayfit_core::reconcile::RoundSettings;
use rayfit_core::simulate::run::run;
use rayfit_core::simulate::settings::WorldSettings;
use serde_json::Value;

use crate::architecture_support::{read, root};
use crate::outcome_support::figures::{Results, Setting};
use crate::outcome_support::measure::{Settings, measure};
use crate::outcome_support::{ablation, elastic, made, page, pictures, sets};
use crate::settings::part_of;

/// What to do when anything of this fails.
const AGAIN: &str = "run `make outcome`, and look at what has changed";
const ABLATION: &str = "run `make outcome ABLATION=1`";

fn results() -> Results {
    serde_json::from_str(&read(&root().join("docs/outcome/results.json"))).unwrap()
}

/// What a strategy decides has changed if this fails, or what the simulated world does.
#[test]
fn the_figures_are_what_the_code_leads_to() {
    let results = results();
    let sets = sets::all();
    let known = [("gangs", 1), ("bursts-growing", 60)];
    for (name, pod_start) in known.into_iter().take(part_of(2, 1)) {
        let set = sets.iter().find(|set| set.name == name).unwrap();
        let settings = Settings {
            pod_starts: vec![pod_start],
            idles: vec![60],
            seeds: results.seeds[..1].to_vec(),
        };
        let found = measure(
            set,
            &set.trace(&root()).unwrap(),
            &settings,
            &Policies::default(),
            &mut |_| {},
        );
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

/// Jobs that use memory of which Ray knows nothing: the page has no such set, so the figures are here: mean
/// wait and P99 in seconds, CPU-hours and GiB-hours, processes that were killed and jobs that were lost. With
/// Ray's memory monitor, which goes by the memory that a pod starts with, Rayfit takes half of the CPU-hours; jobs
/// wait a third as long, and less than half is killed. Without it jobs wait half as long. docs/elastic.md tells why.
#[test]
fn memory_in_use_leads_to_what_it_did() {
    let figures = |strategy, cluster: Value| {
        let plan = PlanSettings {
            strategy,
            ..PlanSettings::default()
        };
        let settings = RoundSettings {
            plan,
            ..RoundSettings::default()
        };
        let world = WorldSettings::default();
        let result = run(&cluster, &made::hungry(), &world, settings, &mut |_| {}).unwrap();
        let rounded = |value: f64| (value * 10.0).round() / 10.0;
        assert_eq!(result.jobs.unfinished, 0, "{:?}", result.jobs);
        assert!(result.gib_hours.work < 1e-9, "nothing is asked for");
        (
            (rounded(result.wait.mean), rounded(result.wait.p99)),
            (
                rounded(result.cpu_hours.paid),
                rounded(result.gib_hours.paid),
            ),
            (result.out_of_memory, result.jobs.lost),
        )
    };
    let both = |cluster: &Value| {
        let of = |strategy| figures(strategy, cluster.clone());
        (of(Strategy::Ray), of(Strategy::Rayfit))
    };
    let told = "what is decided about memory in use has changed: if that was meant, write the new figures here";
    let (ray, rayfit) = both(&elastic::unwatched());
    assert_eq!((ray.2, rayfit.2), ((0, 0), (0, 0)), "{told}");
    assert_eq!((ray.0.0, rayfit.0.0), (14.8, 8.1), "{told}");
    assert_eq!((ray.1.0, rayfit.1.0), (9.6, 5.5), "{told}");
    assert_eq!(
        both(&sets::Cluster::Growing.manifest()),
        (
            ((190.7, 634.2), (14.2, 57.0), (263, 0)),
            ((66.4, 364.2), (7.5, 61.1), (102, 0)),
        ),
        "{told}"
    );
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

/// The figures are of the commit that the page names: what is new there has a row once somebody has measured it.
#[test]
fn the_page_about_the_planner_says_what_each_slice_is_worth() {
    let page = read(&root().join("docs/planner.md"));
    let (_, rest) = page.split_once(ablation::PLACE.0).expect(ABLATION);
    let (table, _) = rest.split_once(ablation::PLACE.1).expect(ABLATION);
    let rows = table.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| ")?.split(" | ");
        Some((cells.next()?, cells.next()?))
    });
    let slices = Slice::ALL.iter().map(|slice| slice.about());
    let rows: Vec<_> = rows.skip(1).collect();
    assert_eq!(rows, slices.collect::<Vec<_>>(), "{ABLATION}");
}
