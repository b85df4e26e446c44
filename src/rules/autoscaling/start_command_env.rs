//! RF211: an environment variable that is KubeRay's own.

use crate::policy::Mode;
use crate::ray::{list_at, text_at};
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::{Cel, Check, Each, Findings, OwnMode, Rule, Subject};
use crate::text::shown_text;

/// RF211
pub static RULE: Rule = Rule {
    id: RuleId(211),
    name: "start-command-env",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "`KUBERAY_GEN_AUTOSCALER_START_CMD` in `autoscalerOptions.env`",
    page: RulePage(include_str!("start_command_env.md")),
    why: "KubeRay itself puts the autoscaler's start command into this variable; it stops \
          reconciling the whole cluster if it is already set.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::Covered(&[Check {
    each: Each::Object,
    mode: Mode::Enforce,
    faults: r#"s.options.?env.orValue([]).filter(e, e.name == 'KUBERAY_GEN_AUTOSCALER_START_CMD').map(e, s.path + '.autoscalerOptions.env has ' + e.name + ', which KubeRay sets itself')"#,
    fix: "Remove it.",
}]);

const ENV: &str = "KUBERAY_GEN_AUTOSCALER_START_CMD";

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let Some((cluster, options)) = subject
        .cluster()
        .and_then(|cluster| Some((cluster, cluster.autoscaler_options()?)))
    else {
        return;
    };
    for (index, entry) in list_at(options, "env").iter().enumerate() {
        let Some(entry) = entry.as_object() else {
            continue;
        };
        if text_at(entry, "name") != Some(ENV) {
            continue;
        }
        let finding = RULE.finding(
            cluster.option_path("env").item(index, ENV),
            "is a variable that KubeRay sets itself",
            "Remove it; to start the autoscaler in another way, write command and args in \
             autoscalerOptions.",
        );
        findings.add(match text_at(entry, "value") {
            Some(value) => finding.valued(shown_text(value)),
            None => finding,
        });
    }
}
