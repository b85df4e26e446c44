//! DF03: the autoscaler's version, where something needs v2.

use serde_json::json;

use super::draft::autoscaled;
use super::{DefaultId, DefaultRule, DefaultsDraft};
use crate::json::Json;
use crate::policy::Settings;
use crate::ray::{Container, Group, Kind, RayObject};

pub(crate) static DEFAULT: DefaultRule = DefaultRule {
    id: DefaultId(3),
    name: "autoscaler-version",
    summary: "`autoscalerOptions.version: v2` where something in the object needs it",
    page: include_str!("autoscaler_version.md"),
    why: "Only the second version of Ray's autoscaler knows these; KubeRay refuses some of them \
          without it, and in-place resize is silently ignored.",
    apply,
};

fn apply(draft: &mut DefaultsDraft<'_>) {
    draft.option(DefaultId(3), "version", wants_v2, || json!("v2"));
}

pub(super) fn wants_v2(object: &RayObject<'_>, _: &Settings) -> bool {
    let Some(cluster) = autoscaled(object) else {
        return false;
    };
    // KubeRay refuses the field beside the variable (RF209), and a template with another restart policy. With v2
    // it makes pods that never restart, for which the API server refuses a resize that restarts a container.
    let is_obstacle = |group: &Group<'_>| {
        let restart = group.pod_spec.and_then(|spec| spec.text("restartPolicy"));
        let restarts = |container: Container<'_>| {
            let mut policies = container.resize_policy();
            policies.any(|entry| entry.text("restartPolicy") == Some("RestartContainer"))
        };
        !matches!(restart, None | Some("" | "Never")) || group.containers().any(restarts)
    };
    if cluster.v2_env().is_some() || cluster.groups().any(is_obstacle) {
        return false;
    }
    let has_v2_field = |group: &Group<'_>| {
        let set = |key| group.spec.get(key).filter(|value| !value.is_null());
        let priority = set("priority").and_then(Json::as_i64);
        set("idleTimeoutSeconds").is_some() || priority.is_some_and(|priority| priority != 0)
    };
    let lists_a_group = || {
        let ippr = &object.ippr;
        object.kind != Kind::RayCronJob
            && ippr.is_well_formed()
            && ippr
                .groups
                .iter()
                .any(|limits| cluster.group(&limits.name).is_some())
    };
    object.reconcile_mode().is_ours() || cluster.groups().any(has_v2_field) || lists_a_group()
}
