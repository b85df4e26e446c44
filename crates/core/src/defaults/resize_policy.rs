//! DF02: `resizePolicy` of the ray container of a group that grows in place.

use serde_json::{Value, json};

use super::{DefaultId, DefaultRule, DefaultsDraft, Origin};
use crate::ray::Container;

pub(crate) static DEFAULT: DefaultRule = DefaultRule {
    id: DefaultId(2),
    name: "ippr-resize-policy",
    summary: "`resizePolicy: NotRequired` for CPU and memory of a group that grows in place",
    page: include_str!("resize_policy.md"),
    why: "A pod's resize policy can never be changed, so it has to be right in the template: with \
          `RestartContainer` every resize would kill Ray on the node it was to help.",
    apply,
};

fn apply(draft: &mut DefaultsDraft<'_>) {
    for (group, container) in draft.growing() {
        let stored_container = draft.growing_before(group);
        let has_entry = |container: Container<'_>, resource: &str| {
            let mut entries = container.resize_policy();
            entries.any(|entry| entry.text("resourceName") == Some(resource))
        };
        let missing = ["cpu", "memory"].into_iter();
        let missing = missing.filter(|resource| !has_entry(container, resource));
        let entries = missing.filter_map(|resource| {
            // An entry does not depend on the stored one, because no other lets the group grow; there is none
            // where the stored group has none.
            let origin = match stored_container {
                None => Origin::Fresh,
                Some(old) => has_entry(old, resource).then_some(Origin::CarriedOver)?,
            };
            Some((resource, json!("NotRequired"), origin))
        });
        let item =
            |name: &str, value: &Value| json!({"resourceName": name, "restartPolicy": value});
        draft.extend(DEFAULT.id, group, "resizePolicy", entries.collect(), item);
    }
}
