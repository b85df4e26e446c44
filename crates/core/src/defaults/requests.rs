//! DF01: requests of the ray container of a group that grows in place.

use super::draft::settle;
use super::{DefaultId, DefaultRule, DefaultsDraft, Origin};
use crate::json::{Fields, Json};
use crate::quantity::Quantity;

pub(crate) static DEFAULT: DefaultRule = DefaultRule {
    id: DefaultId(1),
    name: "ippr-requests",
    summary: "missing CPU and memory requests of a group that grows in place: its limits",
    page: include_str!("requests.md"),
    why: "Ray refuses the annotation when a request is missing, although Kubernetes itself would \
          take the limit for it; the pods are the same either way.",
    apply,
};

fn apply<'d>(draft: &mut DefaultsDraft<'d>) {
    let containers = draft.growing();
    let places = containers.flat_map(|(group, container)| {
        ["cpu", "memory"].map(|resource| (group, container, resource))
    });
    for (group, container, resource) in places {
        let amount = |amounts: Option<Fields<'d>>| amounts?.get(resource);
        let Some(limit) = amount(container.limits) else {
            continue;
        };
        let requests = container.spec.below("resources").get("requests");
        let is_open = |requests: Json<'_>| {
            requests
                .as_object()
                .is_some_and(|all| !all.contains_key(resource))
        };
        if !requests.is_none_or(is_open) || Quantity::from_json(limit).is_err() {
            continue;
        }
        let stored_container = draft.growing_before(group);
        let stored = stored_container.and_then(|old| amount(old.requests));
        let settled = settle(stored_container.is_some(), stored, limit.to_value());
        let Some((mut value, mut origin)) = settled else {
            continue;
        };
        if let Some(old) = stored_container {
            // A request that equalled its limit follows it when the update changes the limit, and none may end
            // up above it: the API server refuses such pods.
            let (old_limit, old_request) = (old.limit(resource), old.request(resource));
            let was_limit = old_limit.is_some() && old_limit == old_request;
            let is_above = match (Quantity::from_json(&value), Quantity::from_json(limit)) {
                (Ok(request), Ok(limit)) => request > limit,
                _ => true,
            };
            if is_above || was_limit && amount(old.limits) != Some(limit) {
                (value, origin) = (limit.to_value(), Origin::Fresh);
            }
        }
        let path = group.ray_container_path().key("resources").key("requests");
        if requests.is_none() {
            draft.make_parent(&path);
        }
        draft.add(DefaultId(1), path.key(resource), value, origin);
    }
}
