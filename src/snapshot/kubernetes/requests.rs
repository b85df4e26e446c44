//! The amounts that a pod takes of its Kubernetes node, as the scheduler and the kubelet count
//! them. (Kubernetes 1.37, `component-helpers`, `resource.PodRequests` with the status taken into
//! account.)

use super::pod_object::{ContainerStatus, PodContainer, PodObject, PodSpec};
use crate::snapshot::amounts::Amounts;

/// The requests of a pod: the largest of what its spec wants, what the kubelet has allocated and
/// what its containers were given, because a resize that is under way holds all three. A resize
/// that the node can never hold counts for nothing.
pub fn requests(pod: &PodObject) -> Amounts {
    let infeasible = is_resize_infeasible(pod);
    let wanted = containers_want(&pod.spec);
    let (promised, given) = pod_status(pod).unwrap_or_else(|| {
        (
            aggregate(pod, |container, status| {
                promised(container, status, infeasible)
            }),
            aggregate(pod, |container, status| {
                given(container, status, infeasible)
            }),
        )
    });
    let held = promised.max(given);
    let containers = if infeasible { held } else { held.max(wanted) };
    pod_level(pod, infeasible)
        .or(containers)
        .plus(pod.spec.overhead)
}

/// The amounts that the kubelet has allocated to the pod as a whole, and those that the pod was given.
fn pod_status(pod: &PodObject) -> Option<(Amounts, Amounts)> {
    // Only from 1.37 on Kubernetes reports both for the pod as a whole.
    let given = pod.status.resources?.requests;
    let promised = pod.status.allocated_resources?;
    (!given.is_empty()).then_some((promised, given))
}

/// The requests of the pod as a whole, which take precedence over those of its containers.
fn pod_level(pod: &PodObject, infeasible: bool) -> Amounts {
    let wanted = pod.spec.resources.requests;
    if wanted.is_empty() {
        return wanted;
    }
    let Some(given) = pod.status.resources else {
        return wanted;
    };
    let held = given
        .requests
        .max(pod.status.allocated_resources.unwrap_or_default());
    if infeasible { held } else { held.max(wanted) }
}

/// Whether the kubelet says that the resize can never be.
fn is_resize_infeasible(pod: &PodObject) -> bool {
    // The first condition of the type decides, whatever its status says: Kubernetes removes a
    // condition that does not hold.
    let pending = (pod.status.conditions.iter()).find(|one| one.kind == "PodResizePending");
    pending.is_some_and(|one| one.reason.as_deref() == Some("Infeasible"))
}

/// The requests of a pod's containers together, by its spec.
pub(crate) fn containers_want(spec: &PodSpec) -> Amounts {
    sum(spec, wanted)
}

/// The requests in the spec of a container.
fn wanted(container: &PodContainer) -> Amounts {
    // The API server fills in a request that is absent from the limit.
    container.resources.requests.or(container.resources.limits)
}

fn promised(
    container: &PodContainer,
    status: Option<&ContainerStatus>,
    infeasible: bool,
) -> Amounts {
    let told = status.and_then(|status| status.allocated_resources);
    told.unwrap_or_else(|| spec_unless(infeasible, container))
}

fn given(container: &PodContainer, status: Option<&ContainerStatus>, infeasible: bool) -> Amounts {
    let actual = status.and_then(|status| status.resources);
    let actual = actual.map(|actual| actual.requests);
    let told = actual
        .filter(|requests| !requests.is_empty())
        .or_else(|| status.and_then(|status| status.allocated_resources));
    told.unwrap_or_else(|| spec_unless(infeasible, container))
}

fn spec_unless(infeasible: bool, container: &PodContainer) -> Amounts {
    if infeasible {
        Amounts::default()
    } else {
        wanted(container)
    }
}

/// Adds up the amounts of a pod's containers.
fn aggregate(
    pod: &PodObject,
    of: impl Fn(&PodContainer, Option<&ContainerStatus>) -> Amounts,
) -> Amounts {
    let status = |container: &PodContainer| {
        let statuses = &pod.status.container_statuses;
        let mut all = statuses.iter().chain(&pod.status.init_container_statuses);
        all.find(|status| status.name == container.name)
    };
    sum(&pod.spec, |container| of(container, status(container)))
}

fn sum(spec: &PodSpec, of: impl Fn(&PodContainer) -> Amounts) -> Amounts {
    let (running, starting) = phases(spec, of);
    running.max(starting)
}

/// The amounts that a pod's containers take besides its ray container, which is the first one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Beside {
    /// The amounts of containers that run beside it.
    running: Amounts,
    /// The most that the init containers take which run before it.
    starting: Amounts,
}

impl Beside {
    /// The requests of the other containers, by their specs.
    pub(crate) fn requests(pod: &PodObject) -> Self {
        Self::of(pod, wanted)
    }

    /// The limits of the other containers.
    pub(crate) fn limits(pod: &PodObject) -> Self {
        Self::of(pod, |container| container.resources.limits)
    }

    fn of(pod: &PodObject, amounts: impl Fn(&PodContainer) -> Amounts) -> Self {
        let ray = pod.spec.containers.first().map(|ray| ray.name.as_str());
        let (running, starting) = phases(&pod.spec, |container| {
            if ray == Some(container.name.as_str()) {
                Amounts::default()
            } else {
                amounts(container)
            }
        });
        Self { running, starting }
    }

    /// The sum over the containers of the pod, where the ray container has so much.
    pub(crate) fn with(self, ray: Amounts) -> Amounts {
        self.running.plus(ray).max(self.starting)
    }
}

/// The amounts that a pod's containers take while they run, and the most before that. Containers
/// run together with the init containers that go on running. The other init containers run before
/// them, one after the other, each beside the ones that were started before it and go on running.
fn phases(spec: &PodSpec, of: impl Fn(&PodContainer) -> Amounts) -> (Amounts, Amounts) {
    let mut running = (spec.containers.iter())
        .map(&of)
        .fold(Amounts::default(), Amounts::plus);
    let (mut started, mut starting) = (Amounts::default(), Amounts::default());
    for container in &spec.init_containers {
        let amount = of(container);
        if container.restart_policy.as_deref() == Some("Always") {
            running = running.plus(amount);
            started = started.plus(amount);
            starting = starting.max(started);
        } else {
            starting = starting.max(started.plus(amount));
        }
    }
    (running, starting)
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
