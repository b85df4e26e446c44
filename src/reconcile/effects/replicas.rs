//! The one patch of the RayCluster: `replicas` and `workersToDelete` of all groups.
//!
//! KubeRay makes and deletes pods by these two fields: it brings a group to `replicas` pods, and
//! it deletes every pod that is listed, whatever `replicas` says. (KubeRay,
//! `raycluster_controller.go`, `reconcilePods`.) Nobody clears the list but the scaler.

use std::collections::HashSet;

use json_patch::Patch;
use serde_json::{Value, json};

use crate::plan::{Deletion, GroupPlan};
use crate::ray::{Fields, list_at, object_at};
use crate::reconcile::effects::effect::{ClusterPatch, GroupChange};
use crate::snapshot::Snapshot;

/// What changes in one group.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Change<'a> {
    /// Its position in `workerGroupSpecs`.
    index: usize,
    pub(crate) group: &'a GroupPlan,
    /// `scaleStrategy` is there.
    has_strategy: bool,
    /// `replicas` as it is, or as KubeRay takes it where it is absent.
    now: i64,
    /// What the list is to be, if it is another than it is.
    listed: Option<Vec<&'a str>>,
}

/// The groups in which anything is to change, in the order of the plan. Of two groups of one name
/// the last counts.
pub(crate) fn changes<'a>(snapshot: &'a Snapshot, groups: &'a [GroupPlan]) -> Vec<Change<'a>> {
    let spec = snapshot.ray_cluster.get("spec").and_then(Value::as_object);
    let specs = spec.map_or(&[][..], |spec| list_at(spec, "workerGroupSpecs"));
    let there: HashSet<&str> = snapshot.pods.iter().map(|pod| pod.name).collect();
    let change = |group: &'a GroupPlan| {
        let named = |spec: &Value| spec["groupName"].as_str() == Some(&group.name);
        let index = specs.iter().rposition(named)?;
        let spec = specs.get(index)?.as_object()?;
        let minimum = || spec.get("minReplicas").and_then(Value::as_i64);
        let now = group.replicas_now.or_else(minimum).unwrap_or(0);
        let change = Change {
            index,
            group,
            has_strategy: object_at(spec, "scaleStrategy").is_some(),
            now,
            listed: listed(spec, group, &there),
        };
        (change.listed.is_some() || change.group.replicas != now).then_some(change)
    };
    groups.iter().filter_map(change).collect()
}

/// Pods that are gone leave the list, those to delete enter it.
fn listed<'a>(
    spec: &'a Fields,
    group: &'a GroupPlan,
    there: &HashSet<&str>,
) -> Option<Vec<&'a str>> {
    let strategy = object_at(spec, "scaleStrategy");
    let before = strategy.map_or(&[][..], |strategy| list_at(strategy, "workersToDelete"));
    let kept = before
        .iter()
        .filter_map(Value::as_str)
        .filter(|pod| there.contains(pod));
    let mut list: Vec<&str> = kept.collect();
    for deletion in group.deletions() {
        if !list.contains(&deletion.pod.as_str()) {
            list.push(&deletion.pod);
        }
    }
    let same =
        list.len() == before.len() && list.iter().zip(before).all(|(one, other)| one == other);
    (!same).then_some(list)
}

/// The patch; `None` if nothing changes, or if the object has no version to test.
pub(crate) fn patch(snapshot: &Snapshot, changes: &[Change<'_>]) -> Option<ClusterPatch> {
    if changes.is_empty() {
        return None;
    }
    let mut operations = vec![tested_version(&snapshot.ray_cluster)?];
    operations.extend(changes.iter().flat_map(Change::operations));
    Some(ClusterPatch {
        operations: serde_json::from_value(Value::Array(operations)).ok()?,
        changes: changes.iter().map(Change::told).collect(),
    })
}

/// The operation that makes a patch fail if the object is not as it was read.
fn tested_version(object: &Value) -> Option<Value> {
    let version = object.pointer("/metadata/resourceVersion")?.as_str()?;
    Some(json!({"op": "test", "path": "/metadata/resourceVersion", "value": version}))
}

/// A patch that sets one annotation of an object as it was read.
pub(crate) fn annotate(object: &Value, key: &str, value: &str) -> Option<Patch> {
    let has_any = object
        .pointer("/metadata/annotations")
        .is_some_and(Value::is_object);
    let add = if has_any {
        let key = key.replace('~', "~0").replace('/', "~1");
        json!({"op": "add", "path": format!("/metadata/annotations/{key}"), "value": value})
    } else {
        json!({"op": "add", "path": "/metadata/annotations", "value": {key: value}})
    };
    serde_json::from_value(json!([tested_version(object)?, add])).ok()
}

impl Change<'_> {
    /// It asks for new nodes, and for nothing that must not wait.
    pub(crate) fn launches(&self) -> bool {
        self.group.launch_now > 0
            && self.group.replicas > self.now
            && self.group.deletions().next().is_none()
    }

    fn operations(&self) -> Vec<Value> {
        let at = format!("/spec/workerGroupSpecs/{}", self.index);
        let mut operations = vec![json!({
            "op": "test", "path": format!("{at}/groupName"), "value": self.group.name,
        })];
        if self.group.replicas != self.now {
            operations.push(json!({
                "op": "add", "path": format!("{at}/replicas"), "value": self.group.replicas,
            }));
        }
        if let Some(list) = &self.listed {
            operations.push(if self.has_strategy {
                let path = format!("{at}/scaleStrategy/workersToDelete");
                json!({"op": "add", "path": path, "value": list})
            } else {
                let path = format!("{at}/scaleStrategy");
                json!({"op": "add", "path": path, "value": {"workersToDelete": list}})
            });
        }
        operations
    }

    fn told(&self) -> GroupChange {
        GroupChange {
            group: self.group.name.clone(),
            now: self.now,
            then: self.group.replicas,
            launches: self.group.launch_now,
            deletions: self.group.deletions().cloned().collect(),
            line: self.line(),
        }
    }

    /// What and why, in one line.
    fn line(&self) -> String {
        let (group, now, then) = (&self.group.name, self.now, self.group.replicas);
        let mut parts = Vec::new();
        if then != now {
            parts.push(format!("{now} -> {then} replicas"));
        }
        if self.group.launch_now > 0 {
            parts.push(format!("{} new nodes are needed", self.group.launch_now));
        }
        if self.group.cancel > 0 {
            parts.push(format!(
                "{} launches are not needed any more",
                self.group.cancel
            ));
        }
        parts.extend(deletions(&self.group.deletions().collect::<Vec<_>>()));
        if parts.is_empty() {
            parts.push("deleted pods are gone, the list of pods to delete is cleared".to_owned());
        }
        format!("group {group}: {}", parts.join(", "))
    }
}

/// Pods to delete, by cause.
fn deletions(deletions: &[&Deletion]) -> Vec<String> {
    let mut causes: Vec<_> = deletions.iter().map(|deletion| deletion.cause).collect();
    causes.sort_unstable();
    causes.dedup();
    let words = |cause| {
        let of = deletions.iter().filter(|deletion| deletion.cause == cause);
        let names: Vec<&str> = of.clone().map(|of| of.pod.as_str()).take(3).collect();
        let more = of.count().saturating_sub(names.len());
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        format!("delete {}{more} ({})", names.join(", "), cause.words())
    };
    causes.into_iter().map(words).collect()
}
