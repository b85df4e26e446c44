//! RF226: autoscaling without a list of worker groups.

use serde_json::Value;

use crate::policy::Mode;
use crate::ray::{Cluster, Kind};
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::{Cel, Check, Each, Findings, OwnMode, Rule, Subject};

/// RF226
pub static RULE: Rule = Rule {
    id: RuleId(226),
    name: "no-worker-groups",
    mode: OwnMode::ByCase("Enforce where Ray's own autoscaler runs, else Warn"),
    summary: "Autoscaling is on and `workerGroupSpecs` is absent",
    page: RulePage(include_str!("no_worker_groups.md")),
    why: "Ray's autoscaler reads the key without checking that it is present: it fails at its \
          start, and in every round.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::Covered(&[
    Check {
        each: Each::Object,
        mode: Mode::Enforce,
        faults: r#"s.auto && !(s.mode in ['central', 'sidecar']) && (!has(s.cluster.workerGroupSpecs) || s.object.kind != 'RayCluster' && s.cluster.workerGroupSpecs.size() == 0)
  ? [s.path + '.workerGroupSpecs is absent, while autoscaling is on'] : []"#,
        fix: "Add a worker group, or set enableInTreeAutoscaling: false for a cluster without \
              workers.",
    },
    Check {
        each: Each::Object,
        mode: Mode::Warn,
        faults: r#"s.auto && s.mode in ['central', 'sidecar'] && (!has(s.cluster.workerGroupSpecs) || s.object.kind != 'RayCluster' && s.cluster.workerGroupSpecs.size() == 0)
  ? [s.path + '.workerGroupSpecs is absent, while autoscaling is on'] : []"#,
        fix: "Add a worker group, or set enableInTreeAutoscaling: false for a cluster without \
              workers.",
    },
]);

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let Some(cluster) = subject.autoscaled() else {
        return;
    };
    let Some(problem) = problem(cluster) else {
        return;
    };
    let finding = RULE.finding(
        cluster.path().key("workerGroupSpecs"),
        problem,
        fix(cluster),
    );
    let ours = subject.reconcile_mode().is_ours();
    findings.add(if ours {
        finding.in_mode(Mode::Warn).because(
            "There is nothing to scale, and Ray's own autoscaler would fail if the \
                      cluster went back to it.",
        )
    } else {
        finding
    });
}

fn problem(cluster: &Cluster<'_>) -> Option<&'static str> {
    match cluster.spec.get("workerGroupSpecs") {
        None => Some("is absent, while autoscaling is on"),
        Some(Value::Null) => Some("is null, while autoscaling is on"),
        Some(Value::Array(groups)) if groups.is_empty() && cluster.kind != Kind::RayCluster => {
            Some("is empty, which KubeRay turns into absent, while autoscaling is on")
        }
        Some(_) => None,
    }
}

fn fix(cluster: &Cluster<'_>) -> &'static str {
    match cluster.kind {
        Kind::RayCluster => {
            "Add a worker group; or write workerGroupSpecs: [] for a cluster without workers; or \
             set enableInTreeAutoscaling: false."
        }
        _ => {
            "Add a worker group; or set enableInTreeAutoscaling: false for a cluster without \
              workers."
        }
    }
}
