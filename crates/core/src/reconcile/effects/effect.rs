//! Effects: the calls that change a cluster, as data.

use json_patch::Patch;
use serde_json::Value;
use strum::{IntoStaticStr, VariantNames};

use crate::plan::{Deletion, RemovalCause};
use crate::snapshot::NodeId;
use crate::snapshot::autoscaling_state::AutoscalingState;

/// The target of an effect, a failure or a back-off. A failure on one target never stops the work
/// on another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, derive_more::Display)]
pub enum EffectTarget {
    /// The RayCluster as a whole: its one patch, its report to Ray, its error text.
    #[display("the RayCluster")]
    Cluster,
    /// One worker group, by name.
    #[display("group {_0}")]
    Group(String),
    /// One pod and the Ray node in it, by the pod's name.
    #[display("pod {_0}")]
    Pod(String),
}

/// The kind of work that is backed off after a failure. Other kinds of work on the same target
/// continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EffectClass {
    /// `replicas` and `workersToDelete`.
    Replicas,
    /// The end of a cluster that nobody uses.
    End,
    /// Resizing a pod and its raylet, and writing the resize note.
    Resize,
    /// Draining a Ray node.
    Drain,
    /// The autoscaling state that is reported to Ray.
    Report,
    /// The error text that Ray shows.
    Error,
}

/// One call to the API server or to the GCS.
#[derive(Debug, Clone, PartialEq, IntoStaticStr, VariantNames, derive_more::Display)]
#[strum(serialize_all = "kebab-case")]
pub enum Effect {
    /// PATCH of the RayCluster, `application/json-patch+json`.
    #[display("{}", if _0.changes.is_empty() { "patching the RayCluster" } else { "scaling worker groups" })]
    PatchCluster(ClusterPatch),
    /// DELETE of the RayCluster, because nobody uses it and its spec asks for that. It fails with 409 if the object is
    /// another one by now, or has changed since it was read.
    #[display("deleting the RayCluster")]
    DeleteCluster {
        /// The object's `metadata.uid`.
        uid: String,
        /// The object's `metadata.resourceVersion`.
        resource_version: String,
    },
    /// PATCH of the pod, `application/strategic-merge-patch+json`: Ray's record of its resizes, or the
    /// marks for node autoscalers.
    #[display("writing annotations on pod {}", _0.pod)]
    NotePod(PodPatch),
    /// PATCH of the pod's subresource `resize`, `application/strategic-merge-patch+json`.
    #[display("resizing pod {}", _0.pod)]
    ResizePod(PodPatch),
    /// `AutoscalerStateService.ResizeRayletResourceInstances`
    #[display("resizing the raylet of pod {}", _0.pod)]
    ResizeRaylet(RayletResize),
    /// `AutoscalerStateService.DrainNode`, or `NodeInfoGcsService.DrainNode` for a node that is
    /// stopped.
    #[display("draining the Ray node of pod {}", _0.pod)]
    Drain(Drain),
    /// `AutoscalerStateService.ReportAutoscalingState`
    #[display("reporting the state of scaling to Ray")]
    Report(AutoscalingState),
    /// `InternalKVGcsService.InternalKVPut` of the key [`ERROR_KEY`] in the default (empty)
    /// namespace, overwriting: the text that `ray status` and drivers show. The text is empty when
    /// nothing is wrong; then `InternalKVDel` is called instead, since drivers would print an empty
    /// warning.
    #[display("telling Ray what is wrong")]
    PutError(String),
}

/// The key under which [`Effect::PutError`] stores its text in the GCS.
pub const ERROR_KEY: &str = "__autoscaling_error";

/// The one patch of a RayCluster.
#[derive(Debug, Clone, PartialEq)]
pub struct ClusterPatch {
    /// The operations. They begin with tests of UID, generation and hand-over record, so that any change to the spec
    /// since it was read, and of who scales the cluster, makes the patch fail with 422 (a failed test) or 409.
    pub operations: Patch,
    /// The changes that the patch makes, by worker group.
    pub changes: Vec<GroupChange>,
}

