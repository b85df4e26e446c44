//! The requests and limits by which the size of a pod is known.

use crate::ray::resource::Amounts;
use crate::snapshot::pod::Pod;

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
        let told = |given: Amounts, wanted: Amounts| if given.is_empty() { wanted } else { given };
        Self {
            requests: wanted.requests,
            limits: wanted.limits,
            given_requests: told(own.requests, wanted.requests),
            given_limits: told(own.limits, wanted.limits),
            others,
        }
    }
}
