//! The resources that Ray's autoscaler takes a node of a group to have.
//!
//! The autoscaler never asks a group's pods; it derives whole numbers from the spec alone, and
//! only container 0 of the template counts (Ray, `autoscaler/_private/kuberay/
//! autoscaling_config.py`, `_get_ray_resources_from_group_spec`). Where Ray raises, and thereby
//! stops scaling the whole cluster, the functions here return a [`ResourceError`].

use serde_json::Value;

use super::start_params::{StartResourcesError, start_integer, start_resources};
use super::{Fields, Group, tpu};
use crate::quantity::{Quantity, QuantityError};

/// The keys of a group's `resources` that are no custom resources. Exact: `cpu` is a custom one.
pub const STANDARD: [&str; 4] = ["CPU", "GPU", "TPU", "memory"];

/// Where an amount was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The group's own `resources`.
    GroupResources,
    /// `rayStartParams`.
    StartParam,
    /// `resources.limits` of the ray container.
    Limit,
    /// `resources.requests` of the ray container.
    Request,
}

/// An amount and where it was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Derived {
    /// Whole units (cores, bytes, pieces), rounded up.
    pub amount: i64,
    /// Where it was found.
    pub source: Source,
}

/// Why Ray cannot derive a group's resources.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResourceError {
    /// The template has no container, or its first is no object.
    #[error("the template has no container: add the ray container as its first")]
    NoContainer,
    /// No source says how many CPUs there are; Ray insists on knowing.
    #[error("no CPU count can be derived: set a CPU limit on the ray container")]
    CpuUnknown,
    /// A start parameter that is no integer.
    #[error("rayStartParams.{key} is no integer: write a whole number in quotes")]
    NotAnInteger {
        /// The parameter.
        key: &'static str,
    },
    /// A value that is no quantity.
    #[error("the amount of {resource} is no quantity: {error}")]
    NotAQuantity {
        /// The resource.
        resource: String,
        /// Why not.
        error: QuantityError,
    },
    /// `rayStartParams.resources` that cannot be read.
    #[error("rayStartParams.resources: {0}")]
    StartResources(#[from] StartResourcesError),
    /// The pod's TPU topology cannot be read.
    #[error(transparent)]
    Topology(#[from] tpu::BadTopology),
    /// Less than nothing of a resource.
    #[error("the amount of {0} is negative: write 0 or more")]
    Negative(String),
}

/// What a node of a group has, by resource, in the order in which Ray lists it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeResources(Vec<(String, i64)>);

impl NodeResources {
    /// Derives what a node of `group` has.
    pub fn of(group: &Group<'_>) -> Result<Self, ResourceError> {
        let custom = custom(group)?;
        let mut derived = Self::default();
        let cpu = cpu(group)?.ok_or(ResourceError::CpuUnknown)?;
        derived.set("CPU", cpu.amount);
        if let Some(gpu) = gpu(group)? {
            derived.set("GPU", gpu.amount);
        }
        derived.add_tpu(group, &custom)?;
        if let Some(memory) = memory(group)? {
            derived.set("memory", memory.amount);
        }
        for (resource, amount) in &custom {
            derived.set(resource, *amount);
        }
        match derived.0.iter().find(|(_, amount)| *amount < 0) {
            Some((resource, _)) => Err(ResourceError::Negative(resource.clone())),
            None => Ok(derived),
        }
    }

    /// The amount of a resource; 0 of what is not listed.
    pub fn amount(&self, resource: &str) -> i64 {
        self.iter()
            .find(|(name, _)| *name == resource)
            .map_or(0, |(_, amount)| amount)
    }

    /// Every resource with its amount, in Ray's order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, i64)> {
        self.0.iter().map(|(name, amount)| (name.as_str(), *amount))
    }

    /// Like Python's dict: a known resource keeps its place and takes the new amount.
    fn set(&mut self, resource: &str, amount: i64) {
        match self.0.iter_mut().find(|(name, _)| name == resource) {
            Some(entry) => entry.1 = amount,
            None => self.0.push((resource.to_owned(), amount)),
        }
    }

    fn add_tpu(
        &mut self,
        group: &Group<'_>,
        custom: &[(String, i64)],
    ) -> Result<(), ResourceError> {
        let listed = custom.iter().find(|(resource, _)| resource == "TPU");
        let Some(amount) = tpu(group, listed.map(|(_, amount)| *amount))? else {
            return Ok(());
        };
        if listed.is_none() {
            self.set("TPU", amount);
        }
        if let Some(head) = tpu::head_resource(group)? {
            self.set(&head, 1);
        }
        Ok(())
    }
}

/// The CPUs of a node: group `resources`, else `num-cpus`, else the container's limit, else its
/// request. `None` if none of them says, which Ray does not accept.
pub fn cpu(group: &Group<'_>) -> Result<Option<Derived>, ResourceError> {
    match declared(group, "CPU", "num-cpus")? {
        Some(declared) => Ok(Some(declared)),
        None => of_container(group, "cpu"),
    }
}

