//! RF107: the ray container of a listed group has no CPU or memory request.

use serde_json::Value;

use crate::finding::Finding;
use crate::path::FieldPath;
use crate::policy::Mode;
use crate::ray::{Container, Fields, Group, Resource};
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::{Cel, Check, Each, Findings, OwnMode, PLAIN, Rule, Subject};

/// RF107
pub static RULE: Rule = Rule {
    id: RuleId(107),
    name: "ippr-no-requests",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "no CPU or memory request in a group that grows in place",
    page: RulePage(include_str!("no_requests.md")),
    why: "Ray refuses the whole annotation because of it and stops autoscaling the cluster; limits \
          alone do not help.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::InPart(
    &[Check {
        each: Each::Listed,
        mode: Mode::Enforce,
        faults: r#"g.containers.size() == 0 ? [] : ['cpu', 'memory'].filter(r, !(r in g.requests)).map(r, '.template.spec.containers[0].resources.requests has no ' + r)"#,
        fix: "Write the requests that the pods start with; limits alone do not help.",
    }],
    PLAIN,
);

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    for (group, _) in subject.listed_groups() {
        let Some(container) = group.ray_container() else {
            continue;
        };
        let missing: Vec<Resource> = Resource::ALL
            .into_iter()
            .filter(|resource| !has_request(&container, *resource))
            .collect();
        if container.requests().is_some() {
            for resource in missing {
                let path = requests_path(group).key(resource.name());
                findings.add(finding(path, &container, &[resource]));
            }
        } else if !missing.is_empty() {
            findings.add(finding(
                parent_path(group, &container),
                &container,
                &missing,
            ));
        }
    }
}

fn has_request(container: &Container<'_>, resource: Resource) -> bool {
    let value = container
        .requests()
        .and_then(|requests| requests.get(resource.name()));
    // The API server drops a null, so that Ray finds no key.
    value.is_some_and(|value| !value.is_null())
}

fn requests_path(group: &Group<'_>) -> FieldPath {
    group.ray_container_path().key("resources").key("requests")
}

/// `requests`, or `resources` where that is absent too.
fn parent_path(group: &Group<'_>, container: &Container<'_>) -> FieldPath {
    match container.spec.get("resources").and_then(Value::as_object) {
        Some(_) => requests_path(group),
        None => group.ray_container_path().key("resources"),
    }
}

fn finding(path: FieldPath, container: &Container<'_>, missing: &[Resource]) -> Finding {
    let names: Vec<&str> = missing.iter().map(|resource| resource.title()).collect();
    let samples: Vec<String> = missing
        .iter()
        .map(|resource| format!("{}: {}", resource.name(), sample(container, *resource)))
        .collect();
    RULE.finding(
        path,
        format!("the ray container requests no {}", names.join(" and no ")),
        format!(
            "Add requests: {{{}}}, the size that pods start with.",
            samples.join(", ")
        ),
    )
}

/// The limit as written, or an example.
fn sample(container: &Container<'_>, resource: Resource) -> String {
    let limit = |limits: &Fields| limits.get(resource.name()).map(crate::text::shown);
    container.limits().and_then(limit).unwrap_or_else(|| {
        match resource {
            Resource::Cpu => "\"1\"",
            Resource::Memory => "\"4Gi\"",
        }
        .to_owned()
    })
}
