//! The amounts of a group's node: in which places, and in which order, Ray looks for each of them; and the errors
//! that keep it from deriving them.

use crate::json::{Fields, Json};
use crate::quantity::{Quantity, QuantityError};
use crate::ray::Group;
use crate::ray::start_params::{StartResourcesError, start_integer, start_resources};

/// The keys of a group's `resources` that are not custom resources. They are compared exactly:
/// `cpu` is a custom resource.
const STANDARD: [&str; 4] = ["CPU", "GPU", "TPU", "memory"];

/// The error of a group whose resources Ray cannot derive.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum ResourceError {
    /// The template has no container, or its first one is not an object.
    #[error("the template has no container: add the ray container as its first")]
    NoContainer,
    /// No source says how many CPUs there are, and Ray insists on knowing.
    #[error("no CPU count can be derived: set a CPU limit on the ray container")]
    CpuUnknown,
    /// A start parameter is not an integer.
    #[error("rayStartParams.{key} is not an integer: write a whole number in quotes")]
    NotAnInteger {
        /// The name of the parameter.
        key: &'static str,
    },
    /// A value is not a quantity.
    #[error("the amount of {resource} is not a quantity: {error}")]
    NotAQuantity {
        /// The name of the resource.
        resource: String,
        /// The error of the value.
        error: QuantityError,
    },
    /// `rayStartParams.resources` cannot be read.
    #[error("rayStartParams.resources: {0}")]
    StartResources(#[from] StartResourcesError),
    /// The topology of the pod's TPUs is not numbers joined by `x`.
    #[error("the TPU topology {0:?} is not numbers joined by x: write it like 2x2x2")]
    Topology(String),
    /// The amount of a resource is negative.
    #[error("the amount of {0} is negative: write 0 or more")]
    Negative(String),
}

/// The CPUs of a node in whole cores, rounded up: from the group's `resources`, else from `num-cpus`,
/// else from the container's limit, else from its request. `None` if none of them says, which Ray does
/// not accept.
pub fn cpu(group: &Group<'_>) -> Result<Option<i64>, ResourceError> {
    cpu_or_memory(group, ("CPU", "num-cpus", "cpu"))
}

/// CPUs, or the memory in bytes, by the names that each has in the group's `resources`, among the start
/// parameters and in the container.
pub(super) fn cpu_or_memory(
    group: &Group<'_>,
    (resource, param, name): (&str, &'static str, &str),
) -> Result<Option<i64>, ResourceError> {
    if let Some(amount) = declared(group, resource, param)? {
        return Ok(Some(amount));
    }
    for amounts in container_amounts(group)? {
        if let Some(value) = present(amounts, name) {
            return whole(name, value).map(Some);
        }
    }
    Ok(None)
}

/// The GPUs of a node: from the group's `resources`, else from `num-gpus`, else from the first
/// entry of the container's limits, then requests, whose name ends in `gpu` and that is above zero.
pub fn gpu(group: &Group<'_>) -> Result<Option<i64>, ResourceError> {
    if let Some(amount) = declared(group, "GPU", "num-gpus")? {
        return Ok(Some(amount));
    }
    for (resource, value) in container_amounts(group)?.flat_map(Fields::iter) {
        if resource.ends_with("gpu") {
            let amount = whole(resource, value)?;
            // Ray goes on past a zero and takes the first kind of GPU that is there.
            if amount > 0 {
                return Ok(Some(amount));
            }
        }
    }
    Ok(None)
}

/// The custom resources of a node: every non-standard key of the group's `resources`, if the group
/// has any `resources`, else the keys of `rayStartParams.resources`.
pub(super) fn custom(group: &Group<'_>) -> Result<Vec<(String, i64)>, ResourceError> {
    match group.resources {
        Some(resources) => resources
            .iter()
            .filter(|(resource, _)| !STANDARD.contains(resource))
            .map(|(resource, value)| Ok((resource.to_owned(), whole(resource, value)?)))
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
    if let Some(value) = group.resources.and_then(|map| present(map, "TPU")) {
        return whole("TPU", value).map(Some);
    }
    if listed.is_some() {
        return Ok(listed);
    }
    for amounts in container_amounts(group)? {
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
) -> Result<Option<i64>, ResourceError> {
    if let Some(value) = group.resources.and_then(|map| present(map, resource)) {
        return whole(resource, value).map(Some);
    }
    let Some(value) = group.start_param(param).filter(|value| !value.is_null()) else {
        return Ok(None);
    };
    let amount = start_integer(value).ok_or(ResourceError::NotAnInteger { key: param })?;
    Ok(Some(amount))
}

/// The limits of the ray container, then its requests.
fn container_amounts<'a>(
    group: &Group<'a>,
) -> Result<impl Iterator<Item = Fields<'a>>, ResourceError> {
    let container = group.ray_container.ok_or(ResourceError::NoContainer)?;
    Ok(container.limits.into_iter().chain(container.requests))
}

/// The value of a key. A null counts as absent.
fn present<'a>(map: Fields<'a>, key: &str) -> Option<Json<'a>> {
    // The API server drops it.
    map.get(key).filter(|value| !value.is_null())
}

/// A quantity in whole units, rounded up, within the bounds of 64 bits.
pub(super) fn whole(resource: &str, value: Json<'_>) -> Result<i64, ResourceError> {
    let quantity = match value {
        // Python's `Decimal` accepts blanks around a number, and Ray accepts a capital K for a
        // thousand, which Kubernetes does not.
        Json::String(text) => match text.trim().strip_suffix('K') {
            Some(thousands) => Quantity::parse(&format!("{thousands}k")),
            None => Quantity::parse(text.trim()),
        },
        other => Quantity::from_json(other),
    };
    let quantity = quantity.map_err(|error| ResourceError::NotAQuantity {
        resource: resource.to_owned(),
        error,
    })?;
    let bound = if quantity.is_negative() {
        i64::MIN
    } else {
        i64::MAX
    };
    Ok(i64::try_from(quantity.ceil_units()).unwrap_or(bound))
}
