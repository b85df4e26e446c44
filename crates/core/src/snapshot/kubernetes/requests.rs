//! The amounts that a pod takes of its Kubernetes node, as the scheduler and the kubelet count
//! them. (Kubernetes 1.37, `component-helpers`, `resource.PodRequests` with the status taken into
//! account.)

use super::pod_object::{PodContainer, PodObject, PodSpec};
use crate::ray::resource::Amounts;

/// The requests of a pod: the largest of what its spec wants, what the kubelet has allocated and
/// what its containers were given, because a resize that is under way holds all three. A resize
/// that the node can never hold counts for nothing.
pub fn requests(pod: &PodObject) -> Amounts {
    let PodObject { spec, status, .. } = pod;
    // The first condition of the type decides, whatever its status says: Kubernetes removes a
    // condition that does not hold.
    let pending = (status.conditions.iter()).find(|one| one.kind == "PodResizePending");
    let infeasible = pending.is_some_and(|one| one.reason.as_deref() == Some("Infeasible"));
    let unless_infeasible = |amounts| {
        if infeasible {
            Amounts::default()
        } else {
            amounts
        }
    };

    // The containers' own amounts.
    let status_of = |container: &PodContainer| {
        let statuses = &status.container_statuses;
        let mut all = statuses.iter().chain(&status.init_container_statuses);
        all.find(|status| status.name == container.name)
    };
    let promised = |container: &PodContainer| {
        let allocated = status_of(container).and_then(|status| status.allocated_resources);
        allocated.unwrap_or_else(|| unless_infeasible(wanted(container)))
    };
    let given = |container: &PodContainer| {
        let given = status_of(container).and_then(|status| status.resources);
        let given = given.map(|given| given.requests);
        given
            .filter(|given| !given.is_empty())
            .unwrap_or_else(|| promised(container))
    };
    let of_pod = status.resources.unwrap_or_default().requests;
    let in_use = match status.allocated_resources {
        // Only from 1.37 on Kubernetes reports both for the pod as a whole.
        Some(allocated) if !of_pod.is_empty() => allocated.max(of_pod),
        _ => ContainerSums::of(spec, promised)
            .most()
            .max(ContainerSums::of(spec, given).most()),
    };
    let containers = in_use.max(unless_infeasible(containers_want(spec)));

    // The requests of the pod as a whole take precedence over those of its containers.
    let pod_level = match status.resources {
        _ if spec.resources.requests.is_empty() => Amounts::default(),
        None => spec.resources.requests,
        Some(_) => of_pod
            .max(status.allocated_resources.unwrap_or_default())
            .max(unless_infeasible(spec.resources.requests)),
    };
    pod_level.or(containers).plus(spec.overhead)
}

/// The requests in the spec of a container.
pub(crate) fn wanted(container: &PodContainer) -> Amounts {
    // The API server fills in a request that is absent from the limit.
    container.resources.requests.or(container.resources.limits)
}

/// The requests of a pod's containers together, by its spec.
pub(crate) fn containers_want(spec: &PodSpec) -> Amounts {
    ContainerSums::of(spec, wanted).most()
}

/// The amounts that containers of a pod take while they run, and the most that they take before. Containers
/// run together with the init containers that go on running. The other init containers run before
/// them, one after the other, each beside the ones that were started before it and go on running.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ContainerSums {
    running: Amounts,
    starting: Amounts,
}

impl ContainerSums {
    fn of(spec: &PodSpec, amounts: impl Fn(&PodContainer) -> Amounts) -> Self {
        let mut sums = Self::default();
        let mut started = Amounts::default();
        for container in &spec.init_containers {
            let amount = amounts(container);
            if container.restart_policy.as_deref() == Some("Always") {
                started = started.plus(amount);
                sums.starting = sums.starting.max(started);
            } else {
                sums.starting = sums.starting.max(started.plus(amount));
            }
        }
        let running = spec.containers.iter().map(amounts);
        sums.running = running.fold(started, Amounts::plus);
        sums
    }

    /// The sums over all containers but the ray container, which is the first one.
    pub(crate) fn beside_ray(spec: &PodSpec, amounts: fn(&PodContainer) -> Amounts) -> Self {
        let ray = spec.containers.first().map(|ray| ray.name.as_str());
        Self::of(spec, |container| {
            if ray == Some(container.name.as_str()) {
                Amounts::default()
            } else {
                amounts(container)
            }
        })
    }

    /// The amounts that the pod takes, where the ray container has so much.
    pub(crate) fn with(self, ray: Amounts) -> Amounts {
        self.running.plus(ray).max(self.starting)
    }

    fn most(self) -> Amounts {
        self.running.max(self.starting)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::quantity::Quantity;

    fn cpu(pod: Value) -> String {
        let pod: PodObject = serde_json::from_value(pod).unwrap();
        requests(&pod)
            .cpu
            .map(|cpu| cpu.to_string())
            .unwrap_or_default()
    }

    fn asks(name: &str, cpu: &str) -> Value {
        json!({"name": name, "resources": {"requests": {"cpu": cpu}}})
    }

    #[test]
    fn a_resize_under_way_holds_the_largest_of_what_is_wanted_promised_and_given() {
        let pod = |spec: &str, promised: &str, given: &str| {
            json!({"spec": {"containers": [asks("a", spec)]}, "status": {"containerStatuses": [
                {"name": "a", "allocatedResources": {"cpu": promised}, "resources": {"requests": {"cpu": given}}}]}})
        };
        assert_eq!(cpu(pod("3", "1", "1")), "3");
        assert_eq!(cpu(pod("1", "3", "1")), "3");
        assert_eq!(cpu(pod("1", "1", "3")), "3");
    }

    #[test]
    fn a_resize_that_can_never_be_takes_nothing_from_its_node() {
        let pod = |reason: &str| {
            json!({"spec": {"containers": [asks("a", "64")]}, "status": {
                "conditions": [{"type": "PodResizePending", "status": "True", "reason": reason}],
                "containerStatuses": [{"name": "a", "allocatedResources": {"cpu": "2"}, "resources": {"requests": {"cpu": "2"}}}]}})
        };
        assert_eq!(cpu(pod("Infeasible")), "2");
        assert_eq!(cpu(pod("Deferred")), "64");
    }

    #[test]
    fn init_containers_that_go_on_running_count_with_what_starts_after_them() {
        let mut sidecar = asks("s", "2");
        sidecar["restartPolicy"] = json!("Always");
        let pod = |inits: Value| json!({"spec": {"containers": [asks("a", "1")], "initContainers": inits}});
        assert_eq!(cpu(pod(json!([sidecar, asks("i", "4")]))), "6");
        assert_eq!(cpu(pod(json!([asks("i", "4"), sidecar]))), "4");
        assert_eq!(cpu(pod(json!([sidecar]))), "3");
    }

    #[test]
    fn what_a_pod_asks_for_as_a_whole_goes_before_its_containers() {
        let pod = json!({"spec": {"resources": {"requests": {"cpu": "5"}}, "overhead": {"cpu": "1"},
            "containers": [{"name": "a", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]}});
        assert_eq!(cpu(pod.clone()), "6");
        let pod: PodObject = serde_json::from_value(pod).unwrap();
        assert_eq!(requests(&pod).memory, Quantity::parse("1Gi").ok());
    }
}
