//! RF234: amounts with which no pod can be made, or nothing can run in it.

use serde_json::Value;

use crate::finding::Finding;
use crate::path::FieldPath;
use crate::policy::Mode;
use crate::quantity::{Quantity, QuantityError};
use crate::ray::{Container, Fields, Group, Resource, list_at, object_at};
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::ippr::invalid_limit::meant;
use crate::rules::{Cel, Findings, OwnMode, Rule, Subject};

/// RF234
pub static RULE: Rule = Rule {
    id: RuleId(234),
    name: "container-resources",
    mode: OwnMode::ByCase(
        "Enforce for what the API server refuses, Warn for amounts that are too small",
    ),
    summary: "Container resources with which no pod can be made, or Ray cannot run",
    page: RulePage(include_str!("container_resources.md")),
    why: "The API server refuses every pod of the group, and KubeRay tries again without end.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::NotCovered(
    "Several maps of every container of every group exceed what the API server lets an expression \
     cost.",
);

/// What no container of any kind runs in.
const LEAST: Quantity = Quantity::from_units(1 << 20);

/// What a head needs more than.
const HEAD: Quantity = Quantity::from_units(1 << 30);

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let autoscaled = subject.autoscaled().is_some();
    for group in subject.groups() {
        for container in group.containers() {
            check_container(&container, &group.container_path(&container), findings);
        }
        let init = group
            .pod_spec()
            .map_or(&[][..], |pod| list_at(pod, "initContainers"));
        for (index, spec) in init.iter().enumerate() {
            if let Some(spec) = spec.as_object() {
                let path = group.init_container_path(index, spec);
                check_container(&Container::new(index, spec), &path, findings);
            }
        }
        if let Some(ray) = group.ray_container() {
            let path = group.ray_container_path().key("resources");
            if group.is_head() {
                check_head(&ray, path, findings);
            } else if autoscaled {
                check_cpu(group, &ray, path, findings);
            }
        }
    }
}

fn check_container(container: &Container<'_>, path: &FieldPath, findings: &mut Findings) {
    let path = path.clone().key("resources");
    let lists = [
        ("limits", container.limits()),
        ("requests", container.requests()),
    ];
    for (list, amounts) in lists {
        for (resource, value) in amounts.into_iter().flatten() {
            let path = || path.clone().key(list).key(resource.clone());
            if let Some(finding) = check_amount(resource, value, path) {
                findings.add(finding);
            }
        }
    }
    if let Some(resources) = object_at(container.spec, "resources") {
        report_above_limits(&RULE, resources, &path, findings);
    }
}

/// Reports, for a rule, the requests at `path` that are above the limit of the same resource.
pub(super) fn report_above_limits(
    rule: &'static Rule,
    resources: &Fields,
    path: &FieldPath,
    findings: &mut Findings,
) {
    let limits = object_at(resources, "limits");
    let requests = object_at(resources, "requests").into_iter().flatten();
    for (resource, request) in requests {
        let Some(limit) = limits.and_then(|limits| limits.get(resource)) else {
            continue;
        };
        let amounts = (Quantity::from_json(request), Quantity::from_json(limit));
        if !matches!(amounts, (Ok(request), Ok(limit)) if request > limit) {
            continue;
        }
        let (request, limit) = (plain(request), plain(limit));
        let path = path.clone().key("requests").key(resource.clone());
        let problem = format!("{request} is above the limit, {limit}");
        let fix = format!("Write {resource}: {limit} here, or raise the limit to {request}.");
        let finding = rule.finding(path, problem, fix);
        findings.add(finding.valued(format!("request {request} > limit {limit}")));
    }
}

/// A quantity as a manifest writes it, without quotes.
pub(super) fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

fn check_amount(resource: &str, value: &Value, path: impl Fn() -> FieldPath) -> Option<Finding> {
    let found = match Quantity::from_json(value) {
        Err(QuantityError::Syntax) if value.is_string() => {
            let kind = Resource::ALL
                .into_iter()
                .find(|kind| kind.name() == resource);
            let meant = kind.and_then(|kind| meant(value.as_str()?, kind));
            let meant = meant.unwrap_or_else(|| "16Gi, 500m or 2".to_owned());
            RULE.finding(
                path(),
                format!("{} is not a quantity", plain(value)),
                format!("Write it like {meant}."),
            )
            .because("The API server refuses it, and Ray's autoscaler fails on it.")
        }
        Ok(amount) if resource == "memory" && amount < LEAST && amount > Quantity::ZERO => RULE
            .finding(
                path(),
                format!("{} is only {} bytes", plain(value), amount.ceil_units()),
                "Write it with a unit, like 4Gi or 512Mi.",
            )
            .because("No container can start with that.")
            .in_mode(Mode::Warn),
        _ => return None,
    };
    Some(found.valued(plain(value)))
}

fn check_head(ray: &Container<'_>, path: FieldPath, findings: &mut Findings) {
    let Some(limit) = ray
        .limit("memory")
        .filter(|limit| *limit <= HEAD && *limit >= LEAST)
    else {
        return;
    };
    let shown = limit.display_memory();
    findings.add(
        RULE.finding(
            path.key("limits").key("memory"),
            format!("{shown} is too little for a head"),
            "Write memory: 4Gi in limits and requests; 2Gi is the least that lasts.",
        )
        .because("A head with its dashboard grows beyond that; the kernel kills it then, and the cluster ends with it.")
        .in_mode(Mode::Warn)
        .valued(shown),
    );
}

/// A size of no CPU that nobody has asked for by `num-cpus`.
fn check_cpu(group: &Group<'_>, ray: &Container<'_>, path: FieldPath, findings: &mut Findings) {
    let said = group.start_param("num-cpus").is_some()
        || group.resources().is_some_and(|map| map.contains_key("CPU"));
    if said || !ray.size("cpu").is_some_and(Quantity::is_zero) {
        return;
    }
    let list = if ray.limit("cpu").is_some() {
        "limits"
    } else {
        "requests"
    };
    findings.add(
        RULE.finding(
            path.key(list).key("cpu"),
            "is 0, and Ray's autoscaler counts no CPU",
            "Write the CPUs of a worker, like cpu: 2; or num-cpus: \"0\" in rayStartParams if its \
             workers are to take no task that asks for CPU.",
        )
        .because("No task that asks for CPU adds a worker of this group.")
        .in_mode(Mode::Warn)
        .valued("0"),
    );
}
