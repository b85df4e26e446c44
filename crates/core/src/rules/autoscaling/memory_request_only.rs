//! RF216: a memory request without a limit.

use crate::rules::prelude::*;
use crate::rules::shared::plain;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(216),
    name: "memory-request-only",
    mode: OwnMode::Always(Mode::Audit),
    summary: "A memory request without a limit: the autoscaler and Ray disagree on the size",
    page: include_str!("memory_request_only.md"),
    why: "Ray's autoscaler plans with the request, while Ray in the pod assumes the memory of the \
          whole Kubernetes node, so more work is scheduled there than was planned.",
    cel: Cel::Covered(&[Check {
        each: Each::Group,
        faults: r#"s.auto && 'memory' in g.requests && !('memory' in g.limits) && !('memory' in g.resources) && !('memory' in g.params) && !s.ippr.contains('"' + g.name + '"')
  ? ['.template.spec.containers[0].resources.limits is without memory, while ' + string(g.requests['memory']) + ' is requested'] : []"#,
        fix: "Write a memory limit equal to the request.",
    }]),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for group in subject.autoscaled_groups() {
        let is_given =
            |of: Option<Fields<'_>>| of.is_some_and(|fields| fields.contains_key("memory"));
        let Some(container) = group.ray_container else {
            continue;
        };
        // The limit is not needed if something else says how much memory there is.
        if is_given(group.resources)
            || is_given(group.start_params)
            || subject.resize_limits(group).is_some()
        {
            continue;
        }
        let amount = |of: Option<Fields<'_>>| {
            let amount = of?.get("memory").filter(|value| !value.is_null());
            amount.map(plain)
        };
        // Ray's autoscaler falls back from the limit to the request (`_get_memory`), while KubeRay passes `--memory`
        // from the limit only (`generateRayStartCommand`).
        let (Some(request), None) = (amount(container.requests), amount(container.limits)) else {
            continue;
        };
        let path = group.ray_container_path().key("resources").key("limits");
        let resources = container.spec.object("resources");
        let path = match resources.and_then(|resources| resources.object("limits")) {
            Some(_) => path.key("memory"),
            None => path,
        };
        let finding = RULE.finding(
            path,
            format!("has no memory limit, while {request} is requested"),
            format!("Write limits: {{memory: {request}}}, equal to the request."),
        );
        findings.push(finding.valued(format!("request {request}, no limit")));
    }
}
