//! The taints of Kubernetes nodes, and what they say about the future of a node.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::snapshot::canonical::{is_default, nullable};
use crate::snapshot::moment::seconds;

/// The most taints that are kept of a node.
const TAINTS: usize = 16;

/// The key of the taint that a cordon stands for.
pub const CORDON: &str = "node.kubernetes.io/unschedulable";

/// A taint of a Kubernetes node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Taint {
    /// The key.
    #[serde(deserialize_with = "nullable")]
    pub key: String,
    /// The value.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub value: String,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    #[serde(deserialize_with = "nullable")]
    pub effect: String,
    /// The time at which it was added, in RFC 3339, if that is known.
    #[serde(skip_serializing_if = "is_default")]
    pub time_added: Option<String>,
}

/// The meaning of a taint for the future of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaintMeaning {
    /// The node is about to leave, so many seconds after the taint was added where that is known.
    Leaves(Option<u32>),
    /// The kubelet does not answer. Kubernetes evicts the pods after five minutes, or when they say.
    Unreachable,
    /// The node takes no more pods for a while.
    Short,
}

impl TaintMeaning {
    /// The meaning of taints with a key for the future of their node, if known.
    pub fn of(key: &str) -> Option<Self> {
        // Kubernetes, `core/v1/well_known_taints.go` and cloud-provider's `well_known_taints.go`;
        // Karpenter, `v1/taints.go`; cluster-autoscaler, `utils/taints/taints.go`;
        // aws-node-termination-handler, `pkg/node/node.go`; GKE's node taints.
        match key {
            CORDON
            | "node.kubernetes.io/out-of-service"
            | "node.cloudprovider.kubernetes.io/shutdown"
            | "karpenter.sh/disrupted"
            | "karpenter.sh/disruption"
            | "ToBeDeletedByClusterAutoscaler" => Some(Self::Leaves(None)),
            // Google gives 30 seconds.
            "cloud.google.com/impending-node-termination" => Some(Self::Leaves(Some(30))),
            // Amazon gives two minutes.
            "aws-node-termination-handler/spot-itn" => Some(Self::Leaves(Some(120))),
            _ if key.starts_with("aws-node-termination-handler/") => Some(Self::Leaves(None)),
            "node.kubernetes.io/not-ready" | "node.kubernetes.io/unreachable" => {
                Some(Self::Unreachable)
            }
            "node.kubernetes.io/memory-pressure"
            | "node.kubernetes.io/disk-pressure"
            | "node.kubernetes.io/pid-pressure"
            | "node.kubernetes.io/network-unavailable" => Some(Self::Short),
            _ => None,
        }
    }
}

impl Taint {
    /// The taint that a cordon stands for: who tolerates it is scheduled to cordoned nodes.
    pub fn cordon() -> Self {
        Self {
            key: CORDON.to_owned(),
            effect: "NoSchedule".to_owned(),
            ..Self::default()
        }
    }

    /// The meaning of the taint for the future of its node, if known of its key.
    pub fn meaning(&self) -> Option<TaintMeaning> {
        TaintMeaning::of(&self.key)
    }

    /// The time at which the taint was added, in seconds since 1970, if that is known.
    pub fn added(&self) -> Option<f64> {
        // Cluster-autoscaler writes the time into the value.
        let by_value = || {
            let seconds: u32 = self.value.parse().ok()?;
            (self.key == "ToBeDeletedByClusterAutoscaler").then(|| f64::from(seconds))
        };
        let time = self.time_added.as_deref().and_then(seconds);
        time.or_else(by_value)
    }
}

/// Reads the taints that mean something here.
pub(super) fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Taint>, D::Error> {
    let mut taints: Vec<Taint> = nullable(deserializer)?;
    // By that effect the scheduler only prefers other nodes, and nobody is evicted.
    taints.retain(|taint| taint.meaning().is_some() && taint.effect != "PreferNoSchedule");
    taints.truncate(TAINTS);
    Ok(taints)
}
