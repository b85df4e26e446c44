//! DF01: requests of the ray container of a group that grows in place.

use serde_json::Value;

use super::draft::Before;
use super::{DefaultId, DefaultRule, Draft, Origin};
use crate::quantity::Quantity;
use crate::ray::{Container, Fields, Group, object_at};
use crate::rule_page::RulePage;

/// DF01
pub static DEFAULT: DefaultRule = DefaultRule {
    id: DefaultId(1),
    name: "ippr-requests",
    summary: "missing CPU and memory requests of a group that grows in place: its limits",
    page: RulePage(include_str!("requests.md")),
    why: "Ray refuses the annotation when a request is missing, although Kubernetes itself would \
          take the limit for it; the pods are the same either way.",
    since: "0.1.0",
    apply,
};

fn apply(draft: &mut Draft<'_>) {
    for (group, container) in draft.growing() {
        for resource in ["cpu", "memory"] {
            apply_to(draft, group, &container, resource);
        }
    }
}

fn apply_to(
    draft: &mut Draft<'_>,
    group: &Group<'_>,
    container: &Container<'_>,
    resource: &'static str,
) {
    let Some(limit) = container.limits().and_then(|limits| limits.get(resource)) else {
        return;
    };
    let requests = object_at(container.spec, "resources").and_then(|all| all.get("requests"));
    let open = requests.is_none_or(|r| r.as_object().is_some_and(|r| !r.contains_key(resource)));
    if !open || Quantity::from_json(limit).is_err() {
        return;
    }
    let before = draft.growing_before(group);
    let settled = Before {
        had_reason: before.is_some(),
        value: before.and_then(|old| amount(old.requests(), resource)),
    }
    .settle(limit.clone());
    let Some((value, origin)) = settled else {
        return;
    };
    let (value, origin) = match before {
        Some(old) if origin == Origin::CarriedOver => follow_limit(old, resource, value, limit),
        _ => (value, origin),
    };
    let path = group.ray_container_path().key("resources").key("requests");
    if requests.is_none() {
        draft.make_parent(&path);
    }
    draft.add(DefaultId(1), path.key(resource), value, origin);
}

/// A request that equalled its limit follows it when the update changes the limit, and none may end
/// up above it.
fn follow_limit(
    old: Container<'_>,
    resource: &str,
    request: Value,
    limit: &Value,
) -> (Value, Origin) {
    let was_limit = old.limit(resource).is_some() && old.limit(resource) == old.request(resource);
    // The API server refuses pods whose requests are above their limits.
    let above = match (Quantity::from_json(&request), Quantity::from_json(limit)) {
        (Ok(request), Ok(limit)) => request > limit,
        _ => true,
    };
    let same_limit = amount(old.limits(), resource) == Some(limit);
    if above || (was_limit && !same_limit) {
        (limit.clone(), Origin::Fresh)
    } else {
        (request, Origin::CarriedOver)
    }
}

fn amount<'v>(amounts: Option<&'v Fields>, resource: &str) -> Option<&'v Value> {
    amounts?.get(resource)
}
