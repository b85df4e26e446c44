//! Growth back-off: groups whose new pods do not grow to the size that they were launched for.
//!
//! A pending pod counts at its resize limits, because it can grow up to them. Where the Kubernetes
//! node is full the pod stays small. The demand that it was launched for does not fit, the pod is
//! removed as idle, and the same would happen to the next pod, for ever. So once that has happened,
//! new pods of the group count at their base size for a while: demand that needs more waits, and
//! the report says why.
//!
//! A back-off begins sooner if the demand needs no more than base size: as soon as a pod that
//! starts is on a Kubernetes node that is full. Node autoscalers make nodes that fit what pods
//! request, so without that few pods would be launched at a time, one round of nodes after the
//! other.

use std::collections::BTreeMap;

use crate::hash::HashSet;
use crate::plan::decided::Decided;
use crate::plan::demand::names::Name;
use crate::plan::demand::requests::RequestBatch;
use crate::plan::growth::resize::Resize;
use crate::plan::growth::size::{bytes, cores};
use crate::plan::list::{ByGroup, GroupIndex, KubeNodeIndex, NodeIndex};
use crate::plan::nodes::amounts::CountedAmounts;
use crate::plan::nodes::node::{Fate, PlannedNode, Stage};
use crate::plan::outcome::cause::RemovalCause;
use crate::plan::packing::fit::FitTrial;
use crate::plan::packing::state::DecisionState;
use crate::plan::slices::growth_backoff::reason::CountedAtBase;
use crate::plan::slices::growth_backoff::sizes;
use crate::seconds::Retry;
use crate::snapshot::History;
use crate::snapshot::history::GrowthBackoff;

/// The times for which a group stays in back-off.
const RETRY: Retry = Retry::UP_TO_AN_HOUR;

/// Seconds after which a failure is forgotten: twice the longest wait.
const FORGOTTEN_AFTER_S: f64 = 2.0 * RETRY.longest_s;

/// The least room for growth that counts, in cores: hardly a task asks for less.
const LEAST_CPU: f64 = 1.0;

/// The least room for growth that counts, in bytes.
const LEAST_MEMORY: i64 = 256 << 20;

/// The reason why new pods of the group count at their base size, by a growth back-off that is
/// remembered.
fn remembered(history: &History, group: &str, now: f64) -> Option<CountedAtBase> {
    let backoff = history.growth_backoffs.get(group)?;
    let until = backoff.at + RETRY.wait_s(backoff.failures);
    (until > now).then_some(if backoff.at_start {
        CountedAtBase::FullNode { until }
    } else {
        CountedAtBase::GrowthBackoff { until }
    })
}

/// The number of failures in a row, including one more.
fn failures(history: &History, group: &str) -> u32 {
    let backoff = history.growth_backoffs.get(group);
    backoff.map_or(1, |backoff| backoff.failures.saturating_add(1))
}

/// Has the new pods of groups in growth back-off count at their base size. This includes a back-off that begins because
/// a pod that starts has no room, or because pods that are made larger find none (`too_large`, by group).
pub(crate) fn mark(
    state: &mut DecisionState,
    history: &History,
    too_large: &ByGroup<bool>,
    now: f64,
) {
    for (number, lacks_room) in groups_without_room(state).enumerate() {
        let group = &mut state.groups[number];
        let name = &group.config.name;
        group.at_base = remembered(history, name, now).or_else(|| {
            let until = now + RETRY.wait_s(failures(history, name));
            if too_large.holds(number) {
                return Some(CountedAtBase::GrowthBackoff { until });
            }
            lacks_room.then_some(CountedAtBase::FullNode { until })
        });
    }
}

