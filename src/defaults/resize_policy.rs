//! DF02: `resizePolicy` of the ray container of a group that grows in place.

use serde_json::{Value, json};

use super::{Applied, DefaultId, DefaultRule, Draft, Origin};
use crate::ray::{Container, Group};

/// DF02
pub static DEFAULT: DefaultRule = DefaultRule {
    id: DefaultId(2),
    name: "ippr-resize-policy",
    summary: "`resizePolicy: NotRequired` for CPU and memory of a group that grows in place",
    what: "In every group that `ray.io/ippr` lists, the ray container gets a `resizePolicy` entry \
           `NotRequired` for CPU and for memory where it has no entry for that resource.",
    why: "A pod's resize policy can never be changed, so it has to be right in the template: with \
          `RestartContainer` every resize would kill Ray on the node it was to help.",
    before: r#"
metadata:
  annotations:
    ray.io/ippr: '{"groups":{"small":{"max-cpu":"4","max-memory":"8Gi","resize-timeout":300}}}'
spec:
  workerGroupSpecs:
  - groupName: small
    template:
      spec:
        containers:
        - name: ray-worker
          env:
          - {name: RAY_worker_maximum_startup_concurrency, value: "4"}
          - {name: RAY_worker_cap_initial_backoff_delay_ms, value: "10"}
          resizePolicy:
          - {resourceName: cpu, restartPolicy: NotRequired}
"#,
    after: r#"
metadata:
  annotations:
    ray.io/ippr: '{"groups":{"small":{"max-cpu":"4","max-memory":"8Gi","resize-timeout":300}}}'
spec:
  workerGroupSpecs:
  - groupName: small
    template:
      spec:
        containers:
        - name: ray-worker
          env:
          - {name: RAY_worker_maximum_startup_concurrency, value: "4"}
          - {name: RAY_worker_cap_initial_backoff_delay_ms, value: "10"}
          resizePolicy:
          - {resourceName: cpu, restartPolicy: NotRequired}
          - {resourceName: memory, restartPolicy: NotRequired}
"#,
    since: "0.1.0",
    apply,
};

fn apply(draft: &mut Draft<'_>) {
    for group in draft.listed_groups() {
        let Some(container) = group.ray_container() else {
            continue;
        };
        let present = container.spec.get("resizePolicy");
        if present.is_some_and(|policy| !policy.is_array()) {
            continue;
        }
        let missing: Vec<(&'static str, Origin)> = ["cpu", "memory"]
            .into_iter()
            .filter(|resource| !has_entry(&container, resource))
            .filter_map(|resource| Some((resource, origin(draft, group, resource)?)))
            .collect();
        write(draft, group, present.is_some(), &missing);
    }
}

/// Why an entry is written, or `None` where the stored group has none either. The value is the
/// same whatever the stored entry said: no other lets the group grow.
fn origin(draft: &Draft<'_>, group: &Group<'_>, resource: &str) -> Option<Origin> {
    match draft
        .listed_before(group)
        .and_then(super::super::ray::group::Group::ray_container)
    {
        None => Some(Origin::Fresh),
        Some(old) => has_entry(&old, resource).then_some(Origin::CarriedOver),
    }
}

fn has_entry(container: &Container<'_>, resource: &str) -> bool {
    container
        .resize_policy()
        .any(|(_, entry)| entry.resource == resource)
}

fn write(
    draft: &mut Draft<'_>,
    group: &Group<'_>,
    has_list: bool,
    missing: &[(&'static str, Origin)],
) {
    let path = group.ray_container_path().key("resizePolicy");
    let entries: Vec<Value> = missing
        .iter()
        .map(|(resource, _)| entry(resource))
        .collect();
    if entries.is_empty() {
        return;
    }
    if has_list {
        let end = format!("{}/-", path.pointer());
        for entry in &entries {
            draft.push(&end, entry.clone());
        }
    } else {
        draft.push(&path.pointer(), Value::Array(entries));
    }
    for (resource, origin) in missing {
        let (path, value) = (path.clone().key(*resource), json!("NotRequired"));
        draft.note(Applied {
            id: DefaultId(2),
            path,
            value,
            origin: *origin,
        });
    }
}

fn entry(resource: &str) -> Value {
    json!({"resourceName": resource, "restartPolicy": "NotRequired"})
}
