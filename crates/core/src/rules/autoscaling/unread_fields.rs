//! RF237: what an old Ray's autoscaler does not read of a group.

use crate::ray::cluster::RaySource;
use crate::ray::since::{GROUP_RESOURCES_AND_LABELS, SIZE_FROM_REQUESTS};
use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(237),
    name: "unread-fields",
    mode: OwnMode::Always(Mode::Warn),
    summary: "A group's `resources` or `labels`, or a CPU request without a limit, that this Ray does not read",
    page: include_str!("unread_fields.md"),
    why: "The autoscaler of this Ray does not read it, so it counts other sizes or labels than the \
          workers have.",
    cel: Cel::NotCovered("It compares versions, most of them in names of images."),
    check,
};

const FAILS: &str = "Ray's autoscaler finds no CPU count without it and fails, and scales no group of \
                     the cluster.";

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    // Rayfit reads all of them.
    let by_ray = subject.object.reconcile_mode() == ReconcileMode::Ray;
    let Some(cluster) = subject.autoscaled().filter(|_| by_ray) else {
        return;
    };
    let Some(ray) = RaySource::latest(cluster).map(|source| source.version) else {
        return;
    };
    let mut report = |path: FieldPath, first: RayVersion, instead: &str, fails: bool| {
        let finding = RULE.finding(
            path,
            format!("is read by Ray {first} and later, and this is Ray {ray}"),
            format!("Use Ray {first} or later; or {instead}."),
        );
        let why = if fails { FAILS } else { RULE.why };
        findings.push(finding.because(why).valued(ray.to_string()));
    };
    for group in cluster.groups() {
        let container = group.ray_container;
        let is_request = container.is_some_and(|ray| ray.request("cpu").is_some());
        // Every Ray reads the number of CPUs from `num-cpus` or a limit.
        let is_plain = group.start_param("num-cpus").is_some()
            || container.is_some_and(|ray| ray.limit("cpu").is_some());
        let is_elsewhere = is_plain || is_request && ray >= SIZE_FROM_REQUESTS;
        // KubeRay starts Ray with them whatever its version is, so the workers have them, and only the autoscaler
        // does not know (ray#57260, kuberay#2612).
        if ray < GROUP_RESOURCES_AND_LABELS {
            if let Some(resources) = group.resources {
                report(
                    group.path().key("resources"),
                    GROUP_RESOURCES_AND_LABELS,
                    "write num-cpus, num-gpus, memory and resources in rayStartParams instead",
                    resources.contains_key("CPU") && !is_elsewhere,
                );
            }
            if !group.spec.below("labels").is_empty() {
                report(
                    group.path().key("labels"),
                    GROUP_RESOURCES_AND_LABELS,
                    "remove it, and let work ask for a resource of rayStartParams.resources instead",
                    false,
                );
            }
        }
        if ray < SIZE_FROM_REQUESTS && is_request && !is_elsewhere {
            let resources = group.ray_container_path().key("resources");
            report(
                resources.key("requests").key("cpu"),
                SIZE_FROM_REQUESTS,
                "write a CPU limit, or num-cpus in rayStartParams",
                true,
            );
        }
    }
}
