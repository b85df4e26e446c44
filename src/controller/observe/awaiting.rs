//! The pods that wait for a Kubernetes node, and what node autoscalers say about them.
//!
//! Their words are read by [`pod_events`](super::pod_events) and become a part of the pod, so that
//! a decision finds them there, a look finds the pod changed, and a record has them too. They stay
//! until the pod has a node, whatever else changes of it.

use std::collections::HashMap;

use rayfit_core::snapshot::node_prospect::NodeProspect;
use rayfit_core::snapshot::pod_object::PodObject;
use rayfit_core::snapshot::prospect_reader::AwaitingPod;

/// A pod that waits for a Kubernetes node, with the prospects of one.
pub(super) struct Awaiting {
    pub(super) pod: AwaitingPod,
    pub(super) prospects: Vec<NodeProspect>,
}

impl Awaiting {
    /// The text of the pod, with what is said of it.
    pub(super) fn written(&self, pod: &mut PodObject) -> Vec<u8> {
        pod.node_prospects.clone_from(&self.prospects);
        serde_json::to_vec(pod).unwrap_or_default()
    }
}

/// The pods that wait for a Kubernetes node, by name, by namespace.
pub(super) type AwaitingPods = HashMap<String, HashMap<String, AwaitingPod>>;
