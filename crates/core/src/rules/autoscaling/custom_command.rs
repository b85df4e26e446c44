//! RF223: another start command for Rayfit's container.

use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(223),
    name: "custom-command",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "`autoscalerOptions.command` or `args` where Rayfit is the autoscaler container",
    page: include_str!("custom_command.md"),
    why: "Rayfit's image contains only Rayfit, which KubeRay's own command starts. Any other \
          command fails, and the cluster does not scale.",
    cel: Cel::Covered(&[Check {
        each: Each::Object,
        faults: r#"!s.auto || !(s.mode in ['central', 'sidecar']) ? [] : ['command', 'args'].filter(k, k in s.options && s.options[k].size() > 0)
  .map(k, s.path + '.autoscalerOptions.' + k + ' replaces the command that starts Rayfit in mode ' + s.mode)"#,
        fix: "Remove it; or write rayfit.dev/reconcile: ray for Ray's own autoscaler.",
    }]),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let mode = subject.object.reconcile_mode();
    let Some(cluster) = subject.autoscaled().filter(|_| mode.is_ours()) else {
        return;
    };
    // KubeRay replaces its own command and its own args separately (KubeRay 1.7, `mergeAutoscalerOverrides`).
    for key in ["command", "args"] {
        let Some(value) = cluster.autoscaler_option(key) else {
            continue;
        };
        // KubeRay takes an empty list for none.
        if value.is_null() || value.as_array().is_some_and(Items::is_empty) {
            continue;
        }
        let finding = RULE.finding(
            cluster.option_path(key),
            format!("replaces the command that starts Rayfit in mode {mode}"),
            format!(
                "Remove {key}. To run Ray's own autoscaler with it, write rayfit.dev/reconcile: \
                 ray."
            ),
        );
        findings.push(finding.valued(shown(value)).mended_by_removal());
    }
}
