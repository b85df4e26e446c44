//! Node pools from a file of a user.

use std::collections::BTreeMap;
use std::fmt::Display;

use serde::Deserialize;
use serde_json::Value;

use crate::facts::node::NodeTaint;
use crate::quantity::Quantity;
use crate::ray::resource::Amounts;
use crate::simulate::settings::NodePool;
use crate::simulate::world::group::{SimulatedGroup, groups};
use crate::snapshot::cluster_object::ClusterObject;

/// The most nodes of a pool.
const MOST_NODES: u32 = 100_000;

/// A node pool as it is written. Unknown fields are errors, since a typing error would otherwise
/// change the result in silence.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WrittenPool {
    name: String,
    cpu: Value,
    memory: Value,
    #[serde(default)]
    gpus: i64,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    taints: Vec<NodeTaint>,
    #[serde(default)]
    min: u32,
    max: u32,
    start_seconds: Option<f64>,
    idle_seconds: Option<f64>,
    #[serde(default)]
    image_pull_seconds: f64,
    consolidate_after_seconds: Option<f64>,
}

/// Seconds until a node is ready, where a pool does not say it.
const START_S: f64 = 60.0;

/// Seconds for which a node stays without a pod, where a pool does not say it: Cluster Autoscaler's
/// `scale-down-unneeded-time`.
const IDLE_S: f64 = 600.0;

/// Reads node pools.
///
/// # Errors
///
/// The value is not a list of pools, or a pool has values that make no sense.
pub fn read(value: &Value) -> Result<Vec<NodePool>, String> {
    let form = |fault: &dyn Display| {
        format!(
            "node pools are a list of {{name, cpu, memory, gpus, labels, taints, min, max, startSeconds, idleSeconds, imagePullSeconds, consolidateAfterSeconds}}: {fault}"
        )
    };
    let pools: Vec<WrittenPool> =
        serde_json::from_value(value.clone()).map_err(|error| form(&error))?;
    if pools.is_empty() {
        return Err(form(&"there is no pool"));
    }
    pools.into_iter().map(pool).collect()
}

/// Checks that the pods of each group of a RayCluster may be on the nodes of some pool, if there
/// are any. A group that cannot be read is passed over.
///
/// # Errors
///
/// Labels and taints of all pools keep off the pods of a group.
pub fn check(pools: &[NodePool], cluster: &Value) -> Result<(), String> {
    let cluster = ClusterObject::from(cluster.clone());
    let groups = groups(&cluster).unwrap_or_default();
    let is_homeless = |group: &&SimulatedGroup| {
        !pools.is_empty() && !pools.iter().any(|pool| pool.admits(&group.placement))
    };
    match groups.iter().find(is_homeless) {
        Some(SimulatedGroup { name, .. }) => Err(format!(
            "the pods of {name} may be on no node of any pool, by their nodeSelector, affinity and tolerations: write \
             the labels and taints of the nodes into the pools"
        )),
        None => Ok(()),
    }
}

