//! RF704: settings of a RayJob that exclude each other.

use crate::rules::prelude::*;
use crate::yaml;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(704),
    name: "job-settings",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "Settings of a RayJob that exclude each other, or numbers that are not positive",
    page: include_str!("job_settings.md"),
    why: "KubeRay considers the job invalid and does not run it.",
    cel: Cel::NotCovered("KubeRay refuses such objects itself, if later."),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let Some((job, path)) = subject.object.job() else {
        return;
    };
    let mut report = |keys: &[&'static str], problem: &str, fix: &str| {
        let place = keys.iter().fold(path.clone(), |path, key| path.key(*key));
        findings.push(RULE.finding(place, problem, fix));
    };
    check_cluster_and_mode(job, &mut report);
    if job.is_true("suspend") && !job.is_true("shutdownAfterJobFinishes") {
        report(
            &["suspend"],
            "needs shutdownAfterJobFinishes: true",
            "Write shutdownAfterJobFinishes: true, or remove suspend.",
        );
    }
    // KubeRay can read one document that is an object or nothing.
    let is_yaml_object = |text: &str| match yaml::read(text).first() {
        None => true,
        Some(Ok(document)) => document.value.is_object() || document.value.is_null(),
        Some(Err(_)) => false,
    };
    let environment = job.text("runtimeEnvYAML");
    if environment.is_some_and(|text| !is_yaml_object(text)) {
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
        let number = job.get(key).and_then(Json::as_i64);
        if number.is_some_and(|number| number < least) {
            report(
                &[key],
                &format!("is less than {least}"),
                &format!("Write {least} or more, or remove it."),
            );
        }
    }
}

/// Checks that the job has a cluster, and what excludes one that it only selects; then what the mode of
/// submission excludes.
fn check_cluster_and_mode(job: Fields<'_>, report: &mut dyn FnMut(&[&'static str], &str, &str)) {
    let is_set = |key: &str| job.get(key).is_some_and(|value| !value.is_null());
    let retries = job.get("backoffLimit").and_then(Json::as_i64);
    let retries = retries.is_some_and(|limit| limit > 0);
    let mode = job.text("submissionMode");
    let labels = job.below("clusterSelector");
    if !labels.is_empty() {
        if job.is_true("suspend") {
            let problem = "is not possible with clusterSelector";
            report(&["suspend"], problem, "Remove suspend.");
        }
        if labels.filled("ray.io/cluster").is_none() {
            let fix = "Write the name of a RayCluster as ray.io/cluster.";
            report(&["clusterSelector"], "names no cluster", fix);
        }
        if mode == Some("SidecarMode") {
            let problem = "SidecarMode is not possible with clusterSelector";
            report(&["submissionMode"], problem, "Write another mode.");
        }
        if retries {
            let problem = "must be 0 with clusterSelector";
            report(&["backoffLimit"], problem, "Remove backoffLimit.");
        }
    } else if !is_set("rayClusterSpec") {
        let problem = "is absent, and so is clusterSelector";
        report(&["rayClusterSpec"], problem, "Write one of the two.");
    }
    if mode == Some("InteractiveMode") && retries {
        let problem = "must be 0 in InteractiveMode";
        report(&["backoffLimit"], problem, "Remove backoffLimit.");
    }
    if mode != Some("SidecarMode") {
        return;
    }
    for key in ["submitterPodTemplate", "submitterConfig"] {
        if is_set(key) {
            let fix = "Remove it, or write another submissionMode.";
            report(&[key], "is not possible in SidecarMode", fix);
        }
    }
    // In this mode KubeRay runs the submitter as a container of the head pod.
    let head = ["rayClusterSpec", "headGroupSpec", "template", "spec"];
    let policy = job
        .object_in(&head)
        .and_then(|pod| pod.text("restartPolicy"));
    if policy.is_some_and(|policy| !matches!(policy, "" | "Never")) {
        let [cluster, group, template, spec] = head;
        report(
            &[cluster, group, template, spec, "restartPolicy"],
            "must be Never in SidecarMode",
            "Write restartPolicy: Never, or remove it.",
        );
    }
}
