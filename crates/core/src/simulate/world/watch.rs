//! The objects that watchers have: as they were a moment ago.

use std::rc::Rc;

use super::objects::WorldView;
use super::queue::WorldEvent;
use super::state::World;
use crate::snapshot::KubeNode;
use crate::snapshot::kube_node::{KubeNodeSpec, KubeNodeStatus, NodeMetadata};
use crate::snapshot::taint::Taint;

impl World {
    /// Checks whether an event makes a controller look at once: watches show something new, a node's
    /// memory is nearly full, or the GCS tells what has changed.
    pub fn wakes(&self, event: WorldEvent) -> bool {
        match event {
            WorldEvent::Watched => true,
            WorldEvent::Pull => self.settings.tells_at_once,
            WorldEvent::MemoryReport => self.ray.is_nearly_full,
            _ => false,
        }
    }

    /// An object has changed, of which watchers will hear.
    pub fn objects_changed(&mut self) {
        if !self.is_watched {
            self.is_watched = true;
            self.after(self.settings.watch_lag_s, WorldEvent::Watched);
        }
    }

    /// The objects as they are stored.
    pub fn stored(&self) -> WorldView {
        let pods = self.own_pods().map(|pod| &self.machines.pods[pod]);
        let nodes = self.machines.nodes.iter();
        // A node registers with the API server about when it is ready.
        let nodes = nodes.filter(|node| node.is_ready && node.removed.is_none());
        let nodes = nodes.map(|node| {
            // The taint by which Karpenter marks a node that it empties.
            let taint = node.disrupted.map(|_| Taint {
                key: "karpenter.sh/disrupted".to_owned(),
                effect: "NoSchedule".to_owned(),
                ..Taint::default()
            });
            KubeNode {
                metadata: NodeMetadata {
                    name: node.name.clone(),
                    deletion_timestamp: None,
                },
                spec: KubeNodeSpec {
                    unschedulable: node.is_cordoned,
                    taints: taint.into_iter().collect(),
                },
                status: KubeNodeStatus {
                    allocatable: self.machines.pools[node.pool].allocatable,
                },
            }
        });
        WorldView {
            cluster: Rc::clone(&self.cluster),
            pods: Rc::new(pods.map(|pod| pod.object.clone()).collect()),
            nodes: (!self.machines.pools.is_empty()).then(|| Rc::new(nodes.collect())),
            loads: Rc::new(self.machines.loads_beside(self.number)),
            version: self.view.version,
        }
    }

    /// Watchers have these objects from now on.
    pub fn set_view(&mut self, view: WorldView) {
        let version = self.view.version + 1;
        self.view = WorldView { version, ..view };
    }

    /// Watchers hear what pods of others take of the nodes. It leads to no look, because a controller
    /// looks at the cluster whose pod has changed.
    pub(super) fn loads_watched(&mut self) {
        self.are_loads_watched = false;
        let stored = WorldView {
            loads: Rc::new(self.machines.loads_beside(self.number)),
            ..self.view.clone()
        };
        let shown = self.disturbance.show(&self.view, stored);
        if shown.loads != self.view.loads {
            self.set_view(shown);
        }
    }

    /// The watchers read the RayCluster.
    pub fn read_cluster(&mut self) {
        if !Rc::clone(&self.disturbance).answers_read(self) {
            self.learn_cluster();
        }
    }

    /// The watchers know the RayCluster as it is, because they have read or written it.
    pub fn learn_cluster(&mut self) {
        self.view.cluster = Rc::clone(&self.cluster);
        self.view.version += 1;
    }
}
