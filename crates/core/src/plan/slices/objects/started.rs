//! Sizes as started: groups count with what KubeRay starts Ray with, and with what pods as a whole allow of resizes.
//! Ray derives resources from the template by rules of its own.

use crate::plan::growth::size::{bytes, cores};
use crate::plan::nodes::group::ClusterConfig;
use crate::ray::resource::Amounts;
use crate::snapshot::cluster_object::ClusterObject;

/// The groups of a RayCluster as they are started.
pub(crate) fn read(cluster: &ClusterObject) -> ClusterConfig {
    let mut config = ClusterConfig::of(cluster);
    for group in cluster.spec.iter().flat_map(|spec| &spec.groups) {
        let Some(number) = config.number(&group.name) else {
            continue;
        };
        let config = &mut config.groups[number];
        if let Some(started) = &group.started {
            config.resources = Ok(started.clone());
        }
        let Some((limits, base)) = config.resize_limits.as_mut().zip(config.base) else {
            continue;
        };
        // Not below the base size, with which a pod starts whatever the pod as a whole may
        // have.
        let Amounts { cpu, memory } = group.within_pod;
        if let Some(cpu) = cpu {
            limits.cpu = limits.cpu.min(cores(cpu).max(base.cpu));
        }
        if let Some(memory) = memory {
            limits.memory = limits.memory.min(bytes(memory).max(base.memory));
        }
    }
    config
}
