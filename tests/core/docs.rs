//! What is generated from the code is what the code would generate, and translations keep in step with their pages.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rayfit_core::manifests::{Certificates, ManifestOptions, objects};
use rayfit_core::plan::{PlanSettings, Slice};
use rayfit_core::policy::resource;
use rayfit_core::report::{catalogue, page};
use serde_json::Value;

fn read(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_page_of_rules_is_up_to_date() {
    assert!(
        read("docs/rules.md") == catalogue::markdown(&page::all()),
        "docs/rules.md has drifted: cargo run -- rules -o markdown > docs/rules.md"
    );
}

#[test]
fn every_row_of_the_table_leads_to_a_section() {
    let pages = page::all();
    let text = catalogue::markdown(&pages);
    for page in &pages {
        let heading = format!("\n## {} {}\n", page.id, page.name);
        let link = format!("(#{}-{})", page.id.to_lowercase(), page.name);
        assert!(text.contains(&heading), "{heading}");
        assert!(text.contains(&link), "{link}");
    }
}

/// The install with every right that can be chosen.
fn all_chosen(options: &ManifestOptions) -> ManifestOptions {
    options
        .with(|options| options.ray_auth = true)
        .with(|options| options.delete_idle_clusters = true)
        .with(|options| options.initial_sizes = true)
}

/// Every right that the manifests grant is in the table, with its verbs, and no other is.
#[test]
fn the_table_of_rights_is_what_the_manifests_grant() {
    let text = read("docs/security.md");
    let table = text
        .split_once("<!-- rights -->")
        .and_then(|(_, rest)| rest.split_once("<!-- /rights -->"))
        .map(|(table, _)| table)
        .expect("docs/security.md has the table of rights between two comments");
    let rows = table.lines().filter_map(|line| {
        let (role, rest) = line.strip_prefix("| `")?.split_once("` | `")?;
        let (resource, rest) = rest.split_once("` | ")?;
        let verbs = rest.split_once(" | ")?.0.split(", ").map(str::to_owned);
        Some(((role.to_owned(), resource.to_owned()), verbs.collect()))
    });
    let said: BTreeMap<(String, String), BTreeSet<String>> = rows.collect();
    let options = ManifestOptions::default()
        .with(|options| options.certificates = Some(Certificates::SelfManaged));
    let mut granted: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for object in objects(&all_chosen(&options)) {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        for rule in object["rules"].as_array().into_iter().flatten() {
            for resource in texts(&rule["resources"]) {
                let role = name.trim_start_matches("rayfit-").to_owned();
                // A right to all of a kind and one to a named object are one row.
                granted
                    .entry((role, resource))
                    .or_default()
                    .extend(texts(&rule["verbs"]));
            }
        }
    }
    assert_eq!(said, granted);
}

/// What the section on a compromised pod speaks of: everything that the account may change. Who adds
/// to this list adds to that section.
#[test]
fn what_a_compromised_pod_could_change_is_documented() {
    let written = |certificates| -> BTreeSet<String> {
        let options =
            ManifestOptions::default().with(|options| options.certificates = Some(certificates));
        let mut written = BTreeSet::new();
        for object in objects(&all_chosen(&options)) {
            for rule in object["rules"].as_array().into_iter().flatten() {
                let reads = ["get", "list", "watch"];
                if texts(&rule["verbs"])
                    .iter()
                    .any(|verb| !reads.contains(&&**verb))
                {
                    written.extend(texts(&rule["resources"]));
                }
            }
        }
        written
    };
    let told = [
        "events",
        "leases",
        "pods",
        "pods/resize",
        "rayclusters",
        "raypolicies/status",
        "reports",
        "validatingwebhookconfigurations",
    ];
    let with_cert_manager = written(Certificates::CertManager);
    assert_eq!(with_cert_manager, told.map(str::to_owned).into());
    let own: BTreeSet<String> = written(Certificates::SelfManaged)
        .difference(&with_cert_manager)
        .cloned()
        .collect();
    let more = ["mutatingwebhookconfigurations", "secrets"];
    assert_eq!(own, more.map(str::to_owned).into());
}

/// The versions that are tried are those of the lab.
#[test]
fn the_versions_that_are_tried_are_the_labs() {
    let lab = read("tests/lab/versions.go");
    let table = read("docs/upgrade.md");
    for (name, row) in [
        ("KubernetesVersion", "| Kubernetes |"),
        ("KubeRayVersion", "| KubeRay |"),
        ("RayVersion", "| Ray |"),
        ("CertManagerVersion", "| cert-manager |"),
        ("HelmVersion", "| Helm |"),
    ] {
        let version = lab
            .lines()
            .find_map(|line| line.trim().strip_prefix(name)?.split('"').nth(1))
            .unwrap_or_else(|| panic!("the lab has no {name}"));
        let line = table
            .lines()
            .find(|line| line.starts_with(row))
            .unwrap_or_else(|| panic!("docs/upgrade.md has no row {row}"));
        assert!(
            line.ends_with(&format!("| {version} |")),
            "{version}: {line}"
        );
    }
}

/// Each alert leads to its section of the runbook, and each section that is named as alerts are is about one.
#[test]
fn each_alert_has_its_section_in_the_runbook() {
    let base = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/runbook.md#");
    let rules = read("manifests/monitoring/prometheus-rule.yaml");
    let rules: Value = serde_saphyr::from_str(&rules).unwrap();
    let mut alerts = BTreeSet::new();
    for rule in rules["spec"]["groups"][0]["rules"].as_array().unwrap() {
        let alert = rule["alert"].as_str().unwrap();
        let url = format!("{base}{}", alert.to_lowercase());
        assert_eq!(rule["annotations"]["runbook_url"], url, "{alert}");
        alerts.insert(alert.to_owned());
    }
    let runbook = read("docs/runbook.md");
    let sections = runbook.lines().filter_map(|line| line.strip_prefix("## "));
    let sections = sections.filter(|section| section.starts_with("Rayfit"));
    let sections: BTreeSet<String> = sections.map(str::to_owned).collect();
    assert_eq!(alerts, sections);
}

fn texts(list: &Value) -> Vec<String> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(|text| Some(text.as_str()?.to_owned()))
        .collect()
}

