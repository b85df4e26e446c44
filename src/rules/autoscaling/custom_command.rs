//! RF223: another start command for Rayfit's container.

use serde_json::Value;

use crate::policy::Mode;
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::{Cel, Check, Each, Findings, OwnMode, Rule, Subject};
use crate::text::shown;

/// RF223
pub static RULE: Rule = Rule {
    id: RuleId(223),
    name: "custom-command",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "`autoscalerOptions.command` or `args` where Rayfit is the autoscaler container",
    page: RulePage(include_str!("custom_command.md")),
    why: "Rayfit's image contains only Rayfit, which KubeRay's own command starts. Any other \
          command fails, and the cluster does not scale.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::Covered(&[Check {
    each: Each::Object,
    mode: Mode::Enforce,
    faults: r#"!s.auto || !(s.mode in ['central', 'sidecar']) ? [] : ['command', 'args'].filter(k, k in s.options && s.options[k].size() > 0)
  .map(k, s.path + '.autoscalerOptions.' + k + ' replaces the command that starts Rayfit in mode ' + s.mode)"#,
    fix: "Remove it; or write rayfit.dev/reconcile: ray for Ray's own autoscaler.",
}]);

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let Some(cluster) = subject.autoscaled() else {
        return;
    };
    let mode = subject.reconcile_mode();
    if !mode.is_ours() {
        return;
    }
    for key in ["command", "args"] {
        let Some(value) = cluster.autoscaler_option(key).filter(|value| is_set(value)) else {
            continue;
        };
        findings.add(
            RULE.finding(
                cluster.option_path(key),
                format!("replaces the command that starts Rayfit in mode {mode}"),
                format!(
                    "Remove {key}. To run Ray's own autoscaler with it, write \
                     rayfit.dev/reconcile: ray."
                ),
            )
            .valued(shown(value)),
        );
    }
}

/// Whether a command is set.
fn is_set(value: &Value) -> bool {
    match value {
        Value::Null => false,
        // KubeRay takes an empty list for none.
        Value::Array(items) => !items.is_empty(),
        _ => true,
    }
}
