//! The size of a pod in CPU and memory, the amounts by which it is known, and their conversions.

use crate::ray::resource::Amounts;
pub(crate) use crate::ray::resource::{Size, bytes, cores, from_cores};
use crate::snapshot::pod::Pod;
use crate::snapshot::pod_object::Resources;

/// Amounts that differ by less are the same: Ray keeps four decimals.
pub(crate) const SAME: f64 = 1e-4;

/// The amounts of the Ray container, which is the first one, and of the other containers.
pub(crate) struct ContainerAmounts {
    /// The amounts in the spec.
    pub(crate) asked: Resources,
    /// The amounts that Kubernetes has given; until it reports them, those in the spec.
    pub(crate) given: Resources,
    /// The requests that the other containers were given.
    pub(crate) others: Vec<Amounts>,
}

impl ContainerAmounts {
    pub(crate) fn of(pod: &Pod<'_>) -> Self {
        // KubeRay and Ray both take the first container for the one in which Ray runs.
        let spec = pod.containers().first();
        let asked = spec.map(|spec| spec.resources).unwrap_or_default();
        let name = spec.map(|spec| spec.name.as_str());
        let (mut reported, mut others) = (Resources::default(), Vec::new());
        for status in pod.container_statuses() {
            let given = status.resources.unwrap_or_default();
            // The kubelet sorts the statuses by name, so their order is not that of the containers.
            // (Kubernetes, `kubelet/types`, `SortedContainerStatuses`.)
            if Some(status.name.as_str()) == name {
                reported = given;
            } else {
                others.push(given.requests);
            }
        }
        let either = |reported: Amounts, asked: Amounts| {
            if reported.is_empty() { asked } else { reported }
        };
        Self {
            asked,
            given: Resources {
                requests: either(reported.requests, asked.requests),
                limits: either(reported.limits, asked.limits),
            },
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
