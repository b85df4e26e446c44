//! The sizes of the pods of each group, with the part in use and the resize limits: for people, no
//! decision reads them.

use crate::hash::HashMap;
use crate::plan::decided::Decided;
use crate::plan::growth::in_use::{InUse, logical_use};
use crate::plan::growth::size::ContainerAmounts;
use crate::plan::growth::size::{bytes, cores, milli};
use crate::plan::list::GroupIndex;
use crate::plan::outcome::report::{CpuAndMemory, GroupSizes};
use crate::ray::group::HEAD_NAME;
use crate::ray::resource::Amounts;
use crate::snapshot::gcs::NodeState;
use crate::snapshot::pod::{Pod, PodRole};

/// The sums over the pods of each group that have a Kubernetes node.
pub(crate) fn by_group(decided: &Decided<'_>) -> HashMap<GroupIndex, GroupSizes> {
    let takes_room = |pod: &&Pod<'_>| pod.node.is_some() && !pod.ended;
    let mut all: HashMap<GroupIndex, GroupSizes> = HashMap::default();
    for pod in decided.situation.own_pods.iter().filter(takes_room) {
        let name = match pod.role {
            PodRole::Head => HEAD_NAME,
            PodRole::Worker => pod.group,
            PodRole::Other => continue,
        };
        let Some(group) = decided.config.number(name) else {
            continue;
        };
        let limits = decided.config.groups[group].resize_limits;
        let limits = limits.map(|limits| CpuAndMemory {
            cpu_milli: milli(limits.cpu),
            memory_bytes: limits.memory,
        });
        // The limits of the container in which Ray runs, as Kubernetes has given them, or else its requests.
        let given = ContainerAmounts::of(pod).given;
        let Amounts { cpu, memory } = given.limits.or(given.requests);
        let has = CpuAndMemory {
            cpu_milli: cpu.map_or(0, |cpu| milli(cores(cpu))).max(0),
            memory_bytes: memory.map_or(0, bytes).max(0),
        };
        let ray = decided.situation.live.get(pod.name);
        let used = ray.map_or_else(CpuAndMemory::default, |ray| {
            in_use(ray, decided.situation.now)
        });
        let sums = all.entry(group).or_default();
        *sums = sums.plus(GroupSizes {
            has,
            // Ray may be told that a node has more than its pod, and a tenant may report anything.
            in_use: used.join(has, i64::min),
            up_to: limits.unwrap_or_default().join(has, i64::max),
        });
    }
    all
}

/// The CPU and memory that work on a Ray node has asked for; the memory really in use, where that
/// is known and more.
pub(crate) fn in_use(ray: &NodeState, now: f64) -> CpuAndMemory {
    let logical = logical_use(ray);
    // Most work asks Ray for no memory.
    let really = ray.memory_in_use.and_then(|report| InUse::of(report, now));
    CpuAndMemory {
        cpu_milli: milli(logical.cpu.max(0.0)),
        memory_bytes: logical.memory.max(really.map_or(0, |used| used.bytes)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::plan::{PlanSettings, decide};
    use crate::snapshot::Snapshot;

    const GI: i64 = 1 << 30;

    fn pod(name: &str, cpu: &str, node: &Value) -> Value {
        let size = json!({"cpu": cpu, "memory": "4Gi"});
        let resources = json!({"requests": {"cpu": "1", "memory": "1Gi"}, "limits": size});
        json!({
            "metadata": {"name": name, "labels": {
                "ray.io/cluster": "demo", "ray.io/node-type": "worker", "ray.io/group": "cpu"}},
            "spec": {"nodeName": node, "containers": [{"name": "ray", "resources": resources}]},
            "status": {"phase": "Running"},
        })
    }

    /// A Ray node of 2 CPUs and 3 GiB, with what is free of it.
    fn ray_node(name: &str, free: &Value) -> Value {
        json!({"instanceId": name, "rayNodeTypeName": "cpu", "status": "RUNNING",
            "totalResources": {"CPU": 2, "memory": 3 * GI}, "availableResources": free})
    }

    #[test]
    fn what_pods_have_and_use_is_summed_by_group_and_nobody_uses_more_than_it_has() {
        let mut really = ray_node("b", &json!({"CPU": 1.5, "memory": 3 * GI}));
        really["memoryInUse"] = json!({"bytes": 3 * GI / 2, "at": 1_768_392_000.0});
        let mut old = ray_node("c", &json!({"memory": 3 * GI}));
        old["memoryInUse"] = json!({"bytes": 4 * GI, "at": 1_768_391_000.0});
        let mut lies = ray_node("d", &json!({}));
        lies["totalResources"] = json!({"CPU": 1e15, "memory": 1e30});
        let limits = json!({"groups": {"cpu": {"max-cpu": "3", "max-memory": "16Gi", "resize-timeout": 60}}});
        let size = json!({"cpu": "1", "memory": "1Gi"});
        let container = json!({"name": "ray", "resources": {"requests": size, "limits": size}});
        let template = json!({"spec": {"containers": [container]}});
        let snapshot: Snapshot = serde_json::from_value(json!({
            "apiVersion": "rayfit.dev/v1alpha1", "kind": "Snapshot", "time": "2026-01-14T12:00:00Z",
            "rayCluster": {
                "metadata": {"name": "demo", "namespace": "ray", "annotations": {"ray.io/ippr": limits.to_string()}},
                "spec": {
                    "headGroupSpec": {"rayStartParams": {}, "template": template},
                    "workerGroupSpecs": [{"groupName": "cpu", "replicas": 5, "minReplicas": 0, "maxReplicas": 9,
                        "rayStartParams": {}, "template": template}],
                },
            },
            "pods": [
                pod("a", "2", &json!("n")), pod("b", "2", &json!("n")), pod("c", "2", &json!("n")),
                pod("d", "4", &json!("n")), pod("waits", "2", &Value::Null)],
            "gcs": {"nodeStates": [ray_node("a", &json!({"memory": 2 * GI})), really, old, lies]},
        }))
        .unwrap();
        let (_, report) = decide(&snapshot, &PlanSettings::default());
        let sizes = |name: &str| {
            report
                .groups
                .iter()
                .find(|group| group.name == name)
                .unwrap()
                .sizes
        };
        assert_eq!(sizes(HEAD_NAME), None, "it has no pod");
        let amounts = |cpu_milli: i64, memory_bytes: i64| CpuAndMemory {
            cpu_milli,
            memory_bytes,
        };
        let expected = GroupSizes {
            has: amounts(10_000, 16 * GI),
            in_use: amounts(2000 + 500 + 2000 + 4000, GI + 3 * GI / 2 + 4 * GI),
            up_to: amounts(3 * 3000 + 4000, 64 * GI),
        };
        assert_eq!(sizes("cpu"), Some(expected));
    }
}
