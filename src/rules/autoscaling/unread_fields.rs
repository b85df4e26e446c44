//! RF237: what an old Ray's autoscaler does not read of a group.

use crate::finding::Finding;
use crate::path::FieldPath;
use crate::policy::Mode;
use crate::ray::cluster::RaySource;
use crate::ray::since;
use crate::ray::{Group, RayVersion, ReconcileMode, object_at};
use crate::rule_id::RuleId;
use crate::rules::{Cel, Findings, OwnMode, Rule, Subject};

/// RF237
pub static RULE: Rule = Rule {
    id: RuleId(237),
    name: "unread-fields",
    mode: OwnMode::Always(Mode::Warn),
    summary: "A group's `resources` or `labels`, or a CPU request without a limit, that this Ray does not read",
    what: "Where Ray's own autoscaler scales the cluster, checks every group, the head included, and \
           reports `resources` and `labels` of the group with a Ray before 2.51.0, and a CPU request \
           without a limit or `num-cpus` with one before 2.41.0. The version is that of `rayVersion`, \
           or of an official image of the head or of the autoscaler, whichever is latest.",
    why: "The autoscaler of this Ray does not read it, so it counts other sizes or labels than the \
          workers have.",
    bad: r#"
spec:
  rayVersion: 2.49.2
  enableInTreeAutoscaling: true
  workerGroupSpecs:
  - groupName: small
    resources: {CPU: "4", spot: "1"}
    template:
      spec:
        containers:
        - name: ray-worker
          resources: {limits: {memory: 16Gi}}
"#,
    good: r#"
spec:
  rayVersion: 2.49.2
  enableInTreeAutoscaling: true
  workerGroupSpecs:
  - groupName: small
    rayStartParams: {resources: "'{\"spot\": 1}'"}
    template:
      spec:
        containers:
        - name: ray-worker
          resources: {limits: {cpu: 4, memory: 16Gi}}
"#,
    without: "KubeRay starts Ray with them whatever its version is, but the autoscaler that comes with \
              Ray reads `resources` and `labels` from 2.51.0 on (ray#57260), and requests from 2.41.0 on \
              (kuberay#2612). Where it finds no CPU count it raises ValueError in every round, and \
              nothing scales (Ray, `autoscaling_config.py`, `_get_num_cpus`).",
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
