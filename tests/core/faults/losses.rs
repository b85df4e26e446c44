//! Pods and nodes that are lost, and objects that people change.

use rayfit_core::ray::resource::Amounts;
use rayfit_core::simulate::world::World;
use rayfit_core::simulate::world::machines::Notice;
use rayfit_core::simulate::world::objects::SimulatedPod;
use rayfit_core::simulate::world::queue::WorldEvent;
use serde_json::Value;

use super::trouble::Troubles;

/// People delete a worker pod; `pick` says which. Returns its name.
pub(crate) fn remove_pod(world: &mut World, pick: usize) -> Option<String> {
    let number = pick_worker(world, pick, |_| true)?;
    world.delete_pod(number);
    Some(world.machines.pods[number].name().to_owned())
}

/// People delete the pod of a name, if there is one.
pub(crate) fn remove_named(world: &mut World, name: &str) {
    if let Some(number) = world
        .pod_named(name)
        .filter(|pod| !world.machines.pods[*pod].is_head)
    {
        world.delete_pod(number);
    }
}

/// The containers of the pod of a name end with an error, if they run.
pub(crate) fn fail_named(world: &mut World, name: &str) {
    let number = world.pod_named(name);
    let runs = |pod: &usize| {
        let pod = &world.machines.pods[*pod];
        !pod.is_head && !pod.is_deleting() && pod.phase() == "Running"
    };
    if let Some(number) = number.filter(runs) {
        fail(world, number);
    }
}

/// Ray's notes about resizes are removed from all pods.
pub(crate) fn remove_notes(world: &mut World) {
    for number in world.own_pods().collect::<Vec<_>>() {
        world.machines.pods[number]
            .object
            .metadata
            .annotations
            .resize_status = None;
    }
    world.objects_changed();
}

/// The containers of a worker end with an error. Of all that run, `pick` says which. Returns its
/// name.
pub(crate) fn fail_pod(world: &mut World, pick: usize) -> Option<String> {
    let number = pick_worker(world, pick, |pod| pod.phase() == "Running")?;
    fail(world, number);
    Some(world.machines.pods[number].name().to_owned())
}

fn fail(world: &mut World, number: usize) {
    if let Some(node) = world.ray.node_of(number) {
        world.lose_ray_node(node);
    }
    world.end_pod(number, "Failed");
}

/// A Kubernetes node without the head is gone with its pods. Returns its name.
pub(crate) fn lose_node(world: &mut World, pick: usize) -> Option<String> {
    let node = pick_node(world, pick)?;
    take_node(world, node);
    Some(world.machines.nodes[node].name.clone())
}

/// A Kubernetes node is gone with its pods.
fn take_node(world: &mut World, node: usize) {
    world.machines.nodes[node].removed = Some(world.now);
    for pod in world.machines.bound_to(node) {
        world.tell(world.machines.pods[pod].cluster, Notice::Gone(pod));
    }
    world.nodes_changed();
}

/// People drain a Kubernetes node without the head: its pods are deleted, and no pod is bound to
/// it. Returns its name.
pub(crate) fn drain_node(world: &mut World, pick: usize) -> Option<String> {
    let node = pick_node(world, pick)?;
    world.machines.nodes[node].is_cordoned = true;
    for pod in world.machines.bound_to(node) {
        world.tell(world.machines.pods[pod].cluster, Notice::Evicted(pod));
    }
    world.tell_others(world.number, Notice::Nodes);
    Some(world.machines.nodes[node].name.clone())
}

/// Pods can be bound to every Kubernetes node again.
pub(crate) fn uncordon_nodes(world: &mut World) {
    for node in &mut world.machines.nodes {
        node.is_cordoned = false;
    }
    world.after(0.0, WorldEvent::Scheduler);
}

/// One of the Kubernetes nodes on which the head is not.
fn pick_node(world: &World, pick: usize) -> Option<usize> {
    let has_head = |node: usize| {
        world
            .machines
            .pods_on(node)
            .any(|pod| world.machines.pods[pod].is_head)
    };
    let there = world.machines.nodes.iter().enumerate();
    let there = there.filter(|(_, node)| node.is_ready && node.removed.is_none());
    let there = there.map(|(number, _)| number);
    picked(there.filter(|node| !has_head(*node)), pick)
}

/// One of the workers that are not being deleted, of those that `is_one` says are meant.
fn pick_worker(
    world: &World,
    pick: usize,
    is_one: impl Fn(&SimulatedPod) -> bool,
) -> Option<usize> {
    let is_one = |number: &usize| {
        let pod = &world.machines.pods[*number];
        !pod.is_head && !pod.is_deleting() && is_one(pod)
    };
    picked(world.own_pods().filter(is_one), pick)
}

/// Pods of others take all CPU that there is.
pub(crate) fn fill_nodes(world: &mut World) {
    for node in 0..world.machines.nodes.len() {
        let (free, _) = world.machines.room(node);
        world.machines.nodes[node].filled.cpu = free.cpu;
    }
}

/// The pods of others are gone from all nodes.
pub(crate) fn empty_nodes(world: &mut World) {
    for node in 0..world.machines.nodes.len() {
        world.machines.nodes[node].filled = Amounts::default();
        world.capacity_was_freed(Some(node));
    }
}

/// Kubelets look again at the resizes that they deferred.
pub(crate) fn kubelets_retry(world: &mut World) {
    let is_deferred = |pod: &usize| {
        let conditions = world.machines.pods[*pod].object.status.conditions.iter();
        let mut reasons = conditions.filter_map(|one| one.reason.as_deref());
        reasons.any(|reason| reason == "Deferred")
    };
    let deferred = world.own_pods().filter(is_deferred);
    for pod in deferred.collect::<Vec<_>>() {
        world.after(0.0, WorldEvent::Kubelet(pod));
    }
}

/// The head pod is lost, and Ray with everything that it knows: people delete it, or its Kubernetes
/// node vanishes, unless another cluster has its head there too. Drivers submit again what was lost, or
/// it stays so. Returns what is gone.
pub(super) fn lose_head(
    world: &mut World,
    troubles: &Troubles,
    with_node: bool,
    returns: bool,
) -> Option<String> {
    let head = world
        .own_pods()
        .find(|pod| world.machines.pods[*pod].is_head)?;
    let mut trouble = troubles.borrow_mut();
    trouble.lost_head.expect_drivers(returns);
    drop(trouble);
    let is_other_head = |pod: usize| pod != head && world.machines.pods[pod].is_head;
    let node = world.machines.pods[head].node.filter(|_| with_node);
    let alone = |node: &usize| !world.machines.pods_on(*node).any(is_other_head);
    if let Some(node) = node.filter(alone) {
        take_node(world, node);
        return Some(world.machines.nodes[node].name.clone());
    }
    world.delete_pod(head);
    Some(world.machines.pods[head].name().to_owned())
}

/// People change the RayCluster. What admission refuses changes nothing.
pub(crate) fn edit(world: &mut World, change: impl FnOnce(&mut Value)) {
    let stored = world.cluster.object();
    let mut edited = stored.clone();
    change(&mut edited);
    let disturbance = &world.disturbance;
    if edited != *stored && (disturbance.denial(world.now, stored, &edited, "people")).is_none() {
        let _ = world.set_cluster(edited);
    }
}

/// Picks one of several: any number `pick` gives one, where there are any.
fn picked(of: impl Iterator<Item = usize>, pick: usize) -> Option<usize> {
    let there: Vec<usize> = of.collect();
    there.get(pick.checked_rem(there.len())?).copied()
}
