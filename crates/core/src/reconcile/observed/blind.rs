//! Reasons why the state of a Ray cluster cannot be obtained, with advice to its users.
//!
//! The reason is a value that decisions use; its text is made in this file only. Nothing in the
//! text changes as long as the reason is the same: it has no countdown and no elapsed time, because
//! each new text would be another Event.

use crate::reconcile::effects::failure::GcsKind;
use crate::snapshot::gcs::ClusterResourceState;
use crate::text::shown_text;

/// The reason why the state of a Ray cluster cannot be obtained.
#[derive(Debug, Clone, PartialEq, Eq, derive_more::Display)]
pub enum Blind {
    /// There is no head pod.
    #[display("it has no head pod")]
    NoHead,
    /// The head pod has no address.
    #[display("its head pod {pod} has no address")]
    NoAddress {
        /// The head pod.
        pod: String,
    },
    /// The head pod has ended.
    #[display("its head pod {pod} has ended")]
    Ended {
        /// The head pod.
        pod: String,
    },
    /// The credentials that the GCS requires of its clients cannot be obtained.
    #[display("{reason}")]
    Credentials {
        /// The head pod.
        head: HeadPod,
        /// The reason; it never contains a token.
        reason: String,
    },
    /// The GCS was asked and returned no state.
    #[display(
        "the GCS in {head} {} ({reason})",
        if *kind == GcsKind::Unreachable { "does not answer" } else { "gives no state" }
    )]
    Gcs {
        /// The head pod.
        head: HeadPod,
        /// The kind of the failure.
        kind: GcsKind,
        /// The message of the GCS or of the connection; it never contains a token.
        reason: String,
    },
    /// The GCS was not asked again, because a request to it failed a moment ago.
    #[display("the GCS in {head} does not answer")]
    NotAsked {
        /// The head pod.
        head: HeadPod,
    },
    /// The GCS at the address of the head pod is that of another pod: an address of pods is given to
    /// another one, maybe another tenant's, when its pod has gone, and watches are late to tell.
    #[display(
        "at the address of {head} answers a GCS whose head is pod {}",
        shown_text(pod)
    )]
    Elsewhere {
        /// The head pod.
        head: HeadPod,
        /// The pod of which the GCS says that its head is there.
        pod: String,
    },
}

/// A head pod that has an address.
#[derive(Debug, Clone, PartialEq, Eq, derive_more::Display)]
#[display("head pod {name}, which is {},", if *ready { "ready" } else { "not ready" })]
pub struct HeadPod {
    /// The pod's name.
    pub name: String,
    /// Readiness of the pod, as Kubernetes reports it; its GCS should answer then.
    pub ready: bool,
    /// `spec.networkPolicy` of the RayCluster closes the pod to whoever is not of the cluster.
    pub closed: bool,
}

impl Blind {
    /// The reason why an answer cannot be used although it is one: it is not from the GCS in this head.
    pub fn to_another(head: &HeadPod, state: &ClusterResourceState) -> Option<Self> {
        let nodes = state.node_states.iter();
        let heads = nodes.filter(|node| node.is_alive() && node.is_head());
        let mut pods = heads.map(|node| node.instance_id.as_str());
        let first = pods.next()?;
        let is_other = |pod: &str| !pod.is_empty() && pod != head.name;
        // A GCS reports its own head as soon as that has joined, so this one is another cluster's,
        // or still takes the head before this one for alive.
        let is_elsewhere = is_other(first) && pods.all(is_other);
        is_elsewhere.then(|| Self::Elsewhere {
            head: head.clone(),
            pod: first.to_owned(),
        })
    }

    /// Recognises a head that starts or is being replaced. Users need to
    /// do nothing about that unless it lasts.
    pub(crate) fn is_starting(&self) -> bool {
        match self {
            // A GCS is passive while another head pod leads, or none until Ray has elected one.
            Self::NoHead
            | Self::NoAddress { .. }
            | Self::Ended { .. }
            | Self::Elsewhere { .. }
            | Self::Gcs {
                kind: GcsKind::Passive,
                ..
            } => true,
            Self::Gcs {
                head,
                kind: GcsKind::Unreachable,
                ..
            }
            | Self::NotAsked { head } => !head.ready,
            Self::Gcs { .. } | Self::Credentials { .. } => false,
        }
    }

    /// Completes the reason with the failure that is known from `before` where the GCS was
    /// not asked again.
    pub(crate) fn completed(&self, previous: Option<&Self>) -> Self {
        let Self::NotAsked { head } = self else {
            return self.clone();
        };
        match previous {
            Some(Self::Gcs {
                head: previous_head,
                kind,
                reason,
            }) if previous_head.name == head.name => Self::Gcs {
                head: head.clone(),
                kind: *kind,
                reason: reason.clone(),
            },
            _ => self.clone(),
        }
    }

    /// Advice to users once it has lasted.
    pub fn advice(&self) -> &'static str {
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
            | Self::NotAsked { head } => match (head.ready, head.closed) {
                (true, true) => {
                    "spec.networkPolicy of the RayCluster lets only what networkPolicy.head.ingressRules names \
                         reach the head: name Rayfit's namespace there. If it is named, another NetworkPolicy or a \
                         service mesh may be in the way"
                }
                (true, false) => {
                    "a NetworkPolicy that keeps Rayfit from its GCS port, another port than those of \
                         --gcs-ports, or a service mesh may be in the way"
                }
                (false, _) => "look at the log of that pod's ray container",
            },
            Self::Gcs {
                kind: GcsKind::Passive,
                ..
            } => {
                "look at the other head pod, and at the Lease by which Ray elects the one that leads"
            }
            Self::Gcs { .. } => "look at the log of its GCS",
            Self::Elsewhere { .. } => {
                "if it lasts, two pods have one address, or the variable RAY_CLOUD_INSTANCE_ID of the \
                 head is not its pod's name"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::reconcile::observed::blind::*;

    #[test]
    fn only_a_gcs_whose_live_heads_are_all_in_other_pods_is_anothers() {
        let head = HeadPod {
            name: "ours".to_owned(),
            ready: true,
            closed: false,
        };
        let node = |pod: &str, status: &str, amount: &str| json!({ "instanceId": pod, "status": status, "totalResources": { amount: 1 } });
        let is_anothers = |nodes: &[serde_json::Value]| {
            let state = serde_json::from_value(json!({ "nodeStates": nodes })).unwrap();
            Blind::to_another(&head, &state).map(|blind| blind.to_string())
        };
        let mark = crate::snapshot::gcs::HEAD_RESOURCE;
        let theirs = node("theirs", "RUNNING", mark);
        assert_eq!(
            is_anothers(&[node("worker", "IDLE", "CPU"), theirs.clone()]).unwrap(),
            "at the address of head pod ours, which is ready, answers a GCS whose head is pod \"theirs\""
        );
        // The head before this one may be taken for alive while its successor has joined.
        assert_eq!(
            is_anothers(&[theirs.clone(), node("ours", "IDLE", mark)]),
            None
        );
        // Nothing is known yet, or who is asked does not say where it is.
        let dead = node("theirs", "DEAD", mark);
        assert_eq!(is_anothers(&[]), None);
        assert_eq!(is_anothers(&[dead, node("worker", "IDLE", "CPU")]), None);
        assert_eq!(is_anothers(&[node("", "RUNNING", mark)]), None);
    }
}
