//! Every format on one report that has everything in it.

use serde_json::Value;

use super::*;
use crate::finding::Finding;
use crate::judge::Verdict;
use crate::objects::Identity;
use crate::path::FieldPath;
use crate::policy::Mode;
use crate::ray::Kind;
use crate::rule_id::RuleId;
use crate::yaml;

const SOURCE: &str = "\
kind: RayCluster
metadata:
  annotations:
    ray.io/ippr: \"{}\"
spec:
  workerGroupSpecs:
  - groupName: \"gpü\"
    replicas: -1
";

fn finding(mode: Mode, path: FieldPath) -> Finding {
    Finding {
        rule: RuleId(105),
        mode,
        path,
        value: Some("-1".to_owned()),
        problem: "-1 is 100% wrong".to_owned(),
        why: "Because of this: a reason that is so long that it has to be broken into several \
              lines to be read with ease by anyone."
            .to_owned(),
        fix: "Write 0, or more.".to_owned(),
        amount: None,
        mend: None,
        decided: None,
    }
}

fn report() -> FindingsReport {
    let document = yaml::read(SOURCE).remove(0).unwrap();
    let group = || FieldPath::of(&["spec", "workerGroupSpecs"]).item(0, "gpü");
    let verdict = Verdict {
        denied: vec![finding(Mode::Enforce, group().key("replicas"))],
        warned: vec![finding(Mode::Warn, group().key("template").key("spec"))],
        audited: vec![finding(
            Mode::Audit,
            FieldPath::annotation("ray.io/ippr").inside("groups"),
        )],
    };
    let object = Identity {
        kind: Kind::RayCluster,
        namespace: Some("ns".to_owned()),
        name: "demo".to_owned(),
    };
    let mut report = FindingsReport::default();
    report.add(("a b.yaml", SOURCE), (&document, ""), &object, &verdict);
    report.others = 2;
    let fault = yaml::read("a: b: c").remove(0).unwrap_err();
    for (file, reason) in [
        ("c,d.yaml", Unreadable::Content(fault)),
        (
            "none.yaml",
            Unreadable::File("there is no such file".to_owned()),
        ),
    ] {
        let file = file.to_owned();
        report.unread.push(UnreadInput { file, reason });
    }
    report
}

#[test]
fn text_shows_place_line_reason_and_remedy() {
    let plain = anstream::adapter::strip_str(&text::render(&report())).to_string();
    insta::assert_snapshot!(plain);
}

#[test]
fn long_lines_are_cut_around_the_place() {
    let mut report = report();
    let entry = &mut report.entries[0];
    entry.line = "x".repeat(1000);
    entry.span.start.column = 501;
    entry.span.end.column = 601;
    let plain = anstream::adapter::strip_str(&text::render(&report)).to_string();
    let shown: Vec<&str> = plain.lines().skip(2).take(2).collect();
    assert!(shown[0].chars().count() < 180, "{}", shown[0]);
    assert_eq!(shown[0].chars().nth(4), Some('…'));
    assert_eq!(shown[1].matches('^').count(), 100);
}

#[test]
fn manifests_cannot_steer_the_terminal() {
    let mut report = report();
    for entry in &mut report.entries {
        entry.file = "a\u{1b}[2J".to_owned();
        entry.line = "\u{1b}[2J\u{7}".to_owned();
        entry.finding.problem = "\u{1b}[2J".to_owned();
        entry.finding.path = FieldPath::of(&["spec"]).item(0, "\u{1b}[2J");
        entry.finding.fix = "\u{1b}[2J".to_owned();
    }
    assert!(!text::render(&report).contains("\u{1b}[2J"));
}

#[test]
fn github_gets_one_command_per_line() {
    insta::assert_snapshot!(github::render(&report()));
}

#[test]
fn json_has_everything() {
    insta::assert_snapshot!(json::render(&report()));
}

/// The rules are cut down to the one that is found, so that adding a rule changes nothing here.
#[test]
fn sarif_points_into_the_list_of_rules() {
    let mut log: Value = serde_json::from_str(&sarif::render(&report())).unwrap();
    let run = &mut log["runs"][0];
    let index = usize::try_from(run["results"][0]["ruleIndex"].as_u64().unwrap()).unwrap();
    let rule = run["tool"]["driver"]["rules"][index].clone();
    assert_eq!(rule["id"], "RF105");
    run["tool"]["driver"]["rules"] = Value::Array(vec![rule]);
    for result in run["results"].as_array_mut().unwrap() {
        result["ruleIndex"] = "(index)".into();
    }
    insta::assert_snapshot!(json::pretty(&log));
}
