//! RF704: settings of a RayJob that exclude each other.

use crate::policy::Mode;
use crate::ray::{Fields, is_true, object_at, object_in, text_at};
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::{Cel, Findings, OwnMode, Rule, Subject};
use crate::yaml;

/// RF704
pub static RULE: Rule = Rule {
    id: RuleId(704),
    name: "job-settings",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "Settings of a RayJob that exclude each other, or numbers that are not positive",
    page: RulePage(include_str!("job_settings.md")),
    why: "KubeRay considers the job invalid and does not run it.",
    since: "0.1.0",
    cel: Cel::NotCovered("KubeRay refuses such objects itself, if later."),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let Some((job, path)) = subject.object.job() else {
        return;
    };
    let mut report = |keys: &[&'static str], problem: &str, fix: &str| {
        let place = keys.iter().fold(path.clone(), |path, key| path.key(*key));
        findings.add(RULE.finding(place, problem, fix));
    };
    check_cluster(job, &mut report);
    check_mode(job, &mut report);
    if is_true(job, "suspend") && !is_true(job, "shutdownAfterJobFinishes") {
        report(
            &["suspend"],
            "needs shutdownAfterJobFinishes: true",
            "Write shutdownAfterJobFinishes: true, or remove suspend.",
        );
    }
    if text_at(job, "runtimeEnvYAML").is_some_and(|text| !is_yaml_object(text)) {
        report(
            &["runtimeEnvYAML"],
            "is not an object in YAML",
            "Write keys and values, such as pip: [torch].",
        );
    }
    for (key, least) in [
        ("activeDeadlineSeconds", 1),
        ("preRunningDeadlineSeconds", 1),
        ("backoffLimit", 0),
    ] {
        if number(job, key).is_some_and(|number| number < least) {
            report(
                &[key],
                &format!("is less than {least}"),
                &format!("Write {least} or more, or remove it."),
            );
        }
    }
}

/// Adds a finding at the place that keys of the job lead to, with its problem and its fix.
type JobReport<'a> = dyn FnMut(&[&'static str], &str, &str) + 'a;

/// Which cluster the job has, and what excludes one that it only selects.
fn check_cluster(job: &Fields, report: &mut JobReport<'_>) {
    let Some(labels) = object_at(job, "clusterSelector").filter(|labels| !labels.is_empty()) else {
        if !is_set(job, "rayClusterSpec") {
            let problem = "is absent, and so is clusterSelector";
            report(&["rayClusterSpec"], problem, "Write one of the two.");
        }
        return;
    };
    if is_true(job, "suspend") {
        let problem = "is not possible with clusterSelector";
        report(&["suspend"], problem, "Remove suspend.");
    }
    if text_at(labels, "ray.io/cluster").is_none_or(str::is_empty) {
        let fix = "Write the name of a RayCluster as ray.io/cluster.";
        report(&["clusterSelector"], "names no cluster", fix);
    }
    if text_at(job, "submissionMode") == Some("SidecarMode") {
        let problem = "SidecarMode is not possible with clusterSelector";
        report(&["submissionMode"], problem, "Write another mode.");
    }
    if retries(job) {
        let problem = "must be 0 with clusterSelector";
        report(&["backoffLimit"], problem, "Remove backoffLimit.");
    }
}

/// What the mode of submission excludes.
fn check_mode(job: &Fields, report: &mut JobReport<'_>) {
    match text_at(job, "submissionMode") {
        Some("InteractiveMode") if retries(job) => {
            let problem = "must be 0 in InteractiveMode";
            report(&["backoffLimit"], problem, "Remove backoffLimit.");
        }
        Some("SidecarMode") => {
            for key in ["submitterPodTemplate", "submitterConfig"] {
                if is_set(job, key) {
                    let fix = "Remove it, or write another submissionMode.";
                    report(&[key], "is not possible in SidecarMode", fix);
                }
            }
            let head = ["rayClusterSpec", "headGroupSpec", "template", "spec"];
            let policy = object_in(job, &head).and_then(|pod| text_at(pod, "restartPolicy"));
            if policy.is_some_and(|policy| !matches!(policy, "" | "Never")) {
                let [cluster, group, template, spec] = head;
                report(
                    &[cluster, group, template, spec, "restartPolicy"],
                    "must be Never in SidecarMode",
                    "Write restartPolicy: Never, or remove it.",
                );
            }
        }
        _ => {}
    }
}

fn is_set(job: &Fields, key: &str) -> bool {
    job.get(key).is_some_and(|value| !value.is_null())
}

fn number(job: &Fields, key: &str) -> Option<i64> {
    job.get(key)?.as_i64()
}

fn retries(job: &Fields) -> bool {
    number(job, "backoffLimit").is_some_and(|limit| limit > 0)
}

/// Whether KubeRay can read the text: one document, an object or nothing.
fn is_yaml_object(text: &str) -> bool {
    match yaml::read(text).first() {
        None => true,
        Some(Ok(document)) => document.value.is_object() || document.value.is_null(),
        Some(Err(_)) => false,
    }
}
