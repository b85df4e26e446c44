//! The one patch of the RayCluster: `replicas` and `workersToDelete` of all worker groups.
//!
//! KubeRay creates and deletes pods by these two fields: it brings a worker group to `replicas`
//! pods, and it deletes every pod in `workersToDelete`, whatever `replicas` says. (KubeRay,
//! `raycluster_controller.go`, `reconcilePods`.) KubeRay never clears that list; the autoscaler has
//! to.

use std::collections::HashSet;

use json_patch::Patch;
use serde_json::{Value, json};

use crate::path::FieldPath;
use crate::plan::{self, GroupPlan, Plan, check};
use crate::ray::initial_sizes;
use crate::ray::reconcile::RECORD;
use crate::reconcile::effects::effect::{ClusterPatch, GroupChange};
use crate::snapshot::Snapshot;
use crate::text::first_of;

/// The changes to one worker group.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReplicaChange<'a> {
    /// The group's position in `workerGroupSpecs`.
    index: usize,
    pub(crate) group: &'a GroupPlan,
    /// The group has a `scaleStrategy`, into which `workersToDelete` can be written.
    has_strategy: bool,
    /// The present `replicas`, or the value that KubeRay assumes where it is absent.
    now: i64,
    /// The new `workersToDelete`, if it differs from the present one.
    listed: Option<Vec<&'a str>>,
}

/// The worker groups in which anything is to change, in the order of the plan. Where two groups
/// have the same name, the last one counts.
pub(crate) fn changes<'a>(
    snapshot: &'a Snapshot,
    groups: &'a [GroupPlan],
) -> Vec<ReplicaChange<'a>> {
    let existing: HashSet<&str> = snapshot.pods.iter().map(|pod| pod.name).collect();
    let change = |group: &'a GroupPlan| {
        let cluster = snapshot.ray_cluster.spec.as_ref()?;
        let (index, spec) = cluster.worker_group(&group.name)?;
        let now = group.replicas_now.or(spec.min_replicas).unwrap_or(0);
        let current = spec.to_delete.as_deref().unwrap_or_default();
        let current = current.iter().map(Option::as_deref);
        // A pod leaves the list only when it is gone: KubeRay may not have read the list yet.
        let remaining = current
            .clone()
            .flatten()
            .filter(|pod| existing.contains(pod));
        let mut list: Vec<&str> = remaining.collect();
        for deletion in group.deletions() {
            if !list.contains(&deletion.pod.as_str()) {
                list.push(&deletion.pod);
            }
        }
        let is_same = current.eq(list.iter().copied().map(Some));
        (!is_same || group.replicas != now).then(|| ReplicaChange {
            index,
            group,
            has_strategy: spec.to_delete.is_some(),
            now,
            listed: (!is_same).then_some(list),
        })
    };
    groups.iter().filter_map(change).collect()
}

/// The patch; `None` if nothing changes, or if the object has nothing by which a change of it can be noticed.
pub(crate) fn patch(snapshot: &Snapshot, changes: &[ReplicaChange<'_>]) -> Option<ClusterPatch> {
    if changes.is_empty() {
        return None;
    }
    let mut operations = unchanged(snapshot.ray_cluster.object())?;
    operations.extend(changes.iter().flat_map(ReplicaChange::operations));
    // The sizes with which pods are made, if they have to be said. `ray.io/ippr` is always present then, so
    // `annotations` exists.
    let current = snapshot.ray_cluster.initial_sizes.text();
    let next = plan::initial_sizes(snapshot, changes.iter().map(|change| change.group)).text();
    let path = FieldPath::annotation(initial_sizes::ANNOTATION).pointer();
    operations.extend((current != next).then(|| match next {
        Some(text) => json!({"op": "add", "path": path, "value": text}),
        None => json!({"op": "remove", "path": path}),
    }));
    let changes = changes.iter().map(|change| GroupChange {
        group: change.group.name.clone(),
        now: change.now,
        then: change.group.replicas,
        launches: change.group.launch_now,
        deletions: change.group.deletions().cloned().collect(),
        line: change.line(),
    });
    Some(ClusterPatch {
        operations: serde_json::from_value(Value::Array(operations)).ok()?,
        changes: changes.collect(),
    })
}

/// Splits the changes into those within the most workers that the cluster may have and those held back. With `alone`,
/// at most one change is made. A plan that deletes pods of one group and launches others keeps to the maximum as a
/// whole, and not while the group whose pods are to be deleted waits.
pub(crate) fn within<'a>(
    max_workers: u64,
    snapshot: &Snapshot,
    plan: &Plan,
    changes: Vec<ReplicaChange<'a>>,
    alone: bool,
) -> (Vec<ReplicaChange<'a>>, Vec<ReplicaChange<'a>>) {
    // Counted as if these changes were made and no others: what is held back waits for another round.
    let is_above = |changes: &[ReplicaChange<'_>]| {
        let then = |group: &GroupPlan| {
            let is_made = changes.iter().any(|one| one.group.name == group.name);
            if is_made {
                Some(group.replicas)
            } else {
                group.replicas_now
            }
        };
        changes.iter().any(ReplicaChange::grows)
            && check::workers_above(snapshot, plan, max_workers, then).is_some()
    };
    let (mut made, mut delayed) = (Vec::new(), Vec::new());
    if !alone && !is_above(&changes) {
        return (changes, delayed);
    }
    // A change that deletes pods and asks for none makes room for the others.
    let (growing, others): (Vec<_>, Vec<_>) = changes.into_iter().partition(ReplicaChange::grows);
    for change in others.into_iter().chain(growing) {
        if alone && !made.is_empty() {
            break;
        }
        made.push(change);
        if is_above(&made) {
            delayed.extend(made.pop());
        }
    }
    (made, delayed)
}