/// The growth back-offs to remember after a decision.
pub(crate) fn update(
    decided: &Decided<'_>,
    has_too_large: &ByGroup<bool>,
) -> BTreeMap<String, GrowthBackoff> {
    let (state, now) = (&decided.state, decided.situation.now);
    let history = decided.situation.history();
    let mut growth_backoffs = history.growth_backoffs.clone();
    growth_backoffs.retain(|_, backoff| now - backoff.at < FORGOTTEN_AFTER_S);
    // A resize of these has just reached the resize limits.
    let grown = state.count(|node| {
        let resize = node.resize.as_deref();
        resize.is_some_and(|resize| resize.has_come_through() && !resize.is_below_limits())
    });
    // These are idle and go, and have not grown up to their resize limits.
    let small = state.count(|node| {
        let causes = [RemovalCause::Idle, RemovalCause::GivesWay];
        let goes = node.removal().is_some_and(|cause| causes.contains(&cause));
        let resize = node.resize.as_deref();
        goes && node.stage() == Stage::Running && resize.is_some_and(Resize::is_below_limits)
    });
    let launched = state.count(|node| node.fate == Fate::Launch);
    for (number, group) in state.groups.enumerate() {
        let name = &group.config.name;
        let too_large = has_too_large.holds(number);
        if grown[number] > 0 && !too_large {
            // A pod that has grown shows that the Kubernetes nodes have room again.
            growth_backoffs.remove(name);
            continue;
        }
        // During a back-off pods are launched for their base size, so that one that stays small
        // is no new failure.
        if remembered(history, name, now).is_some() {
            continue;
        }
        // A pod that starts has no room, and others were launched for their base size.
        let is_full = matches!(group.at_base, Some(CountedAtBase::FullNode { .. }));
        let at_start = is_full && launched[number] > 0;
        if at_start || too_large || small[number] > 0 && is_wanted(decided, number) {
            let backoff = GrowthBackoff {
                at: now,
                failures: failures(history, name),
                at_start,
            };
            growth_backoffs.insert(name.clone(), backoff);
        }
    }
    growth_backoffs
}

/// True if some demand waits that a pod of the group could take at its resize limits: another pod
/// is launched for it, or would be if the maxima allowed that. Demand that fits at the base size
/// does not count, because it is placed on the pod that is removed.
fn is_wanted(decided: &Decided<'_>, group: GroupIndex) -> bool {
    let state = &decided.state;
    let planned = &state.groups[group];
    let coming = |(number, node): (NodeIndex, &PlannedNode)| {
        node.group() == Some(group)
            && node.stays()
            && sizes::is_at_limits(planned, &state.tables, (number, node))
            && !node.is_unneeded()
    };
    let fits = |batch: &RequestBatch| {
        FitTrial::of(&planned.template, &[*batch], CountedAmounts::Free, state).is_some()
    };
    state.entries().any(coming) || decided.remainder.iter().any(fits)
}

/// By group, whether a pod of it starts on a Kubernetes node that is full, while all demand that is for
/// the group fits a pod at its base size, so that more pods serve it as well as larger ones.
fn groups_without_room(state: &DecisionState) -> ByGroup<bool> {
    let DecisionState {
        nodes,
        headrooms,
        shapes,
        groups,
        cpu,
        memory,
        ..
    } = state;
    let mut full = groups.map(|_| false);
    let starting = |node: &&PlannedNode| node.stage() == Stage::Allocated && node.resize.is_some();
    // Most rounds have no such pod, and all shapes would be gone through for nothing.
    if !nodes.iter().any(|node| starting(&node)) {
        return full;
    }
    let is_named = |name: Name| shapes.iter().any(|shape| shape.names(name));
    let (names_cpu, names_memory) = (is_named(*cpu), is_named(*memory));
    let resizes = nodes.iter().filter_map(|node| node.resize.as_deref());
    // A Kubernetes node on which pods of this cluster have grown, or are about to, had room for
    // that, so it says nothing about those to come.
    let grown = resizes.filter(|resize| resize.base.is_below(resize.desired));
    let grown: HashSet<KubeNodeIndex> = grown.filter_map(|resize| resize.kube_node).collect();
    for node in nodes.iter().filter(starting) {
        if let Some(resize) = node.resize.as_deref()
            && let Some(at) = resize.kube_node.filter(|at| !grown.contains(at))
            // Nor does one that is about to leave.
            && !headrooms[at].is_closed
            && let Some(group) = node.group()
        {
            let headroom = &headrooms[at];
            // Only dimensions count that the resize limits allow and that the demand names.
            let cpu = resize.limits.cpu - resize.current.cpu;
            let memory = (resize.limits.memory).saturating_sub(resize.current.memory);
            full[group] |= names_cpu && cpu > 0.0 && cores(headroom.cpu) < cpu.min(LEAST_CPU)
                || names_memory && memory > 0 && bytes(headroom.memory) < memory.min(LEAST_MEMORY);
        }
    }
    for (full, group) in full
        .iter_mut()
        .zip(groups.iter())
        .filter(|(full, _)| **full)
    {
        let base = &group.base;
        // The requests fit the empty node one by one, or are for other nodes, because they name
        // something that it has nothing of. Labels are not compared.
        *full = shapes.iter().all(|shape| {
            let is_for_others = shape
                .positive()
                .any(|(name, _)| base.amounts.total(name).is_none());
            let mut needs = shape.positive();
            is_for_others
                || needs
                    .all(|(name, needed)| base.amounts.total(name).is_some_and(|has| needed <= has))
        });
    }
    full
}
