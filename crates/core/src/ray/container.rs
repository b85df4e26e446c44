//! A container of a pod template.

use super::resource::{Amounts, Resource};
use crate::json::{Fields, Json};

use crate::quantity::Quantity;

/// The environment variable that says how often Ray's memory monitor looks, in milliseconds. At 0 it is off.
pub const MEMORY_MONITOR: &str = "RAY_memory_monitor_refresh_ms";

/// A container of a pod template.
#[derive(Debug, Clone, Copy)]
pub struct Container<'a> {
    /// The position in `containers`, from 0.
    pub index: usize,
    /// The container's own fields.
    pub spec: Fields<'a>,
    // These are looked up once, because most rules ask for them.
    /// `resources.limits`, if they are there.
    pub limits: Option<Fields<'a>>,
    /// `resources.requests`, if they are there.
    pub requests: Option<Fields<'a>>,
    limit_amounts: Amounts,
    request_amounts: Amounts,
}

/// A quantity of a resource list. A value that is not a quantity reads as absent.
fn quantity_at(amounts: Option<Fields<'_>>, resource: &str) -> Option<Quantity> {
    // The API server itself refuses a template with another value.
    Quantity::from_json(amounts?.get(resource)?).ok()
}

impl<'a> Container<'a> {
    /// The container at that position.
    pub fn new(index: usize, spec: impl Into<Fields<'a>>) -> Self {
        let spec = spec.into();
        let resources = spec.object("resources");
        let limits = resources.and_then(|resources| resources.object("limits"));
        let requests = resources.and_then(|resources| resources.object("requests"));
        let amounts = |list| Amounts::each(|resource| quantity_at(list, resource.name()));
        Self {
            index,
            spec,
            limits,
            requests,
            limit_amounts: amounts(limits),
            request_amounts: amounts(requests),
        }
    }

    /// `name`, if it is there.
    pub fn name(&self) -> Option<&'a str> {
        self.spec.text("name")
    }

    /// `image`, if it is there.
    pub fn image(&self) -> Option<&'a str> {
        self.spec.text("image")
    }

    /// The limit of a resource. A value that is not a quantity reads as absent (the API server
    /// refuses such a template itself).
    pub fn limit(&self, resource: &str) -> Option<Quantity> {
        let amount = self.limit_amounts.get(resource);
        amount.or_else(|| quantity_at(self.limits, resource))
    }

    /// The request of a resource, which is read like [`Self::limit`].
    pub fn request(&self, resource: &str) -> Option<Quantity> {
        let amount = self.request_amounts.get(resource);
        amount.or_else(|| quantity_at(self.requests, resource))
    }

    /// The size of the container for Ray: the limit, or else the request.
    pub fn size(&self, resource: &str) -> Option<Quantity> {
        self.limit(resource).or_else(|| self.request(resource))
    }

    /// The gap between limit and request, which a resize keeps.
    pub fn gap(&self, resource: Resource) -> Quantity {
        gap(self.limit(resource.name()), self.request(resource.name()))
    }

    /// The entries of `resizePolicy`.
    pub fn resize_policy(&self) -> impl Iterator<Item = Fields<'a>> {
        self.spec.list("resizePolicy").objects()
    }

    /// The value of an environment variable. The value is empty if it comes from elsewhere
    /// (`valueFrom`).
    pub fn env(&self, name: &str) -> Option<&'a str> {
        // In Kubernetes the last entry of a name wins.
        let mut entries = self.spec.list("env").objects();
        let entry = entries.rfind(|entry| entry.text("name") == Some(name))?;
        Some(entry.text("value").unwrap_or_default())
    }

    /// The position in `env` of the entry that [`Self::env`] reads.
    pub fn env_index(&self, name: &str) -> Option<usize> {
        let is_named = |entry: Json<'_>| entry.get("name").is_some_and(|of| of == name);
        self.spec.list("env").iter().rposition(is_named)
    }
}

/// The amount by which a container's limit is above its request. A resize keeps this gap, so that
/// the pod's quality-of-service class does not change (Ray, KubeRay IPPR provider,
/// `_resource_gap`).
pub fn gap(limit: Option<Quantity>, request: Option<Quantity>) -> Quantity {
    limit
        .zip(request)
        .and_then(|(limit, request)| limit.checked_sub(request))
        .filter(|gap| !gap.is_negative())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gap_is_between_limit_and_request() {
        let cores = |cores| Some(Quantity::from_units(cores));
        assert_eq!(gap(cores(4), cores(1)), Quantity::from_units(3));
        assert_eq!(gap(None, cores(1)), Quantity::ZERO);
        assert_eq!(gap(cores(1), cores(4)), Quantity::ZERO);
    }
}
