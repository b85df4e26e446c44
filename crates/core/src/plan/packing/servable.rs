//! The unmet demand that a node of the cluster could serve, if there were room.
//!
//! Some demand can never be served: it needs more than any node may have, a resource or a label that none has,
//! or its place in a placement group. As a rule that is one person's slip, and it waits for hours. It is no
//! reason to treat the rest of the cluster differently, so pods make room only for demand that some node
//! could hold. Whether there may be such a node now is another question: a group that is at its maximum
//! or is blocked is a reason to make room.
//!
//! Of a placement group each bundle is looked at by itself. Whether they all fit at once depends on what is free
//! and on how many nodes there may be, which changes; that a bundle is larger than every node does not.

use crate::hash::{HashMap, HashSet};
use crate::plan::demand::names::Name;
use crate::plan::demand::placement_group;
use crate::plan::demand::requests::RequestBatch;
use crate::plan::demand::shape::{Shape, ShapeId};
use crate::plan::growth::size::counted;
use crate::plan::list::DemandIndex;
use crate::plan::nodes::node::PlannedNode;
use crate::plan::packing::budget::WorkBudget;
use crate::plan::packing::fit::admits;
use crate::plan::packing::state::DecisionState;

/// The most steps for finding out. Demand that has not been looked at by then counts as servable.
const STEPS: u64 = 1_000_000;

/// The request batches of those demands of which a node could hold each request: a node of any group, or
/// one that is there, at its resize limits.
pub(crate) fn servable(state: &DecisionState, left: &[RequestBatch]) -> Vec<RequestBatch> {
    let holds = |node: &PlannedNode, shape: &Shape| {
        let group = state.group(node).map(|group| &group.config);
        let limits = group.and_then(|group| group.resize_limits);
        let most = |name| {
            let total = node.amounts.total(name);
            let limit = limits.map(|limits| match name {
                name if name == state.cpu => limits.cpu,
                name if name == state.memory => counted(limits.memory),
                _ => 0.0,
            });
            total.unwrap_or(0.0).max(limit.unwrap_or(0.0))
        };
        could_hold(state, node, shape, most)
    };
    let work = WorkBudget::new(STEPS);
    let mut verdicts: HashMap<ShapeId, bool> = HashMap::default();
    let mut is_held = |batch: &RequestBatch| {
        let shape = state.shapes.get(batch.shape);
        *verdicts.entry(batch.shape).or_insert_with(|| {
            let templates = state.groups.iter().map(|group| &group.template);
            let staying = state.in_order().filter(|node| node.stays());
            let mut nodes = templates.chain(staying);
            // Resources of a placement group are fixed: neither growth nor another node adds to them.
            placement_group::of_shape(&state.names, shape).is_none()
                && nodes.any(|node| !work.spend(shape.steps) || holds(node, shape))
        })
    };
    let open = || left.iter().filter(|batch| batch.count > 0);
    let vain = open().filter(|batch| !is_held(batch));
    let vain: HashSet<DemandIndex> = vain.map(|batch| batch.demand).collect();
    let others = open().filter(|batch| !vain.contains(&batch.demand));
    others.copied().collect()
}

