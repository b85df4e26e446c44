//! The objects that decisions about a cluster need: as texts, which are cheap to take from the store,
//! and read.

use std::sync::Arc;

use serde_json::Value;

use rayfit_core::snapshot::gcs::ClusterResourceState;
use rayfit_core::snapshot::pod_object::PodObject;
use rayfit_core::snapshot::{
    API_VERSION, ClusterId, History, KIND, KubeNode, NodeLoads, OwnPods, Snapshot,
};

/// From this number of pods, Ray nodes, requests and so on, a decision may take so long that other
/// tasks must not wait for it.
pub const MANY: usize = 100;

/// The objects of a cluster as JSON texts, which are shared with the store.
#[derive(Debug, Clone, Default)]
pub struct ClusterTexts {
    pub(super) cluster: Arc<[u8]>,
    pub(super) pods: Vec<Arc<[u8]>>,
    /// The Kubernetes nodes of pods that may be resized; of other clusters those that are about to
    /// leave.
    pub(super) nodes: Option<Vec<Arc<[u8]>>>,
    /// The requests of other pods of RayClusters on these nodes.
    pub(super) loads: NodeLoads,
}

impl ClusterTexts {
    /// Returns whether both are the same texts, so that none of the objects was stored anew.
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

    /// Returns whether [reading](Self::read) takes so long that other tasks must not wait for it: there are many pods, or
    /// the RayCluster's text is so long that it may have very many worker groups.
    pub fn is_slow(&self) -> bool {
        self.pods.len() >= MANY || self.cluster.len() >= 1 << 16
    }

    /// Parses the texts into a snapshot without a time, an answer of the GCS and a history.
    pub fn read(&self) -> Snapshot {
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
        Snapshot {
            api_version: API_VERSION.to_owned(),
            kind: KIND.to_owned(),
            time: String::new(),
            ray_cluster: cluster.into(),
            pods,
            nodes,
            loads: self.loads.clone(),
            gcs: ClusterResourceState::default(),
            history: History::default(),
        }
    }
}
