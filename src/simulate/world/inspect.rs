//! The state of a world, for whatever checks it. Scalers see views instead.

use serde_json::Value;

use super::group::SimulatedGroup;
use super::objects::SimulatedPod;
use super::state::World;
use crate::snapshot::cluster_object::{ClusterObject, GroupSpec};
use crate::snapshot::{ClusterId, OwnPods};

impl World {
    /// The RayCluster as it is stored.
    pub fn stored_cluster(&self) -> &Value {
        self.cluster.object()
    }

    /// The stored RayCluster with the parts of it that decisions read.
    pub fn cluster_object(&self) -> &ClusterObject {
        &self.cluster
    }

    /// The cluster's pods as they are stored.
    pub fn own_pods(&self) -> OwnPods {
        let pods = self.own();
        let pods = pods.map(|pod| self.machines.pods[pod].object.clone());
        let id = ClusterId::of(self.cluster.object());
        OwnPods::divide(id, pods).0
    }

    /// A worker group as it is stored.
    pub fn group_spec(&self, name: &str) -> Option<&GroupSpec> {
        let spec = self.cluster.spec.as_ref()?;
        spec.worker_group(name).map(|(_, group)| group)
    }

    /// The number of workers that the minima of all groups keep.
    pub fn least_workers(&self) -> i64 {
        let workers = self.groups.iter().filter(|group| !group.is_head());
        let least = |group: &SimulatedGroup| {
            let min = self
                .group_spec(&group.name)
                .and_then(|spec| spec.min_replicas);
            min.unwrap_or_default() * group.hosts
        };
        workers.map(least).sum()
    }

    /// The head group and the worker groups.
    pub fn groups(&self) -> &[SimulatedGroup] {
        &self.groups
    }

    /// The newest pod that has or had a name.
    pub fn pod(&self, name: &str) -> Option<&SimulatedPod> {
        let own = self.machines.pods.iter().rev();
        let mut own = own.filter(|pod| pod.cluster == self.number);
        own.find(|pod| pod.name() == name)
    }

    /// The worker pods that exist.
    pub fn workers(&self) -> impl Iterator<Item = &SimulatedPod> {
        let pods = self.own().map(|pod| &self.machines.pods[pod]);
        pods.filter(|pod| !pod.is_head)
    }

    /// The number of jobs that run in a pod.
    pub fn jobs_on(&self, pod: &str) -> usize {
        let is_here = |number: usize| self.machines.pods[number].name() == pod;
        let node = self.ray.living().find(|(_, node)| is_here(node.pod));
        node.map_or(0, |(_, node)| node.running)
    }

    /// The thousandths of cores and the bytes of memory that jobs use in a pod.
    pub fn used(&self, pod: &str) -> [i64; 2] {
        let is_here = |number: usize| self.machines.pods[number].name() == pod;
        let node = self.ray.nodes.iter().rfind(|node| is_here(node.pod));
        let used = |name: &str| {
            let number = self.ray.names.find(name)?;
            Some(node?.used.get(number))
        };
        [("CPU", 10), ("memory", 10_000)].map(|(name, unit)| used(name).unwrap_or_default() / unit)
    }
}
