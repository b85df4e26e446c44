//! The resources that Ray's autoscaler expects a node of a group to have.
//!
//! The autoscaler never asks a group's pods. It derives whole numbers from the spec alone, and only
//! the first container of the template counts (Ray,
//! `autoscaler/_private/kuberay/autoscaling_config.py`, `_get_ray_resources_from_group_spec`).
//! Where Ray raises an exception, and thereby stops scaling the whole cluster, the functions here
//! return a [`ResourceError`].

mod amounts;
pub mod tpu;

pub use amounts::{ResourceError, cpu, gpu};

use std::collections::HashMap;

use super::Group;

/// The limit of AWS Neuron cores, and Ray's resource that KubeRay makes of it.
const NEURON: (&str, &str) = ("aws.amazon.com/neuroncore", "neuron_cores");

/// The resources of a node of a group, in the order in which Ray lists them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeResources(Vec<(String, i64)>);

impl NodeResources {
    /// Derives what a node of `group` has.
    pub fn of(group: &Group<'_>) -> Result<Self, ResourceError> {
        let custom = amounts::custom(group)?;
        let mut derived = Self::default();
        derived.set("CPU", cpu(group)?.ok_or(ResourceError::CpuUnknown)?);
        if let Some(gpu) = gpu(group)? {
            derived.set("GPU", gpu);
        }
        let listed = custom.iter().find(|(resource, _)| resource == "TPU");
        if let Some(tpu) = amounts::tpu(group, listed.map(|(_, amount)| *amount))? {
            // A `TPU` among the custom resources is added with these, after the memory, as Ray does it.
            if listed.is_none() {
                derived.set("TPU", tpu);
            }
            if let Some(head) = tpu::head_resource(group)? {
                derived.set(&head, 1);
            }
        }
        let memory = ("memory", "memory", "memory");
        if let Some(memory) = amounts::cpu_or_memory(group, memory)? {
            derived.set("memory", memory);
        }
        // Not one by one, as there may be very many of them.
        let places = derived.0.iter().enumerate();
        let mut places: HashMap<String, usize> =
            places.map(|(at, (name, _))| (name.clone(), at)).collect();
        for (resource, amount) in custom {
            if let Some(entry) = places.get(&resource).and_then(|at| derived.0.get_mut(*at)) {
                entry.1 = amount;
            } else {
                places.insert(resource.clone(), derived.0.len());
                derived.0.push((resource, amount));
            }
        }
        // Ray checks the resulting configuration against `ray-schema.json`, which allows no
        // negative amount.
        match derived.0.iter().find(|(_, amount)| *amount < 0) {
            Some((resource, _)) => Err(ResourceError::Negative(resource.clone())),
            None => Ok(derived),
        }
    }

    /// The resources with which KubeRay starts a node of `group`, for which Ray's autoscaler derives these.
    /// (KubeRay, `common/pod.go`, `updateRayStartParamsResources` and
    /// `addWellKnownAcceleratorResources`.)
    pub fn started(&self, group: &Group<'_>) -> Result<Self, ResourceError> {
        let mut started = self.clone();
        for (name, value) in group.resources.unwrap_or_default().iter() {
            // KubeRay reads these names in any case; for Ray they are custom resources.
            let standard = match name.to_lowercase().as_str() {
                "cpu" => "CPU",
                "memory" => "memory",
                other if is_gpu(other) => "GPU",
                _ => continue,
            };
            if name != standard {
                started.0.retain(|(listed, _)| listed != name);
                started.set(standard, amounts::whole(name, value)?);
            }
        }
        let container = group.ray_container;
        let limits = container.and_then(|container| container.limits);
        let has = |name: &str| started.iter().any(|(listed, _)| listed == name);
        let (has_gpu, has_neuron) = (has("GPU"), has(NEURON.1) || has("TPU"));
        let mut sorted: Vec<_> = limits.unwrap_or_default().iter().collect();
        sorted.sort_by_key(|(name, _)| *name);
        let mut first = |known: &str, is_meant: &dyn Fn(&str) -> bool| {
            for (name, value) in sorted.iter().filter(|(name, _)| is_meant(name)) {
                let amount = amounts::whole(name, *value)?;
                if amount > 0 {
                    started.set(known, amount);
                    break;
                }
            }
            Ok::<(), ResourceError>(())
        };
        if !has_gpu {
            first("GPU", &is_gpu)?;
        }
        if !has_neuron {
            first(NEURON.1, &|name| name == NEURON.0)?;
        }
        Ok(started)
    }

