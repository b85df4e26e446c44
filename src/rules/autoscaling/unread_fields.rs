//! RF237: what an old Ray's autoscaler does not read of a group.

use crate::finding::Finding;
use crate::path::FieldPath;
use crate::policy::Mode;
use crate::ray::cluster::RaySource;
use crate::ray::since;
use crate::ray::{Group, RayVersion, ReconcileMode, object_at};
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::{Cel, Findings, OwnMode, Rule, Subject};

/// RF237
pub static RULE: Rule = Rule {
    id: RuleId(237),
    name: "unread-fields",
    mode: OwnMode::Always(Mode::Warn),
    summary: "A group's `resources` or `labels`, or a CPU request without a limit, that this Ray does not read",
    page: RulePage(include_str!("unread_fields.md")),
    why: "The autoscaler of this Ray does not read it, so it counts other sizes or labels than the \
          workers have.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::NotCovered("It compares versions, most of them in names of images.");

const FAILS: &str = "Ray's autoscaler finds no CPU count without it and fails, and scales no group of \
                     the cluster.";

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    // Rayfit reads all of them.
    let by_ray = subject.reconcile_mode() == ReconcileMode::Ray;
    let Some(cluster) = subject.autoscaled().filter(|_| by_ray) else {
        return;
    };
    let Some(ray) = RaySource::latest(cluster).map(|source| source.version) else {
        return;
    };
    for group in cluster.groups() {
        let cpu = CpuSources::of(group);
        if ray < since::GROUP_RESOURCES_AND_LABELS {
            let path = || group.path();
            if group.resources().is_some() {
                let found = finding(ray, path().key("resources"), INSTEAD_OF_RESOURCES);
                let fails = cpu.is_in_resources && !cpu.is_elsewhere(ray);
                findings.add(if fails { found.because(FAILS) } else { found });
            }
            if object_at(group.spec, "labels").is_some_and(|labels| !labels.is_empty()) {
                findings.add(finding(ray, path().key("labels"), INSTEAD_OF_LABELS));
            }
        }
        if ray < since::SIZE_FROM_REQUESTS && cpu.is_request && !cpu.is_elsewhere(ray) {
            let resources = group.ray_container_path().key("resources");
            let found = finding(
                ray,
                resources.key("requests").key("cpu"),
                INSTEAD_OF_REQUEST,
            );
            findings.add(found.because(FAILS));
        }
    }
}

const INSTEAD_OF_RESOURCES: (RayVersion, &str) = (
    since::GROUP_RESOURCES_AND_LABELS,
    "write num-cpus, num-gpus, memory and resources in rayStartParams instead",
);
const INSTEAD_OF_LABELS: (RayVersion, &str) = (
    since::GROUP_RESOURCES_AND_LABELS,
    "remove it, and let work ask for a resource of rayStartParams.resources instead",
);
const INSTEAD_OF_REQUEST: (RayVersion, &str) = (
    since::SIZE_FROM_REQUESTS,
    "write a CPU limit, or num-cpus in rayStartParams",
);

fn finding(ray: RayVersion, path: FieldPath, (first, instead): (RayVersion, &str)) -> Finding {
    RULE.finding(
        path,
        format!("is read by Ray {first} and later, and this is Ray {ray}"),
        format!("Use Ray {first} or later; or {instead}."),
    )
    .valued(ray.to_string())
}

/// Where a group says how many CPUs a node has.
struct CpuSources {
    is_in_resources: bool,
    /// In `num-cpus` or a limit, which every Ray reads.
    is_plain: bool,
    is_request: bool,
}

impl CpuSources {
    fn of(group: &Group<'_>) -> Self {
        let ray = group.ray_container();
        Self {
            is_in_resources: group.resources().is_some_and(|map| map.contains_key("CPU")),
            is_plain: group.start_param("num-cpus").is_some()
                || ray.is_some_and(|ray| ray.limit("cpu").is_some()),
            is_request: ray.is_some_and(|ray| ray.request("cpu").is_some()),
        }
    }

    /// Whether that Ray finds the number outside of the group's `resources`.
    fn is_elsewhere(&self, ray: RayVersion) -> bool {
        self.is_plain || self.is_request && ray >= since::SIZE_FROM_REQUESTS
    }
}