/// Each "if it is left out" in the definition of RayPolicy, and each right column of the table in
/// docs/policy.md, says what the code takes.
#[test]
fn values_that_are_left_out_are_documented_as_the_code_takes_them() {
    let settings = PlanSettings::default();
    let seconds = |seconds: Option<f64>| seconds.unwrap().to_string();
    let has = |slice| (!settings.left_out.contains(&slice)).to_string();
    let expected: BTreeMap<&str, String> = [
        ("maxWorkersPerCluster", settings.max_workers.to_string()),
        ("unschedulableSeconds", settings.unschedulable_s.to_string()),
        (
            "progressDeadlineSeconds",
            settings.progress_deadline_s.to_string(),
        ),
        ("drainTimeoutSeconds", settings.drain_timeout_s.to_string()),
        (
            "inPlace.shrinkAfterSeconds",
            seconds(settings.shrink_after_s),
        ),
        ("inPlace.keepSmallSeconds", seconds(settings.keep_small_s)),
        ("inPlace.deferredSeconds", settings.deferred_s.to_string()),
        ("inPlace.followMemory", has(Slice::MemoryInUse)),
        ("inPlace.makeRoom", has(Slice::Rooms)),
        (
            "inPlace.initialSizes",
            settings.initial_sizes.is_some().to_string(),
        ),
    ]
    .into();
    let definition = resource::definition();
    let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/reconcile";
    let mut found = BTreeMap::new();
    left_out(definition.pointer(schema).unwrap(), "", &mut found);
    let found: BTreeMap<&str, String> =
        found.iter().map(|(k, v)| (k.as_str(), v.clone())).collect();
    assert_eq!(
        found, expected,
        "the definition of RayPolicy (crates/core/src/policy/resource)"
    );
    let page = read("docs/policy.md");
    let also = [
        ("inPlace.learnGaps", has(Slice::Gaps)),
        ("conserveGpus", settings.conserve_gpus.to_string()),
        ("holdBusyNodes", settings.hold_busy_nodes.to_string()),
    ];
    for (field, value) in expected.into_iter().chain(also) {
        let row = page
            .lines()
            .find(|line| line.starts_with(&format!("| `{field}` |")));
        let row = row.unwrap_or_else(|| panic!("docs/policy.md has no row for {field}"));
        let said = row.trim_end_matches('|').rsplit('|').next().unwrap().trim();
        assert_eq!(said.replace(',', ""), value, "docs/policy.md: {field}");
    }
}