    /// The amount of a resource; 0 if the resource is not listed.
    pub fn amount(&self, resource: &str) -> i64 {
        self.iter()
            .find(|(name, _)| *name == resource)
            .map_or(0, |(_, amount)| amount)
    }

    /// Every resource with its amount, in Ray's order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, i64)> {
        self.0.iter().map(|(name, amount)| (name.as_str(), *amount))
    }

    /// Sets an amount as in Python's dict: a known resource keeps its place and gets the new
    /// amount.
    fn set(&mut self, resource: &str, amount: i64) {
        match self.0.iter_mut().find(|(name, _)| name == resource) {
            Some(entry) => entry.1 = amount,
            None => self.0.push((resource.to_owned(), amount)),
        }
    }
}

/// True for a resource that KubeRay takes for GPUs: `nvidia.com/gpu` and others, and slices of MIG.
/// (`IsGPUResourceKey`.)
fn is_gpu(name: &str) -> bool {
    name.ends_with("gpu") || name.starts_with("nvidia.com/mig-") && name.ends_with("gb")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::ray::{Kind, Role};

    fn derive(group: &Value) -> Result<Vec<(String, i64)>, ResourceError> {
        let spec = group.as_object().unwrap();
        let group = Group::parse(Kind::RayCluster, Role::Worker { index: 0 }, spec);
        NodeResources::of(&group).map(|resources| resources.0)
    }

    fn group(params: &Value, resources: &Value, container: &Value) -> Value {
        json!({
            "rayStartParams": params,
            "resources": resources,
            "template": {"spec": {"containers": [{"resources": container}]}},
        })
    }

    fn pairs(list: &[(&str, i64)]) -> Vec<(String, i64)> {
        list.iter()
            .map(|(name, amount)| ((*name).to_owned(), *amount))
            .collect()
    }

    #[test]
    fn the_first_source_that_says_wins() {
        let container =
            json!({"limits": {"cpu": "1001m", "memory": "1Ki"}, "requests": {"cpu": 1}});
        let params = json!({"num-cpus": " 4 ", "memory": "10"});
        let derived = |params: &Value, resources: &Value| {
            derive(&group(params, resources, &container)).unwrap()
        };
        assert_eq!(
            derived(&params, &json!({"CPU": "500m", "memory": "2k"})),
            pairs(&[("CPU", 1), ("memory", 2000)])
        );
        assert_eq!(
            derived(&params, &json!({})),
            pairs(&[("CPU", 4), ("memory", 10)])
        );
        assert_eq!(
            derived(&json!({}), &json!({})),
            pairs(&[("CPU", 2), ("memory", 1024)])
        );
        let requests = json!({"requests": {"cpu": "500m"}});
        assert_eq!(
            derive(&group(&json!({}), &json!({}), &requests)).unwrap(),
            pairs(&[("CPU", 1)])
        );
    }

    #[test]
    fn gpus_are_found_by_the_end_of_their_name() {
        let container = json!({"limits": {"cpu": 1, "a.example/gpu": 0, "nvidia.com/gpu": 2,
            "nvidia.com/mig-1g.5gb": 7}});
        let none = json!({});
        assert_eq!(
            derive(&group(&none, &none, &container)).unwrap(),
            pairs(&[("CPU", 1), ("GPU", 2)])
        );
        assert_eq!(
            derive(&group(&json!({"num-gpus": "0"}), &none, &container)).unwrap(),
            pairs(&[("CPU", 1), ("GPU", 0)])
        );
    }

    #[test]
    fn group_resources_are_the_only_source_of_custom_ones() {
        let params = json!({"resources": r#"'{"a": 1}'"#});
        let container = json!({"limits": {"cpu": 2}});
        assert_eq!(
            derive(&group(&params, &json!({"cpu": "1500m"}), &container)).unwrap(),
            pairs(&[("CPU", 2), ("cpu", 2)]),
            "lower-case cpu is a custom resource"
        );
        assert_eq!(
            derive(&group(&params, &json!({}), &container)).unwrap(),
            pairs(&[("CPU", 2), ("a", 1)])
        );
    }

    #[test]
    fn tpu_slices_have_a_head_resource() {
        let mut tpus = group(
            &json!({}),
            &json!({}),
            &json!({"limits": {"cpu": 1, "memory": 8, "google.com/tpu": "4"}}),
        );
        tpus["template"]["spec"]["nodeSelector"] = json!({
            "cloud.google.com/gke-tpu-topology": "2x2x2",
            "cloud.google.com/gke-tpu-accelerator": "tpu-v4-podslice",
        });
        let derived = pairs(&[("CPU", 1), ("TPU", 4), ("TPU-v4-16-head", 1), ("memory", 8)]);
        assert_eq!(derive(&tpus).unwrap(), derived);

        tpus["rayStartParams"] = json!({"resources": r#"'{"TPU": 3}'"#});
        let derived = pairs(&[("CPU", 1), ("TPU-v4-16-head", 1), ("memory", 8), ("TPU", 3)]);
        assert_eq!(derive(&tpus).unwrap(), derived);

        tpus["template"]["spec"]["nodeSelector"]["cloud.google.com/gke-tpu-topology"] = json!("2x");
        assert!(matches!(derive(&tpus), Err(ResourceError::Topology(_))));
    }

    #[test]
    fn what_ray_raises_is_an_error() {
        let none = json!({});
        let container = json!({"limits": {"cpu": 1}});
        let of = |params: Value, resources: Value| derive(&group(&params, &resources, &container));
        assert_eq!(
            derive(&group(&none, &none, &none)),
            Err(ResourceError::CpuUnknown)
        );
        assert_eq!(derive(&none), Err(ResourceError::NoContainer));
        assert_eq!(
            of(json!({}), json!({"a": "1K"})),
            Ok(pairs(&[("CPU", 1), ("a", 1000)])),
            "but not on this"
        );
        assert_eq!(
            of(json!({"memory": "4Gi"}), json!({})),
            Err(ResourceError::NotAnInteger { key: "memory" })
        );
        assert_eq!(
            of(json!({"num-gpus": "-1"}), json!({})),
            Err(ResourceError::Negative("GPU".to_owned()))
        );
        assert!(matches!(
            of(json!({}), json!({"a": "many"})),
            Err(ResourceError::NotAQuantity { .. })
        ));
        assert!(matches!(
            of(json!({"resources": "{}"}), json!({})),
            Err(ResourceError::StartResources(_))
        ));
    }

    fn started(params: &Value, resources: &Value, limits: &Value) -> Vec<(String, i64)> {
        let group = json!({"rayStartParams": params, "resources": resources,
            "template": {"spec": {"containers": [{"resources": {"limits": limits}}]}}});
        let spec = group.as_object().unwrap();
        let group = Group::parse(Kind::RayCluster, Role::Worker { index: 0 }, spec);
        let derived = NodeResources::of(&group).unwrap();
        derived.started(&group).unwrap().0
    }

    #[test]
    fn names_of_group_resources_are_read_in_any_case() {
        let resources = json!({"cpu": "4", "memory": "16", "gpu": 1, "disk": 2});
        let limits = json!({"cpu": 8, "memory": 32});
        assert_eq!(
            started(&json!({}), &resources, &limits),
            pairs(&[("CPU", 4), ("memory", 16), ("disk", 2), ("GPU", 1)])
        );
    }

    #[test]
    fn slices_of_gpus_and_neuron_cores_are_told_to_ray_unless_somebody_says_how_many() {
        let limits = json!({"cpu": 8, "aws.amazon.com/neuroncore": 2, "nvidia.com/mig-1g.5gb": 3});
        let none = json!({});
        assert_eq!(
            started(&none, &none, &limits),
            pairs(&[("CPU", 8), ("GPU", 3), ("neuron_cores", 2)])
        );
        let params = json!({"num-gpus": "1", "resources": r#"'{"neuron_cores": 4}'"#});
        assert_eq!(
            started(&params, &none, &limits),
            pairs(&[("CPU", 8), ("GPU", 1), ("neuron_cores", 4)])
        );
    }
}
