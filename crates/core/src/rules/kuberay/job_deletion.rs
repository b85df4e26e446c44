//! RF705: when a RayJob is deleted, said in ways that contradict each other.

use std::collections::BTreeMap;

use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(705),
    name: "job-deletion",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "`ttlSecondsAfterFinished` or `deletionStrategy` of a RayJob that contradict each other or other settings",
    page: include_str!("job_deletion.md"),
    why: "KubeRay considers the job invalid and does not run it.",
    cel: Cel::NotCovered("KubeRay refuses such objects itself, if later."),
    check,
};

/// The policies in the order in which they may take effect.
const ORDER: [&str; 3] = ["DeleteWorkers", "DeleteCluster", "DeleteSelf"];

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let Some((job, path)) = subject.object.job() else {
        return;
    };
    let mut report = |path: FieldPath, problem: &str, fix: &str| {
        findings.push(RULE.finding(path, problem, fix));
    };
    // KubeRay sets a RayJob to failed for each of these (`validateDeletionConfiguration`), and makes none of a
    // RayCronJob.
    let shuts_down = job.is_true("shutdownAfterJobFinishes");
    let ttl = job.get("ttlSecondsAfterFinished").and_then(Json::as_i64);
    let ttl_path = path.clone().key("ttlSecondsAfterFinished");
    match ttl.unwrap_or_default() {
        ..=-1 => report(ttl_path, "is negative", "Write 0 or more."),
        1.. if !shuts_down => report(
            ttl_path,
            "needs shutdownAfterJobFinishes: true",
            "Write shutdownAfterJobFinishes: true, or remove it.",
        ),
        _ => {}
    }
    let Some(strategy) = job.object("deletionStrategy") else {
        return;
    };
    let path = path.key("deletionStrategy");
    let older: Vec<(&str, Fields<'_>)> = ["onSuccess", "onFailure"]
        .into_iter()
        .filter_map(|key| Some((key, strategy.object(key)?)))
        .collect();
    let rules = strategy.list("deletionRules");
    let rules_path = path.clone().key("deletionRules");
    let fault = match (older.len(), rules.is_empty()) {
        (0, true) => Some((&path, "is empty", "Write deletionRules, or remove it.")),
        (1.., false) => Some((
            &rules_path,
            "exclude onSuccess and onFailure",
            "Write deletionRules only.",
        )),
        (1, true) => Some((
            &path,
            "has only one of onSuccess and onFailure",
            "Write both, or deletionRules.",
        )),
        _ => None,
    };
    let excluded = (
        &rules_path,
        "exclude shutdownAfterJobFinishes",
        "Remove one of the two.",
    );
    let excluded = (shuts_down && !rules.is_empty()).then_some(excluded);
    for (place, problem, fix) in fault.into_iter().chain(excluded) {
        report(place.clone(), problem, fix);
    }
    let older = older
        .into_iter()
        .map(|(key, step)| (path.clone().key(key), step.text("policy")));
    let policies = older.chain(rules.iter().enumerate().map(|(index, rule)| {
        let policy = rule.get("policy").and_then(Json::as_str);
        (rules_path.clone().index(index), policy)
    }));
    let selects = !job.below("clusterSelector").is_empty();
    for (place, policy) in policies {
        findings.extend(check_policy(
            place.key("policy"),
            policy,
            selects,
            shuts_down,
        ));
    }
    check_conditions(rules, &rules_path, findings);
}

/// Checks one policy of a job that `selects` its cluster or not, and `shuts_down` when it ends or not.
fn check_policy(
    place: FieldPath,
    policy: Option<&str>,
    selects: bool,
    shuts_down: bool,
) -> Option<Finding> {
    let (problem, fix) = match policy {
        None => (
            "is absent".to_owned(),
            "Write DeleteCluster, DeleteWorkers, DeleteSelf or DeleteNone.",
        ),
        // KubeRay did not make a cluster that the job selects, so it does not delete it either.
        Some(name @ ("DeleteCluster" | "DeleteWorkers")) if selects => (
            format!("{name} is not possible with clusterSelector"),
            "Write DeleteSelf or DeleteNone.",
        ),
        Some("DeleteNone") if shuts_down => (
            "DeleteNone contradicts shutdownAfterJobFinishes".to_owned(),
            "Remove one of the two.",
        ),
        Some(_) => return None,
    };
    Some(RULE.finding(place, problem, fix))
}

/// Checks each rule by itself, and those of one condition together.
fn check_conditions(rules: Items<'_>, path: &FieldPath, findings: &mut Vec<Finding>) {
    let mut by_condition: BTreeMap<(&str, &str), BTreeMap<usize, i64>> = BTreeMap::new();
    for (index, rule) in rules.iter().enumerate() {
        let place = path.clone().index(index).key("condition");
        let mut report = |problem: &str, fix: &str| {
            findings.push(RULE.finding(place.clone(), problem, fix));
        };
        let Some(condition) = rule.get("condition").and_then(Json::as_object) else {
            report("is absent", "Write jobStatus or jobDeploymentStatus.");
            continue;
        };
        let job = condition.text("jobStatus").map(|status| ("job", status));
        let deployment = condition.text("jobDeploymentStatus");
        let Some(status) = job.xor(deployment.map(|status| ("deployment", status))) else {
            report(
                "names not exactly one status",
                "Write jobStatus or jobDeploymentStatus.",
            );
            continue;
        };
        let ttl = condition.get("ttlSeconds").and_then(Json::as_i64);
        let ttl = ttl.unwrap_or_default();
        if ttl < 0 {
            report("has negative ttlSeconds", "Write ttlSeconds: 0 or more.");
            continue;
        }
        let policy = rule.get("policy").and_then(Json::as_str);
        let Some(rank) = ORDER.iter().position(|name| Some(*name) == policy) else {
            continue;
        };
        let times = by_condition.entry(status).or_default();
        if times.contains_key(&rank) {
            report(
                "is that of an earlier rule of the same policy",
                "Remove one of the two rules.",
            );
            continue;
        }
        let is_early = times.range(..rank).any(|(_, earlier)| *earlier > ttl);
        let is_late = times.range(rank..).any(|(_, later)| *later < ttl);
        if is_early || is_late {
            report(
                "would delete workers after the cluster, or the cluster after the job",
                "Write ttlSeconds that grow from DeleteWorkers to DeleteCluster to DeleteSelf.",
            );
        }
        times.insert(rank, ttl);
    }
}
