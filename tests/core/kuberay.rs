//! What KubeRay refuses, Rayfit denies: recorded answers of KubeRay's own validation (`tests/oracle/`), of 1.6.2 with all
//! feature gates on, and of 1.7.0 with those that are on by default.
//!
//! `RAYFIT_KUBERAY_ANSWERS` names a file with other answers of 1.6.2, as `make test-long` makes them.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

use flate2::read::GzDecoder;
use rayfit_core::facts::Facts;
use rayfit_core::policy::{Mode, Settings};
use rayfit_core::ray::feature_gate::{self, FeatureGate};
use rayfit_core::ray::{RayObject, RayVersion};
use rayfit_core::rules::{self, Subject};
use serde::Deserialize;
use serde_json::Value;

/// Rules about what KubeRay accepts and Ray does not: that they deny what KubeRay refuses is chance.
const RAYS_OWN: &[u16] = &[203, 204, 205, 226];

#[derive(Deserialize)]
struct Answer {
    object: Value,
    /// Empty if KubeRay accepts the object.
    refusal: String,
}

fn recorded(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle");
    let recorded = std::fs::File::open(folder.join(name)).unwrap();
    let mut text = String::new();
    GzDecoder::new(recorded).read_to_string(&mut text).unwrap();
    text
}

fn answers(text: &str) -> Vec<Answer> {
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The numbers of the rules that deny the object, as `rayfit check` would.
fn denied_by(object: &Value, settings: &Settings) -> Vec<u16> {
    let object = rayfit_core::objects::received(object);
    let parsed = RayObject::parse(&object).unwrap();
    let mut findings = rules::run(&Subject {
        object: &parsed,
        old: None,
        facts: &Facts::default(),
        settings,
        user: None,
    });
    findings.extend(rules::schema::find(parsed.root, settings.kuberay));
    let denied = findings
        .iter()
        .filter(|finding| finding.mode == Mode::Enforce);
    denied.map(|finding| finding.rule.0).collect()
}

/// The settings where all feature gates are known to be on, or off.
fn settings(kuberay: RayVersion, has_gate: impl Fn(&Settings, &FeatureGate) -> bool) -> Settings {
    let mut settings = Settings {
        kuberay,
        ..Settings::default()
    };
    let gates = feature_gate::ALL.map(|gate| (gate, has_gate(&settings, gate)));
    settings.feature_gates = gates.into();
    settings
}

#[test]
fn what_kuberay_1_6_refuses_is_denied_and_what_it_accepts_is_not_by_the_rules_about_it() {
    let text = match std::env::var_os("RAYFIT_KUBERAY_ANSWERS") {
        Some(file) => std::fs::read_to_string(file).unwrap(),
        None => recorded("answers-1.6.jsonl.gz"),
    };
    // The version of the module in tests/oracle/go.mod.
    let settings = settings(RayVersion::new(1, 6, 2), |_, _| true);
    println!("{}", compare(&text, &settings));
}

#[test]
fn what_kuberay_1_7_refuses_is_denied_and_what_it_accepts_is_not_by_the_rules_about_it() {
    let settings = settings(RayVersion::new(1, 7, 0), Settings::has_gate);
    println!("{}", compare(&recorded("answers-1.7.jsonl.gz"), &settings));
}

/// Says how many refusals are seen.
fn compare(text: &str, settings: &Settings) -> String {
    let judged = answers(text).into_iter().map(|answer| {
        let denied = denied_by(&answer.object, settings);
        (answer, denied)
    });
    let (accepted, refused): (Vec<_>, Vec<_>) =
        judged.partition(|(answer, _)| answer.refusal.is_empty());
    for (Answer { object, .. }, denied) in &accepted {
        let is_alarm = denied.iter().any(|rule| rule / 100 == 7);
        assert!(!is_alarm, "KubeRay accepts what {denied:?} deny: {object}");
    }
    let mut missed: BTreeMap<&str, usize> = BTreeMap::new();
    for (Answer { refusal, .. }, denied) in &refused {
        if denied.iter().all(|rule| RAYS_OWN.contains(rule)) {
            *missed.entry(refusal).or_default() += 1;
        }
    }
    let seen = refused.len() - missed.values().sum::<usize>();
    let shares = format!(
        "{seen} of {} refusals are seen; missed: {missed:#?}",
        refused.len()
    );
    assert!(refused.len() > 100, "too few to tell: {shares}");
    assert!(seen * 100 >= refused.len() * 95, "{shares}");
    shares
}