fn pool(written: WrittenPool) -> Result<NodePool, String> {
    let fault = |why: String| format!("node pool {}: {why}", written.name);
    let amount = |name: &str, value: &Value| {
        let amount =
            Quantity::from_json(value).map_err(|error| fault(format!("{name}: {error}")))?;
        // A node without CPU or memory would hold no pod, and pods would wait for it for ever.
        if amount <= Quantity::ZERO {
            return Err(fault(format!("{name} is {amount}: write more than 0")));
        }
        Ok(amount)
    };
    let (cpu, memory) = (
        amount("cpu", &written.cpu)?,
        amount("memory", &written.memory)?,
    );
    if written.min > written.max || written.max > MOST_NODES {
        let (min, max) = (written.min, written.max);
        return Err(fault(format!(
            "min is {min} and max {max}: write a min that is not above max, and a max up to {MOST_NODES}"
        )));
    }
    let start_s = written.start_seconds.unwrap_or(START_S);
    let idle_s = written.idle_seconds.unwrap_or(IDLE_S);
    let times = [
        ("startSeconds", start_s),
        ("idleSeconds", idle_s),
        ("imagePullSeconds", written.image_pull_seconds),
    ];
    let consolidates = written.consolidate_after_seconds;
    let consolidates = consolidates.map(|seconds| ("consolidateAfterSeconds", seconds));
    for (name, seconds) in times.into_iter().chain(consolidates) {
        if !(0.0..=86_400.0).contains(&seconds) {
            return Err(fault(format!("{name} is {seconds}: write 0 to 86400")));
        }
    }
    if written.gpus < 0 {
        return Err(fault(format!("gpus is {}: write 0 or more", written.gpus)));
    }
    // A taint that only makes a node less liked would change nothing here.
    let keeps_off = |taint: &NodeTaint| matches!(&*taint.effect, "NoSchedule" | "NoExecute");
    if let Some(taint) = written.taints.iter().find(|taint| !keeps_off(taint)) {
        let NodeTaint { key, effect, .. } = taint;
        return Err(fault(format!(
            "the effect of taint {key:?} is {effect:?}: write NoSchedule or NoExecute"
        )));
    }
    Ok(NodePool {
        name: written.name,
        allocatable: Amounts::new(cpu, memory),
        gpus: written.gpus,
        labels: written.labels,
        taints: written.taints,
        min: written.min,
        max: written.max,
        start_s,
        idle_s,
        image_pull_s: written.image_pull_seconds,
        consolidate_after_s: written.consolidate_after_seconds,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn labels_and_taints_are_those_of_nodes() {
        let pools = read(&json!([{"name": "gpu", "cpu": 1, "memory": "1Gi", "max": 1,
            "labels": {"zone": "a"}, "taints": [{"key": "gpu", "effect": "NoSchedule"}]}]));
        let pool = pools.unwrap().remove(0);
        assert_eq!(pool.labels["zone"], "a");
        assert_eq!((&*pool.taints[0].key, &*pool.taints[0].value), ("gpu", ""));
    }

    #[test]
    fn a_group_needs_a_pool_that_takes_its_pods() {
        let group = |selector: Value| {
            let containers =
                json!([{"name": "ray", "resources": {"limits": {"cpu": 1, "memory": "1Gi"}}}]);
            json!({"groupName": "gpu", "rayStartParams": {},
                "template": {"spec": {"nodeSelector": selector, "containers": containers}}})
        };
        let cluster = |selector: Value| json!({"spec": {"headGroupSpec": group(json!({})), "workerGroupSpecs": [group(selector)]}});
        let pools = read(&json!([{"name": "gpu", "cpu": 1, "memory": "1Gi", "max": 1,
            "labels": {"zone": "a"}}]));
        let pools = pools.unwrap();
        assert_eq!(check(&pools, &cluster(json!({"zone": "a"}))), Ok(()));
        let elsewhere = cluster(json!({"zone": "b"}));
        assert_eq!(check(&[], &elsewhere), Ok(()));
        let error = check(&pools, &elsewhere).unwrap_err();
        assert!(
            error.contains("the pods of gpu may be on no node"),
            "{error}"
        );
    }

    #[test]
    fn a_pool_needs_a_size_and_a_maximum() {
        let pools =
            read(&json!([{"name": "cpu", "cpu": 16, "memory": "64Gi", "max": 10}])).unwrap();
        assert_eq!(pools[0].allocatable.cpu, Some(Quantity::from_units(16)));
        assert_eq!(
            (pools[0].min, pools[0].start_s, pools[0].idle_s),
            (0, 60.0, 600.0)
        );
        assert!(pools[0].labels.is_empty() && pools[0].taints.is_empty());
        for (wrong, says) in [
            (json!({}), "a list of"),
            (json!([]), "there is no pool"),
            (
                json!([{"name": "a", "cpu": 1, "memory": "1Gi"}]),
                "missing field `max`",
            ),
            (
                json!([{"name": "a", "cpu": 1, "memory": "1Gi", "max": 1, "size": 3}]),
                "unknown field `size`",
            ),
            (
                json!([{"name": "a", "cpu": "0", "memory": "1Gi", "max": 1}]),
                "cpu is 0: write more",
            ),
            (
                json!([{"name": "a", "cpu": 1, "memory": "1Gi", "max": 1, "min": 2}]),
                "min is 2 and max 1",
            ),
            (
                json!([{"name": "a", "cpu": 1, "memory": "1Gi", "max": 1, "startSeconds": -1}]),
                "write 0 to",
            ),
            (
                json!([{"name": "a", "cpu": 1, "memory": "1Gi", "max": 1,
                    "taints": [{"key": "gpu", "effect": "PreferNoSchedule"}]}]),
                "taint \"gpu\" is \"PreferNoSchedule\"",
            ),
        ] {
            let error = read(&wrong).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
