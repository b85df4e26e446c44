//! RF401: somebody resizes a pod that its Ray cluster's scaler resizes.

use crate::policy::settings::is_rayfit;
use crate::rules::prelude::*;

/// The rule.
pub static RULE: Rule = Rule {
    id: RuleId(401),
    name: "resize-by-others",
    mode: OwnMode::Always(Mode::Warn),
    summary: "A pod of a Ray cluster is resized by somebody other than its scaler",
    page: include_str!("resize_by_others.md"),
    why: "Ray does not notice it: the raylet keeps the size that the scaler set, and the next \
          resize by the scaler undoes this one.",
    cel: Cel::NotCovered("It is about requests to resize pods, not about Ray objects."),
    // No Ray object shows a resize; see `find`.
    check: |_, _| {},
};

/// The finding about a resize of `pod`, which was `old`, by `user`.
pub fn find(pod: Fields<'_>, old: Fields<'_>, user: &str) -> Option<Finding> {
    let metadata = old.object("metadata")?;
    let labels = metadata.object("labels")?;
    let cluster = labels.text("ray.io/cluster")?;
    let namespace = metadata.text("namespace")?;
    // Ray's autoscaler runs under an account of its cluster's namespace. The colon ends the namespace, so that an
    // account of `team-b` does not pass for one of `team`.
    let is_of_namespace = user
        .strip_prefix("system:serviceaccount:")
        .and_then(|account| account.strip_prefix(namespace))
        .is_some_and(|name| name.starts_with(':'));
    if is_rayfit(user) || user.starts_with("system:node:") || is_of_namespace {
        return None;
    }
    // A request to the subresource carries the whole pod: without another size it resizes nothing.
    if sizes(pod).eq(sizes(old)) {
        return None;
    }
    let problem = format!(
        "{} resizes a pod of RayCluster {}, whose scaler sizes it",
        shown_text(user),
        shown_text(cluster)
    );
    Some(RULE.finding(
        FieldPath::of(&["spec", "containers"]),
        problem,
        "Change the resize limits in the RayCluster's ray.io/ippr instead, or keep the other \
         autoscaler off Ray's pods.",
    ))
}

/// The resources of the containers of a pod, in their order.
fn sizes(pod: Fields<'_>) -> impl Iterator<Item = Option<Json<'_>>> {
    let containers = pod.below("spec").list("containers").iter();
    containers.map(|container| container.get("resources"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(cpu: &str) -> Value {
        json!({"metadata": {"name": "p", "namespace": "team-a",
            "labels": {"ray.io/cluster": "demo"}},
            "spec": {"containers": [{"resources": {"limits": {"cpu": cpu}}}]}})
    }

    fn is_reported(new: &Value, old: &Value, user: &str) -> bool {
        find(new.into(), old.into(), user).is_some()
    }

    #[test]
    fn only_strangers_are_pointed_out() {
        let (new, old) = (pod("4"), pod("2"));
        for (user, expected) in [
            ("alice", true),
            ("system:serviceaccount:kube-system:vpa-updater", true),
            ("system:serviceaccount:team-ab:demo", true),
            ("system:serviceaccount:team-a:demo", false),
            ("system:node:n1", false),
            (
                "system:serviceaccount:rayfit-system:rayfit-controller",
                false,
            ),
            ("system:serviceaccount:rayfit-b:rayfit-controller", false),
            ("system:serviceaccount:rayfit-system:rayfit", false),
            ("system:serviceaccount:rayfit-system:rayfit-audit", true),
            ("rayfit-controller", true),
        ] {
            assert_eq!(is_reported(&new, &old, user), expected, "{user}");
        }
    }

    #[test]
    fn what_resizes_nothing_or_no_ray_pod_is_nobodys_business() {
        let old = pod("2");
        assert!(!is_reported(&old, &old, "alice"));
        let mut other = pod("2");
        other["metadata"]["labels"] = json!({});
        assert!(!is_reported(&pod("4"), &other, "alice"));
    }
}