/// What fields of a schema say that they are when they are left out, by their path. Lists are left
/// out: what an entry of a list is without a field is no setting.
fn left_out(schema: &Value, path: &str, found: &mut BTreeMap<String, String>) {
    let Some(fields) = schema["properties"].as_object() else {
        return;
    };
    for (name, field) in fields {
        let path = if path.is_empty() {
            name.clone()
        } else {
            format!("{path}.{name}")
        };
        let text = field["description"].as_str().unwrap_or_default();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if let Some((before, _)) = text.split_once(" if it is left out") {
            let value = before.rsplit(' ').next().unwrap();
            found.insert(path.clone(), value.to_owned());
        }
        left_out(field, &path, found);
    }
}

/// The table of slices has a row for each of them, in the order in which the head of the pipeline tells of them. Only
/// these modules of their folder are none.
#[test]
fn the_table_of_slices_is_the_pipeline() {
    let modules = read("crates/core/src/plan/slices/mod.rs");
    let modules = modules.lines().filter_map(|line| {
        let name = line
            .trim_start_matches("pub(crate) ")
            .strip_prefix("mod ")?;
        name.strip_suffix(';')
    });
    let mut slices: BTreeSet<&str> = modules.collect();
    for none in ["findings", "read", "remember"] {
        assert!(slices.remove(none), "{none}");
    }
    let pipeline = read("crates/core/src/plan/pipeline.rs");
    let head = pipeline.lines().take_while(|line| line.starts_with("//!"));
    let told = head.flat_map(|line| line.split('`').skip(1).step_by(2));
    let mut order: Vec<&str> = Vec::new();
    for name in told.filter(|name| slices.contains(name)) {
        if !order.contains(&name) {
            order.push(name);
        }
    }
    assert_eq!(
        order.iter().copied().collect::<BTreeSet<_>>(),
        slices,
        "the head of crates/core/src/plan/pipeline.rs (left) tells of all slices"
    );
    let (page, policy) = (read("docs/planner.md"), read("docs/policy.md"));
    let rows = page
        .lines()
        .filter(|line| line.contains("](../crates/core/src/plan/slices/"));
    let mut listed = Vec::new();
    for row in rows.filter(|line| line.starts_with("| [")) {
        listed.push(row["| [".len()..].split(']').next().unwrap());
        let settings = row.split(" | ").nth(3).unwrap();
        for setting in settings.split('`').skip(1).step_by(2) {
            let is_listed = policy.contains(&format!("\n| `{setting}` |"));
            assert!(is_listed, "docs/policy.md has no row for {setting}");
        }
    }
    assert_eq!(listed, order, "the table of docs/planner.md (left)");
}

#[test]
fn the_chinese_readme_keeps_in_step() {
    keeps_in_step("README.zh-CN.md", "README.md");
}

#[test]
fn the_chinese_tutorial_keeps_in_step() {
    keeps_in_step("docs/rollout.zh-CN.md", "docs/rollout.md");
}

fn keeps_in_step(translation: &str, page: &str) {
    let (original, translated) = (read(page), read(translation));
    let (expected, found) = (outline(&original), outline(&translated));
    assert!(expected.len() > 40, "{page}: {expected:?}");
    for (index, line) in expected.iter().enumerate() {
        assert_eq!(
            found.get(index),
            Some(line),
            "{translation} (left) has other headings or code than {page} (right): translate what has changed"
        );
    }
    let more = &found[expected.len()..];
    assert!(more.is_empty(), "{page} does not have {more:?}");
}

/// Parts of a page that a translation leaves as they are, in their order: the levels of headings, the lines of code,
/// and the commands that begin rows of a table.
fn outline(page: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut is_fenced = false;
    for line in page.lines() {
        let is_fence = line.starts_with("```");
        if is_fence || is_fenced || line.starts_with("    ") {
            found.push(line);
        } else if line.starts_with('#') {
            found.extend(line.split(' ').next());
        } else if line.starts_with("| `") {
            found.extend(line.split(" | ").next());
        }
        is_fenced ^= is_fence;
    }
    found
}
