//! The meaning of a failed call: the target that it concerns, and whether trying again makes sense.

use crate::quantity::Quantity;
use crate::ray::resource::Amounts;
use crate::reconcile::effects::effect::Effect;

/// A call that failed, as the shell saw it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Failure {
    /// The API server answered with a `Status`.
    #[error("HTTP {}: {}", .0.code, .0.message)]
    Api(ApiStatus),
    /// The GCS answered with an error, or gRPC did.
    #[error("the GCS: {message}")]
    Gcs {
        /// The kind of the error.
        kind: GcsKind,
        /// The message of the error; it never contains a token.
        message: String,
    },
    /// There was no answer: no connection, or no answer in time. Whether the call took effect is
    /// unknown.
    #[error("no answer: {0}")]
    NoAnswer(String),
    /// The call was not sent: the write permission or the Lease ended before the call could have
    /// been completed.
    #[error("not sent: {0}")]
    NotSent(String),
    /// The call was not sent: too many requests wait for the API server already, or it has asked
    /// clients to slow down. The objects that were read are not known to be stale, and asking again
    /// at once would make the overload worse.
    #[error("not sent: {0}")]
    NotAdmitted(String),
}

/// A Kubernetes `Status`, reduced to the fields that decide what to do next.
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

/// Errors of the GCS, grouped by what can be done about them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GcsKind {
    /// The GCS does not know the Ray node, or knows it no longer.
    NotFound,
    /// The GCS rejects the arguments.
    InvalidArgument,
    /// The GCS requires a token, or a different one.
    Unauthenticated,
    /// The GCS that answered is not the leader.
    Passive,
    /// The GCS did not answer in time, or cannot be reached.
    Unreachable,
    /// The answer of the GCS cannot be used: it is too large, or it has amounts that Ray does not
    /// have.
    Unusable,
    /// Any other error.
    Other,
}

/// The meaning of a failure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Meaning {
    /// The object has changed since it was read, or another write came first. Read it again;
    /// nothing is wrong.
    Stale,
    /// The object is gone, and nothing is left to do.
    Gone,
    /// The Kubernetes node can never hold a pod of this size: its allocatable resources, for all its pods together, as
    /// far as the API server states them.
    TooLarge(Amounts),
    /// The API server will refuse the request as long as the object, a quota, a limit range or
    /// another webhook stays as it is.
    Refused,
    /// An RBAC permission is missing: an administrator has to act.
    Forbidden,
    /// The API server asks its clients to slow down.
    Busy {
        /// The time to wait, in seconds, if the API server gives it.
        retry_after_s: Option<f64>,
    },
    /// The call failed at the server or on the way, and may succeed the next time.
    Transient,
}

/// The message of the 422 that answers a JSON patch in which a test fails or a path is missing,
/// which means that the object has changed meanwhile. A 422 from validation names the object and
/// its causes instead. (Kubernetes, `apiserver/pkg/endpoints/handlers/patch.go`.)
pub const PATCH_DOES_NOT_FIT: &str =
    "the server rejected our request due to an error in our request";

/// A part of the message of the 422 that answers a patch with the UID of an object that there is no
/// longer: another one has its name. (Kubernetes, `ValidateObjectMetaUpdate`.)
const OTHER_UID: &str = "metadata.uid: Invalid value";

impl Failure {
    /// The meaning of this failure, which decides what to do next.
    pub fn meaning(&self) -> Meaning {
        match self {
            Self::Api(status) => status.meaning(),
            Self::Gcs { kind, .. } => match kind {
                GcsKind::NotFound => Meaning::Gone,
                GcsKind::InvalidArgument => Meaning::Refused,
                GcsKind::Unauthenticated => Meaning::Forbidden,
                GcsKind::Passive | GcsKind::Unreachable | GcsKind::Unusable | GcsKind::Other => {
                    Meaning::Transient
                }
            },
            Self::NoAnswer(_) => Meaning::Transient,
            Self::NotSent(_) => Meaning::Stale,
            Self::NotAdmitted(_) => Meaning::Busy {
                retry_after_s: None,
            },
        }
    }

    /// A message for people: what failed, why, and what happens next.
    pub fn explain(&self, effect: &Effect) -> String {
        let advice = match (self, self.meaning()) {
            (Self::NotSent(_), _) => "it is decided on again",
            (_, Meaning::Forbidden) if matches!(effect, Effect::DeleteCluster { .. }) => {
                "give who is named there the permission to delete RayClusters (in mode central with \
                 rayfit manifests --delete-idle-clusters; in mode sidecar with a Role and a \
                 RoleBinding of your own for the ServiceAccount of the head pod); it is tried again"
            }
            (_, Meaning::Stale) => "the object changed meanwhile; it is read again",
            (_, Meaning::Gone) => "nothing is left to do",
            (_, Meaning::TooLarge(_)) => "another pod is used instead",
            (_, Meaning::Refused) => "change what the message names; it is tried again later",
            (_, Meaning::Forbidden) => {
                "give Rayfit the permission that the message names; it is tried again"
            }
            (_, Meaning::Busy { .. }) => "it is tried again when the API server allows it",
            (_, Meaning::Transient) => "it is tried again",
        };
        format!("{effect} failed ({self}); {advice}")
    }
}

