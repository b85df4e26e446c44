//! Faults of a cluster's objects that make Ray give up every round, apart from those noticed
//! elsewhere. Each is named, and concerns only the object that has it.

use std::cell::LazyCell;

use serde_json::Value;

use crate::hash::HashSet;
use crate::plan::demand::requests::listed;
use crate::plan::outcome::problem::{Problem, ProblemPlace, ProblemReason};
use crate::snapshot::Snapshot;
use crate::snapshot::cluster_object::ClusterSpec;
use crate::snapshot::gcs::NodeStatus;
use crate::snapshot::pod::{Pod, PodRole};

/// The most faults of one kind that are named.
const NAMED: usize = 20;

/// Returns all such faults.
pub(crate) fn all(snapshot: &Snapshot, pods: &[Pod<'_>]) -> Vec<Problem> {
    let mut problems = Vec::new();
    if let Some(spec) = &snapshot.ray_cluster.spec {
        of_spec(spec, &mut problems);
    }
    // Ray reads both labels of every pod of the cluster, and aborts on a pod without them.
    let unlabelled = pods.iter().filter_map(|pod| {
        let labels = &pod.object.metadata.labels;
        let missing = if pod.deleting || labels.cluster.is_none() {
            return None;
        } else if labels.node_type.is_none() {
            "ray.io/node-type"
        } else if pod.role != PodRole::Other && labels.group.is_none() {
            "ray.io/group"
        } else {
            return None;
        };
        Some(Problem {
            at: ProblemPlace::Pod(pod.name.to_owned()),
            reason: ProblemReason::NoPodLabel(missing),
            effect: "it is left alone".into(),
        })
    });
    problems.extend(unlabelled.take(NAMED));
    // A node that does not say its status is rare, and the names of the pods are looked up only where
    // there is one.
    let pod_names: LazyCell<HashSet<&str>, _> =
        LazyCell::new(|| pods.iter().map(|pod| pod.name).collect());
    let unsaid = snapshot.gcs.node_states.iter().filter(|node| {
        node.status == NodeStatus::Unspecified && pod_names.contains(node.instance_id.as_str())
    });
    problems.extend(unsaid.take(NAMED).map(|node| Problem {
        at: ProblemPlace::RayNode {
            pod: node.instance_id.clone(),
        },
        reason: ProblemReason::StatusUnsaid,
        effect: "it counts as not running".into(),
    }));
    let constraints = snapshot.gcs.cluster_resource_constraints.len();
    if constraints > 1 {
        problems.push(Problem {
            at: ProblemPlace::RequestResources,
            reason: ProblemReason::SeveralConstraints(constraints),
            effect: "only the first counts".into(),
        });
    }
    let gangs = snapshot.gcs.pending_gang_resource_requests.iter();
    let gangs = gangs.filter(|gang| {
        let mut bundles = listed(gang).iter();
        bundles.any(|bundle| bundle.placement_constraints.len() > 1)
    });
    problems.extend(gangs.take(NAMED).map(|gang| Problem {
        at: ProblemPlace::PlacementGroup(gang.title().to_owned()),
        reason: ProblemReason::SeveralPlacementConstraints,
        effect: "it is not placed".into(),
    }));
    problems
}

fn of_spec(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    const OPTIONS: &str = "spec.autoscalerOptions";
    const KEY: &str = "idleTimeoutSeconds";
    if !spec.lists_workers {
        problems.push(Problem {
            at: ProblemPlace::Field("spec.workerGroupSpecs".to_owned()),
            reason: ProblemReason::NoWorkerGroups,
            effect: "no worker is launched".into(),
        });
    }
    // Ray divides any value that is present by 60, and accepts no negative timeout of a group.
    let is_negative = |timeout: &&Value| timeout.as_f64().is_some_and(|seconds| seconds < 0.0);
    let options = (spec.has_null_options).then(|| (OPTIONS.to_owned(), Value::Null.to_string()));
    let of_cluster = spec.idle_timeout.as_ref();
    let of_cluster = of_cluster.filter(|timeout| timeout.is_null() || is_negative(timeout));
    let of_cluster = of_cluster.map(|value| (format!("{OPTIONS}.{KEY}"), value.to_string()));
    let of_groups = spec.groups.iter().filter_map(|group| {
        let value = group.idle_timeout.as_ref().filter(is_negative)?;
        Some((group.path().key(KEY).to_string(), value.to_string()))
    });
    let timeouts = options.into_iter().chain(of_cluster).chain(of_groups);
    problems.extend(timeouts.take(NAMED).map(|(at, value)| Problem {
        at: ProblemPlace::Field(at),
        reason: ProblemReason::NotATime { value },
        effect: "idle nodes go as it says, null as if it was absent".into(),
    }));
    let bad_labels = spec.groups.iter().filter_map(|group| {
        Some(Problem {
            at: ProblemPlace::Field(group.path().key("labels").to_string()),
            reason: ProblemReason::BadLabel {
                key: group.bad_label.clone()?,
            },
            effect: "the labels count as they are written".into(),
        })
    });
    problems.extend(bad_labels.take(NAMED));
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::plan::nodes::problems::*;
    use crate::plan::{PlanSettings, Strategy, decide};

    /// A cluster without faults, changed by `change`. Returns the places that the plan's problems
    /// name.
    fn places(change: impl Fn(&mut Value)) -> Vec<String> {
        let [ray, rayfit] = by_strategy(change);
        assert_eq!(ray, rayfit);
        rayfit
    }

    fn by_strategy(change: impl Fn(&mut Value)) -> [Vec<String>; 2] {
        let limits = json!({"cpu": 1, "memory": "2Gi"});
        let container = json!({"name": "ray", "resources": {"limits": limits, "requests": limits}});
        let template = json!({"spec": {"containers": [container]}});
        let labels =
            json!({"ray.io/cluster": "demo", "ray.io/node-type": "worker", "ray.io/group": "cpu"});
        let mut snapshot = json!({
            "apiVersion": "rayfit.dev/v1alpha1", "kind": "Snapshot", "time": "2026-01-14T12:00:00Z",
            "rayCluster": {"metadata": {"name": "demo"}, "spec": {
                "autoscalerOptions": {},
                "headGroupSpec": {"rayStartParams": {}, "template": template},
                "workerGroupSpecs": [{"groupName": "cpu", "minReplicas": 0, "maxReplicas": 3,
                    "rayStartParams": {}, "template": template}],
            }},
            "pods": [{"metadata": {"name": "w", "labels": labels}, "spec": {"containers": [container]}}],
            "gcs": {"nodeStates": [{"instanceId": "w", "rayNodeTypeName": "cpu", "status": "RUNNING",
                "totalResources": {"CPU": 1}, "availableResources": {"CPU": 1}}]},
        });
        change(&mut snapshot);
        let snapshot: Snapshot = serde_json::from_value(snapshot).unwrap();
        let of = |strategy| {
            let settings = PlanSettings {
                strategy,
                ..PlanSettings::default()
            };
            let problems = decide(&snapshot, &settings).0.problems;
            let mut places: Vec<String> = problems.iter().map(|one| one.at.to_string()).collect();
            places.sort();
            places
        };
        [of(Strategy::Ray), of(Strategy::Rayfit)]
    }

    #[test]
    fn what_ray_gives_up_for_is_named() {
        let none: [&str; 0] = [];
        assert_eq!(places(|_| {}), none);
        let label = |key: &'static str| {
            places(move |snapshot| {
                let labels = &mut snapshot["pods"][0]["metadata"]["labels"];
                labels.as_object_mut().unwrap().remove(key);
            })
        };
        assert_eq!(label("ray.io/group"), ["pod w"]);
        assert_eq!(label("ray.io/node-type"), ["pod w"]);
        let spec = |pointer: &'static str, value: Value| {
            places(move |snapshot| {
                let (parent, key) = pointer.rsplit_once('/').unwrap();
                let parent = snapshot["rayCluster"]["spec"].pointer_mut(parent).unwrap();
                parent[key] = value.clone();
            })
        };
        assert_eq!(
            spec("/workerGroupSpecs/0/labels", json!({"team": "r & d"})),
            ["spec.workerGroupSpecs[name=cpu].labels"]
        );
        assert_eq!(
            spec("/workerGroupSpecs/0/idleTimeoutSeconds", json!(-1)),
            ["spec.workerGroupSpecs[name=cpu].idleTimeoutSeconds"]
        );
        assert_eq!(
            spec("/autoscalerOptions", Value::Null),
            ["spec.autoscalerOptions"]
        );
        for wrong in [json!(-1), Value::Null] {
            assert_eq!(
                spec("/autoscalerOptions/idleTimeoutSeconds", wrong),
                ["spec.autoscalerOptions.idleTimeoutSeconds"]
            );
        }
        // To Ray the pods of groups that are not there any more are a fault; Rayfit removes them.
        let all_gone = by_strategy(|snapshot| {
            snapshot["rayCluster"]["spec"]["workerGroupSpecs"] = Value::Null;
        });
        for places in all_gone {
            assert!(
                places.contains(&"spec.workerGroupSpecs".to_owned()),
                "{places:?}"
            );
        }
    }

    #[test]
    fn what_ray_gives_up_for_in_a_report_is_named() {
        let gcs = |key: &'static str, value: Value| {
            places(move |snapshot| snapshot["gcs"][key] = value.clone())
        };
        let ray_node = |status: &str, free: u32| {
            json!([{"instanceId": "w", "rayNodeTypeName": "cpu", "status": status,
                "totalResources": {"CPU": 1}, "availableResources": {"CPU": free}}])
        };
        assert_eq!(
            gcs("nodeStates", ray_node("UNSPECIFIED", 1)),
            ["Ray node of pod w"]
        );
        assert_eq!(
            gcs("nodeStates", ray_node("RUNNING", 2)),
            ["Ray node of pod w"]
        );
        assert_eq!(
            gcs("clusterResourceConstraints", json!([{}, {}])),
            ["request_resources()"]
        );
        let apart = json!({"antiAffinity": {"labelName": "x"}});
        let bundle = json!({"resourcesBundle": {"CPU": 1}, "placementConstraints": [apart, apart]});
        assert_eq!(
            gcs(
                "pendingGangResourceRequests",
                json!([{"details": "01:PACK|PENDING", "requests": [bundle]}])
            ),
            ["placement group 01:PACK"]
        );
    }
}
