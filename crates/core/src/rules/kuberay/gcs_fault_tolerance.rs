//! RF701: settings of GCS fault tolerance that contradict each other.

use crate::ray::object::{EXTERNAL_STORAGE, FT_ENABLED};
use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(701),
    name: "gcs-fault-tolerance",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "GCS fault tolerance that is configured at two places, or at the wrong one",
    page: include_str!("gcs_fault_tolerance.md"),
    why: "KubeRay considers the spec invalid and creates nothing.",
    cel: Cel::NotCovered("KubeRay refuses such objects itself, if later."),
    check,
};

const TWICE: &str = "is set beside gcsFaultToleranceOptions";

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let Some(cluster) = subject.cluster() else {
        return;
    };
    // KubeRay passes on no annotation of a RayCronJob.
    let annotation = |name| {
        let text = subject.object.annotation(name)?;
        (subject.object.kind != Kind::RayCronJob && !text.is_empty()).then_some(text)
    };
    let options = cluster.spec.object("gcsFaultToleranceOptions");
    let of_redis = options.filter(|options| options.text("backend") != Some("rocksdb"));
    if of_redis.is_some_and(|options| options.object("storage").is_some()) {
        let path = subject.object.cluster_path();
        let path = path.key("gcsFaultToleranceOptions").key("storage");
        let finding = RULE.finding(path, "is for the backend rocksdb", "Remove it.");
        findings.push(finding.mended_by_removal());
    }
    let mut report = |path: FieldPath, problem: &str, field: &str| {
        let fix = format!("Remove it, and write gcsFaultToleranceOptions.{field} instead.");
        findings.push(RULE.finding(path, problem, fix));
    };
    let has_options = options.is_some();
    for (name, field) in [
        (FT_ENABLED, "redisAddress"),
        (EXTERNAL_STORAGE, "externalStorageNamespace"),
    ] {
        if has_options && annotation(name).is_some() {
            report(FieldPath::annotation(name), TWICE, field);
        }
    }
    let Some(head) = &cluster.head else {
        return;
    };
    let env = |name: &str| {
        let index = head.ray_container?.env_index(name)?;
        Some(head.ray_container_path().key("env").item(index, name))
    };
    let param = |name: &'static str| {
        let value = head.start_param(name)?.as_str()?;
        (!value.is_empty()).then(|| head.start_param_path(name))
    };
    let enabled = annotation(FT_ENABLED);
    let is_enabled = has_options || enabled.is_some_and(|text| text.eq_ignore_ascii_case("true"));
    if let Some(path) = env("RAY_REDIS_ADDRESS") {
        if has_options {
            report(path, TWICE, "redisAddress");
        } else if !is_enabled {
            report(path, "is set without GCS fault tolerance", "redisAddress");
        }
    }
    // Without the options KubeRay takes the password from these places, so they are wrong beside the options only.
    let password = [param("redis-password"), env("REDIS_PASSWORD")];
    for path in password.into_iter().flatten().filter(|_| has_options) {
        report(path, TWICE, "redisPassword");
    }
    let user = [param("redis-username"), env("REDIS_USERNAME")];
    for path in user.into_iter().flatten() {
        report(path, "is not the place of Redis's user", "redisUsername");
    }
}
