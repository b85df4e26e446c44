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

use crate::plan::decided::Decided;
use crate::plan::growth::resize::Resize;
use crate::plan::list::{ByGroup, GroupIndex};
use crate::plan::nodes::life::Stage;
use crate::plan::nodes::node::{CountedAmounts, Fate, PlannedNode};
use crate::plan::outcome::cause::RemovalCause;
use crate::plan::packing::fit::FitTrial;
use crate::plan::packing::state::DecisionState;
use crate::plan::slices::growth_backoff::full;
use crate::plan::slices::growth_backoff::reason::CountedAtBase;
use crate::seconds::Retry;
use crate::snapshot::History;
use crate::snapshot::history::GrowthBackoff;

/// The times for which a group stays in back-off.
const RETRY: Retry = Retry::UP_TO_AN_HOUR;

/// Seconds after which a failure is forgotten: twice the longest wait.
const FORGOTTEN_AFTER_S: f64 = 2.0 * RETRY.longest_s;

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
    for (number, lacks_room) in full::groups_without_room(state).enumerate() {
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
    history: &History,
    decided: &Decided<'_>,
    has_too_large: &ByGroup<bool>,
) -> BTreeMap<String, GrowthBackoff> {
    let (state, now) = (&decided.state, decided.situation.now);
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
        if grown.count(number) > 0 && !too_large {
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
        let at_start = is_full && launched.count(number) > 0;
        if at_start || too_large || small.count(number) > 0 && is_wanted(decided, number) {
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
    let coming = |node: &PlannedNode| {
        node.group() == Some(group)
            && node.stage() != Stage::Running
            && node.stays()
            && node.at_resize_limits
            && !node.is_unneeded()
    };
    let template = state.groups.get(group).map(|group| &group.template);
    let fits = |template: &PlannedNode| {
        let mut remainder = decided.remainder.iter();
        remainder
            .any(|batch| FitTrial::of(template, &[*batch], CountedAmounts::Free, state).is_some())
    };
    state.in_order().any(coming) || template.is_some_and(fits)
}
