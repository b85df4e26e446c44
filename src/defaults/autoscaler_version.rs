//! DF03: the autoscaler's version, where something needs v2.

use serde_json::{Value, json};

use super::{DefaultId, DefaultRule, Draft};
use crate::policy::Settings;
use crate::ray::{Cluster, Kind, RayObject, text_at};
use crate::rule_page::RulePage;

/// DF03
pub static DEFAULT: DefaultRule = DefaultRule {
    id: DefaultId(3),
    name: "autoscaler-version",
    summary: "`autoscalerOptions.version: v2` where something in the object needs it",
    page: RulePage(include_str!("autoscaler_version.md")),
    why: "Only the second version of Ray's autoscaler knows these; KubeRay refuses some of them \
          without it, and in-place resize is silently ignored.",
    since: "0.1.0",
    apply,
};

fn apply(draft: &mut Draft<'_>) {
    draft.option(DefaultId(3), "version", wants_v2, || json!("v2"));
}

pub(super) fn wants_v2(object: &RayObject<'_>, _: &Settings) -> bool {
    let Some(cluster) = object
        .cluster
        .as_ref()
        .filter(|cluster| cluster.autoscaling())
    else {
        return false;
    };
    // KubeRay refuses the field beside the variable (RF209).
    cluster.v2_env().is_none()
        && !has_obstacle(cluster)
        && (object.reconcile_mode().is_ours()
            || has_v2_field(cluster)
            || lists_a_group(object, cluster))
}

fn lists_a_group(object: &RayObject<'_>, cluster: &Cluster<'_>) -> bool {
    object.kind != Kind::RayCronJob
        && object.ippr.is_well_formed()
        && object
            .ippr
            .groups
            .iter()
            .any(|resize_limits| cluster.group(&resize_limits.name).is_some())
}

fn has_v2_field(cluster: &Cluster<'_>) -> bool {
    cluster.groups().any(|group| {
        let set = |key| group.spec.get(key).filter(|value| !value.is_null());
        set("idleTimeoutSeconds").is_some()
            || set("priority")
                .and_then(Value::as_i64)
                .is_some_and(|priority| priority != 0)
    })
}

/// Whether v2 would have the cluster or its pods refused. With v2 KubeRay makes pods that never
/// restart.
fn has_obstacle(cluster: &Cluster<'_>) -> bool {
    cluster.groups().any(|group| {
        let restart = group
            .pod_spec()
            .and_then(|spec| text_at(spec, "restartPolicy"));
        // KubeRay refuses a template with another policy.
        !matches!(restart, None | Some("" | "Never"))
            // The API server refuses a resize that restarts a container in a pod that never
            // restarts.
            || group.containers().any(|container| {
                container
                    .resize_policy()
                    .any(|(_, entry)| entry.restart == "RestartContainer")
            })
    })
}