/// True if a node could hold a unit of the shape, were it empty and had so much of each resource.
pub(crate) fn could_hold(
    state: &DecisionState,
    node: &PlannedNode,
    shape: &Shape,
    has: impl Fn(Name) -> f64,
) -> bool {
    let fits = |(name, needed)| has(name).max(state.names.implied(name)) >= needed;
    admits(shape, &node.labels) && shape.positive().all(fits)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::plan::outcome::resize_note::STATUS_ANNOTATION;
    use crate::plan::{Plan, PlanSettings, Strategy, decide};
    use crate::snapshot::Snapshot;

    const PLACEMENT_GROUP: &str = "0123456789abcdef0123456789abcdef0123";

    /// The plan for a group of one pod at the most, which is small and has been idle for longer than its
    /// idle timeout, and another one whose pod is in use as a whole.
    fn plan(gcs: &Value, strategy: Strategy) -> Plan {
        let size = json!({ "cpu": "2", "memory": "8Gi" });
        let resources = json!({ "requests": size, "limits": size });
        let template =
            json!({ "spec": { "containers": [{ "name": "ray", "resources": resources }] } });
        let group = |name: &str| {
            json!({ "groupName": name, "replicas": 1, "minReplicas": 0, "maxReplicas": 1,
                "rayStartParams": {}, "template": template })
        };
        let limits = json!({ "max-cpu": 8, "max-memory": "32Gi", "resize-timeout": 60 });
        let pod = |name: &str, kind: &str, group: &str| {
            json!({
                // It has grown, and has shrunk again.
                "metadata": { "name": name, "annotations": { STATUS_ANNOTATION: r#"{"raylet-id":"x"}"# }, "labels": {
                    "ray.io/cluster": "demo", "ray.io/node-type": kind, "ray.io/group": group } },
                "spec": { "nodeName": "node", "containers": [{ "name": "ray", "resources": resources }] },
                "status": { "phase": "Running", "containerStatuses": [
                    { "name": "ray", "resources": resources }] },
            })
        };
        let tied = format!("CPU_group_{PLACEMENT_GROUP}");
        let node = |name: &str, group: &str, total: &Value, free: &Value, idle_s: u32| {
            json!({ "nodeId": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==", "instanceId": name,
                "rayNodeTypeName": group, "status": if idle_s > 0 { "IDLE" } else { "RUNNING" },
                "idleDurationMs": idle_s * 1000, "totalResources": total, "availableResources": free })
        };
        let head = json!({ "node:__internal_head__": 1 });
        let small = json!({ "CPU": 2, "memory": 8_u64 << 30 });
        let full = json!({ "CPU": 2, "memory": 8_u64 << 30, "disk": 1, tied: 2 });
        let mut gcs = gcs.clone();
        gcs["nodeStates"] = json!([
            node("head", "headgroup", &head, &head, 0),
            node("small", "grows", &small, &small, 70),
            node("full", "fixed", &full, &json!({ "memory": 8_u64 << 30 }), 0),
        ]);
        let snapshot: Snapshot = serde_json::from_value(json!({
            "apiVersion": "rayfit.dev/v1alpha1", "kind": "Snapshot", "time": "2026-01-14T12:00:00Z",
            "rayCluster": {
                "metadata": { "name": "demo", "namespace": "ray", "annotations": {
                    "ray.io/ippr": json!({ "groups": { "grows": limits } }).to_string() } },
                "spec": {
                    "headGroupSpec": { "rayStartParams": { "num-cpus": "0" }, "template": template },
                    "workerGroupSpecs": [group("grows"), group("fixed")],
                } },
            "pods": [pod("head", "head", "headgroup"), pod("small", "worker", "grows"), pod("full", "worker", "fixed")],
            // No pod can grow there.
            "nodes": [{ "metadata": { "name": "node" }, "status": { "allocatable": { "cpu": "6", "memory": "24Gi" } } }],
            "gcs": gcs,
        }))
        .unwrap();
        let settings = PlanSettings {
            strategy,
            ..PlanSettings::default()
        };
        decide(&snapshot, &settings).0
    }

    fn tasks(request: &Value) -> Value {
        json!({ "pendingResourceRequests": [{ "request": request, "count": 3 }] })
    }

    fn gang(bundles: &[Value]) -> Value {
        let bundles: Vec<Value> = (bundles.iter())
            .map(|bundle| json!({ "resourcesBundle": bundle }))
            .collect();
        json!({ "pendingGangResourceRequests": [{ "requests": bundles, "details": "ab:PACK|PENDING" }] })
    }

    #[test]
    fn demand_that_no_node_could_hold_changes_nothing_else() {
        let quiet = plan(&json!({}), Strategy::Rayfit);
        assert!(quiet.drains.is_empty(), "the small pod is kept for longer");
        let zone = |operator: &str, value: &str| {
            json!({ "labelConstraints": [
                { "labelKey": "zone", "operator": operator, "labelValues": [value] }] })
        };
        let tied = format!("CPU_group_{PLACEMENT_GROUP}");
        let bundle = format!("bundle_group_3_{}", PLACEMENT_GROUP.replace('0', "f"));
        for gcs in [
            tasks(&json!({ "resourcesBundle": { "GPU": 1 } })),
            tasks(&json!({ "resourcesBundle": { "CPU": 8.5 } })),
            tasks(&json!({ "resourcesBundle": { "CPU": 8, "memory": 33_u64 << 30 } })),
            tasks(&json!({ "resourcesBundle": { "disk": 1.5 } })),
            tasks(
                &json!({ "resourcesBundle": { "CPU": 1 }, "labelSelectors": [zone("LABEL_OPERATOR_IN", "b")] }),
            ),
            tasks(&json!({ "resourcesBundle": { bundle: 0.001 } })),
            tasks(&json!({ "resourcesBundle": { tied: 1 } })),
            gang(&[json!({ "CPU": 4 }), json!({ "CPU": 4, "GPU": 1 })]),
        ] {
            let mut with = plan(&gcs, Strategy::Rayfit);
            assert_eq!(with.unmet.len(), 1, "{gcs}");
            with.unmet.clear();
            assert_eq!(with, quiet, "{gcs}");
        }
    }

    #[test]
    fn demand_that_a_node_could_hold_makes_room_whatever_the_maxima_are() {
        let labels = json!([{ "labelConstraints": [
            { "labelKey": "zone", "operator": "LABEL_OPERATOR_NOT_IN", "labelValues": ["b"] }] }]);
        for gcs in [
            tasks(&json!({ "resourcesBundle": { "CPU": 8, "memory": 32_u64 << 30 } })),
            tasks(&json!({ "resourcesBundle": { "CPU": 3 }, "labelSelectors": labels })),
            // Nothing but a node that is there has it.
            tasks(&json!({ "resourcesBundle": { "disk": 1 } })),
            // Each bundle fits, though all of them never do at once.
            gang(&[
                json!({ "CPU": 8 }),
                json!({ "CPU": 8 }),
                json!({ "CPU": 8 }),
            ]),
        ] {
            let drained = plan(&gcs, Strategy::Rayfit).drains;
            let pods: Vec<&str> = drained.iter().map(|drain| drain.pod.as_str()).collect();
            assert_eq!(pods, ["small"], "{gcs}");
        }
    }

    #[test]
    fn what_waits_for_its_placement_group_is_told_so() {
        let why = |id: &str| {
            let request = json!({ "resourcesBundle": { format!("CPU_group_{id}"): 1 } });
            let plans = [Strategy::Rayfit, Strategy::Ray];
            let [ours, rays] =
                plans.map(|strategy| plan(&tasks(&request), strategy).unmet[0].why(9));
            assert_eq!(ours, rays);
            ours
        };
        let other = PLACEMENT_GROUP.replace('0', "f");
        let room = format!("it waits for room in placement group {PLACEMENT_GROUP}");
        assert_eq!(why(PLACEMENT_GROUP), room);
        let placed = format!("it waits for placement group {other}, which is not placed yet");
        assert_eq!(why(&other), placed);
    }
}
