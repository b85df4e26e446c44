//! The page of a study: whole, harmless, small, and the same each time.

use rayfit_core::plan::Strategy;
use rayfit_core::reconcile::RoundSettings;
use rayfit_core::simulate::report::page::html;
use rayfit_core::simulate::settings::WorldSettings;
use rayfit_core::simulate::study::{Study, StudyRow};
use rayfit_core::simulate::trace;
use rayfit_core::yaml;
use roxmltree::{Document, Node, ParsingOptions};

use crate::architecture_support::{read, root};

const HOSTILE: &str =
    "</title><script>alert(1)</script>\" onload='x' \u{202e}&amp; https://evil.example/";

fn example(name: &str) -> String {
    read(&root().join("examples").join(name))
}

fn study(vary: &[&str]) -> Study {
    let cluster = yaml::read(&example("good.yaml")).remove(0).unwrap();
    Study {
        price: None,
        cluster: cluster.value,
        trace: trace::read(&example("trace.jsonl"), "trace").unwrap(),
        world: WorldSettings::default(),
        reconciler: RoundSettings::default(),
        strategies: vec![Strategy::Rayfit, Strategy::Ray],
        variations: vary.iter().map(|field| field.parse().unwrap()).collect(),
    }
}

fn rows(study: &Study) -> Vec<StudyRow> {
    study.run(&mut |_| {}).unwrap()
}

fn parsed(page: &str) -> Document<'_> {
    let options = ParsingOptions {
        allow_dtd: true,
        ..ParsingOptions::default()
    };
    Document::parse_with_options(page, options).unwrap_or_else(|error| panic!("{error}: {page}"))
}

fn of<'a>(page: &'a Document<'_>, name: &'static str) -> impl Iterator<Item = Node<'a, 'a>> {
    page.descendants()
        .filter(move |node| node.has_tag_name(name))
}

fn attributes<'a>(page: &'a Document<'_>, name: &'static str) -> impl Iterator<Item = &'a str> {
    page.descendants()
        .filter_map(move |node| node.attribute(name))
}

/// Each simulation has a chart that is named and described, and its numbers; everything that is
/// linked to is there.
#[test]
fn each_simulation_is_drawn_and_described() {
    let study = study(&["idleTimeoutSeconds=10,120"]);
    let rows = rows(&study);
    let page = html(&study, &rows);
    let page = parsed(&page);
    assert_eq!(rows.len(), 4);
    assert_eq!(of(&page, "svg").count(), 1 + rows.len());
    assert_eq!(of(&page, "table").count(), 1 + rows.len());
    assert_eq!(of(&page, "section").count(), rows.len());
    let ids: Vec<&str> = attributes(&page, "id").collect();
    for (number, id) in ids.iter().enumerate() {
        assert!(!ids[..number].contains(id), "{id} is there twice");
    }
    for target in attributes(&page, "href") {
        assert!(ids.contains(&target.strip_prefix('#').unwrap()), "{target}");
    }
    for chart in of(&page, "svg") {
        let labels = chart.attribute("aria-labelledby").unwrap();
        for label in labels.split(' ') {
            let said = chart
                .children()
                .find(|node| node.attribute("id") == Some(label));
            let text = said.and_then(|node| node.text()).unwrap_or_default();
            assert!(text.len() > 20, "{label} says {text:?}");
        }
    }
    let text: String = page.descendants().filter_map(|node| node.text()).collect();
    for said in [
        "two bursts and a gang",
        "research/notebook",
        "rayfit, idleTimeoutSeconds=10",
        "ray, idleTimeoutSeconds=120",
        "most demand",
        "mean wait (s)",
        "CPUs",
    ] {
        assert!(text.contains(said), "{said}");
    }
}

/// Two groups, of which one has GPUs, on two pools of nodes; jobs ask for GPUs and memory.
fn with_gpus() -> Study {
    let mut study = study(&[]);
    let groups = study.cluster["spec"]["workerGroupSpecs"]
        .as_array_mut()
        .unwrap();
    let mut gpu = groups[0].clone();
    gpu["groupName"] = "gpu<b>".into();
    gpu["minReplicas"] = 0.into();
    let resources = &mut gpu["template"]["spec"]["containers"][0]["resources"];
    resources["limits"]["nvidia.com/gpu"] = 1.into();
    groups.push(gpu);
    let jobs = r#"{"apiVersion":"rayfit.dev/v1alpha1","kind":"Trace","name":"both"}
{"task":"load","at":10,"seconds":60,"resources":{"CPU":1,"memory":1073741824},"count":24}
{"task":"train","at":30,"seconds":120,"resources":{"CPU":1,"GPU":1},"count":3}"#;
    study.trace = trace::read(jobs, "trace").unwrap();
    let pools = serde_json::json!([
        {"name": "cpu", "cpu": 16, "memory": "64Gi", "max": 4, "min": 1},
        {"name": "gpu", "cpu": 8, "memory": "64Gi", "gpus": 1, "max": 4},
    ]);
    study.world.pools = rayfit_core::simulate::pools::read(&pools).unwrap();
    study
}

