//! What is wrong with a world: calls that are not answered as they should be, watches that stop,
//! kubelets that refuse.

use std::collections::VecDeque;
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use crate::reconcile::Effect;
use crate::reconcile::effects::failure::{ApiStatus, Failure, GcsKind};
use crate::simulate::ray::lies::GcsLie;
use crate::snapshot::cluster_object::ClusterObject;

/// What is wrong with a world now.
#[derive(Debug, Clone, Default)]
pub struct Trouble {
    /// How the next calls of the scaler are answered, if not as they should be.
    pub answers: VecDeque<BadAnswer>,
    /// For how many seconds the API server has just asked for patience, if it has.
    pub patience_asked: Option<f64>,
    /// Whether the GCS does not answer.
    pub is_gcs_away: bool,
    /// How all calls of a kind are answered.
    pub refused: Option<(CallKind, Answer)>,
    /// The objects of which watchers hear nothing.
    pub lost: Option<LostWatches>,
    /// What kubelets say to every resize.
    pub resizes: Option<ResizeRefusal>,
    /// The lie that the GCS tells, if it tells one.
    pub lie: Option<GcsLie>,
    /// The objects of which watchers hear later than of others, and by how many seconds.
    pub slow: Option<(LostWatches, f64)>,
    /// What happens when the next call of a kind arrives, just before it is carried out.
    pub at_call: Option<(CallKind, CallEvent)>,
    /// The RayCluster as reads show it, where they are out of date.
    pub reads: Option<Rc<ClusterObject>>,
    /// How much of what waits the GCS tells of, in percent, if not all.
    pub told_percent: Option<u32>,
}

/// What follows from the loss of a head.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LostHead {
    /// Whether a head was lost, and whether there is another one.
    pub(super) head: HeadLoss,
    /// Whether drivers start again once there is another head.
    pub(super) returns: bool,
    /// Whether they have not done so since the last loss.
    pub(super) is_awaited: bool,
}

/// Whether a head was lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum HeadLoss {
    /// None ever was.
    #[default]
    Never,
    /// One was, and no other has joined since.
    Gone,
    /// One was, and another one has joined.
    Replaced,
}

/// What happens at the worst moment: when a call is on its way that was decided on before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CallEvent {
    /// People delete the pod that the call is about.
    PodDeleted,
    /// The containers of that pod end with an error.
    PodFails,
    /// People remove the notes of all pods.
    NotesRemoved,
    /// A tool writes 0 `replicas` of all groups.
    ReplicasZero,
    /// A tool writes 3 `replicas` of all groups.
    ReplicasThree,
    /// A tool empties the lists of pods to delete.
    ListsEmptied,
    /// People let all groups have no more replicas than their minima.
    MaximaLowered,
    /// The GCS starts anew, and has forgotten loads, demand and sizes.
    GcsRestarts,
}

impl CallEvent {
    /// All events that can meet a call.
    pub const ALL: [Self; 8] = [
        Self::PodDeleted,
        Self::PodFails,
        Self::NotesRemoved,
        Self::ReplicasZero,
        Self::ReplicasThree,
        Self::ListsEmptied,
        Self::MaximaLowered,
        Self::GcsRestarts,
    ];
}

/// Objects that are watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LostWatches {
    /// All watched objects.
    All,
    /// The RayCluster.
    RayCluster,
    /// Its pods.
    Pods,
    /// The Kubernetes nodes.
    Nodes,
}

impl LostWatches {
    /// Whether objects of a kind are among them.
    pub fn includes(self, of: Self) -> bool {
        self == of || self == Self::All
    }
}

/// Calls of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CallKind {
    /// Patches of the RayCluster.
    PatchCluster,
    /// Notes on pods.
    NotePod,
    /// Resizes of pods.
    ResizePod,
    /// Resizes of raylets.
    ResizeRaylet,
    /// Drains.
    Drain,
}

impl CallKind {
    /// All kinds of calls.
    pub const ALL: [Self; 5] = [
        Self::PatchCluster,
        Self::NotePod,
        Self::ResizePod,
        Self::ResizeRaylet,
        Self::Drain,
    ];

    /// Whether an effect is such a call.
    pub(super) fn is_of(self, effect: &Effect) -> bool {
        matches!(
            (self, effect),
            (Self::PatchCluster, Effect::PatchCluster(_))
                | (Self::NotePod, Effect::NotePod(_))
                | (Self::ResizePod, Effect::ResizePod(_))
                | (Self::ResizeRaylet, Effect::ResizeRaylet(_))
                | (Self::Drain, Effect::Drain(_))
        )
    }
}

/// A call that is not answered as it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BadAnswer {
    /// The answer.
    pub answer: Answer,
    /// Whether the call is carried out. A call that is refused is not.
    pub is_done: bool,
}

/// What the API server or the GCS answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    /// HTTP 409: a conflict.
    Conflict,
    /// HTTP 422 of a validation.
    Invalid,
    /// HTTP 403 of a quota.
    QuotaExceeded,
    /// HTTP 429 with `Retry-After`.
    TooManyRequests,
    /// HTTP 500.
    InternalError,
    /// HTTP 503.
    Unavailable,
    /// No answer at all.
    Silence,
}

/// What a kubelet says to a resize.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ResizeRefusal {
    /// The node has no room for it now.
    Deferred,
    /// The node can never hold it.
    Infeasible,
}

impl Answer {
    /// Whether the answer says that the call was not carried out.
    pub(super) fn refuses(self) -> bool {
        matches!(
            self,
            Self::Conflict | Self::Invalid | Self::QuotaExceeded | Self::TooManyRequests
        )
    }

    /// The failure that the scaler gets to know.
    pub(super) fn failure(self, is_kubernetes: bool) -> Failure {
        if !is_kubernetes {
            return Failure::Gcs {
                kind: GcsKind::Unreachable,
                message: "played: deadline exceeded".to_owned(),
            };
        }
        let (code, message, causes, retry_after_s) = match self {
            Self::Conflict => (409, "played: the object has been modified", vec![], None),
            // With a cause, by which the refusal is told from a JSON patch whose test fails.
            Self::Invalid => (
                422,
                "played: a webhook denied it",
                vec!["FieldValueInvalid".to_owned()],
                None,
            ),
            Self::QuotaExceeded => (403, "played: exceeded quota", vec![], None),
            Self::TooManyRequests => (429, "played: too many requests", vec![], Some(2.0)),
            Self::InternalError => (500, "played: internal error", vec![], None),
            Self::Unavailable => (503, "played: unavailable", vec![], None),
            Self::Silence => return Failure::NoAnswer("played: no answer".to_owned()),
        };
        Failure::Api(ApiStatus {
            code,
            message: message.to_owned(),
            causes,
            retry_after_s,
            ..ApiStatus::default()
        })
    }
}