/// The operations that make a patch fail if its spec, or who scales it, has changed since it was read: the
/// generation counts changes of the spec. Where there is none, nothing of the object may have changed, its status
/// included, which KubeRay writes all the time.
fn unchanged(object: &Value) -> Option<Vec<Value>> {
    let record = FieldPath::annotation(RECORD).pointer();
    let test = |path: &str| {
        let value = object.pointer(path).filter(|value| !value.is_null())?;
        Some(json!({"op": "test", "path": path, "value": value}))
    };
    let all = ["/metadata/uid", "/metadata/generation", &record].map(test);
    let all: Option<Vec<Value>> = all.into_iter().collect();
    all.or_else(|| Some(vec![tested(object)?]))
}

/// The operation that makes a patch fail if the object has changed since it was read.
pub(super) fn tested(object: &Value) -> Option<Value> {
    let path = "/metadata/resourceVersion";
    let version = object.pointer(path)?.as_str()?;
    Some(json!({"op": "test", "path": path, "value": version}))
}

/// A patch that sets one annotation of an object, on condition that the object is still as it was
/// read.
pub(crate) fn annotate(object: &Value, key: &'static str, value: &str) -> Option<Patch> {
    let tested = tested(object)?;
    let has_any = object
        .pointer("/metadata/annotations")
        .is_some_and(Value::is_object);
    let add = if has_any {
        let path = FieldPath::annotation(key).pointer();
        json!({"op": "add", "path": path, "value": value})
    } else {
        // JSON Patch does not create missing parents, so the first annotation brings the map.
        json!({"op": "add", "path": "/metadata/annotations", "value": {key: value}})
    };
    serde_json::from_value(json!([tested, add])).ok()
}

