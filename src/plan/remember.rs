//! What the next round should know of this one.

use std::collections::BTreeSet;

use super::decide::Decided;
use super::node::{Fate, Node, Stage};
use super::outcome::Plan;
use super::resize::Resize;
use super::{availability, stunted, suggestion};
use crate::snapshot::Snapshot;
use crate::snapshot::history::{History, Instance, InstanceStatus, ResizeMemory};

/// The history after this plan.
pub(crate) fn history(snapshot: &Snapshot, decided: &Decided<'_>, plan: &Plan) -> History {
    let before = &snapshot.history;
    let instances = instances(decided, plan);
    let mut unavailable = before.unavailable.clone();
    for (group, at) in availability::failures(decided, &instances) {
        let last = unavailable.entry(group.to_owned()).or_insert(at);
        *last = last.max(at);
    }
    let running = |group: &str| {
        decided.world.in_order().any(|node| {
            node.stage == Stage::Running
                && decided
                    .world
                    .groups
                    .get(node.group)
                    .is_some_and(|config| config.name == group)
        })
    };
    unavailable.retain(|group, at| !running(group) || decided.now - *at < 600.0);
    History {
        instances,
        stunted: stunted::after(before, decided),
        unavailable,
        unneeded_since: decided.unneeded_since.clone(),
        resizes: decided
            .world
            .in_order()
            .filter_map(|node| Some((node.pod.clone(), resize(snapshot, decided, node)?)))
            .collect(),
    }
}

/// Launches without a pod, and pods that are to stop.
fn instances(decided: &Decided<'_>, plan: &Plan) -> Vec<Instance> {
    let drained: BTreeSet<&str> = plan.drains.iter().map(|drain| drain.pod.as_str()).collect();
    let mut asked: Vec<u64> = vec![0; decided.world.groups.len()];
    for (number, group) in decided.world.groups.iter().enumerate() {
        let plan = plan.groups.iter().find(|plan| plan.name == group.name);
        if let (Some(asked), Some(plan)) = (asked.get_mut(number), plan) {
            *asked = plan.launch_now;
        }
    }
    let mut rows: Vec<(usize, &Node)> = decided
        .world
        .order
        .iter()
        .filter_map(|at| Some((*at, decided.world.nodes.get(*at)?)))
        .collect();
    rows.sort_by_key(|(number, _)| *number);
    let instance = |(_, node): (usize, &Node)| {
        let group = decided.world.group_name(node).to_owned();
        let (status, since) = match (node.stage, node.fate) {
            (Stage::Running | Stage::Stopping, _) if drained.contains(node.pod.as_str()) => {
                (InstanceStatus::StopRequested, Some(decided.now))
            }
            (Stage::Stopping, _) => (InstanceStatus::StopRequested, node.since),
            (Stage::Requested, Fate::Stay) => {
                (InstanceStatus::Requested, node.since.or(Some(decided.now)))
            }
            (Stage::Queued, Fate::Stay) | (Stage::New, Fate::Launch) if plan.waiting.is_none() => {
                (launch_status(asked.get_mut(node.group)), Some(decided.now))
            }
            _ => return None,
        };
        let pod = (!node.pod.is_empty()).then(|| node.pod.clone());
        Some(Instance {
            group,
            pod,
            status,
            since,
        })
    };
    rows.into_iter().filter_map(instance).collect()
}

fn launch_status(asked: Option<&mut u64>) -> InstanceStatus {
    match asked.filter(|asked| **asked > 0) {
        Some(asked) => {
            *asked -= 1;
            InstanceStatus::Requested
        }
        None => InstanceStatus::Queued,
    }
}

fn resize(snapshot: &Snapshot, decided: &Decided<'_>, node: &Node) -> Option<ResizeMemory> {
    let resize = node.resize.as_ref()?;
    let before = snapshot
        .history
        .resizes
        .get(&node.pod)
        .copied()
        .unwrap_or_default();
    let (suggested, done) = (is_suggested(resize), has_come_through(resize));
    let known = before
        .suggested_at
        .filter(|_| !suggestion::is_old(before, decided.now));
    let in_a_row = |so_far: u32, one_more: bool| so_far.saturating_add(one_more.into());
    let memory = ResizeMemory {
        failures: if done {
            0
        } else {
            in_a_row(before.failures, has_just_failed(resize))
        },
        suggested_at: suggested.then(|| known.unwrap_or(decided.now)),
        suggestions: if done && !suggested {
            0
        } else {
            in_a_row(before.suggestions, suggested && known.is_none())
        },
        failed_at: before.failed_at.filter(|_| !done),
    };
    let grown =
        resize.failed_at.is_none() && !resize.base.is_below(resize.current) && before.failures == 0;
    (!grown || memory.suggested_at.is_some() || memory.failures > 0).then_some(memory)
}

/// It failed in this round: what stands on the pod does not say so yet.
fn has_just_failed(resize: &Resize) -> bool {
    let noted = resize.noted.as_ref();
    resize.failed_at.is_some() && noted.is_none_or(|note| note.last_failed_at.is_none())
}

/// A resize that stood on the pod as asked for is done, and did not have to be taken back.
pub(crate) fn has_come_through(resize: &Resize) -> bool {
    let noted = resize.noted.as_ref();
    let asked = noted.is_some_and(|note| note.resizing_at.is_some());
    asked && resize.noted_sync && resize.failed_at.is_none()
}

fn is_suggested(resize: &Resize) -> bool {
    resize.suggested_cpu.is_some() || resize.suggested_memory.is_some()
}
