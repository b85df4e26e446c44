//! RF211: an environment variable that is KubeRay's own.

use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(211),
    name: "start-command-env",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "`KUBERAY_GEN_AUTOSCALER_START_CMD` in `autoscalerOptions.env`",
    page: include_str!("start_command_env.md"),
    why: "KubeRay itself puts the autoscaler's start command into this variable; it stops \
          reconciling the whole cluster if it is already set.",
    cel: Cel::Covered(&[Check {
        each: Each::Object,
        faults: r#"s.options.?env.orValue([]).filter(e, e.name == 'KUBERAY_GEN_AUTOSCALER_START_CMD').map(e, s.path + '.autoscalerOptions.env has ' + e.name + ', which KubeRay sets itself')"#,
        fix: "Remove it.",
    }]),
    check,
};

const ENV: &str = "KUBERAY_GEN_AUTOSCALER_START_CMD";

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let Some(cluster) = subject.cluster() else {
        return;
    };
    let options = cluster.autoscaler_options();
    let env = options.unwrap_or_default().list("env");
    for (index, entry) in env.iter().enumerate() {
        let entry = entry.as_object();
        let Some(entry) = entry.filter(|entry| entry.text("name") == Some(ENV)) else {
            continue;
        };
        let finding = RULE
            .finding(
                cluster.option_path("env").item(index, ENV),
                "is a variable that KubeRay sets itself",
                "Remove it; to start the autoscaler in another way, write command and args in \
             autoscalerOptions.",
            )
            .mended_by_removal();
        findings.push(match entry.text("value") {
            Some(value) => finding.valued(shown_text(value)),
            None => finding,
        });
    }
}
