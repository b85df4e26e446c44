//! What watchers have: the objects as they were a moment ago, or longer where watches lag or stop.

use std::rc::Rc;

use super::objects::WorldView;
use super::state::World;
use super::trouble::LostWatches;
use crate::simulate::world::queue::WorldEvent;
use crate::snapshot::KubeNode;
use crate::snapshot::cluster_object::ClusterObject;
use crate::snapshot::kube_node::{KubeNodeSpec, KubeNodeStatus, NodeMetadata};
use crate::snapshot::taint::Taint;

/// What Karpenter marks a node with that it empties.
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
    pub(super) fn objects_changed(&mut self) {
        if !self.is_watched {
            self.is_watched = true;
            self.after(self.settings.watch_lag_s, WorldEvent::Watched);
        }
    }

    pub(super) fn watched(&mut self) {
        let lost = self.trouble.lost;
        // `is_watched` stays true, so that no event is added until watchers hear again.
        if lost == Some(LostWatches::All) {
            return;
        }
        self.is_watched = false;
        let present = self.stored();
        let slow = self.trouble.slow;
        if let Some((_, lag_s)) = slow {
            let at = self.now.plus(lag_s);
            self.late_views.push_back((at, present.clone()));
            self.at(at, WorldEvent::WatchedLate);
        }
        self.take_in(present, |of| {
            let is_meant = |which: LostWatches| which.includes(of);
            !lost.is_some_and(is_meant) && !slow.is_some_and(|(which, _)| is_meant(which))
        });
    }

    /// Watchers of the objects that lag hear what was so then.
    pub(super) fn watched_late(&mut self) {
        let mut due = None;
        let now = self.now;
        while let Some((at, _)) = self.late_views.front()
            && *at <= now
        {
            due = self.late_views.pop_front();
        }
        let lost = self.trouble.lost;
        let (Some((_, then)), Some((slow, _))) = (due, self.trouble.slow) else {
            return;
        };
        self.take_in(then, |of| {
            slow.includes(of) && !lost.is_some_and(|which| which.includes(of))
        });
    }

    /// The objects as they are stored.
    pub(super) fn stored(&self) -> WorldView {
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
            pods: Rc::new(self.strangers.iter().cloned().chain(pods).collect()),
            nodes: (!self.machines.pools.is_empty()).then(|| Rc::new(nodes.collect())),
            loads: Rc::new(self.machines.loads_beside(self.number)),
            version: before.version,
        }
    }

    /// Watchers hear of the objects that are meant. A RayCluster of an older version is not believed.
    fn take_in(&mut self, told: WorldView, hears: impl Fn(LostWatches) -> bool) {
        let before = &self.view;
        let is_newer = version(&told.cluster) >= version(&before.cluster);
        let hears_pods = hears(LostWatches::Pods);
        self.view = WorldView {
            cluster: if hears(LostWatches::RayCluster) && is_newer {
                told.cluster
            } else {
                before.cluster.clone()
            },
            pods: if hears_pods {
                told.pods
            } else {
                before.pods.clone()
            },
            nodes: if hears(LostWatches::Nodes) {
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
        self.trouble.lost = None;
        self.trouble.slow = None;
        self.late_views.clear();
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

    /// The watchers are told of a RayCluster. One of an older version is not believed.
    pub(super) fn hear_of_cluster(&mut self, told: Rc<ClusterObject>) {
        if version(&told) > version(&self.view.cluster) {
            self.view.cluster = told;
            self.view.version += 1;
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
