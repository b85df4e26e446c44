//! The head pod of a cluster that leads.
//!
//! A cluster has one head pod, or two of which one leads (Ray's active-passive heads, `enhancements` #65).
//! There the readiness of a head pod says whether it leads: the readiness probe of the one that stands by
//! fails, so that the head Service sends nothing to it. Of two that are both called ready, the one that
//! became so last leads, since the other has lost its Lease and its pod's condition is out of date.

use std::cmp::Reverse;

use super::ownership::OwnPods;
use super::pod::{Pod, PodRole};
use super::pod_condition::PodCondition;

/// A head pod as it was seen at one moment. It is seen otherwise once it has become ready since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadSight {
    uid: String,
    ready_since: Option<String>,
}

impl HeadSight {
    /// The pod as it is seen now.
    pub fn of(pod: &Pod<'_>) -> Self {
        Self {
            uid: pod.uid().to_owned(),
            ready_since: ready_since(pod).map(str::to_owned),
        }
    }
}

/// The head pod that leads, or is most likely to. One that has not ended goes before one that has, and
/// then one that is not being deleted, one whose GCS was not `passive` when it was asked last, one that is
/// ready, the one that became ready last, and the oldest.
pub fn leading_head<'a>(pods: &'a OwnPods, passive: Option<&HeadSight>) -> Option<Pod<'a>> {
    let heads = pods.iter().filter(|pod| pod.role == PodRole::Head);
    heads.min_by_key(|pod| {
        let stands_by = passive.is_some_and(|sight| *sight == HeadSight::of(pod));
        let since = ready_since(pod);
        let created = pod.object.metadata.creation_timestamp.as_deref();
        (
            (pod.ended, pod.deleting, stands_by),
            // Times in RFC 3339, as the API server writes them, are in the order of their texts.
            (since.is_none(), Reverse(since)),
            (created, pod.name),
        )
    })
}

/// The time since which the pod has been ready, if it is; empty if no condition gives it.
fn ready_since<'a>(pod: &Pod<'a>) -> Option<&'a str> {
    let ready = pod.condition("Ready")?;
    let since = ready.last_transition_time.as_deref();
    PodCondition::is_true(ready).then_some(since.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::snapshot::ClusterId;

    fn pod(name: &str, more: &Value) -> Value {
        let mut pod = json!({
            "metadata": {"name": name, "uid": name, "labels": {"ray.io/node-type": "head"}},
            "status": {"phase": "Running"},
        });
        json_patch::merge(&mut pod, more);
        pod
    }

    fn ready(name: &str, status: &str, since: &str) -> Value {
        let condition = json!({"type": "Ready", "status": status, "lastTransitionTime": since});
        pod(name, &json!({"status": {"conditions": [condition]}}))
    }

    fn own(pods: &[Value]) -> OwnPods {
        let pods = (pods.iter()).map(|pod| serde_json::from_value(pod.clone()).unwrap());
        OwnPods::divide(ClusterId::default(), pods).0
    }

    /// The leader, whatever the order in which the pods are listed.
    fn leader(one: &Value, other: &Value, passive: Option<&HeadSight>) -> String {
        let name = |pods: &[Value]| leading_head(&own(pods), passive).unwrap().name.to_owned();
        let found = name(&[one.clone(), other.clone()]);
        assert_eq!(found, name(&[other.clone(), one.clone()]));
        found
    }

    #[test]
    fn the_ready_one_leads_and_of_two_the_one_that_became_so_last() {
        let (early, late) = ("2026-01-14T12:00:00Z", "2026-01-14T12:00:09Z");
        let a = ready("a", "True", early);
        assert_eq!(leader(&a, &ready("b", "False", late), None), "a");
        assert_eq!(leader(&a, &ready("b", "True", late), None), "b");
        let going = json!({"metadata": {"deletionTimestamp": late}});
        assert_eq!(leader(&a, &pod("b", &going), None), "a");
        let ended = json!({"status": {"phase": "Failed"}});
        assert_eq!(leader(&pod("a", &ended), &pod("b", &going), None), "b");
    }

    #[test]
    fn of_two_that_are_not_ready_the_oldest_counts() {
        let made = |at: &str| json!({"metadata": {"creationTimestamp": at}});
        let one = pod("a", &made("2026-01-14T12:00:01Z"));
        let other = pod("b", &made("2026-01-14T12:00:00Z"));
        assert_eq!(leader(&one, &other, None), "b");
        assert_eq!(
            leader(&pod("a", &json!({})), &pod("b", &json!({})), None),
            "a"
        );
        assert!(leading_head(&own(&[]), None).is_none());
    }

    #[test]
    fn one_that_said_that_it_stands_by_does_so_until_it_becomes_ready() {
        let sight =
            |pod: &Value| HeadSight::of(&own(std::slice::from_ref(pod)).iter().next().unwrap());
        let (early, late) = ("2026-01-14T12:00:00Z", "2026-01-14T12:00:09Z");
        let (a, b) = (ready("a", "True", early), ready("b", "False", early));
        assert_eq!(leader(&a, &b, Some(&sight(&a))), "b");
        assert_eq!(leader(&a, &b, Some(&sight(&b))), "a");
        let again = ready("a", "True", late);
        assert_eq!(leader(&again, &b, Some(&sight(&a))), "a");
        let another = ready("c", "True", early);
        assert_eq!(leader(&another, &b, Some(&sight(&a))), "c", "another pod");
    }
}
