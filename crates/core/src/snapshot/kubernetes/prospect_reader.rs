//! Reading what node autoscalers say about pods, from Events.
//!
//! Only Events of the reasons that these programs have, about this very pod by its UID, and not
//! older than it, count. Of each program its latest word does. Anybody who may create Events in the
//! pod's namespace can forge them, so all that they reach is where the demand of clusters there
//! goes; and of any number of Events of any size, a few words of bounded length are kept.

use std::collections::HashMap;

use k8s_openapi::api::core::v1::{EventSeries, EventSource, ObjectReference};
use serde::Deserialize;

use super::node_prospect::{NodeAutoscaler, NodeOutlook, NodeProspect};
use super::pod::Pod;
use crate::snapshot::canonical::nullable;
use crate::snapshot::moment;
use crate::snapshot::moment::seconds;

/// The most bytes of an Event's message that are kept.
const MESSAGE: usize = 256;

/// The most Events of a pod that are compared. Karpenter and cluster-autoscaler have one for each
/// distinct message.
const EVENTS: usize = 32;

/// A pod that waits for a Kubernetes node.
#[derive(Debug, Clone, PartialEq)]
pub struct AwaitingPod {
    /// The UID, without which an Event may be about an earlier pod of the same name.
    pub uid: String,
    /// The creation time, in seconds since 1970.
    pub created: f64,
}

impl AwaitingPod {
    /// The pod, if the scheduler has found no room for it.
    pub fn of(pod: &Pod<'_>) -> Option<Self> {
        let uid = pod.uid();
        // A pod without a UID is only in snapshots that were written by hand.
        if !pod.is_unschedulable() || uid.is_empty() {
            return None;
        }
        Some(Self {
            uid: uid.to_owned(),
            created: pod.created()?,
        })
    }
}

/// Reads the Events of a namespace about some of its pods.
#[derive(Debug)]
pub struct ProspectReader {
    namespace: String,
    pods: HashMap<String, (AwaitingPod, Vec<Statement>)>,
}

/// The content of one Event.
#[derive(Debug)]
struct Statement {
    by: NodeAutoscaler,
    node: NodeOutlook,
    first: f64,
    /// The time at which it was said last, and the version of the Event, which decides between two
    /// of the same second.
    last: (f64, u64),
    message: String,
}

impl ProspectReader {
    /// Reads what is said of these pods, by name.
    pub fn new(namespace: &str, pods: impl IntoIterator<Item = (String, AwaitingPod)>) -> Self {
        let pods = pods.into_iter();
        Self {
            namespace: namespace.to_owned(),
            pods: pods.map(|(name, pod)| (name, (pod, Vec::new()))).collect(),
        }
    }

    /// Takes in an Event, as JSON. One that is not about these pods, or not of a node autoscaler, or
    /// not an Event at all, changes nothing.
    pub fn take(&mut self, event: &str) {
        let Ok(event) = serde_json::from_str::<ProspectEvent>(event) else {
            return;
        };
        let about = &event.involved_object;
        let is = |text: &Option<String>, expected: &str| text.as_deref() == Some(expected);
        if !is(&about.kind, "Pod") || !is(&about.namespace, &self.namespace) {
            return;
        }
        let name = about.name.as_deref().unwrap_or_default();
        let Some((pod, statements)) = self.pods.get_mut(name) else {
            return;
        };
        if pod.uid.is_empty() || !is(&about.uid, &pod.uid) {
            return;
        }
        statements.extend(event.statement().filter(|one| one.last.0 >= pod.created));
        // Anybody may create Events, so their number must not decide how much is held.
        if statements.len() > EVENTS {
            statements.sort_by(|one, other| other.at_last(one));
            statements.truncate(EVENTS);
        }
    }

    /// The prospects of each pod, by name: the latest word of each node autoscaler. Pods without any are
    /// left out.
    pub fn prospects(self) -> HashMap<String, Vec<NodeProspect>> {
        let latest = |all: &[Statement], by: NodeAutoscaler| {
            let of = || all.iter().filter(move |one| one.by == by);
            let latest = of().max_by(|one, other| one.at_last(other))?;
            let contrary = of().filter(|one| one.node != latest.node);
            let contrary = contrary.map(|one| one.last.0).reduce(f64::max);
            // An Event that is repeated says when it was said first and last. Between, it may have
            // been contradicted: then it counts from the last time on.
            let agreeing = of().filter(|one| one.node == latest.node);
            let firsts = agreeing.map(|one| one.first);
            let firsts = firsts.filter(|first| contrary.is_none_or(|contrary| *first >= contrary));
            let since = firsts.reduce(f64::min).unwrap_or(latest.last.0);
            Some(NodeProspect {
                by,
                node: latest.node,
                since: moment(since),
                message: latest.message.clone(),
            })
        };
        let pods = self.pods.into_iter().map(|(name, (_, statements))| {
            let all = NodeAutoscaler::ALL.into_iter();
            let prospects: Vec<_> = all.filter_map(|by| latest(&statements, by)).collect();
            (name, prospects)
        });
        pods.filter(|(_, prospects)| !prospects.is_empty())
            .collect()
    }
}

