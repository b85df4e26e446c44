//! Errors of calls, classified by what to do about them.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use rayfit_core::text::ForeignText;
use tonic::{Code, Status};

use super::{Address, Excess, Unusable};

/// A call of a GCS, by the path of its method in gRPC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr)]
pub enum Call {
    /// `GetClusterResourceState`
    #[strum(serialize = "/ray.rpc.autoscaler.AutoscalerStateService/GetClusterResourceState")]
    ClusterState,
    /// `GetClusterStatus`
    #[strum(serialize = "/ray.rpc.autoscaler.AutoscalerStateService/GetClusterStatus")]
    ClusterStatus,
    /// `ReportAutoscalingState`
    #[strum(serialize = "/ray.rpc.autoscaler.AutoscalerStateService/ReportAutoscalingState")]
    Report,
    /// `DrainNode` of the autoscaler's service
    #[strum(serialize = "/ray.rpc.autoscaler.AutoscalerStateService/DrainNode")]
    Drain,
    /// `DrainNode` of the nodes' service
    #[strum(serialize = "/ray.rpc.NodeInfoGcsService/DrainNode")]
    Stop,
    /// `ResizeRayletResourceInstances`
    #[strum(serialize = "/ray.rpc.autoscaler.AutoscalerStateService/ResizeRayletResourceInstances")]
    Resize,
    /// `InternalKVGet`
    #[strum(serialize = "/ray.rpc.InternalKVGcsService/InternalKVGet")]
    KvGet,
    /// `InternalKVPut`
    #[strum(serialize = "/ray.rpc.InternalKVGcsService/InternalKVPut")]
    KvPut,
    /// `InternalKVDel`
    #[strum(serialize = "/ray.rpc.InternalKVGcsService/InternalKVDel")]
    KvDel,
    /// `GetTaskEvents`
    #[strum(serialize = "/ray.rpc.TaskInfoGcsService/GetTaskEvents")]
    TaskEvents,
    /// `GetAllActorInfo`
    #[strum(serialize = "/ray.rpc.ActorInfoGcsService/GetAllActorInfo")]
    Actors,
    /// `GetAllJobInfo`
    #[strum(serialize = "/ray.rpc.JobInfoGcsService/GetAllJobInfo")]
    Jobs,
    /// `GetAllPlacementGroup`
    #[strum(serialize = "/ray.rpc.PlacementGroupInfoGcsService/GetAllPlacementGroup")]
    PlacementGroups,
    /// `GcsSubscriberCommandBatch`
    #[strum(serialize = "/ray.rpc.ObservabilityPubSubService/GcsSubscriberCommandBatch")]
    Subscribe,
    /// `GcsSubscriberPoll`
    #[strum(serialize = "/ray.rpc.ObservabilityPubSubService/GcsSubscriberPoll")]
    Reports,
    /// `GcsPublish`
    #[strum(serialize = "/ray.rpc.ObservabilityPubSubService/GcsPublish")]
    Publish,
}

/// A failed call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{call} at the GCS {address}: {fault}")]
pub struct CallError {
    /// The call that failed.
    pub call: Call,
    /// The address of the GCS that was called.
    pub address: Address,
    /// The reason why it failed.
    pub fault: GcsFault,
}

