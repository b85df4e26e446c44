//! What the shell met on its way to a cluster's state, as the core understands it. Pure.

use serde_json::Value;

use super::credentials::CredentialsError;
use super::head::{Head, NoHead};
use super::perform::gcs_failure;
use crate::gcs::{CallError, Fault};
use crate::reconcile::outcome::{Failure, GcsKind};
use crate::reconcile::{Blind, HeadPod};

/// The head pod `head`, as it is seen among `pods`.
pub fn head_pod(head: &Head, pods: &[Value]) -> HeadPod {
    let same = |pod: &&Value| pod["metadata"]["uid"].as_str() == Some(&head.uid);
    HeadPod {
        name: head.pod.clone(),
        ready: pods.iter().find(same).is_some_and(is_ready),
    }
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
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

    fn head() -> Head {
        Head {
            pod: "h".to_owned(),
            uid: "u".to_owned(),
            address: Address::new("10.0.0.1", 6379),
            token: None,
            tls: None,
        }
    }

    #[test]
    fn a_head_is_ready_when_kubernetes_says_so_of_this_very_pod() {
        let pod = |uid: &str, status: &str| {
            json!({ "metadata": { "name": "h", "uid": uid },
                "status": { "conditions": [{ "type": "Ready", "status": status }] } })
        };
        assert!(head_pod(&head(), &[pod("u", "True")]).ready);
        assert!(!head_pod(&head(), &[pod("u", "False")]).ready);
        assert!(!head_pod(&head(), &[pod("another", "True")]).ready);
        assert!(!head_pod(&head(), &[json!({ "metadata": { "uid": "u" } })]).ready);
    }

    #[test]
    fn how_soon_it_is_asked_again_makes_no_difference() {
        let error = |left| CallError {
            call: Call::ClusterState,
            address: Address::new("10.0.0.1", 6379),
            fault: Fault::BackingOff(Duration::from_secs(left)),
        };
        let head = head_pod(&head(), &[]);
        assert_eq!(no_answer(&head, &error(3)), no_answer(&head, &error(14)));
        assert_eq!(error(3).to_string(), error(14).to_string());
    }
}
