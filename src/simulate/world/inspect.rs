//! What a world is like, for who checks it. Scalers see views instead.

use serde_json::Value;

use super::group::SimulatedGroup;
use super::objects::SimulatedPod;
use super::state::World;

impl World {
    /// The RayCluster as it is stored.
    pub fn stored_cluster(&self) -> &Value {
        self.cluster.object()
    }

    /// The head group and the worker groups.
    pub fn groups(&self) -> &[SimulatedGroup] {
        &self.groups
    }

    /// The newest pod that has or had a name.
    pub fn pod(&self, name: &str) -> Option<&SimulatedPod> {
        self.pods.iter().rev().find(|pod| pod.name() == name)
    }

    /// The worker pods that exist.
    pub fn workers(&self) -> usize {
        let pods = self.present.values().map(|pod| &self.pods[*pod]);
        pods.filter(|pod| !pod.is_head).count()
    }

    /// The CPUs that jobs use in a pod, in thousandths of cores.
    pub fn used_milli(&self, pod: &str) -> i64 {
        let is_here = |number: usize| self.pods[number].name() == pod;
        let node = self.ray.nodes.iter().rfind(|node| is_here(node.pod));
        let used = node.and_then(|node| Some(node.used.get(self.ray.names.find("CPU")?)));
        used.unwrap_or_default() / 10
    }
}
