//! DF02: `resizePolicy` of the ray container of a group that grows in place.

use serde_json::json;

use super::{DefaultId, DefaultRule, Draft, DraftEntry, Origin};
use crate::ray::{Container, Group};
use crate::rule_page::RulePage;

/// DF02
pub static DEFAULT: DefaultRule = DefaultRule {
    id: DefaultId(2),
    name: "ippr-resize-policy",
    summary: "`resizePolicy: NotRequired` for CPU and memory of a group that grows in place",
    page: RulePage(include_str!("resize_policy.md")),
    why: "A pod's resize policy can never be changed, so it has to be right in the template: with \
          `RestartContainer` every resize would kill Ray on the node it was to help.",
    since: "0.1.0",
    apply,
};

fn apply(draft: &mut Draft<'_>) {
    for (group, container) in draft.growing() {
        let missing = ["cpu", "memory"]
            .into_iter()
            .filter(|resource| !has_entry(&container, resource))
            .filter_map(|resource| entry(draft, group, resource))
            .collect();
        draft.extend(DEFAULT.id, group, "resizePolicy", missing);
    }
}

/// An entry to write, or `None` where the stored group has none. It does not depend on the stored
/// entry, because no other entry lets the group grow.
fn entry(draft: &Draft<'_>, group: &Group<'_>, resource: &'static str) -> Option<DraftEntry> {
    let origin = match draft.growing_before(group) {
        None => Origin::Fresh,
        Some(old) => has_entry(&old, resource).then_some(Origin::CarriedOver)?,
    };
    Some(DraftEntry {
        name: resource,
        value: json!("NotRequired"),
        item: json!({"resourceName": resource, "restartPolicy": "NotRequired"}),
        origin,
    })
}

fn has_entry(container: &Container<'_>, resource: &str) -> bool {
    container
        .resize_policy()
        .any(|(_, entry)| entry.resource == resource)
}
