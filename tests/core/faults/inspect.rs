//! What checks see of a world, beyond what a scaler is shown.

use rayfit_core::quantity::Quantity;
use rayfit_core::simulate::world::World;
use rayfit_core::simulate::world::objects::SimulatedPod;
use rayfit_core::snapshot::gcs::MemoryInUse;
use rayfit_core::snapshot::group_spec::GroupSpec;

/// The seconds between two reports of the memory in use, rounded up.
const REPORT_S: i64 = 6;

/// What the last report said of the memory in use in a pod.
pub(super) fn told_memory(world: &World, pod: &str) -> Option<MemoryInUse> {
    let is_here = |number: usize| world.machines.pods[number].name() == pod;
    let mut living = world.ray.living();
    let (_, node) = living.find(|(_, node)| is_here(node.pod))?;
    node.memory.map(|known| known.in_use)
}

/// Whether the Kubernetes node of a pod has so many bytes of memory left.
pub(super) fn has_memory_beside(world: &World, pod: &str, bytes: i64) -> bool {
    let node = newest_pod(world, pod).and_then(|pod| pod.node);
    let Some(node) = node else {
        return world.machines.pools.is_empty();
    };
    let (free, _) = world.machines.room(node);
    free.memory.unwrap_or_default() >= Quantity::from_units(bytes)
}

/// Whether the RayCluster lets pods grow.
pub(super) fn is_growth_allowed(world: &World) -> bool {
    let annotations = &world.cluster.object()["metadata"]["annotations"];
    annotations
        .get(rayfit_core::ray::ippr::ANNOTATION)
        .is_some()
}

/// The bytes in use in a pod, as both of the last two reports said at least.
pub(super) fn reported_memory(world: &World, pod: &str) -> i64 {
    let is_here = |number: usize| world.machines.pods[number].name() == pod;
    let node = world.ray.living().find(|(_, node)| is_here(node.pod));
    let known = node.and_then(|(_, node)| node.memory);
    known.map_or(0, |known| {
        let rise = known.in_use.rise_per_s.saturating_mul(REPORT_S);
        known.in_use.bytes.saturating_sub(rise)
    })
}

/// A worker group as it is stored.
pub(super) fn group_spec<'a>(world: &'a World, name: &str) -> Option<&'a GroupSpec> {
    let spec = world.cluster.spec.as_ref()?;
    spec.worker_group(name).map(|(_, group)| group)
}

/// The newest pod of the cluster that has or had a name.
pub(super) fn newest_pod<'a>(world: &'a World, name: &str) -> Option<&'a SimulatedPod> {
    let mut pods = world.machines.pods.iter().rev();
    pods.find(|pod| pod.cluster == world.number && pod.name() == name)
}

/// The number of jobs that run in a pod.
pub(crate) fn jobs_on(world: &World, pod: &str) -> usize {
    let is_here = |number: usize| world.machines.pods[number].name() == pod;
    let node = world.ray.living().find(|(_, node)| is_here(node.pod));
    node.map_or(0, |(_, node)| node.running)
}

/// The thousandths of cores and the bytes of memory that jobs use in a pod.
pub(super) fn used(world: &World, pod: &str) -> [i64; 2] {
    let is_here = |number: usize| world.machines.pods[number].name() == pod;
    let node = world.ray.nodes.iter().rfind(|node| is_here(node.pod));
    let used = |name: &str| {
        let number = world.ray.names.find(name)?;
        Some(node?.used.get(number))
    };
    [("CPU", 10), ("memory", 10_000)].map(|(name, unit)| used(name).unwrap_or_default() / unit)
}