/// GPUs and memory are drawn where there are any.
#[test]
fn gpus_and_memory_are_drawn() {
    let study = with_gpus();
    let rows = rows(&study);
    assert_eq!(rows[0].result.jobs.ended, 27, "{:?}", rows[0].result.jobs);
    let page = html(&study, &rows);
    let page = parsed(&page);
    assert_eq!(of(&page, "svg").count(), 1 + rows.len());
    let text: String = page.descendants().filter_map(|node| node.text()).collect();
    for said in [
        "memory (GiB)",
        "GPUs",
        "jobs that wait",
        "Jobs use and wait for: at most 3 GPUs",
        "Mean waits of each tenth of the jobs",
    ] {
        assert!(text.contains(said), "{said}");
    }
}

/// Nodes have a place of their own, where they are simulated.
#[test]
fn nodes_are_drawn_where_there_are_any() {
    let mut study = study(&[]);
    let with_nodes = |study: &Study| {
        let page = html(study, &rows(study));
        parsed(&page);
        page.contains("NODE-HOURS")
    };
    assert!(!with_nodes(&study));
    let pools =
        serde_json::json!([{"name": "<b>", "cpu": 16, "memory": "64Gi", "max": 4, "min": 1}]);
    study.world.pools = rayfit_core::simulate::pools::read(&pools).unwrap();
    assert!(with_nodes(&study));
}

#[test]
fn names_do_nothing_and_nothing_is_loaded() {
    let mut study = study(&[]);
    study.trace.name = HOSTILE.to_owned();
    study.cluster["metadata"]["name"] = HOSTILE.into();
    let page = html(&study, &rows(&study));
    let tree = parsed(&page);
    for name in [
        "script", "link", "img", "image", "use", "iframe", "object", "base", "form",
    ] {
        assert_eq!(of(&tree, name).count(), 0, "{name}");
    }
    let attributes = tree.descendants().flat_map(|node| node.attributes());
    for attribute in attributes {
        let (name, value) = (attribute.name(), attribute.value());
        assert!(!name.starts_with("on") && name != "src", "{name}={value}");
        assert!(!value.contains("evil"), "{name}={value}");
    }
    assert!(!page.contains('\u{202e}') && !page.contains("src="));
    assert!(!page.contains("url(") && !page.contains("@import"));
    let harmless = page.replace(" https://evil.example/", "");
    let harmless = harmless.replace("http-equiv", "");
    assert!(!harmless.contains("http"), "it names another place");
    let title = of(&tree, "title")
        .next()
        .and_then(|node| node.text())
        .unwrap();
    assert!(
        title.contains(&HOSTILE.replace('\u{202e}', "\u{fffd}")),
        "{title}"
    );
}

#[test]
fn equal_studies_give_equal_bytes() {
    let study = study(&["podStartSeconds=7,60"]);
    assert_eq!(html(&study, &rows(&study)), html(&study, &rows(&study)));
}

/// Even the largest study can be opened, and one without any simulation.
#[test]
fn pages_are_bounded() {
    let study = study(&[]);
    let mut row = rows(&study).remove(0);
    let point = row.result.curve[0];
    row.result.curve = (0..4096)
        .map(
            |number| rayfit_core::simulate::world::ledger::curves::Point {
                at: f64::from(number) * 1.7,
                waiting: f64::from(number * 7919 % 1000) + 0.3,
                used: f64::from(number * 6007 % 1000) + 0.7,
                cores: f64::from(number * 5003 % 2000),
                total: f64::from(number * 9973 % 2000),
                ..point
            },
        )
        .collect();
    let one = html(&study, std::slice::from_ref(&row));
    assert!(one.len() < 100_000, "{}", one.len());
    let all = html(&study, &vec![row.clone(); 500]);
    assert!(all.len() < 10_000_000, "{}", all.len());
    parsed(&all);
    parsed(&html(&study, &[]));
}
