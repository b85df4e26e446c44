//! Faults of a cluster's objects that make Ray give up every round, apart from those noticed
//! elsewhere. Each is named, and concerns only the object that has it.

use std::cell::LazyCell;

use crate::hash::HashSet;
use crate::plan::outcome::problem::{Problem, ProblemEffect, ProblemPlace};
use crate::plan::outcome::problem_reason::ProblemReason;
use crate::snapshot::Snapshot;
use crate::snapshot::cluster_object::{ClusterSpec, GroupSpec, IdleTimeout};
use crate::snapshot::gcs::{ClusterResourceState, NodeStatus};
use crate::snapshot::pod::{Pod, PodRole};

/// The most faults of one kind that are named.
const NAMED: usize = 20;

/// Returns all such faults.
pub(crate) fn all(snapshot: &Snapshot, pods: &[Pod<'_>]) -> Vec<Problem> {
    let mut problems = Vec::new();
    if let Some(spec) = &snapshot.ray_cluster.spec {
        problems.extend(no_groups(spec));
        problems.extend(idle_timeouts(spec).take(NAMED));
        problems.extend(spec.groups.iter().filter_map(bad_label).take(NAMED));
    }
    problems.extend(pods.iter().filter_map(unlabelled).take(NAMED));
    problems.extend(unsaid(&snapshot.gcs, pods).take(NAMED));
    problems.extend(constraints(&snapshot.gcs));
    problems
}

fn no_groups(spec: &ClusterSpec) -> Option<Problem> {
    (!spec.lists_workers).then(|| Problem {
        at: ProblemPlace::Field("spec.workerGroupSpecs".to_owned()),
        reason: ProblemReason::NoWorkerGroups,
        effect: ProblemEffect::NoWorkers,
    })
}

/// Ray divides any value that is present by 60, and accepts no negative timeout of a group.
fn idle_timeouts(spec: &ClusterSpec) -> impl Iterator<Item = Problem> {
    const OPTIONS: &str = "spec.autoscalerOptions";
    const KEY: &str = "idleTimeoutSeconds";
    let wrong = |at: String, value: String| Problem {
        at: ProblemPlace::Field(at),
        reason: ProblemReason::NotATime { value },
        effect: ProblemEffect::TimeoutAsWritten,
    };
    let is_null = spec.idle_timeout == IdleTimeout::Null;
    let null = is_null.then(|| "null".to_owned());
    let of_cluster = null.or_else(|| negative(&spec.idle_timeout));
    let of_cluster = of_cluster.map(|value| wrong(format!("{OPTIONS}.{KEY}"), value));
    let options = spec.has_null_options;
    let options = options.then(|| wrong(OPTIONS.to_owned(), "null".to_owned()));
    let of_groups = spec.groups.iter().filter_map(move |group| {
        let value = negative(&group.idle_timeout)?;
        Some(wrong(group.path().key(KEY).to_string(), value))
    });
    options.into_iter().chain(of_cluster).chain(of_groups)
}

/// A timeout below 0, as it is written.
fn negative(timeout: &IdleTimeout) -> Option<String> {
    match timeout {
        IdleTimeout::Seconds(seconds) if seconds.as_f64().is_some_and(|s| s < 0.0) => {
            Some(seconds.to_string())
        }
        _ => None,
    }
}

fn bad_label(group: &GroupSpec) -> Option<Problem> {
    let key = group.bad_label.clone()?;
    Some(Problem {
        at: ProblemPlace::Field(group.path().key("labels").to_string()),
        reason: ProblemReason::BadLabel { key },
        effect: ProblemEffect::LabelsAsWritten,
    })
}

/// Ray reads both labels of every pod of the cluster, and aborts on a pod without them.
fn unlabelled(pod: &Pod<'_>) -> Option<Problem> {
    let labels = &pod.object.metadata.labels;
    if pod.deleting || labels.cluster.is_none() {
        return None;
    }
    let missing = if labels.node_type.is_none() {
        "ray.io/node-type"
    } else if pod.role != PodRole::Other && labels.group.is_none() {
        "ray.io/group"
    } else {
        return None;
    };
    Some(Problem {
        at: ProblemPlace::Pod(pod.name.to_owned()),
        reason: ProblemReason::NoPodLabel(missing),
        effect: ProblemEffect::LeftAlone,
    })
}

fn unsaid<'a>(gcs: &'a ClusterResourceState, pods: &'a [Pod<'_>]) -> impl Iterator<Item = Problem> {
    // Such a node is rare, and the names of the pods are looked up only where there is one.
    let known: LazyCell<HashSet<&str>, _> =
        LazyCell::new(|| pods.iter().map(|pod| pod.name).collect());
    let nodes = gcs.node_states.iter();
    let unsaid = nodes.filter(move |node| {
        node.status == NodeStatus::Unspecified && known.contains(node.instance_id.as_str())
    });
    unsaid.map(|node| Problem {
        at: ProblemPlace::RayNode {
            pod: node.instance_id.clone(),
        },
        reason: ProblemReason::StatusUnsaid,
        effect: ProblemEffect::NotRunning,
    })
}

fn constraints(gcs: &ClusterResourceState) -> Vec<Problem> {
    let mut problems = Vec::new();
    let several = gcs.cluster_resource_constraints.len();
    if several > 1 {
        problems.push(Problem {
            at: ProblemPlace::RequestResources,
            reason: ProblemReason::SeveralConstraints(several),
            effect: ProblemEffect::OnlyFirst,
        });
    }
    let gangs = gcs.pending_gang_resource_requests.iter().filter(|gang| {
        let listed = match gang.bundle_selectors.first() {
            Some(selector) => &selector.resource_requests,
            None => &gang.requests,
        };
        listed
            .iter()
            .any(|bundle| bundle.placement_constraints.len() > 1)
    });
    let gangs = gangs.map(|gang| Problem {
        at: ProblemPlace::PlacementGroup(gang.title().to_owned()),
        reason: ProblemReason::SeveralPlacementConstraints,
        effect: ProblemEffect::NotPlaced,
    });
    problems.extend(gangs.take(NAMED));
    problems
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