/// The error of a call that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GcsFault {
    /// No connection, or it broke.
    #[error("unreachable: {0}")]
    Unreachable(String),
    /// Not tried, because earlier attempts failed. The value is the time until the next attempt; it
    /// is not part of the text, which stays the same as long as nothing else changes.
    #[error("not tried, because it was unreachable a moment ago")]
    BackingOff(Duration),
    /// No answer in that time. It is not part of the text: it differs from call to call.
    #[error("no answer in time; the GCS is overloaded or the network is cut")]
    Deadline(Duration),
    /// TLS was tried and refused, by either side.
    #[error(
        "TLS failed: {0}; both sides need certificates of the same authority, the GCS's with the \
         name or address that it is called by"
    )]
    Tls(String),
    /// The token or a certificate of this side cannot be read.
    #[error("credentials: {0}")]
    Credentials(String),
    /// The token is missing or not the right one.
    #[error(
        "not authenticated: {0}; use the token that the Ray cluster was started with \
         (RAY_AUTH_TOKEN, in the cluster's Secret under auth_token)"
    )]
    Unauthenticated(String),
    /// The GCS is not the leader.
    #[error(
        "it is passive, because another GCS is the leader; use that one, or wait until this \
             one is the leader"
    )]
    Passive,
    /// The object of the call does not exist (any more).
    #[error("not found: {0}; read the cluster's state again")]
    NotFound(String),
    /// The GCS refuses the request as invalid.
    #[error("refused as invalid: {0}")]
    InvalidArgument(String),
    /// This version of Ray does not have the call.
    #[error(
        "this version of Ray does not have the call: {0}; in-place resize needs Ray 2.56 or \
             later"
    )]
    Unsupported(String),
    /// The answer is larger than the limit.
    #[error("the answer is too large: {0}")]
    TooLarge(String),
    /// The content of the answer is invalid.
    #[error("its answer is not used: {0}")]
    Unusable(Unusable),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl GcsFault {
    /// The error of the transport or the server.
    pub(super) fn from_status(status: &Status, deadline: Duration) -> Self {
        // The client's side makes statuses of its own errors too, whose code says less than the
        // error.
        if let Some(source) = status.source() {
            return Self::from_transport(source, deadline);
        }
        let message = || {
            // gRPC in C++ sends details beside the message.
            let details = String::from_utf8_lossy(status.details());
            let text = match (status.message(), details.trim()) {
                ("", "") => status.code().to_string(),
                (message, "") => message.to_owned(),
                ("", details) => details.to_owned(),
                (message, details) => format!("{message}: {details}"),
            };
            ForeignText(text.chars().take(LONGEST_MESSAGE).collect::<String>()).to_string()
        };
        match status.code() {
            Code::Unauthenticated | Code::PermissionDenied => Self::Unauthenticated(message()),
            // tonic calls a call that took too long cancelled, gRPC in C++ says that the deadline
            // is exceeded.
            Code::DeadlineExceeded | Code::Cancelled => Self::Deadline(deadline),
            Code::Unavailable => Self::Unreachable(message()),
            // The client's side says this of an answer above its limit.
            Code::OutOfRange | Code::ResourceExhausted => Self::TooLarge(message()),
            Code::Unimplemented => Self::Unsupported(message()),
            Code::NotFound => Self::NotFound(message()),
            Code::InvalidArgument => Self::InvalidArgument(message()),
            // Ray's own statuses come with their name in the message.
            Code::Aborted if status.message().contains("GcsPassive") => Self::Passive,
            Code::Aborted if status.message().contains("NotFound") => Self::NotFound(message()),
            Code::Aborted if status.message().contains("Invalid") => {
                Self::InvalidArgument(message())
            }
            _ => Self::Other(message()),
        }
    }

    fn from_transport(source: &(dyn StdError + 'static), deadline: Duration) -> Self {
        let causes = || std::iter::successors(Some(source), |&error| error.source());
        for error in causes() {
            if error.is::<tonic::TimeoutExpired>() {
                return Self::Deadline(deadline);
            }
            if let Some(excess) = error.downcast_ref::<Excess>() {
                return Self::Unusable(Unusable::Excess(*excess));
            }
            // No connection could be opened.
            if let Some(fault) = error.downcast_ref::<Self>() {
                return fault.clone();
            }
        }
        let innermost = causes().last().map(ToString::to_string);
        let reason = innermost.unwrap_or_default();
        // With TLS 1.3 a server refuses our certificate after the handshake, when HTTP/2 already
        // reads from the connection; that passes on the text alone.
        if reason.starts_with("received fatal alert") {
            return Self::Tls(reason);
        }
        Self::Unreachable(reason)
    }
}

/// The most characters of a GCS's message that are passed on.
pub(super) const LONGEST_MESSAGE: usize = 400;

impl fmt::Display for Call {
    /// The name of the method, which two services have in common where nodes are stopped.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path: &str = self.into();
        let method = path.rsplit('/').next().unwrap_or_default();
        match self {
            Self::Stop => write!(f, "NodeInfo {method}"),
            _ => f.write_str(method),
        }
    }
}
