//! RF701: settings of GCS fault tolerance that contradict each other.

use crate::path::FieldPath;
use crate::policy::Mode;
use crate::ray::object::{EXTERNAL_STORAGE, FT_ENABLED};
use crate::ray::{Group, Kind, object_at, text_at};
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::{Cel, Findings, OwnMode, Rule, Subject};

/// RF701
pub static RULE: Rule = Rule {
    id: RuleId(701),
    name: "gcs-fault-tolerance",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "GCS fault tolerance that is configured at two places, or at the wrong one",
    page: RulePage(include_str!("gcs_fault_tolerance.md")),
    why: "KubeRay considers the spec invalid and creates nothing.",
    since: "0.1.0",
    cel: Cel::NotCovered("KubeRay refuses such objects itself, if later."),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let Some(cluster) = subject.cluster() else {
        return;
    };
    // KubeRay passes on no annotation of a RayCronJob.
    let annotation = |name| {
        let text = subject.object.annotation(name)?;
        (subject.kind() != Kind::RayCronJob && !text.is_empty()).then_some(text)
    };
    let options = object_at(cluster.spec, "gcsFaultToleranceOptions");
    let of_redis = options.filter(|options| text_at(options, "backend") != Some("rocksdb"));
    if of_redis.is_some_and(|options| object_at(options, "storage").is_some()) {
        let path = subject.object.cluster_path();
        let path = path.key("gcsFaultToleranceOptions").key("storage");
        findings.add(RULE.finding(path, "is for the backend rocksdb", "Remove it."));
    }
    let mut report = |path: FieldPath, problem: &str, field: &str| {
        let fix = format!("Remove it, and write gcsFaultToleranceOptions.{field} instead.");
        findings.add(RULE.finding(path, problem, fix));
    };
    let has_options = options.is_some();
    let enabled = annotation(FT_ENABLED);
    if has_options {
        for (name, field) in [
            (FT_ENABLED, "redisAddress"),
            (EXTERNAL_STORAGE, "externalStorageNamespace"),
        ] {
            if annotation(name).is_some() {
                report(FieldPath::annotation(name), TWICE, field);
            }
        }
    }
    let Some(head) = &cluster.head else {
        return;
    };
    let is_enabled = has_options || enabled.is_some_and(|text| text.eq_ignore_ascii_case("true"));
    if let Some(path) = env_path(head, "RAY_REDIS_ADDRESS") {
        if has_options {
            report(path, TWICE, "redisAddress");
        } else if !is_enabled {
            report(path, "is set without GCS fault tolerance", "redisAddress");
        }
    }
    let password = [
        param_path(head, "redis-password"),
        env_path(head, "REDIS_PASSWORD"),
    ];
    for path in password.into_iter().flatten().filter(|_| has_options) {
        report(path, TWICE, "redisPassword");
    }
    let user = [
        param_path(head, "redis-username"),
        env_path(head, "REDIS_USERNAME"),
    ];
    for path in user.into_iter().flatten() {
        report(path, "is not the place of Redis's user", "redisUsername");
    }
}

const TWICE: &str = "is set beside gcsFaultToleranceOptions";

/// The path of an environment variable of the ray container that is there.
fn env_path(group: &Group<'_>, name: &str) -> Option<FieldPath> {
    let index = group.ray_container()?.env_index(name)?;
    Some(group.ray_container_path().key("env").item(index, name))
}

/// The path of a start parameter that is not empty.
fn param_path(group: &Group<'_>, name: &'static str) -> Option<FieldPath> {
    let value = group.start_param(name)?.as_str()?;
    (!value.is_empty()).then(|| group.start_param_path(name))
}
