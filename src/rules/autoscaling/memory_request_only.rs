//! RF216: a memory request without a limit.

use serde_json::Value;

use crate::policy::Mode;
use crate::ray::{Cluster, Container, Fields, Group, object_at};
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::{Cel, Check, Each, Findings, OwnMode, Rule, Subject};
use crate::text::shown;

/// RF216
pub static RULE: Rule = Rule {
    id: RuleId(216),
    name: "memory-request-only",
    mode: OwnMode::Always(Mode::Audit),
    summary: "A memory request without a limit: the autoscaler and Ray disagree on the size",
    page: RulePage(include_str!("memory_request_only.md")),
    why: "Ray's autoscaler plans with the request, while Ray in the pod assumes the memory of the \
          whole Kubernetes node, so more work is scheduled there than was planned.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::Covered(&[Check {
    each: Each::Group,
    mode: Mode::Audit,
    faults: r#"s.auto && 'memory' in g.requests && !('memory' in g.limits) && !('memory' in g.resources) && !('memory' in g.params) && !s.ippr.contains('"' + g.name + '"')
  ? ['.template.spec.containers[0].resources.limits is without memory, while ' + string(g.requests['memory']) + ' is requested'] : []"#,
    fix: "Write a memory limit equal to the request.",
}]);

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    for group in subject.autoscaled().into_iter().flat_map(Cluster::groups) {
        let listed = || {
            group
                .name
                .is_some_and(|name| subject.object.ippr.resize_limits(name).is_some())
        };
        if let Some((container, request)) = request_only(group)
            && !listed()
        {
            report(group, &container, request, findings);
        }
    }
}

/// The ray container and its memory request, if nothing else says how much memory there is.
fn request_only<'a>(group: &Group<'a>) -> Option<(Container<'a>, &'a Value)> {
    let given = |fields: Option<&Fields>| fields.is_some_and(|f| f.contains_key("memory"));
    if given(group.resources()) || given(group.start_params()) {
        return None;
    }
    let container = group.ray_container()?;
    let amount = |of: Option<&'a Fields>| of?.get("memory").filter(|value| !value.is_null());
    let request = amount(container.requests())?;
    amount(container.limits())
        .is_none()
        .then_some((container, request))
}

fn report(group: &Group<'_>, container: &Container<'_>, request: &Value, out: &mut Findings) {
    let resources = group.container_path(container).key("resources");
    let has_limits = object_at(container.spec, "resources")
        .is_some_and(|resources| object_at(resources, "limits").is_some());
    let limits = resources.key("limits");
    let path = if has_limits {
        limits.key("memory")
    } else {
        limits
    };
    let amount = request
        .as_str()
        .map_or_else(|| shown(request), str::to_owned);
    out.add(
        RULE.finding(
            path,
            format!("has no memory limit, while {amount} is requested"),
            format!("Write limits: {{memory: {amount}}}, equal to the request."),
        )
        .valued(format!("request {amount}, no limit")),
    );
}
