//! The size of a pod in CPU and memory, the amounts by which it is known, and their conversions.

use crate::quantity::Quantity;
use crate::ray::resource::Amounts;
use crate::snapshot::pod::Pod;

/// Amounts that differ by less are the same: Ray keeps four decimals.
pub(crate) const SAME: f64 = 1e-4;

/// The size of a pod.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Size {
    /// The CPU, in cores.
    pub(crate) cpu: f64,
    /// The memory, in bytes.
    pub(crate) memory: i64,
}

impl Size {
    /// The larger amount in each dimension.
    pub(crate) fn max(self, other: Self) -> Self {
        Self {
            cpu: self.cpu.max(other.cpu),
            memory: self.memory.max(other.memory),
        }
    }

    /// Whether this size is smaller in at least one dimension.
    pub(crate) fn is_below(self, other: Self) -> bool {
        self.cpu < other.cpu || self.memory < other.memory
    }
}

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
        let wanted = spec.map(|spec| spec.resources).unwrap_or_default();
        let name = spec.map(|spec| spec.name.as_str());
        let (mut own, mut others) = (None, Vec::new());
        for status in pod.container_statuses() {
            let given = status.resources.unwrap_or_default();
            // The kubelet sorts the statuses by name, so their order is not that of the containers.
            // (Kubernetes, `kubelet/types`, `SortedContainerStatuses`.)
            if Some(status.name.as_str()) == name {
                own = Some(given);
            } else {
                others.push(given.requests);
            }
        }
        let own = own.unwrap_or_default();
        let either =
            |given: Amounts, wanted: Amounts| if given.is_empty() { wanted } else { given };
        Self {
            requests: wanted.requests,
            limits: wanted.limits,
            given_requests: either(own.requests, wanted.requests),
            given_limits: either(own.limits, wanted.limits),
            others,
        }
    }
}

/// A quantity in cores, to the nearest `f64`.
#[expect(clippy::cast_precision_loss, reason = "exact up to nine million cores")]
pub(crate) fn cores(quantity: Quantity) -> f64 {
    quantity.nanos() as f64 / 1e9
}

/// Cores as a quantity.
#[expect(clippy::cast_possible_truncation, reason = "saturating")]
pub(crate) fn from_cores(cores: f64) -> Quantity {
    Quantity::from_nanos((cores * 1e9).round() as i128)
}

/// A quantity in whole bytes. Fractions are dropped, as Python's `int()` does.
pub(crate) fn bytes(quantity: Quantity) -> i64 {
    let whole = quantity.nanos() / Quantity::from_units(1).nanos();
    i64::try_from(whole).unwrap_or(if whole < 0 { i64::MIN } else { i64::MAX })
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
