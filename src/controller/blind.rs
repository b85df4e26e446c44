//! What the shell met on its way to a cluster's state, as the core understands it. Pure.

use super::credentials::CredentialsError;
use super::head::{Head, NoHead};
use super::perform::gcs_failure;
use crate::gcs::{CallError, Fault};
use crate::reconcile::outcome::{Failure, GcsKind};
use crate::reconcile::{Blind, HeadPod};
use crate::snapshot::OwnPods;
use crate::snapshot::pod::Pod;
use crate::snapshot::pod_object::Condition;

/// The head pod `head`, as it is seen among the cluster's own `pods`.
pub fn head_pod(head: &Head, pods: &OwnPods) -> HeadPod {
    let mut pods = pods.iter().filter(|pod| pod.uid() == head.uid);
    let ready = |pod: Pod<'_>| pod.condition("Ready").is_some_and(Condition::is_true);
    HeadPod {
        name: head.pod.clone(),
        ready: pods.next().is_some_and(ready),
    }
}

/// There is no head to ask.
pub fn no_head(why: &NoHead) -> Blind {
    match why {
        NoHead::Absent => Blind::NoHead,
        NoHead::NoAddress(pod) => Blind::NoAddress { pod: pod.clone() },
        NoHead::Ended(pod) => Blind::Ended { pod: pod.clone() },
    }
}

/// There is nothing to show to the GCS of `head`.
pub fn no_credentials(head: &HeadPod, error: &CredentialsError) -> Blind {
    Blind::Credentials {
        head: head.clone(),
        reason: error.to_string(),
    }
}

/// The GCS of `head` was asked in vain.
pub fn no_answer(head: &HeadPod, error: &CallError) -> Blind {
    let head = head.clone();
    match (&error.fault, gcs_failure(error)) {
        (Fault::BackingOff(_), _) => Blind::NotAsked { head },
        (_, Failure::Gcs { kind, message }) => Blind::Gcs {
            head,
            kind,
            reason: message,
        },
        (_, other) => Blind::Gcs {
            head,
            kind: GcsKind::Other,
            reason: other.to_string(),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::gcs::{Address, Call};
    use crate::snapshot::ClusterId;
    use crate::snapshot::pod_object::PodObject;

    fn head() -> Head {
        Head {
            pod: "h".to_owned(),
            uid: "u".to_owned(),
            address: Address::new("10.0.0.1", 6379),
            token: None,
            tls: None,
        }
    }

    fn pods(uid: &str, ready: &str) -> OwnPods {
        let pod = json!({ "metadata": { "name": "h", "uid": uid },
            "status": { "conditions": [{ "type": "Ready", "status": ready }] } });
        let pod: PodObject = serde_json::from_value(pod).unwrap();
        OwnPods::divide(ClusterId::default(), [pod]).0
    }

    #[test]
    fn a_head_is_ready_when_kubernetes_says_so_of_this_very_pod() {
        assert!(head_pod(&head(), &pods("u", "True")).ready);
        assert!(!head_pod(&head(), &pods("u", "False")).ready);
        assert!(!head_pod(&head(), &pods("another", "True")).ready);
        assert!(!head_pod(&head(), &OwnPods::default()).ready);
    }

    #[test]
    fn how_soon_it_is_asked_again_makes_no_difference() {
        let error = |left| CallError {
            call: Call::ClusterState,
            address: Address::new("10.0.0.1", 6379),
            fault: Fault::BackingOff(Duration::from_secs(left)),
        };
        let head = head_pod(&head(), &OwnPods::default());
        assert_eq!(no_answer(&head, &error(3)), no_answer(&head, &error(14)));
        assert_eq!(error(3).to_string(), error(14).to_string());
    }
}
