//! The objects that watchers have: as they were a moment ago, or longer where watches lag or stop.

use std::rc::Rc;

use super::disturbance::WatchedKind;
use super::objects::WorldView;
use super::state::World;
use crate::simulate::world::queue::WorldEvent;
use crate::snapshot::KubeNode;
use crate::snapshot::cluster_object::ClusterObject;
use crate::snapshot::kube_node::{KubeNodeSpec, KubeNodeStatus, NodeMetadata};
use crate::snapshot::taint::Taint;

/// The taint by which Karpenter marks a node that it empties.
fn disrupted() -> Taint {
    Taint {
        key: "karpenter.sh/disrupted".to_owned(),
        effect: "NoSchedule".to_owned(),
        ..Taint::default()
    }
}

impl World {
    /// Whether a controller looks at once because of an event: watches show something new, or a node's
    /// memory is nearly full.
    pub fn wakes(&self, event: WorldEvent) -> bool {
        match event {
            WorldEvent::Watched | WorldEvent::WatchedLate => true,
            WorldEvent::MemoryReport => self.memory_reports.is_nearly_full,
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

    pub(super) fn watched(&mut self) {
        let disturbance = Rc::clone(&self.disturbance);
        self.is_watched = false;
        self.take_in(self.stored(), |of| disturbance.hears(of));
    }

    /// The objects as they are stored.
    pub fn stored(&self) -> WorldView {
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
                taints: node.disrupted.map(|_| disrupted()).into_iter().collect(),
            },
            status: KubeNodeStatus {
                allocatable: self.machines.pools[node.pool].allocatable,
            },
        });
        let before = &self.view;
        WorldView {
            cluster: if is_same(&before.cluster, &self.cluster) {
                before.cluster.clone()
            } else {
                Rc::new(self.cluster.clone())
            },
            pods: Rc::new(
                self.disturbance
                    .strangers()
                    .into_iter()
                    .chain(pods)
                    .collect(),
            ),
            nodes: (!self.machines.pools.is_empty()).then(|| Rc::new(nodes.collect())),
            loads: Rc::new(self.machines.loads_beside(self.number)),
            version: before.version,
        }
    }

    /// Watchers hear of the objects that are meant. A RayCluster of an older version is not believed.
    pub fn take_in(&mut self, told: WorldView, hears: impl Fn(WatchedKind) -> bool) {
        let before = &self.view;
        let is_newer = version(&told.cluster) >= version(&before.cluster);
        let hears_pods = hears(WatchedKind::Pods);
        self.view = WorldView {
            cluster: if hears(WatchedKind::RayCluster) && is_newer {
                told.cluster
            } else {
                before.cluster.clone()
            },
            pods: if hears_pods {
                told.pods
            } else {
                before.pods.clone()
            },
            nodes: if hears(WatchedKind::Nodes) {
                told.nodes
            } else {
                before.nodes.clone()
            },
            loads: if hears_pods {
                told.loads
            } else {
                before.loads.clone()
            },
            version: before.version + 1,
        };
    }

    /// Watchers hear again of everything.
    pub fn watch_again(&mut self) {
        self.is_watched = false;
        self.objects_changed();
    }

    /// The watchers read the RayCluster. One of an older version is not believed.
    pub fn read_cluster(&mut self) {
        match self.disturbance.read() {
            Some(shown) if version(&shown) > version(&self.view.cluster) => {
                self.view.cluster = shown;
                self.view.version += 1;
            }
            Some(_) => {}
            None => self.learn_cluster(),
        }
    }

    /// The watchers know the RayCluster as it is, because they have read or written it.
    pub fn learn_cluster(&mut self) {
        self.view.cluster = Rc::new(self.cluster.clone());
        self.view.version += 1;
    }
}

/// Whether a RayCluster is of the same version.
fn is_same(one: &ClusterObject, other: &ClusterObject) -> bool {
    version(one).is_some() && version(one) == version(other)
}

/// The version of a RayCluster. That of this world is a number.
fn version(of: &ClusterObject) -> Option<u64> {
    let version = of.object().pointer("/metadata/resourceVersion")?;
    version.as_str()?.parse().ok()
}