impl ReplicaChange<'_> {
    /// Returns whether this change only asks for new nodes, so that it may be delayed. A change that also
    /// deletes pods must not wait.
    pub(crate) fn launches(&self) -> bool {
        self.grows() && self.group.deletions().next().is_none()
    }

    /// Returns whether this change asks for new nodes, whatever else it does.
    pub(crate) fn grows(&self) -> bool {
        self.group.launch_now > 0 && self.group.replicas > self.now
    }

    fn operations(&self) -> Vec<Value> {
        let at = format!("/spec/workerGroupSpecs/{}", self.index);
        let mut operations = vec![json!({
            "op": "test", "path": format!("{at}/groupName"), "value": self.group.name,
        })];
        if self.group.replicas != self.now {
            // "add" also replaces a present value, while "replace" would fail where the field is
            // absent.
            operations.push(json!({
                "op": "add", "path": format!("{at}/replicas"), "value": self.group.replicas,
            }));
        }
        if let Some(list) = &self.listed {
            operations.push(if self.has_strategy {
                // The list alone is written, because other fields of `scaleStrategy`, such as
                // `scaleGate`, belong to others.
                let path = format!("{at}/scaleStrategy/workersToDelete");
                json!({"op": "add", "path": path, "value": list})
            } else {
                let path = format!("{at}/scaleStrategy");
                json!({"op": "add", "path": path, "value": {"workersToDelete": list}})
            });
        }
        operations
    }

    /// The change with its reason, in one line.
    fn line(&self) -> String {
        let (group, now, then) = (&self.group.name, self.now, self.group.replicas);
        let mut parts = Vec::new();
        if then != now {
            parts.push(format!("{now} -> {then} replicas"));
        }
        if self.group.launch_now > 0 {
            let (size, why) = (self.group.initial_size_text(), self.group.standby_reasons());
            parts.push(format!(
                "{} new nodes are needed{size}{why}",
                self.group.launch_now
            ));
        }
        if self.group.cancel > 0 {
            parts.push(format!(
                "{} launches are not needed any more",
                self.group.cancel
            ));
        }
        let mut causes: Vec<_> = self.group.deletions().map(|gone| gone.cause).collect();
        causes.sort_unstable();
        causes.dedup();
        parts.extend(causes.into_iter().map(|cause| {
            let deletions = self.group.deletions().filter(|gone| gone.cause == cause);
            let pods: Vec<&str> = deletions.map(|gone| gone.pod.as_str()).collect();
            let names = first_of(&pods[..pods.len().min(3)], pods.len() as u64);
            format!("delete {names} ({cause})")
        }));
        if parts.is_empty() {
            parts.push("deleted pods are gone, the list of pods to delete is cleared".to_owned());
        }
        format!("group {group}: {}", parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ray::resource::CpuAndMemory;

    const NOW: i64 = 1_768_392_000;

    fn snapshot(sizes: Option<&str>) -> Snapshot {
        let limits = r#"{"groups":{"a":{"max-cpu":"8","max-memory":"32Gi","resize-timeout":60}}}"#;
        let mut annotations = json!({"ray.io/ippr": limits});
        if let Some(sizes) = sizes {
            annotations[initial_sizes::ANNOTATION] = json!(sizes);
        }
        let group = |name: &str| json!({"groupName": name, "replicas": 0, "minReplicas": 0, "maxReplicas": 9});
        serde_json::from_value(json!({
            "apiVersion": "rayfit.dev/v1alpha1", "kind": "Snapshot", "time": "2026-01-14T12:00:00Z",
            "gcs": {}, "pods": [],
            "rayCluster": {
                "metadata": {"name": "c", "resourceVersion": "7", "annotations": annotations},
                "spec": {"workerGroupSpecs": [group("a"), group("b")]},
            },
        }))
        .unwrap()
    }

    /// The annotation after a launch.
    fn written(sizes: Option<&str>, group: &str, cores: Option<i64>) -> Option<String> {
        let snapshot = snapshot(sizes);
        let plan = GroupPlan {
            name: group.to_owned(),
            replicas_now: Some(0),
            replicas: 1,
            launch_now: 1,
            initial_size: cores.map(|cores| CpuAndMemory {
                cpu_milli: cores * 1000,
                memory_bytes: 8 << 30,
            }),
            ..GroupPlan::default()
        };
        let groups = [plan];
        let patch = patch(&snapshot, &changes(&snapshot, &groups)).unwrap();
        let mut object = snapshot.ray_cluster.object().clone();
        json_patch::patch(&mut object, &patch.operations).unwrap();
        assert_eq!(
            object["spec"]["workerGroupSpecs"][usize::from(group == "b")]["replicas"],
            1
        );
        let annotations = &object["metadata"]["annotations"];
        assert!(annotations["ray.io/ippr"].is_string());
        let now = annotations[initial_sizes::ANNOTATION].as_str();
        now.map(str::to_owned)
    }

    /// KubeRay writes the status all the time; users change the spec; and another scaler may have taken over.
    #[test]
    fn a_patch_holds_while_the_spec_and_the_scaler_stay() {
        let mut seen = snapshot(None);
        seen.ray_cluster.edit(|cluster| {
            let metadata = json!({"name": "c", "uid": "u", "generation": 3, "resourceVersion": "7",
                "annotations": {RECORD: "central/rayfit-system"}});
            cluster["metadata"] = metadata;
        });
        let group = GroupPlan {
            name: "a".to_owned(),
            replicas_now: Some(0),
            replicas: 2,
            launch_now: 2,
            ..GroupPlan::default()
        };
        let groups = [group];
        let patch = patch(&seen, &changes(&seen, &groups)).unwrap();
        let is_done = |edit: &dyn Fn(&mut Value)| {
            let mut stored = seen.ray_cluster.object().clone();
            stored["metadata"]["resourceVersion"] = json!("8");
            edit(&mut stored);
            json_patch::patch(&mut stored, &patch.operations).is_ok()
        };
        assert!(is_done(
            &|stored| stored["status"] = json!({"state": "ready"})
        ));
        let edits: [(&str, Value); 3] = [
            ("generation", json!(4)),
            ("uid", json!("another")),
            ("annotations", json!({RECORD: "sidecar/1"})),
        ];
        for (field, value) in edits {
            let changed = |stored: &mut Value| stored["metadata"][field] = value.clone();
            assert!(!is_done(&changed), "{field}");
        }
    }

    fn said(group: &str, until: i64) -> String {
        json!({group: {"cpu": "6", "memory": (8_i64 << 30).to_string(), "until": until}})
            .to_string()
    }

    #[test]
    fn a_launch_says_how_large_its_pods_are_made_in_the_same_patch() {
        assert_eq!(written(None, "a", None), None);
        let fresh = said("a", NOW + 60);
        assert_eq!(written(None, "a", Some(6)).as_ref(), Some(&fresh));
        let before = said("a", NOW + 5);
        assert_eq!(written(Some(&before), "a", Some(6)), Some(fresh));
    }

    #[test]
    fn what_an_earlier_launch_said_does_not_outlive_it() {
        let earlier = said("a", NOW + 30);
        assert_eq!(written(Some(&earlier), "a", None), None, "the same group");
        let other = written(Some(&earlier), "b", None);
        assert_eq!(other, Some(earlier), "KubeRay may still make those");
        let old = said("a", NOW - 1);
        assert_eq!(written(Some(&old), "b", None), None, "it holds no more");
    }
}
