//! What can be done to a cluster, as data.

use std::fmt;

use json_patch::Patch;
use serde_json::Value;

use crate::plan::{Deletion, RemovalCause, STATUS_ANNOTATION};
use crate::snapshot::NodeId;
use crate::snapshot::autoscaling_state::AutoscalingState;

/// What an effect, a failure or a back-off is about. What happens to one subject never stops
/// another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EffectTarget {
    /// The RayCluster as a whole: its one patch, its report, its error text.
    Cluster,
    /// One worker group, by name.
    Group(String),
    /// One pod and the Ray node in it, by the pod's name.
    Pod(String),
}

/// What is left alone after a failure; other tasks of the same subject go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EffectClass {
    /// `replicas` and `workersToDelete`.
    Replicas,
    /// Resizing a pod, its raylet and its note.
    Resize,
    /// Draining a node.
    Drain,
    /// The report to Ray.
    Report,
    /// The error text.
    Error,
}

/// One call to the API server or to the GCS.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// PATCH of the RayCluster, `application/json-patch+json`.
    PatchCluster(ClusterPatch),
    /// PATCH of the pod, `application/strategic-merge-patch+json`: Ray's record of its resizes.
    NotePod(PodPatch),
    /// PATCH of the pod's subresource `resize`, `application/strategic-merge-patch+json`.
    ResizePod(PodPatch),
    /// `AutoscalerStateService.ResizeRayletResourceInstances`
    ResizeRaylet(RayletResize),
    /// `AutoscalerStateService.DrainNode`
    Drain(Drain),
    /// `AutoscalerStateService.ReportAutoscalingState`
    Report(AutoscalingState),
    /// `InternalKVGcsService.InternalKVPut` of the key [`ERROR_KEY`] in the default (empty)
    /// namespace, overwriting: the text that `ray status` and drivers show. Empty when nothing is
    /// wrong: then `InternalKVDel`, since drivers would print an empty warning.
    PutError(String),
}

/// The key of [`Effect::PutError`].
pub const ERROR_KEY: &str = "__autoscaling_error";

/// The one patch of a RayCluster.
#[derive(Debug, Clone, PartialEq)]
pub struct ClusterPatch {
    /// The operations. They begin with a test of `/metadata/resourceVersion`: whatever changed
    /// the object since it was read, the mode included, makes the patch fail with 422 (a failed
    /// test) or 409.
    pub operations: Patch,
    /// What it changes, by group.
    pub changes: Vec<GroupChange>,
}

/// What changes in one group.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupChange {
    /// Its name.
    pub group: String,
    /// `replicas` as it is.
    pub now: i64,
    /// `replicas` as it will be.
    pub then: i64,
    /// How many nodes are asked for because they are needed.
    pub launches: u64,
    /// The pods that enter the list of pods to delete.
    pub deletions: Vec<Deletion>,
    /// What and why, in one line.
    pub line: String,
}

/// A patch of a pod or of its subresource.
#[derive(Debug, Clone, PartialEq)]
pub struct PodPatch {
    /// The pod.
    pub pod: String,
    /// The body. It names the pod's uid, so that a namesake is not touched.
    pub body: Value,
}

/// What a raylet is told to have. Only what is named changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RayletResize {
    /// The pod.
    pub pod: String,
    /// Its Ray node.
    pub node_id: NodeId,
    /// Thousandths of cores.
    pub cpu_milli: Option<i64>,
    /// Bytes.
    pub memory_bytes: Option<i64>,
}

/// How a Ray node is asked to go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drain {
    /// The pod.
    pub pod: String,
    /// Its Ray node.
    pub node_id: NodeId,
    /// In which way.
    pub kind: DrainKind,
    /// Its group.
    pub group: String,
    /// Why.
    pub cause: RemovalCause,
    /// Why, for people; Ray keeps it with the node.
    pub message: String,
}

/// In which way a Ray node goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrainKind {
    /// Reason `IDLE_TERMINATION`, deadline 0: the raylet refuses if it has work by now.
    Idle,
    /// Reason `PREEMPTION`, deadline 0 (none): no new work, and it ends when its work ends.
    WhenDone,
}

/// What an effect that went well answered.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Reply {
    /// Nothing that matters.
    #[default]
    Ok,
    /// What the raylet has now: it never gives up what is in use.
    RayletTotals {
        /// Cores.
        cpu: Option<f64>,
        /// Bytes.
        memory: Option<f64>,
    },
    /// The drain was taken.
    DrainAccepted,
    /// It was not: the node has work again. A refusal is an answer, no failure.
    DrainRefused,
}

impl Effect {
    /// A short name for logs and metrics; one per kind.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::PatchCluster(_) => "patch-cluster",
            Self::NotePod(_) => "note-pod",
            Self::ResizePod(_) => "resize-pod",
            Self::ResizeRaylet(_) => "resize-raylet",
            Self::Drain(_) => "drain",
            Self::Report(_) => "report",
            Self::PutError(_) => "put-error",
        }
    }

    /// What it is a part of.
    pub const fn task(&self) -> EffectClass {
        match self {
            Self::PatchCluster(_) => EffectClass::Replicas,
            Self::NotePod(_) | Self::ResizePod(_) | Self::ResizeRaylet(_) => EffectClass::Resize,
            Self::Drain(_) => EffectClass::Drain,
            Self::Report(_) => EffectClass::Report,
            Self::PutError(_) => EffectClass::Error,
        }
    }

    /// Whether it goes to the API server; the others go to the GCS.
    pub const fn is_kubernetes(&self) -> bool {
        matches!(
            self,
            Self::PatchCluster(_) | Self::NotePod(_) | Self::ResizePod(_)
        )
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PatchCluster(_) => f.write_str("scaling worker groups"),
            Self::NotePod(patch) => write!(f, "writing {STATUS_ANNOTATION} on pod {}", patch.pod),
            Self::ResizePod(patch) => write!(f, "resizing pod {}", patch.pod),
            Self::ResizeRaylet(resize) => write!(f, "resizing the raylet of pod {}", resize.pod),
            Self::Drain(drain) => write!(f, "draining the Ray node of pod {}", drain.pod),
            Self::Report(_) => f.write_str("reporting the state of scaling to Ray"),
            Self::PutError(_) => f.write_str("telling Ray what is wrong"),
        }
    }
}

impl fmt::Display for EffectTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cluster => f.write_str("the RayCluster"),
            Self::Group(name) => write!(f, "group {name}"),
            Self::Pod(name) => write!(f, "pod {name}"),
        }
    }
}
