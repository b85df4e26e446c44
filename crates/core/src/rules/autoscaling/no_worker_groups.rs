//! RF226: autoscaling without a list of worker groups.

use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(226),
    name: "no-worker-groups",
    mode: OwnMode::ByCase("Enforce where Ray's own autoscaler runs, else Warn"),
    summary: "Autoscaling is on and `workerGroupSpecs` is absent",
    page: include_str!("no_worker_groups.md"),
    why: "Ray's autoscaler reads the key without checking that it is present: it fails at its \
          start, and in every round.",
    cel: Cel::WithWarnings(
        &Cel::Covered(&[Check {
            each: Each::Object,
            faults: r#"s.auto && !(s.mode in ['central', 'sidecar']) && (!has(s.cluster.workerGroupSpecs) || s.object.kind != 'RayCluster' && s.cluster.workerGroupSpecs.size() == 0)
  ? [s.path + '.workerGroupSpecs is absent, while autoscaling is on'] : []"#,
            fix: "Add a worker group, or set enableInTreeAutoscaling: false for a cluster without \
              workers.",
        }]),
        &[Check {
            each: Each::Object,
            faults: r#"s.auto && s.mode in ['central', 'sidecar'] && (!has(s.cluster.workerGroupSpecs) || s.object.kind != 'RayCluster' && s.cluster.workerGroupSpecs.size() == 0)
  ? [s.path + '.workerGroupSpecs is absent, while autoscaling is on'] : []"#,
            fix: "Add a worker group, or set enableInTreeAutoscaling: false for a cluster without \
              workers.",
        }],
    ),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let Some(cluster) = subject.autoscaled() else {
        return;
    };
    let is_cluster = cluster.kind == Kind::RayCluster;
    // The CRD marks the key as optional, and Ray's autoscaler ends with KeyError without it
    // (`_generate_available_node_types_from_ray_cr_spec`).
    let problem = match cluster.spec.get("workerGroupSpecs") {
        None => "is absent, while autoscaling is on",
        Some(Json::Null) => "is null, while autoscaling is on",
        Some(Json::Array(groups)) if groups.is_empty() && !is_cluster => {
            "is empty, which KubeRay turns into absent, while autoscaling is on"
        }
        Some(_) => return,
    };
    let fix = if is_cluster {
        "Add a worker group; or write workerGroupSpecs: [] for a cluster without workers; or set \
         enableInTreeAutoscaling: false."
    } else {
        "Add a worker group; or set enableInTreeAutoscaling: false for a cluster without workers."
    };
    let finding = RULE.finding(cluster.path().key("workerGroupSpecs"), problem, fix);
    let ours = subject.object.reconcile_mode().is_ours();
    findings.push(if ours {
        finding.in_mode(Mode::Warn).because(
            "There is nothing to scale, and Ray's own autoscaler would fail if the cluster went \
             back to it.",
        )
    } else {
        finding
    });
}
