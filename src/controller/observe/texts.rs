//! The objects that decisions about a cluster need: as texts, which are cheap to take from the store,
//! and read.

use std::sync::Arc;

use serde_json::Value;

use crate::snapshot::pod_object::PodObject;
use crate::snapshot::{ClusterId, KubeNode, NodeLoads, OwnPods};

/// From this number of pods, Ray nodes, requests and so on, a decision may take so long that other
/// tasks must not wait for it.
pub const MANY: usize = 100;

/// A RayCluster with the objects that decisions about it need.
#[derive(Debug, Clone)]
pub struct ClusterView {
    /// The RayCluster.
    pub cluster: Value,
    /// The cluster's own pods.
    pub pods: OwnPods,
    /// The Kubernetes nodes of pods that may be resized; of other clusters those that are about to
    /// leave.
    pub nodes: Option<Vec<KubeNode>>,
    /// The requests of other pods of RayClusters on these nodes.
    pub loads: NodeLoads,
}

/// The objects of a cluster as JSON texts, which are shared with the store.
#[derive(Debug, Clone, Default)]
pub struct ClusterTexts {
    pub(super) cluster: Arc<[u8]>,
    pub(super) pods: Vec<Arc<[u8]>>,
    pub(super) nodes: Option<Vec<Arc<[u8]>>>,
    pub(super) loads: NodeLoads,
}

impl ClusterTexts {
    /// Whether both are the same texts, so that none of the objects was stored anew.
    pub fn are(&self, other: &Self) -> bool {
        let same = |one: &[Arc<[u8]>], other: &[Arc<[u8]>]| {
            one.len() == other.len()
                && one
                    .iter()
                    .zip(other)
                    .all(|(one, other)| Arc::ptr_eq(one, other))
        };
        let nodes = match (&self.nodes, &other.nodes) {
            (Some(one), Some(other)) => same(one, other),
            (None, None) => true,
            _ => false,
        };
        nodes
            && Arc::ptr_eq(&self.cluster, &other.cluster)
            && same(&self.pods, &other.pods)
            && self.loads == other.loads
    }

    /// Whether [reading](Self::read) takes so long that other tasks must not wait for it: there are many pods, or
    /// the RayCluster's text is so long that it may have very many worker groups.
    pub fn is_slow(&self) -> bool {
        self.pods.len() >= MANY || self.cluster.len() >= 1 << 16
    }

    /// Parses the texts.
    pub fn read(&self) -> ClusterView {
        // This process has written the texts, so all of them can be read.
        let cluster: Value = serde_json::from_slice(&self.cluster).unwrap_or_default();
        let pods = self.pods.iter();
        let pods = pods.filter_map(|text| serde_json::from_slice::<PodObject>(text).ok());
        let (pods, _) = OwnPods::divide(ClusterId::of(&cluster), pods);
        let nodes = self.nodes.as_ref().map(|texts| {
            let nodes = texts.iter();
            nodes
                .filter_map(|text| serde_json::from_slice::<KubeNode>(text).ok())
                .collect()
        });
        ClusterView {
            cluster,
            pods,
            nodes,
            loads: self.loads.clone(),
        }
    }
}
