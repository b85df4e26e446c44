//! What watchers have: the objects as they were a moment ago, or longer where watches lag or stop.

use std::rc::Rc;

use super::objects::WorldView;
use super::state::World;
use super::trouble::LostWatches;
use crate::simulate::world::queue::WorldEvent;
use crate::snapshot::KubeNode;
use crate::snapshot::cluster_object::ClusterObject;
use crate::snapshot::kube_node::{KubeNodeSpec, KubeNodeStatus, NodeMetadata};

impl World {
    /// Whether a controller looks at once because of an event: watches show something new, or a node's
    /// memory is nearly full.
    pub fn wakes(&self, event: WorldEvent) -> bool {
        match event {
            WorldEvent::Watched => true,
            WorldEvent::MemoryReport => self.memory_reports.is_nearly_full,
            _ => false,
        }
    }

    /// An object has changed, of which watchers will hear.
    pub(super) fn objects_changed(&mut self) {
        if !self.is_watched {
            self.is_watched = true;
            self.after(self.settings.watch_lag_s, WorldEvent::Watched);
        }
    }

    pub(super) fn watched(&mut self) {
        let lost = self.trouble.lost;
        if lost == Some(LostWatches::All) {
            return;
        }
        self.is_watched = false;
        self.view = self.seen(lost);
    }

    /// What watchers have from now on, where they hear nothing of some objects.
    fn seen(&self, lost: Option<LostWatches>) -> WorldView {
        let pods = self.own();
        let pods = pods.map(|pod| self.machines.pods[pod].object.clone());
        let nodes = self
            .machines
            .nodes
            .iter()
            .filter(|node| node.is_ready && node.removed.is_none());
        let nodes = nodes.map(|node| KubeNode {
            metadata: NodeMetadata {
                name: node.name.clone(),
                deletion_timestamp: None,
            },
            spec: KubeNodeSpec {
                unschedulable: node.is_cordoned,
                taints: Vec::new(),
            },
            status: KubeNodeStatus {
                allocatable: self.machines.pools[node.pool].allocatable,
            },
        });
        let before = &self.view;
        WorldView {
            cluster: match lost {
                Some(LostWatches::RayCluster) => before.cluster.clone(),
                _ if is_same(&before.cluster, &self.cluster) => before.cluster.clone(),
                _ => Rc::new(self.cluster.clone()),
            },
            pods: match lost {
                Some(LostWatches::Pods) => before.pods.clone(),
                _ => Rc::new(self.strangers.iter().cloned().chain(pods).collect()),
            },
            nodes: match lost {
                Some(LostWatches::Nodes) => before.nodes.clone(),
                _ => (!self.machines.pools.is_empty()).then(|| Rc::new(nodes.collect())),
            },
            loads: match lost {
                Some(LostWatches::Pods) => before.loads.clone(),
                _ => Rc::new(self.machines.loads_beside(self.number)),
            },
            version: before.version + 1,
        }
    }

    /// Watchers hear again of everything.
    pub fn watch_again(&mut self) {
        self.trouble.lost = None;
        self.is_watched = false;
        self.objects_changed();
    }

    /// Watchers hear of everything but the RayCluster as it once was; a RayCluster of an older version
    /// is not believed. What is so now follows.
    pub fn repeat(&mut self, view: &WorldView) {
        self.view = WorldView {
            cluster: self.view.cluster.clone(),
            version: self.view.version + 1,
            ..view.clone()
        };
        self.objects_changed();
    }

    /// The watchers know the RayCluster as it is, because they have read or written it.
    pub fn learn_cluster(&mut self) {
        self.view.cluster = Rc::new(self.cluster.clone());
        self.view.version += 1;
    }
}

/// Whether a RayCluster is of the same version.
fn is_same(one: &ClusterObject, other: &ClusterObject) -> bool {
    let version = |of: &ClusterObject| of.object().pointer("/metadata/resourceVersion").cloned();
    version(one).is_some() && version(one) == version(other)
}
