//! DF11: workers that end with their Ray.

use serde_json::json;

use super::autoscaler_version::wants_v2;
use super::draft::{autoscaled, settle};
use super::{DefaultId, DefaultRule, DefaultsDraft};
use crate::policy::Settings;
use crate::ray::{AutoscalerVersion, Cluster, RayObject};

pub(crate) static DEFAULT: DefaultRule = DefaultRule {
    id: DefaultId(11),
    name: "worker-restart-policy",
    summary: "`restartPolicy: Never` for workers of a cluster with autoscaling",
    page: include_str!("restart_policy.md"),
    why: "Both versions of Ray's autoscaler end a worker by ending its Ray. Kubernetes starts Ray again \
          in a pod that may restart, as another node that takes work, until the pod is deleted with it; \
          nodes that come back so have kept the autoscaler from deleting any pod at all (ray#65416). From \
          2.47 on Ray runs v2 without being asked, and KubeRay does not know.",
    apply,
};

const KEY: &str = "restartPolicy";

fn apply(draft: &mut DefaultsDraft<'_>) {
    let Some(cluster) = restarting(draft.object, draft.settings) else {
        return;
    };
    let old = draft.old.and_then(|old| restarting(old, draft.settings));
    for group in &cluster.workers {
        if group.pod_spec.is_none_or(|spec| spec.contains_key(KEY)) {
            continue;
        }
        let stored_group = old.and_then(|old| old.group(group.name?).filter(|old| !old.is_head()));
        let stored = stored_group.and_then(|group| group.pod_spec?.get(KEY));
        if let Some((value, origin)) = settle(stored_group.is_some(), stored, json!("Never")) {
            draft.add(DEFAULT.id, group.pod_spec_path().key(KEY), value, origin);
        }
    }
}

/// The cluster, if Ray's autoscaler runs in it and KubeRay lets its workers restart.
fn restarting<'a>(object: &'a RayObject<'a>, settings: &Settings) -> Option<&'a Cluster<'a>> {
    let cluster = autoscaled(object)?;
    let is_v2 = cluster.autoscaler_version() == Some(AutoscalerVersion::V2);
    (!is_v2 && !wants_v2(object, settings)).then_some(cluster)
}
