//! The GPUs of a pod as Kubernetes hands them out: by the resource names of device plugins,
//! whatever Ray is told.

use std::collections::{BTreeMap, BTreeSet};

use super::parts::{PodSum, parts};
use crate::json::Fields;
use crate::quantity::Quantity;
use crate::ray::{Cluster, Group};

/// True for a resource that counts as GPUs: a GPU, a slice or a share of one, or an accelerator of
/// another kind. Each piece that is handed out counts as one. Resources that measure GPUs (their
/// memory, their percentage) do not count.
///
/// Ray counts names that end in `gpu` (Ray, `_get_num_gpus`), and KubeRay counts MIG slices too
/// (KubeRay, `IsGPUResourceKey`). Both know TPUs, and KubeRay knows Neuron cores. The other names
/// are those of the vendors' device plugins for accelerators that Ray knows.
pub fn is_gpu(resource: &str) -> bool {
    let Some((vendor, name)) = resource.split_once('/') else {
        return false;
    };
    if name.ends_with("gpu") {
        return true;
    }
    match vendor {
        "nvidia.com" => name.starts_with("mig-") || name.starts_with("gpu."),
        // These are partitions of a GPU, such as `cpx_nps4`.
        "amd.com" => name.contains("px_nps"),
        "gpu.intel.com" => matches!(name, "i915" | "xe"),
        "habana.ai" => name.starts_with("gaudi"),
        "google.com" => name == "tpu",
        "aws.amazon.com" => name.starts_with("neuron"),
        "huawei.com" => name.starts_with("Ascend") && !name.ends_with("-memory"),
        "rebellions.ai" | "furiosa.ai" | "tenstorrent.com" => true,
        "cambricon.com" => name.starts_with("mlu") && !name.contains(['.', '-']),
        "hygon.com" => matches!(name, "dcu" | "dcunum"),
        "kunlunxin.com" => name == "xpu",
        "volcano.sh" => matches!(name, "vgpu-number" | "gpu-number"),
        _ => false,
    }
}

/// The number of GPUs that Kubernetes reserves for a pod of a group, in all its containers
/// together.
pub fn gpus(cluster: &Cluster<'_>, group: &Group<'_>) -> i128 {
    // Each container is looked at for its own names only: there is room for ten thousands of both.
    let mut by_name: BTreeMap<&str, PodSum> = BTreeMap::new();
    for (role, container) in parts(cluster, group) {
        let Some(container) = container else {
            continue;
        };
        let amounts = [container.limits, container.requests];
        let names: BTreeSet<&str> = amounts
            .into_iter()
            .flatten()
            .flat_map(Fields::keys)
            .filter(|name| is_gpu(name))
            .collect();
        for name in names {
            // Limit and request are the same for devices, but only once the API server has seen to
            // that.
            let pieces = container.limit(name).max(container.request(name));
            let pieces = pieces.unwrap_or_default().max(Quantity::ZERO);
            by_name.entry(name).or_default().add(role, pieces);
        }
    }
    let sums = by_name.values();
    sums.map(|sum| sum.total().ceil_units()).sum()
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::*;
    use crate::ray::Kind;

    #[test]
    fn vendors_names_are_known_and_measures_are_not() {
        for name in [
            "nvidia.com/gpu",
            "nvidia.com/gpu.shared",
            "nvidia.com/mig-1g.5gb",
            "nvidia.com/mig-1g.5gb.me.shared",
            "amd.com/gpu",
            "amd.com/cpx_nps4",
            "gpu.intel.com/i915",
            "gpu.intel.com/xe",
            "habana.ai/gaudi",
            "google.com/tpu",
            "aws.amazon.com/neuron",
            "aws.amazon.com/neuroncore",
            "huawei.com/Ascend910",
            "a.example/vgpu",
        ] {
            assert!(is_gpu(name), "{name}");
        }
        for name in [
            "cpu",
            "gpu",
            "memory",
            "aliyun.com/gpu-mem",
            "nvidia.com/gpumem",
            "nvidia.com/gpucores",
            "gpu.intel.com/millicores",
            "huawei.com/Ascend910-memory",
            "example.com/license",
        ] {
            assert!(!is_gpu(name), "{name}");
        }
    }

    fn count(pod: &Value) -> i128 {
        let spec = json!({"workerGroupSpecs": [{"template": {"spec": pod}}]});
        let cluster = Cluster::parse(Kind::RayCluster, &spec);
        gpus(&cluster, &cluster.workers[0])
    }

    #[test]
    fn containers_add_up_and_init_containers_give_back() {
        let with = |name: &str, count: i64| json!({"resources": {"limits": {name: count}}});
        let gpu = |count| with("nvidia.com/gpu", count);
        let mut sidecar = gpu(1);
        sidecar["restartPolicy"] = json!("Always");
        assert_eq!(count(&json!({"containers": [gpu(2), gpu(3)]})), 5);
        let init = json!({"initContainers": [gpu(8)], "containers": [gpu(2)]});
        assert_eq!(count(&init), 8);
        let beside = json!({"initContainers": [sidecar, gpu(4)], "containers": [gpu(2)]});
        assert_eq!(count(&beside), 5);
        let mixed =
            json!({"containers": [with("nvidia.com/mig-1g.5gb", 7), with("amd.com/gpu", 1)]});
        assert_eq!(count(&mixed), 8);
        let asked = json!({"containers": [{"resources": {"requests": {"google.com/tpu": "4"}}}]});
        assert_eq!(count(&asked), 4);
    }

    /// With time by their product this would take minutes.
    #[test]
    fn many_names_and_many_containers_are_looked_at_once() {
        const MANY: usize = 50_000;
        let names: Map<String, Value> = (0..MANY)
            .map(|number| (format!("a.example/{number}-gpu"), json!(1)))
            .collect();
        let mut containers = vec![json!({}); MANY];
        containers[0] = json!({"resources": {"limits": names}});
        assert_eq!(count(&json!({ "containers": containers })), 50_000);
    }
}
