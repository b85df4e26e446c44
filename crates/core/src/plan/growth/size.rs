//! The size of a pod in CPU and memory, the amounts by which it is known, and their conversions.

use crate::ray::resource::Amounts;
pub(crate) use crate::ray::resource::{Size, bytes, cores, from_cores};
use crate::snapshot::pod::Pod;

/// Amounts that differ by less are the same: Ray keeps four decimals.
pub(crate) const SAME: f64 = 1e-4;

/// The amounts of the Ray container, which is the first one, and of the other containers.
pub(crate) struct ContainerAmounts {
    pub(crate) requests: Amounts,
    pub(crate) limits: Amounts,
    /// The requests that Kubernetes has given; until it reports them, the requests of the spec.
    pub(crate) given_requests: Amounts,
    pub(crate) given_limits: Amounts,
    /// The requests that the other containers were given.
    pub(crate) others: Vec<Amounts>,
}

impl ContainerAmounts {
    pub(crate) fn of(pod: &Pod<'_>) -> Self {
        // KubeRay and Ray both take the first container for the one in which Ray runs.
        let spec = pod.containers().first();
        let spec_amounts = spec.map(|spec| spec.resources).unwrap_or_default();
        let name = spec.map(|spec| spec.name.as_str());
        let (mut ray_status, mut others) = (None, Vec::new());
        for status in pod.container_statuses() {
            let given = status.resources.unwrap_or_default();
            // The kubelet sorts the statuses by name, so their order is not that of the containers.
            // (Kubernetes, `kubelet/types`, `SortedContainerStatuses`.)
            if Some(status.name.as_str()) == name {
                ray_status = Some(given);
            } else {
                others.push(given.requests);
            }
        }
        let ray_status = ray_status.unwrap_or_default();
        let either = |given: Amounts, spec_amounts: Amounts| {
            if given.is_empty() {
                spec_amounts
            } else {
                given
            }
        };
        Self {
            requests: spec_amounts.requests,
            limits: spec_amounts.limits,
            given_requests: either(ray_status.requests, spec_amounts.requests),
            given_limits: either(ray_status.limits, spec_amounts.limits),
            others,
        }
    }
}

/// Bytes as Ray counts them.
#[expect(clippy::cast_precision_loss, reason = "Ray counts memory in f64")]
pub(crate) fn counted(bytes: i64) -> f64 {
    bytes as f64
}

/// Cores in whole thousandths.
#[expect(clippy::cast_possible_truncation, reason = "saturating")]
pub(crate) fn milli(cpu: f64) -> i64 {
    (cpu * 1000.0).round() as i64
}
