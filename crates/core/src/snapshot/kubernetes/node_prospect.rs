//! Prospects by node autoscalers for a pod without a Kubernetes node: that one is on its way, or
//! that none can come.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::snapshot::moment::seconds;

/// A program that makes Kubernetes nodes for pods, by the name with which it reports Events.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum NodeAutoscaler {
    /// Karpenter.
    Karpenter,
    /// The Karpenter of Amazon's EKS Auto Mode.
    #[serde(rename = "eks-auto-mode/compute")]
    #[strum(serialize = "eks-auto-mode/compute")]
    EksAutoMode,
    /// Cluster-autoscaler, also that of Google and Azure.
    ClusterAutoscaler,
}

impl NodeAutoscaler {
    pub(super) const ALL: [Self; 3] = [Self::Karpenter, Self::EksAutoMode, Self::ClusterAutoscaler];

    /// The name with which it reports Events.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The outlook that an Event of this reason gives for a pod. (Karpenter,
    /// `pkg/controllers/provisioning/scheduling/events.go`; cluster-autoscaler,
    /// `processors/status/eventing_scale_up_processor.go`.)
    pub(super) fn outlook(self, reason: &str) -> Option<NodeOutlook> {
        match (self, reason) {
            (Self::Karpenter | Self::EksAutoMode, "Nominated")
            | (Self::ClusterAutoscaler, "TriggeredScaleUp") => Some(NodeOutlook::Coming),
            (Self::Karpenter | Self::EksAutoMode, "FailedScheduling")
            | (Self::ClusterAutoscaler, "NotTriggerScaleUp") => Some(NodeOutlook::None),
            _ => None,
        }
    }
}

/// The word of a node autoscaler about a Kubernetes node for a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum NodeOutlook {
    /// One is on its way.
    Coming,
    /// None can come.
    None,
}

/// The latest word of a node autoscaler about a pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeProspect {
    /// The node autoscaler that says so.
    pub by: NodeAutoscaler,
    /// The outlook that it gives.
    pub node: NodeOutlook,
    /// The time since which it has said so, and not the contrary, in RFC 3339.
    pub since: String,
    /// Its own words, of which only the beginning is kept.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

impl NodeProspect {
    /// The time since which it has been said, in seconds since 1970.
    pub fn since(&self) -> Option<f64> {
        seconds(&self.since)
    }
}
