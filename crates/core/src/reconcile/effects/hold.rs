//! The marks that keep node autoscalers from taking away the Kubernetes node of a pod.

use serde_json::{Map, Value, json};

use crate::plan::NodeHold;
use crate::reconcile::effects::effect::PodPatch;
use crate::snapshot::pod::Pod;

/// The annotation that says which of the marks are Rayfit's.
pub(crate) const HOLDS: &str = "rayfit.dev/holds-node";

/// Karpenter does not disrupt the node of such a pod. (Karpenter, `v1/labels.go`.)
pub(crate) const KARPENTER: (&str, &str) = ("karpenter.sh/do-not-disrupt", "true");

/// cluster-autoscaler does not evict such a pod. (cluster-autoscaler, `utils/drain/drain.go`.)
pub(crate) const CLUSTER_AUTOSCALER: (&str, &str) =
    ("cluster-autoscaler.kubernetes.io/safe-to-evict", "false");

/// The patch that marks a pod, or takes the marks back. Marks of others stay as they are.
pub(crate) fn patch(pod: &Pod<'_>, hold: &NodeHold) -> PodPatch {
    let annotations = &pod.object.metadata.annotations;
    let marks = [
        (KARPENTER, annotations.do_not_disrupt.as_ref()),
        (CLUSTER_AUTOSCALER, annotations.safe_to_evict.as_ref()),
    ];
    let ours = annotations.holds_node.as_deref().unwrap_or_default();
    let mut written = Map::new();
    if hold.holds {
        let free = marks.into_iter().filter(|(_, value)| value.is_none());
        let free: Vec<(&str, &str)> = free.map(|(mark, _)| mark).collect();
        let names: Vec<&str> = free.iter().map(|(name, _)| *name).collect();
        // The list is written even where it is empty, because all marks are the template's: by its
        // presence later rounds see that the pod has been marked.
        written.insert(HOLDS.to_owned(), names.join(",").into());
        written.extend((free.iter()).map(|(name, value)| ((*name).to_owned(), (*value).into())));
    } else {
        written.insert(HOLDS.to_owned(), Value::Null);
        let names = marks.into_iter().map(|((name, _), _)| name);
        let names = names.filter(|name| ours.split(',').any(|one| one == *name));
        written.extend(names.map(|name| (name.to_owned(), Value::Null)));
    }
    let mut body = json!({"metadata": {"annotations": written}});
    // Snapshots that were written by hand have no UIDs.
    if !pod.uid().is_empty() {
        body["metadata"]["uid"] = pod.uid().into();
    }
    PodPatch {
        pod: pod.name.to_owned(),
        body,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::pod_object::PodObject;

    fn annotations(given: &Value, holds: bool) -> Value {
        let object: PodObject = serde_json::from_value(
            json!({"metadata": {"name": "w", "uid": "u", "annotations": given}}),
        )
        .unwrap();
        let hold = NodeHold {
            pod: "w".to_owned(),
            holds,
        };
        let patch = patch(&Pod::of(&object), &hold);
        assert_eq!(patch.body["metadata"]["uid"], "u");
        patch.body["metadata"]["annotations"].clone()
    }

    #[test]
    fn only_our_own_marks_are_taken_back() {
        let (karpenter, autoscaler) = (KARPENTER.0, CLUSTER_AUTOSCALER.0);
        let both = format!("{karpenter},{autoscaler}");
        assert_eq!(
            annotations(&json!({}), true),
            json!({HOLDS: both, karpenter: "true", autoscaler: "false"})
        );
        assert_eq!(
            annotations(&json!({HOLDS: both}), false),
            json!({HOLDS: null, karpenter: null, autoscaler: null})
        );
        let users = json!({karpenter: "true"});
        assert_eq!(
            annotations(&users, true),
            json!({HOLDS: autoscaler, autoscaler: "false"})
        );
        let with_users = json!({karpenter: "true", HOLDS: autoscaler, autoscaler: "false"});
        assert_eq!(
            annotations(&with_users, false),
            json!({HOLDS: null, autoscaler: null})
        );
    }
}
