//! One amount of a group's node: in which places, and in which order, Ray looks for it.

use serde_json::Value;

use super::ResourceError;
use crate::quantity::Quantity;
use crate::ray::start_params::{start_integer, start_resources};
use crate::ray::{Fields, Group};

/// The keys of a group's `resources` that are not custom resources. They are compared exactly:
/// `cpu` is a custom resource.
const STANDARD: [&str; 4] = ["CPU", "GPU", "TPU", "memory"];

/// The source of an amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AmountSource {
    /// The group's own `resources`.
    GroupResources,
    /// `rayStartParams`.
    StartParam,
    /// `resources.limits` of the ray container.
    Limit,
    /// `resources.requests` of the ray container.
    Request,
}

/// An amount, and where it was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Derived {
    /// The amount in whole units (cores, bytes, pieces), rounded up.
    pub amount: i64,
    /// Its source.
    pub source: AmountSource,
}

/// The CPUs of a node: from the group's `resources`, else from `num-cpus`, else from the
/// container's limit, else from its request. `None` if none of them says, which Ray does not
/// accept.
pub fn cpu(group: &Group<'_>) -> Result<Option<Derived>, ResourceError> {
    match declared(group, "CPU", "num-cpus")? {
        Some(declared) => Ok(Some(declared)),
        None => of_container(group, "cpu"),
    }
}

/// The memory of a node in bytes, from the same sources as [`cpu`]. `None` if none of them says.
pub fn memory(group: &Group<'_>) -> Result<Option<Derived>, ResourceError> {
    match declared(group, "memory", "memory")? {
        Some(declared) => Ok(Some(declared)),
        None => of_container(group, "memory"),
    }
}

/// The GPUs of a node: from the group's `resources`, else from `num-gpus`, else from the first
/// entry of the container's limits, then requests, whose name ends in `gpu` and that is above zero.
pub fn gpu(group: &Group<'_>) -> Result<Option<Derived>, ResourceError> {
    if let Some(declared) = declared(group, "GPU", "num-gpus")? {
        return Ok(Some(declared));
    }
    for (source, amounts) in container_amounts(group)? {
        for (resource, value) in amounts {
            if resource.ends_with("gpu") {
                let amount = whole(resource, value)?;
                // Ray goes on past a zero and takes the first kind of GPU that is there.
                if amount > 0 {
                    return Ok(Some(Derived { amount, source }));
                }
            }
        }
    }
    Ok(None)
}

/// The custom resources of a node: every non-standard key of the group's `resources`, if the group
/// has any `resources`, else the keys of `rayStartParams.resources`.
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

/// The TPU chips of a node: from the group's `resources`, else from the custom resource (`listed`),
/// else from the container's limit or request above zero.
pub(super) fn tpu(group: &Group<'_>, listed: Option<i64>) -> Result<Option<i64>, ResourceError> {
    if let Some(value) = group.resources().and_then(|map| present(map, "TPU")) {
        return whole("TPU", value).map(Some);
    }
    if listed.is_some() {
        return Ok(listed);
    }
    for (_, amounts) in container_amounts(group)? {
        if let Some(value) = present(amounts, "google.com/tpu") {
            let amount = whole("google.com/tpu", value)?;
            // A zero in the limits counts as absent for Ray, which then looks at the requests.
            if amount > 0 {
                return Ok(Some(amount));
            }
        }
    }
    Ok(None)
}

/// An amount that the group itself declares, in its `resources`, else in a start parameter.
fn declared(
    group: &Group<'_>,
    resource: &str,
    param: &'static str,
) -> Result<Option<Derived>, ResourceError> {
    if let Some(value) = group.resources().and_then(|map| present(map, resource)) {
        let amount = whole(resource, value)?;
        let source = AmountSource::GroupResources;
        return Ok(Some(Derived { amount, source }));
    }
    let Some(value) = group.start_param(param).filter(|value| !value.is_null()) else {
        return Ok(None);
    };
    let amount = start_integer(value).ok_or(ResourceError::NotAnInteger { key: param })?;
    let source = AmountSource::StartParam;
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

/// The limits of the ray container, then its requests.
fn container_amounts<'a>(
    group: &Group<'a>,
) -> Result<impl Iterator<Item = (AmountSource, &'a Fields)>, ResourceError> {
    let container = group.ray_container().ok_or(ResourceError::NoContainer)?;
    let limits = container.limits().map(|map| (AmountSource::Limit, map));
    let requests = container.requests().map(|map| (AmountSource::Request, map));
    Ok(limits.into_iter().chain(requests))
}

/// The value of a key. A null counts as absent.
fn present<'a>(map: &'a Fields, key: &str) -> Option<&'a Value> {
    // The API server drops it.
    map.get(key).filter(|value| !value.is_null())
}

/// A quantity in whole units, rounded up.
pub(super) fn whole(resource: &str, value: &Value) -> Result<i64, ResourceError> {
    let quantity = match value {
        // Python's `Decimal` accepts blanks around a number, and Ray accepts a capital K for a
        // thousand, which Kubernetes does not.
        Value::String(text) => match text.trim().strip_suffix('K') {
            Some(thousands) => Quantity::parse(&format!("{thousands}k")),
            None => Quantity::parse(text.trim()),
        },
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
