//! Marks by which workers with work keep node autoscalers from taking their Kubernetes nodes away.
//!
//! A mark is a write, so a worker is marked once it has work, and unmarked when it has had none for a
//! while, or is to go.

use crate::plan::decided::Decided;
use crate::plan::nodes::node::{PlannedNode, Stage};
use crate::plan::outcome::plan::NodeHold;

/// Milliseconds without work before a worker's mark is removed: between two bursts of tasks a mark
/// stays.
const IDLE_MS: i64 = 30_000;

/// The most marks that change in a round.
const MOST: usize = 50;

/// The workers to mark or unmark. Without this slice none is marked, and marks that there are go.
pub(crate) fn holds(decided: &Decided<'_>, is_on: bool) -> Vec<NodeHold> {
    let marks = is_on && decided.situation.settings.hold_busy_nodes;
    let pods = decided.situation.pods_by_name();
    let change = |node: &PlannedNode| {
        let pod = pods.get(node.pod()?)?;
        let runs = node.stage() == Stage::Running && !node.head;
        let is_marked = pod.object.metadata.annotations.holds_node.is_some();
        let holds = match (marks && node.stays(), is_marked) {
            (true, false) if runs && node.idle_ms == 0 => true,
            (false, true) => false,
            (true, true) if runs && node.idle_ms >= IDLE_MS => false,
            _ => return None,
        };
        // Each change is a write to the API server; those beyond `MOST` follow in the next rounds.
        let pod = pod.name.to_owned();
        Some(NodeHold { pod, holds })
    };
    decided
        .state
        .in_order()
        .filter_map(change)
        .take(MOST)
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::plan::{NodeHold, PlanSettings, Strategy, decide};
    use crate::snapshot::Snapshot;

    /// The change of the mark of a worker that has been idle for `idle_ms`.
    fn change(is_marked: bool, idle_ms: i64, settings: &PlanSettings) -> Option<bool> {
        let resources = json!({"limits": {"cpu": "2", "memory": "8Gi"}});
        let template = json!({"spec": {"containers": [{"name": "ray", "resources": resources}]}});
        let pod = |name: &str, kind: &str, group: &str| {
            let annotations = if is_marked && kind == "worker" {
                json!({"rayfit.dev/holds-node": "karpenter.sh/do-not-disrupt"})
            } else {
                json!({})
            };
            json!({
                "metadata": {"name": name, "annotations": annotations, "labels": {
                    "ray.io/cluster": "demo", "ray.io/node-type": kind, "ray.io/group": group}},
                "spec": template["spec"], "status": {"phase": "Running"},
            })
        };
        let node = |name: &str, group: &str, total: &serde_json::Value, idle_ms: i64| {
            let status = if idle_ms > 0 { "IDLE" } else { "RUNNING" };
            json!({"nodeId": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==", "instanceId": name,
                "rayNodeTypeName": group, "status": status, "idleDurationMs": idle_ms,
                "totalResources": total, "availableResources": {}})
        };
        let snapshot: Snapshot = serde_json::from_value(json!({
            "apiVersion": "rayfit.dev/v1alpha1", "kind": "Snapshot", "time": "2026-01-14T12:00:00Z",
            "rayCluster": {
                "metadata": {"name": "demo", "namespace": "ray"},
                "spec": {
                    "autoscalerOptions": {"idleTimeoutSeconds": 3600},
                    "headGroupSpec": {"rayStartParams": {"num-cpus": "0"}, "template": template},
                    "workerGroupSpecs": [{"groupName": "cpu", "replicas": 1, "minReplicas": 0,
                        "maxReplicas": 2, "rayStartParams": {}, "template": template}],
                },
            },
            "pods": [pod("head", "head", "headgroup"), pod("cpu-1", "worker", "cpu")],
            "gcs": {"nodeStates": [
                node("head", "headgroup", &json!({"node:__internal_head__": 1}), 0),
                node("cpu-1", "cpu", &json!({"CPU": 2}), idle_ms),
            ]},
        }))
        .unwrap();
        let (plan, _) = decide(&snapshot, settings);
        match &*plan.holds {
            [] => None,
            [NodeHold { pod, holds }] if pod == "cpu-1" => Some(*holds),
            other => panic!("{other:?}"),
        }
    }

    fn marks() -> PlanSettings {
        PlanSettings {
            hold_busy_nodes: true,
            ..PlanSettings::default()
        }
    }

    #[test]
    fn a_mark_goes_half_a_minute_after_the_work_ended() {
        assert_eq!(change(false, 0, &marks()), Some(true));
        assert_eq!(change(false, 1, &marks()), None);
        assert_eq!(change(true, 0, &marks()), None);
        assert_eq!(change(true, 29_999, &marks()), None);
        assert_eq!(change(true, 30_000, &marks()), Some(false));
    }

    #[test]
    fn marks_go_with_what_asks_for_them() {
        let as_ray = PlanSettings {
            strategy: Strategy::Ray,
            ..marks()
        };
        for settings in [PlanSettings::default(), as_ray] {
            assert_eq!(change(true, 0, &settings), Some(false));
            assert_eq!(change(false, 0, &settings), None);
        }
    }
}
