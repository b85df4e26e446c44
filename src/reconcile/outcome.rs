//! What a failed call means: whom it concerns, and whether trying again makes sense.

use super::effect::Effect;

/// A call that failed, as the shell saw it.
#[derive(Debug, Clone, PartialEq)]
pub enum Failure {
    /// The API server answered with a `Status`.
    Api(ApiStatus),
    /// The GCS answered with an error, or gRPC did.
    Gcs {
        /// What kind.
        kind: GcsKind,
        /// What it said; never a token.
        message: String,
    },
    /// No answer: no connection, or none in time. Whether it was done is unknown.
    NoAnswer(String),
    /// Not sent: the turn or the lease ended before it could have been done.
    NotSent(String),
}

/// A Kubernetes `Status`, as far as it says what to do.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ApiStatus {
    /// The HTTP status.
    pub code: u16,
    /// `reason`, such as `Conflict`.
    pub reason: String,
    /// `message`
    pub message: String,
    /// `details.causes[].reason`, such as `NodeCapacity`.
    pub causes: Vec<String>,
    /// `details.retryAfterSeconds`, or the header `Retry-After`, in seconds.
    pub retry_after_s: Option<f64>,
}

/// Errors of the GCS, by what can be done about them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GcsKind {
    /// It does not know the node (any more).
    NotFound,
    /// It does not take the arguments.
    InvalidArgument,
    /// It wants a token, or another one.
    Unauthenticated,
    /// It is not the leader.
    Passive,
    /// It did not answer in time, or cannot be reached.
    Unreachable,
    /// Anything else.
    Other,
}

/// What a failure means.
#[derive(Debug, Clone, PartialEq)]
pub enum Meaning {
    /// The object is not as it was read, or another write was faster: look again at once, nothing
    /// is wrong.
    Stale,
    /// The object is gone: nothing is left to do.
    Gone,
    /// The Kubernetes node can never hold this size.
    TooLarge(Allocatable),
    /// The API server will not take it as long as the object, a quota, a limit range or another
    /// webhook is as it is: wait long.
    Refused,
    /// A right is missing: an admin has to act. Wait long.
    Forbidden,
    /// The API server asks for patience.
    Busy {
        /// For how long, in seconds, if it says so.
        retry_after_s: Option<f64>,
    },
    /// It failed there or on the way, and may work the next time.
    Transient,
}

/// What a Kubernetes node has for all pods together, as the API server tells when it refuses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Allocatable {
    /// Thousandths of cores, if CPU was too much.
    pub cpu_milli: Option<i64>,
    /// Bytes, if memory was too much.
    pub memory_bytes: Option<i64>,
}

impl Failure {
    /// What it means, and thereby what to do.
    pub fn meaning(&self) -> Meaning {
        match self {
            Self::Api(_) | Self::Gcs { .. } | Self::NoAnswer(_) | Self::NotSent(_) => {
                Meaning::Transient
            }
        }
    }

    /// For people: what failed, why, and what to do about it.
    pub fn explain(&self, effect: &Effect) -> String {
        format!("{}: {self:?}", effect.kind())
    }
}
