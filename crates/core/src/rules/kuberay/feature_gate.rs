//! RF708: fields that KubeRay accepts with a feature gate only.

use crate::ray::feature_gate::{
    EMBEDDED_STORAGE, FeatureGate, HISTORY_SERVER, JOB_DELETION, MUTUAL_TLS, NETWORK_POLICY,
};
use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(708),
    name: "feature-gate",
    mode: OwnMode::ByCase(
        "Enforce where `--kuberay-feature-gates` says that the gate is off, else Warn",
    ),
    summary: "A field that KubeRay refuses while its feature gate is off",
    page: include_str!("feature_gate.md"),
    why: "KubeRay considers the spec invalid and creates nothing.",
    cel: Cel::NotCovered("KubeRay refuses such objects itself, if later."),
    check,
};

const OF_CLUSTERS: [(&str, &FeatureGate); 3] = [
    ("networkPolicy", &NETWORK_POLICY),
    ("tlsOptions", &MUTUAL_TLS),
    ("historyServerOptions", &HISTORY_SERVER),
];

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let settings = subject.settings;
    let mut need = |path: FieldPath, gate: &FeatureGate| {
        // An older KubeRay has no such field, and the API server drops it.
        if settings.has_gate(gate) || settings.kuberay < gate.since {
            return;
        }
        let (name, state) = (gate.name, settings.stated_gate(gate));
        let off = state.map_or("off by default", |_| "off");
        let problem = format!("needs KubeRay's feature gate {name}, which is {off}");
        let fix = format!(
            "Remove it; or switch the gate on, and tell Rayfit: --kuberay-feature-gates={name}=true."
        );
        // Without the option it is only a guess that the operator runs with the defaults of its version.
        let mode = state.map_or(Mode::Warn, |_| Mode::Enforce);
        findings.push(RULE.finding(path, problem, fix).in_mode(mode));
    };
    if let Some((job, path)) = subject.object.job()
        && job.object("deletionStrategy").is_some()
    {
        need(path.key("deletionStrategy"), &JOB_DELETION);
    }
    let Some(cluster) = subject.cluster() else {
        return;
    };
    for group in &cluster.workers {
        if group.spec.is_true("suspend") {
            need(group.path().key("suspend"), &JOB_DELETION);
        }
    }
    let path = || subject.object.cluster_path();
    for (key, gate) in OF_CLUSTERS {
        if cluster.spec.object(key).is_some() {
            need(path().key(key), gate);
        }
    }
    let options = cluster.spec.object("gcsFaultToleranceOptions");
    if options.and_then(|options| options.text("backend")) == Some("rocksdb") {
        let path = path().key("gcsFaultToleranceOptions").key("backend");
        need(path, &EMBEDDED_STORAGE);
    }
}
