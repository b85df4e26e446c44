//! The metrics and labels that alerts and the dashboard ask for, and those that are there.

#![allow(unreachable_pub, missing_docs)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rayfit::telemetry::Metrics;
use rayfit::telemetry::clusters::ClusterFigures;
use rayfit_core::dns_name::Key;
use rayfit_core::object_audit::AuditTally;
use rayfit_core::policy::resource::RuleCount;
use rayfit_core::rule_id::RuleId;
use serde_json::Value;

/// Labels by metric.
pub type Series = BTreeMap<String, BTreeSet<String>>;

/// Every `PromQL` expression, and every query for a variable, of `manifests/monitoring`.
pub fn expressions() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests/monitoring");
    let read = |file: &str| std::fs::read_to_string(folder.join(file)).unwrap();
    let rules: Value = serde_saphyr::from_str(&read("prometheus-rule.yaml")).unwrap();
    let dashboard: Value = serde_json::from_str(&read("dashboard.json")).unwrap();
    let mut found = Vec::new();
    for document in [&rules, &dashboard] {
        collect(document, &mut found);
    }
    found
}

fn collect(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        Value::Object(map) => {
            // A variable of the dashboard has a query.
            let expression = map.get("expr").or_else(|| map.get("query"));
            found.extend(expression.and_then(Value::as_str).map(str::to_owned));
            map.values().for_each(|item| collect(item, found));
        }
        _ => {}
    }
}

/// The series of a scrape, each metric with the labels that it has.
pub fn scraped(text: &str) -> Series {
    let mut series = Series::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().unwrap();
        let labels = series.entry(name.to_owned()).or_default();
        if let Some((inside, _)) = line
            .split_once('{')
            .and_then(|(_, rest)| rest.rsplit_once('}'))
        {
            labels.extend(inside.split("\",").filter_map(label));
        }
    }
    series
}

fn label(pair: &str) -> Option<String> {
    let name = pair.split('=').next()?.trim_end_matches(['!', '~']);
    Some(name.trim().to_owned())
}

/// A scrape of a process that has a cluster: it scales, and it audits.
pub fn counted() -> String {
    let metrics = Metrics::new(std::sync::Arc::default());
    metrics
        .scaling
        .clusters
        .get_or_create(&[("mode", "central")])
        .set(1);
    let clusters = &metrics.scaling.by_cluster;
    clusters.show_each(1);
    let figures = ClusterFigures {
        workers: [("cpu".to_owned(), [1, 0])].into(),
        ..ClusterFigures::default()
    };
    let key = Key::new("ray", "demo").unwrap();
    clusters.decided(&key, "uid", figures, std::time::Instant::now());
    let rules = [(RuleId(105), RuleCount::default())];
    metrics.audit.set(&AuditTally {
        rules: rules.into(),
        ..AuditTally::default()
    });
    let _watch = metrics
        .watches
        .open("pods", std::time::Duration::from_mins(1));
    metrics.text().unwrap()
}

/// What an expression asks for: metrics of ours, and labels of them.
pub fn asked(expression: &str) -> (Vec<String>, Vec<String>) {
    let words = |text: &str| -> Vec<String> {
        let name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        text.split(|c| !name(c)).map(str::to_owned).collect()
    };
    let ours = |word: &String| word.starts_with("rayfit_");
    let metrics: Vec<String> = words(expression).into_iter().filter(ours).collect();
    if metrics.is_empty() {
        return (metrics, Vec::new());
    }
    let selectors = expression
        .split('{')
        .skip(1)
        .filter_map(|s| s.split('}').next());
    let selected = selectors.flat_map(|s| s.split("\",").filter_map(label));
    let grouped = expression
        .split("by (")
        .skip(1)
        .filter_map(|s| s.split(')').next());
    let grouped = grouped.flat_map(words).filter(|word| !word.is_empty());
    let labels = selected.chain(grouped).collect();
    (metrics, labels)
}