impl ApiStatus {
    fn meaning(&self) -> Meaning {
        let caused_by = |name: &str| self.causes.iter().any(|cause| cause == name);
        match self.code {
            404 | 410 => Meaning::Gone,
            409 => Meaning::Stale,
            422 if self.causes.is_empty() && self.message.contains(PATCH_DOES_NOT_FIT) => {
                Meaning::Stale
            }
            // The API server lists the causes of its own; a webhook may write anything.
            422 if !self.causes.is_empty() && self.message.contains(OTHER_UID) => Meaning::Stale,
            429 => Meaning::Busy {
                retry_after_s: self.retry_after_s,
            },
            // Only the causes identify a lack of capacity.
            403 if caused_by("NodeCapacity") => Meaning::TooLarge(allocatable(&self.message)),
            // No size helps on a Kubernetes node that is not Linux, so this pod is passed over as
            // for capacity.
            403 if caused_by("UnsupportedPlatform") => Meaning::TooLarge(Amounts::default()),
            // Every version of the API server words a missing permission in the same way.
            403 if self.message.contains(" cannot ") && self.message.contains(" resource ") => {
                Meaning::Forbidden
            }
            401 => Meaning::Forbidden,
            400 | 403 | 405 | 406 | 413 | 415 | 422 => Meaning::Refused,
            // A 503 without Retry-After may as well be a proxy in front of an API server that is
            // away, which asks for nothing.
            503 if self.retry_after_s.is_some() => Meaning::Busy {
                retry_after_s: self.retry_after_s,
            },
            _ => Meaning::Transient,
        }
    }
}

/// Reads the allocatable amounts out of a message such as `... resources: cpu, requested: 1900,
/// allocatable: 1000; memory, requested: .., allocatable: ..`.
fn allocatable(message: &str) -> Amounts {
    let number = |resource: &str| -> Option<i64> {
        let (_, rest) = message.split_once(&format!("{resource}, requested: "))?;
        let (_, rest) = rest.split_once(", allocatable: ")?;
        let end = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        rest.get(..end)?.parse().ok()
    };
    Amounts {
        cpu: number("cpu").map(Quantity::from_milli),
        memory: number("memory").map(Quantity::from_units),
    }
}

#[cfg(test)]
mod tests {
    use crate::reconcile::effects::failure::*;

    fn api(code: u16, causes: &[&str], message: &str) -> Meaning {
        let causes = causes.iter().map(|cause| (*cause).to_owned()).collect();
        let status = ApiStatus {
            code,
            message: message.to_owned(),
            causes,
            ..ApiStatus::default()
        };
        Failure::Api(status).meaning()
    }

    #[test]
    fn distinguishes_the_many_meanings_of_403() {
        let told = "pods \"w\" is forbidden: node didn't have enough allocatable resources: cpu, \
                    requested: 800000, allocatable: 16000; memory, requested: 9, allocatable: 7";
        let both = Amounts {
            cpu: Some(Quantity::from_units(16)),
            memory: Some(Quantity::from_units(7)),
        };
        assert_eq!(api(403, &["NodeCapacity"], told), Meaning::TooLarge(both));
        assert_eq!(api(403, &[], told), Meaning::Refused);
        let rbac = "pods \"w\" is forbidden: User \"system:serviceaccount:a:b\" cannot patch \
                    resource \"pods/resize\" in API group \"\" in the namespace \"ray\"";
        assert_eq!(api(403, &[], rbac), Meaning::Forbidden);
        let quota = "pods \"w\" is forbidden: exceeded quota: cpu, requested: 1, used: 3";
        assert_eq!(api(403, &[], quota), Meaning::Refused);
        let windows = "pod resize is only supported on linux nodes";
        let none = Meaning::TooLarge(Amounts::default());
        assert_eq!(api(403, &["UnsupportedPlatform"], windows), none);
    }

    #[test]
    fn a_patch_that_does_not_fit_is_no_refusal() {
        assert_eq!(api(422, &[], PATCH_DOES_NOT_FIT), Meaning::Stale);
        let invalid = "RayCluster.ray.io \"a\" is invalid: spec.x: Invalid value";
        assert_eq!(api(422, &["FieldValueInvalid"], invalid), Meaning::Refused);
        assert_eq!(api(409, &[], ""), Meaning::Stale);
        let other = "Pod \"w\" is invalid: metadata.uid: Invalid value: \"u\": field is immutable";
        assert_eq!(api(422, &["FieldValueInvalid"], other), Meaning::Stale);
        let webhook = "admission webhook \"a\" denied the request: metadata.uid: Invalid value";
        assert_eq!(api(422, &[], webhook), Meaning::Refused);
    }

    #[test]
    fn waits_as_long_as_the_server_says() {
        let status = ApiStatus {
            code: 429,
            retry_after_s: Some(7.0),
            ..ApiStatus::default()
        };
        let busy = Meaning::Busy {
            retry_after_s: Some(7.0),
        };
        assert_eq!(Failure::Api(status).meaning(), busy);
        let crowded = Failure::NotAdmitted("too many wait".to_owned());
        assert!(
            matches!(crowded.meaning(), Meaning::Busy { .. }),
            "it backs off"
        );
        assert_eq!(api(500, &[], ""), Meaning::Transient);
        assert_eq!(api(404, &[], ""), Meaning::Gone);
    }
}