impl Statement {
    fn at_last(&self, other: &Self) -> std::cmp::Ordering {
        let (time, version) = self.last;
        time.total_cmp(&other.last.0)
            .then(version.cmp(&other.last.1))
    }
}

/// A core/v1 Event, as far as it is read.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ProspectEvent {
    #[serde(deserialize_with = "nullable")]
    metadata: EventMetadata,
    #[serde(deserialize_with = "nullable")]
    involved_object: ObjectReference,
    #[serde(deserialize_with = "nullable")]
    reason: String,
    #[serde(deserialize_with = "nullable")]
    message: String,
    #[serde(deserialize_with = "nullable")]
    source: EventSource,
    #[serde(deserialize_with = "nullable")]
    reporting_component: String,
    first_timestamp: Option<String>,
    last_timestamp: Option<String>,
    #[serde(rename = "eventTime")]
    occurred: Option<String>,
    series: Option<EventSeries>,
}

/// The metadata of an Event without its managed fields, which a stranger can make very large.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct EventMetadata {
    creation_timestamp: Option<String>,
    #[serde(deserialize_with = "nullable")]
    resource_version: String,
}

impl ProspectEvent {
    fn statement(self) -> Option<Statement> {
        // Events of the old API have a source, those of the new one a reporting component, and
        // those of client-go today both.
        let source = self
            .source
            .component
            .filter(|component| !component.is_empty());
        let component = source.unwrap_or(self.reporting_component);
        let mut autoscalers = NodeAutoscaler::ALL.into_iter();
        let by = autoscalers.find(|one| one.name() == component)?;
        let node = by.outlook(&self.reason)?;
        let time = |text: &Option<String>| text.as_deref().and_then(seconds);
        let created = time(&self.metadata.creation_timestamp);
        let first = time(&self.first_timestamp).or_else(|| time(&self.occurred));
        let first = first.or(created)?;
        let observed = self.series.and_then(|series| series.last_observed_time);
        let observed = observed.map(|observed| observed.0.as_duration().as_secs_f64());
        let last = observed.or_else(|| time(&self.last_timestamp));
        let mut message = self.message;
        message.truncate(message.floor_char_boundary(MESSAGE));
        Some(Statement {
            by,
            node,
            first,
            last: (
                last.unwrap_or(first).max(first),
                self.metadata.resource_version.parse().unwrap_or(0),
            ),
            message,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const CREATED: &str = "2026-01-14T12:00:00Z";

    fn at(second: u32) -> String {
        format!("2026-01-14T12:{:02}:{:02}Z", second / 60, second % 60)
    }

    /// An Event as client-go writes it.
    fn event(component: &str, reason: &str, (first, last): (u32, u32), version: u32) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": { "name": "w.1", "namespace": "ray", "resourceVersion": version.to_string(),
                "creationTimestamp": at(first) },
            "involvedObject": { "kind": "Pod", "namespace": "ray", "name": "w", "uid": "1" },
            "reason": reason, "message": format!("{reason} of {component}"),
            "source": { "component": component }, "reportingComponent": component,
            "firstTimestamp": at(first), "lastTimestamp": at(last), "count": 2,
        })
    }

    fn read(events: impl IntoIterator<Item = Value>) -> Vec<NodeProspect> {
        let pod = AwaitingPod {
            uid: "1".to_owned(),
            created: seconds(CREATED).unwrap(),
        };
        let mut reader = ProspectReader::new("ray", [("w".to_owned(), pod)]);
        for event in events {
            reader.take(&event.to_string());
        }
        reader.prospects().remove("w").unwrap_or_default()
    }

    fn says(events: impl IntoIterator<Item = Value>) -> Vec<(&'static str, NodeOutlook, String)> {
        let prospects = read(events).into_iter();
        prospects
            .map(|one| (one.by.name(), one.node, one.since))
            .collect()
    }

    #[test]
    fn each_node_autoscaler_has_its_own_words() {
        use NodeOutlook::{Coming, None};
        for (component, reason, node) in [
            ("karpenter", "Nominated", Coming),
            ("karpenter", "FailedScheduling", None),
            ("eks-auto-mode/compute", "Nominated", Coming),
            ("eks-auto-mode/compute", "FailedScheduling", None),
            ("cluster-autoscaler", "TriggeredScaleUp", Coming),
            ("cluster-autoscaler", "NotTriggerScaleUp", None),
        ] {
            let said = says([event(component, reason, (3, 3), 1)]);
            assert_eq!(said, [(component, node, at(3))], "{reason}");
        }
        for (component, reason) in [
            ("default-scheduler", "FailedScheduling"),
            ("cluster-autoscaler", "FailedScheduling"),
            ("karpenter", "TriggeredScaleUp"),
            ("karpenter", "Evicted"),
            ("", "Nominated"),
        ] {
            assert_eq!(
                says([event(component, reason, (3, 3), 1)]),
                [],
                "{component} {reason}"
            );
        }
    }

    #[test]
    fn events_of_both_apis_are_read() {
        let mut of_old = event("karpenter", "Nominated", (3, 3), 1);
        of_old["reportingComponent"] = json!("");
        let mut of_new = event("karpenter", "Nominated", (3, 3), 1);
        of_new["source"] = json!({});
        for key in ["firstTimestamp", "lastTimestamp"] {
            of_new[key] = Value::Null;
        }
        of_new["eventTime"] = json!("2026-01-14T12:00:03.000000Z");
        of_new["series"] = json!({ "count": 2, "lastObservedTime": "2026-01-14T12:01:00.500000Z" });
        for event in [of_old, of_new] {
            assert_eq!(says([event]), [("karpenter", NodeOutlook::Coming, at(3))]);
        }
    }

    #[test]
    fn the_latest_word_counts_from_when_it_was_said_first() {
        let comes = |times, version| event("karpenter", "Nominated", times, version);
        let none = |times, version| event("karpenter", "FailedScheduling", times, version);
        let (coming, no) = (NodeOutlook::Coming, NodeOutlook::None);
        for (why, events, node, since) in [
            (
                "it changed its mind",
                [comes((1, 1), 1), none((5, 5), 2)],
                no,
                5,
            ),
            (
                "and in the other order",
                [none((5, 5), 2), comes((1, 1), 1)],
                no,
                5,
            ),
            (
                "it goes on",
                [comes((1, 1), 1), comes((400, 800), 2)],
                coming,
                1,
            ),
            (
                "in the same second",
                [none((7, 7), 8), comes((7, 7), 9)],
                coming,
                7,
            ),
            (
                "a node was refused before",
                [none((1, 4), 8), comes((9, 99), 9)],
                coming,
                9,
            ),
            (
                "it said the contrary between",
                [comes((1, 9), 9), none((4, 4), 8)],
                coming,
                9,
            ),
        ] {
            assert_eq!(says(events), [("karpenter", node, at(since))], "{why}");
        }
    }

    #[test]
    fn each_program_speaks_for_itself() {
        let said = read([
            event("cluster-autoscaler", "NotTriggerScaleUp", (9, 99), 9),
            event("karpenter", "Nominated", (2, 2), 2),
        ]);
        let said: Vec<_> = said.iter().map(|one| (one.by, one.node)).collect();
        assert_eq!(
            said,
            [
                (NodeAutoscaler::Karpenter, NodeOutlook::Coming),
                (NodeAutoscaler::ClusterAutoscaler, NodeOutlook::None)
            ]
        );
    }

    #[test]
    fn events_about_other_pods_and_from_before_the_pod_count_for_nothing() {
        let changed = |path: &str, value: Value| {
            let mut event = event("karpenter", "Nominated", (3, 3), 1);
            *event.pointer_mut(path).unwrap() = value;
            event
        };
        let mut before = changed("/firstTimestamp", json!("2026-01-14T11:00:00Z"));
        before["lastTimestamp"] = json!("2026-01-14T11:59:59Z");
        for event in [
            changed("/involvedObject/uid", json!("2")),
            changed("/involvedObject/uid", json!("")),
            changed("/involvedObject/name", json!("v")),
            changed("/involvedObject/namespace", json!("other")),
            changed("/involvedObject/kind", json!("RayCluster")),
            before,
        ] {
            assert_eq!(says([event.clone()]), [], "{event}");
        }
    }

    #[test]
    fn hostile_events_cost_little_and_say_nothing() {
        let good = event("karpenter", "Nominated", (3, 3), 1);
        for (path, value) in [
            ("/involvedObject", json!([])),
            ("/source", json!("karpenter")),
            ("/reason", json!(7)),
            ("/firstTimestamp", json!({})),
            ("/metadata", json!("m")),
        ] {
            let mut event = good.clone();
            *event.pointer_mut(path).unwrap() = value;
            assert_eq!(says([event.clone()]), [], "{event}");
        }
        let mut timeless = good.clone();
        for path in [
            "/firstTimestamp",
            "/lastTimestamp",
            "/metadata/creationTimestamp",
        ] {
            *timeless.pointer_mut(path).unwrap() = json!("yesterday");
        }
        assert_eq!(says([timeless]), []);
        assert_eq!(read([json!(null), json!([]), json!({}), json!("w")]), []);
        let mut long = good;
        long["message"] = json!("é".repeat(100_000));
        let flood = (0..1000).map(|number| {
            let mut event = long.clone();
            event["metadata"]["resourceVersion"] = json!(format!("{number}"));
            event
        });
        let refusal = event("karpenter", "FailedScheduling", (4, 4), 2000);
        let said = read(flood.chain([refusal]));
        assert_eq!(said.len(), 1);
        assert_eq!(said[0].node, NodeOutlook::None);
        let kept = read([long]);
        assert_eq!(kept[0].message.len(), MESSAGE);
        let text = serde_json::to_string(&kept).unwrap();
        assert_eq!(
            serde_json::from_str::<Vec<NodeProspect>>(&text).unwrap(),
            kept
        );
    }
}