/// The changes to one worker group.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupChange {
    /// The group's name.
    pub group: String,
    /// The present `replicas`.
    pub now: i64,
    /// The new `replicas`.
    pub then: i64,
    /// The number of new nodes that demand needs.
    pub launches: u64,
    /// The pods that enter `workersToDelete`.
    pub deletions: Vec<Deletion>,
    /// The change with its reason, in one line.
    pub line: String,
}

/// A patch of a pod or of its subresource.
#[derive(Debug, Clone, PartialEq)]
pub struct PodPatch {
    /// The pod's name.
    pub pod: String,
    /// The body. It names the pod's UID, so that another pod of the same name is not touched: the API
    /// server refuses to change a UID. (Kubernetes, `dropPodUpdates`, `ValidateObjectMetaUpdate`.)
    pub body: Value,
}

/// The new resources of a raylet. Only the resources that are named change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RayletResize {
    /// The pod that the raylet runs in.
    pub pod: String,
    /// The raylet's Ray node.
    pub node_id: NodeId,
    /// The CPUs, in thousandths of cores.
    pub cpu_milli: Option<i64>,
    /// The memory, in bytes.
    pub memory_bytes: Option<i64>,
}

/// A request to drain a Ray node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drain {
    /// The pod that the Ray node runs in.
    pub pod: String,
    /// The Ray node.
    pub node_id: NodeId,
    /// The kind of drain.
    pub kind: DrainKind,
    /// The node's worker group.
    pub group: String,
    /// The cause of the removal.
    pub cause: RemovalCause,
    /// The reason for people; Ray keeps it with the Ray node.
    pub message: String,
}

/// The kind of drain that is requested from Ray.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrainKind {
    /// Reason `IDLE_TERMINATION`, deadline 0: the raylet refuses the drain if it has work by now.
    Idle,
    /// Reason `PREEMPTION`, deadline 0, which means none: the raylet takes no new work, and goes
    /// when its work has ended.
    WhenDone,
    /// Reason `PREEMPTION` with a deadline in milliseconds since 1970: as before, but the work is
    /// told by when it has to end. Ray does not enforce the deadline.
    Until(u64),
    /// `NodeInfoGcsService.DrainNode`: the raylet ends now, and its work with it. This is how Ray's
    /// autoscaler stops nodes above a maximum. (Ray, `ray_stopper.py`, `_stop_ray_node`.)
    Stop,
}

/// The answer to an effect that succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Reply {
    /// An answer without content that matters.
    #[default]
    Ok,
    /// The resources that the raylet has now; it never gives up what is in use.
    RayletTotals {
        /// The CPUs, in cores.
        cpu: Option<f64>,
        /// The memory, in bytes.
        memory: Option<f64>,
    },
    /// The raylet accepted the drain.
    DrainAccepted,
    /// The raylet refused the drain, because it has work again. A refusal is an answer, not a
    /// failure.
    DrainRefused,
}

impl Effect {
    /// The short names of all kinds of effects.
    pub const KINDS: &'static [&'static str] = Self::VARIANTS;

    /// A short name for logs and metrics, one for each kind of effect.
    pub fn kind(&self) -> &'static str {
        self.into()
    }

    /// The class of work that this effect belongs to, which is what a back-off holds up.
    pub const fn class(&self) -> EffectClass {
        match self {
            // A patch that changes no group suspends the cluster, or prepares its deletion.
            Self::PatchCluster(patch) if patch.changes.is_empty() => EffectClass::End,
            Self::PatchCluster(_) => EffectClass::Replicas,
            Self::DeleteCluster { .. } => EffectClass::End,
            Self::NotePod(_) | Self::ResizePod(_) | Self::ResizeRaylet(_) => EffectClass::Resize,
            Self::Drain(_) => EffectClass::Drain,
            Self::Report(_) => EffectClass::Report,
            Self::PutError(_) => EffectClass::Error,
        }
    }

    /// Tells calls to the API server from calls to the GCS.
    pub const fn is_kubernetes(&self) -> bool {
        matches!(
            self,
            Self::PatchCluster(_)
                | Self::DeleteCluster { .. }
                | Self::NotePod(_)
                | Self::ResizePod(_)
        )
    }
}
