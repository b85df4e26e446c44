//! RF234: amounts with which no pod can be made, or nothing can run in it.

use crate::quantity::QuantityError;
use crate::rules::prelude::*;
use crate::rules::shared::{all_containers, meant, plain};

pub(crate) static RULE: Rule = Rule {
    id: RuleId(234),
    name: "container-resources",
    mode: OwnMode::ByCase(
        "Enforce for what the API server refuses, Warn for amounts that are too small",
    ),
    summary: "Container resources with which no pod can be made, or Ray cannot run",
    page: include_str!("container_resources.md"),
    why: "The API server refuses every pod of the group, and KubeRay tries again without end.",
    cel: Cel::NotCovered(
        "Several maps of every container of every group exceed what the API server lets an expression \
     cost.",
    ),
    check,
};

/// Memory in which no container of any kind runs.
const LEAST: Quantity = Quantity::from_units(1 << 20);

/// A head needs more memory than this.
const HEAD: Quantity = Quantity::from_units(1 << 30);

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    // Kubernetes validates a template only when a pod is made of it, and KubeRay then makes no pods of the groups
    // that follow either (`reconcilePods`).
    for group in subject.groups() {
        for (container, path) in all_containers(group) {
            let path = || path().key("resources");
            let amounts = [
                ("limits", container.limits),
                ("requests", container.requests),
            ];
            let amounts = amounts.into_iter().flat_map(|(list, amounts)| {
                let amounts = amounts.unwrap_or_default().iter();
                amounts.map(move |(resource, value)| (list, resource, value))
            });
            for (list, resource, value) in amounts {
                let path = || path().key(list).key(resource.to_owned());
                findings.extend(check_amount(resource, value, path));
            }
            if let Some(resources) = container.spec.object("resources") {
                report_above_limits(&RULE, resources, path, findings);
            }
        }
        findings.extend(check_ray_container(group, subject.autoscaled().is_some()));
    }
}

/// Reports, for a rule, the requests at a path that are above the limit of the same resource.
pub(super) fn report_above_limits(
    rule: &'static Rule,
    resources: Fields<'_>,
    path: impl Fn() -> FieldPath,
    findings: &mut Vec<Finding>,
) {
    let limits = resources.object("limits");
    let requests = resources.below("requests").iter();
    for (resource, request) in requests {
        let Some(limit) = limits.and_then(|limits| limits.get(resource)) else {
            continue;
        };
        let amounts = (Quantity::from_json(request), Quantity::from_json(limit));
        if !matches!(amounts, (Ok(request), Ok(limit)) if request > limit) {
            continue;
        }
        let mend = limit.to_value();
        let (request, limit) = (plain(request), plain(limit));
        let path = path().key("requests").key(resource.to_owned());
        let problem = format!("{request} is above the limit, {limit}");
        let fix = format!("Write {resource}: {limit} here, or raise the limit to {request}.");
        let finding = rule.finding(path, problem, fix);
        let finding = finding.valued(format!("request {request} > limit {limit}"));
        findings.push(finding.mended_by(mend));
    }
}

fn check_amount(resource: &str, value: Json<'_>, path: impl Fn() -> FieldPath) -> Option<Finding> {
    let finding = match Quantity::from_json(value) {
        Err(QuantityError::Syntax) if value.as_str().is_some() => {
            let mut kinds = Resource::ALL.into_iter();
            let kind = kinds.find(|kind| kind.name() == resource);
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
    Some(finding.valued(plain(value)))
}

/// A head of too little memory, or a worker of no CPU that nobody has asked for by `num-cpus`.
fn check_ray_container(group: &Group<'_>, autoscaled: bool) -> Option<Finding> {
    let ray = group.ray_container?;
    let path = group.ray_container_path().key("resources");
    if group.is_head() {
        let limit = ray.limit("memory")?;
        if limit > HEAD || limit < LEAST {
            return None;
        }
        let shown = limit.display_memory();
        let finding = RULE.finding(
            path.key("limits").key("memory"),
            format!("{shown} is too little for a head"),
            "Write memory: 4Gi in limits and requests; 2Gi is the least that lasts.",
        );
        let why = "A head with its dashboard grows beyond that; the kernel kills it then, and the cluster ends with it.";
        return Some(finding.because(why).in_mode(Mode::Warn).valued(shown));
    }
    let is_stated = group.start_param("num-cpus").is_some()
        || group.resources.is_some_and(|map| map.contains_key("CPU"));
    if !autoscaled || is_stated || !ray.size("cpu").is_some_and(Quantity::is_zero) {
        return None;
    }
    // A CPU limit of 0 is none for Kubernetes and KubeRay, and no CPU for Ray's autoscaler (`_get_num_cpus`).
    let list = ray.limit("cpu").map_or("requests", |_| "limits");
    let finding = RULE.finding(
        path.key(list).key("cpu"),
        "is 0, and Ray's autoscaler counts no CPU",
        "Write the CPUs of a worker, like cpu: 2; or num-cpus: \"0\" in rayStartParams if its \
         workers are to take no task that asks for CPU.",
    );
    let why = "No task that asks for CPU adds a worker of this group.";
    Some(finding.because(why).in_mode(Mode::Warn).valued("0"))
}
