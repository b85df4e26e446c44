//! Why the state of a Ray cluster cannot be obtained, and what its users can do about it.
//!
//! The reason is a value that decisions use; its text is made in this file only. Nothing in the
//! text changes as long as the reason is the same: it has no countdown and no elapsed time, because
//! each new text would be another Event.

use std::fmt;

use crate::reconcile::effects::failure::GcsKind;

/// The reason why the state of a Ray cluster cannot be obtained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blind {
    /// There is no head pod.
    NoHead,
    /// The head pod has no address.
    NoAddress {
        /// The head pod.
        pod: String,
    },
    /// The head pod has ended.
    Ended {
        /// The head pod.
        pod: String,
    },
    /// The credentials that the GCS requires of its clients cannot be obtained.
    Credentials {
        /// The head pod.
        head: HeadPod,
        /// The reason; it never contains a token.
        reason: String,
    },
    /// The GCS was asked and returned no state.
    Gcs {
        /// The head pod.
        head: HeadPod,
        /// The kind of the failure.
        kind: GcsKind,
        /// The message of the GCS or of the connection; it never contains a token.
        reason: String,
    },
    /// The GCS was not asked again, because a request to it failed a moment ago.
    NotAsked {
        /// The head pod.
        head: HeadPod,
    },
}

/// A head pod that has an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadPod {
    /// The pod's name.
    pub name: String,
    /// Whether Kubernetes calls the pod ready, so that its GCS should answer.
    pub ready: bool,
}

impl Blind {
    /// Whether this is what a head looks like while it starts or is being replaced. Users need to
    /// do nothing about that unless it lasts.
    pub(crate) fn is_starting(&self) -> bool {
        match self {
            Self::NoHead | Self::NoAddress { .. } | Self::Ended { .. } => true,
            Self::Gcs {
                head,
                kind: GcsKind::Unreachable,
                ..
            }
            | Self::NotAsked { head } => !head.ready,
            Self::Gcs { .. } | Self::Credentials { .. } => false,
        }
    }

    /// Whether credentials are missing or wrong, or the GCS's answers cannot be used. Neither ends
    /// by waiting.
    pub(crate) fn is_refusal(&self) -> bool {
        let Self::Gcs { kind, .. } = self else {
            return matches!(self, Self::Credentials { .. });
        };
        matches!(kind, GcsKind::Unauthenticated | GcsKind::Unusable)
    }

    /// The same reason, completed with the failure that is known from `before` where the GCS was
    /// not asked again.
    pub(crate) fn completed(&self, before: Option<&Self>) -> Self {
        let Self::NotAsked { head } = self else {
            return self.clone();
        };
        match before {
            Some(Self::Gcs {
                head: known,
                kind,
                reason,
            }) if known.name == head.name => Self::Gcs {
                head: head.clone(),
                kind: *kind,
                reason: reason.clone(),
            },
            _ => self.clone(),
        }
    }

    /// What users can do about it once it has lasted.
    pub(crate) fn advice(&self) -> &'static str {
        match self {
            Self::NoHead => {
                "KubeRay makes the head pod: look at the Events of the RayCluster and at KubeRay's \
                 log"
            }
            Self::NoAddress { .. } => "look at the Events of that pod: what it waits for is there",
            Self::Ended { .. } => "look at why its containers ended: KubeRay makes another one",
            Self::Credentials { .. } => "give Rayfit what the message names",
            Self::Gcs {
                head,
                kind: GcsKind::Unreachable,
                ..
            }
            | Self::NotAsked { head } => {
                if head.ready {
                    "does a NetworkPolicy let Rayfit reach its GCS port?"
                } else {
                    "look at the log of that pod's ray container"
                }
            }
            Self::Gcs { .. } => "look at the log of its GCS",
        }
    }
}

impl fmt::Display for Blind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoHead => f.write_str("it has no head pod"),
            Self::NoAddress { pod } => write!(f, "its head pod {pod} has no address"),
            Self::Ended { pod } => write!(f, "its head pod {pod} has ended"),
            Self::Credentials { reason, .. } => f.write_str(reason),
            Self::Gcs {
                head,
                kind: GcsKind::Unreachable,
                reason,
            } => write!(f, "the GCS in {head} does not answer ({reason})"),
            Self::Gcs { head, reason, .. } => {
                write!(f, "the GCS in {head} gives no state ({reason})")
            }
            Self::NotAsked { head } => write!(f, "the GCS in {head} does not answer"),
        }
    }
}

impl fmt::Display for HeadPod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ready = if self.ready { "ready" } else { "not ready" };
        write!(f, "head pod {}, which is {ready},", self.name)
    }
}