/// The memory of a node in bytes, from the sources of [`cpu`]. `None` if none of them says.
pub fn memory(group: &Group<'_>) -> Result<Option<Derived>, ResourceError> {
    match declared(group, "memory", "memory")? {
        Some(declared) => Ok(Some(declared)),
        None => of_container(group, "memory"),
    }
}

/// The GPUs of a node: group `resources`, else `num-gpus`, else the first entry of the container's
/// limits, then requests, whose name ends in `gpu` and that is above zero.
pub fn gpu(group: &Group<'_>) -> Result<Option<Derived>, ResourceError> {
    if let Some(declared) = declared(group, "GPU", "num-gpus")? {
        return Ok(Some(declared));
    }
    for (source, amounts) in container_amounts(group)? {
        for (resource, value) in amounts {
            if resource.ends_with("gpu") {
                let amount = whole(resource, value)?;
                if amount > 0 {
                    return Ok(Some(Derived { amount, source }));
                }
            }
        }
    }
    Ok(None)
}

/// The custom resources of a node: every non-standard key of group `resources` if there are any
/// `resources`, else those of `rayStartParams.resources`.
pub fn custom(group: &Group<'_>) -> Result<Vec<(String, i64)>, ResourceError> {
    match group.resources() {
        Some(resources) => resources
            .iter()
            .filter(|(resource, _)| !STANDARD.contains(&resource.as_str()))
            .map(|(resource, value)| Ok((resource.clone(), whole(resource, value)?)))
            .collect(),
        None => match group.start_param("resources").filter(|v| !v.is_null()) {
            Some(value) => Ok(start_resources(value.as_str().unwrap_or_default())?),
            None => Ok(Vec::new()),
        },
    }
}

fn tpu(group: &Group<'_>, listed: Option<i64>) -> Result<Option<i64>, ResourceError> {
    if let Some(value) = group.resources().and_then(|map| present(map, "TPU")) {
        return whole("TPU", value).map(Some);
    }
    if listed.is_some() {
        return Ok(listed);
    }
    for (_, amounts) in container_amounts(group)? {
        if let Some(value) = present(amounts, "google.com/tpu") {
            let amount = whole("google.com/tpu", value)?;
            if amount > 0 {
                return Ok(Some(amount));
            }
        }
    }
    Ok(None)
}

/// An amount that the group itself declares: in its `resources`, else in a start parameter.
fn declared(
    group: &Group<'_>,
    resource: &str,
    param: &'static str,
) -> Result<Option<Derived>, ResourceError> {
    if let Some(value) = group.resources().and_then(|map| present(map, resource)) {
        let amount = whole(resource, value)?;
        let source = Source::GroupResources;
        return Ok(Some(Derived { amount, source }));
    }
    let Some(value) = group.start_param(param).filter(|value| !value.is_null()) else {
        return Ok(None);
    };
    let amount = start_integer(value).ok_or(ResourceError::NotAnInteger { key: param })?;
    let source = Source::StartParam;
    Ok(Some(Derived { amount, source }))
}

/// An amount that the ray container has: its limit, else its request.
fn of_container(group: &Group<'_>, resource: &str) -> Result<Option<Derived>, ResourceError> {
    for (source, amounts) in container_amounts(group)? {
        if let Some(value) = present(amounts, resource) {
            let amount = whole(resource, value)?;
            return Ok(Some(Derived { amount, source }));
        }
    }
    Ok(None)
}

/// Limits, then requests of the ray container.
fn container_amounts<'a>(
    group: &Group<'a>,
) -> Result<impl Iterator<Item = (Source, &'a Fields)>, ResourceError> {
    let container = group.ray_container().ok_or(ResourceError::NoContainer)?;
    let limits = container.limits().map(|map| (Source::Limit, map));
    let requests = container.requests().map(|map| (Source::Request, map));
    Ok(limits.into_iter().chain(requests))
}

/// The value of a key; null counts as absent, because the API server drops it.
fn present<'a>(map: &'a Fields, key: &str) -> Option<&'a Value> {
    map.get(key).filter(|value| !value.is_null())
}

/// A quantity in whole units, rounded up. Python's `Decimal` takes blanks around a number.
fn whole(resource: &str, value: &Value) -> Result<i64, ResourceError> {
    let quantity = match value {
        Value::String(text) => Quantity::parse(text.trim()),
        other => Quantity::from_json(other),
    };
    match quantity {
        Ok(quantity) => Ok(saturated(quantity.ceil_units())),
        Err(error) => Err(ResourceError::NotAQuantity {
            resource: resource.to_owned(),
            error,
        }),
    }
}

fn saturated(amount: i128) -> i64 {
    let bound = if amount < 0 { i64::MIN } else { i64::MAX };
    i64::try_from(amount).unwrap_or(bound)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
}
