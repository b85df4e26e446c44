//! Translates the failures on the way to a cluster's state into the reasons that the reconciler
//! understands. Pure.

use rayfit_core::ray::cluster::closing_policy;
use rayfit_core::reconcile::{Blind, HeadPod};
use rayfit_core::snapshot::OwnPods;
use rayfit_core::snapshot::pod_condition::PodCondition;
use serde_json::Value;

use crate::controller::act::perform::gcs_kind;
use crate::controller::head::address::Head;
use crate::gcs::{CallError, GcsFault};

/// The head pod of `head` in the cluster, as it was observed among `pods`.
pub fn head_pod(head: &Head, cluster: &Value, pods: &OwnPods) -> HeadPod {
    let this = pods.iter().find(|pod| pod.uid() == head.uid);
    let ready = this.and_then(|pod| pod.condition("Ready"));
    HeadPod {
        name: head.pod.clone(),
        ready: ready.is_some_and(PodCondition::is_true),
        closed: cluster["spec"]
            .as_object()
            .is_some_and(|spec| closing_policy(spec.into()).is_some()),
    }
}

/// The reason where the GCS was asked and gave no answer that can be used.
pub fn no_answer(head: &HeadPod, error: &CallError) -> Blind {
    let head = head.clone();
    match &error.fault {
        GcsFault::BackingOff(_) => Blind::NotAsked { head },
        fault => Blind::Gcs {
            head,
            kind: gcs_kind(fault),
            reason: error.to_string(),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rayfit_core::snapshot::ClusterId;
    use serde_json::json;

    use crate::controller::head::blind::*;
    use crate::gcs::{Address, Call};

    fn pods(pod: Value) -> OwnPods {
        let pod = serde_json::from_value(pod).unwrap();
        OwnPods::divide(ClusterId::default(), [pod]).0
    }

    fn head() -> Head {
        Head {
            pod: "h".to_owned(),
            uid: "u".to_owned(),
            address: Address::new("10.0.0.1", 6379),
            token: None,
            tls: None,
        }
    }

    fn error(fault: GcsFault) -> CallError {
        CallError {
            call: Call::ClusterState,
            address: Address::new("10.0.0.1", 6379),
            fault,
        }
    }

    #[test]
    fn a_head_is_ready_when_kubernetes_says_so_of_this_very_pod() {
        let pod = |uid: &str, status: &str| {
            json!({ "metadata": { "name": "h", "uid": uid },
                "status": { "conditions": [{ "type": "Ready", "status": status }] } })
        };
        let is_ready = |pod| head_pod(&head(), &json!({}), &pods(pod)).ready;
        assert!(is_ready(pod("u", "True")));
        assert!(!is_ready(pod("u", "False")));
        assert!(!is_ready(pod("another", "True")));
        assert!(!is_ready(
            json!({ "metadata": { "name": "h", "uid": "u" } })
        ));
    }

    /// A policy that drops packets leaves a call without an answer.
    #[test]
    fn a_head_that_is_ready_and_silent_is_said_to_be_cut_off_and_by_what() {
        let ready = json!({ "metadata": { "name": "h", "uid": "u" },
            "status": { "conditions": [{ "type": "Ready", "status": "True" }] } });
        let advice = |policy: Value| {
            let cluster = json!({ "spec": { "networkPolicy": policy } });
            let pod = head_pod(&head(), &cluster, &pods(ready.clone()));
            let fault = GcsFault::Deadline(Duration::from_secs(5));
            no_answer(&pod, &error(fault)).advice()
        };
        for closing in [json!({}), json!({ "mode": "DenyAllIngress" })] {
            let said = advice(closing);
            assert!(said.starts_with("spec.networkPolicy"), "{said}");
            assert!(said.contains("networkPolicy.head.ingressRules"), "{said}");
        }
        for open in [Value::Null, json!({ "mode": "DenyAllEgress" })] {
            let said = advice(open);
            assert!(said.starts_with("a NetworkPolicy"), "{said}");
        }
    }

    #[test]
    fn how_soon_it_is_asked_again_makes_no_difference() {
        let error = |left| error(GcsFault::BackingOff(Duration::from_secs(left)));
        let head = head_pod(&head(), &json!({}), &OwnPods::default());
        assert_eq!(no_answer(&head, &error(3)), no_answer(&head, &error(14)));
        assert_eq!(error(3).to_string(), error(14).to_string());
    }
}
