//! RF107: the ray container of a listed group has no CPU or memory request.

use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(107),
    name: "ippr-no-requests",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "no CPU or memory request in a group that grows in place",
    page: include_str!("no_requests.md"),
    why: "Ray refuses the whole annotation because of it and stops autoscaling the cluster; limits \
          alone do not help.",
    cel: Cel::InPart(
        &[Check {
            each: Each::Listed,
            faults: r#"g.containers.size() == 0 ? [] : ['cpu', 'memory'].filter(r, !(r in g.requests)).map(r, '.template.spec.containers[0].resources.requests has no ' + r)"#,
            fix: "Write the requests that the pods start with; limits alone do not help.",
        }],
        PLAIN,
    ),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for (group, _) in subject.listed_groups() {
        let Some(container) = group.ray_container else {
            continue;
        };
        let requests = container.requests;
        // Ray reads the template, in which the API server fills in nothing: only pods get their limits as requests.
        // The API server drops a null, so that Ray finds no key.
        let is_missing = |resource: &Resource| {
            let value = requests.and_then(|requests| requests.get(resource.name()));
            value.is_none_or(Json::is_null)
        };
        let missing: Vec<Resource> = Resource::ALL.into_iter().filter(is_missing).collect();
        if missing.is_empty() {
            continue;
        }
        // Each has a place of its own where there are requests, and else they are missing together.
        let resources = group.ray_container_path().key("resources");
        let places: Vec<(FieldPath, &[Resource])> = if requests.is_some() {
            let path = resources.key("requests");
            let chunks = missing.chunks(1);
            chunks
                .map(|one| (path.clone().key(one[0].name()), one))
                .collect()
        } else if container.spec.object("resources").is_some() {
            vec![(resources.key("requests"), &missing)]
        } else {
            vec![(resources, &missing)]
        };
        for (path, missing) in places {
            let names: Vec<&str> = missing.iter().map(|resource| resource.title()).collect();
            let samples = missing.iter().map(|resource| {
                let limit = container
                    .limits
                    .and_then(|limits| limits.get(resource.name()));
                let sample = limit.map_or_else(
                    || match resource {
                        Resource::Cpu => "\"1\"".to_owned(),
                        Resource::Memory => "\"4Gi\"".to_owned(),
                    },
                    shown,
                );
                format!("{}: {sample}", resource.name())
            });
            let samples: Vec<String> = samples.collect();
            findings.push(RULE.finding(
                path,
                format!("the ray container requests no {}", names.join(" and no ")),
                format!(
                    "Add requests: {{{}}}, the size that pods start with.",
                    samples.join(", ")
                ),
            ));
        }
    }
}
