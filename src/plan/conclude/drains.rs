//! From nodes that are to be removed to drain requests, and to the nodes that drain for longer.

use crate::plan::decided::Decided;
use crate::plan::nodes::node::{Fate, PlannedNode};
use crate::plan::outcome::cause::RemovalCause;
use crate::plan::outcome::plan::{ExcessNode, NodeDrain};
use crate::plan::removal::deadline::DrainingExcess;
use crate::plan::settings::PlanSettings;
use crate::snapshot::Snapshot;

/// The Ray nodes to drain, and those to stop because their time is over.
pub(crate) fn drains(
    snapshot: &Snapshot,
    settings: &PlanSettings,
    decided: &Decided<'_>,
) -> Vec<NodeDrain> {
    let state = &decided.state;
    let remembered = &snapshot.history.excess;
    let stop_at = |pod: &str, cause| match cause {
        // Ray stops what is above a maximum together with its work.
        RemovalCause::GroupMax | RemovalCause::ClusterMax if !state.strategy.is_rayfit() => {
            Some(decided.now)
        }
        RemovalCause::GroupMax => {
            let since = remembered.get(pod).map_or(decided.now, |one| one.since);
            // The clock may have been set back, and would let the node stay for as much longer.
            Some(since.min(decided.now) + settings.drain_timeout_s)
        }
        _ => None,
    };
    let drain = |node: &PlannedNode| {
        let Fate::Remove(cause) = node.fate else {
            return None;
        };
        let pod = node.pod()?;
        Some(NodeDrain {
            pod: pod.to_owned(),
            group: state.group_name(node).to_owned(),
            node_id: node.ray_id()?.to_owned(),
            cause,
            idle_ms: node.idle_ms,
            stop_at: stop_at(pod, cause),
            departure: decided.departures.get(pod).cloned(),
        })
    };
    let overdue = decided.excess.iter();
    let overdue = overdue.filter(|node| node.is_stopped(decided.now));
    let stops = overdue.map(|node| NodeDrain {
        pod: node.pod.clone(),
        group: group_name(decided, node),
        node_id: node.node_id.clone(),
        cause: RemovalCause::GroupMax,
        idle_ms: 0,
        stop_at: Some(node.stop_at),
        departure: None,
    });
    state.in_order().filter_map(drain).chain(stops).collect()
}

/// The nodes above a maximum that drain.
pub(crate) fn excess(settings: &PlanSettings, decided: &Decided<'_>) -> Vec<ExcessNode> {
    let node = |node: &DrainingExcess| ExcessNode {
        pod: node.pod.clone(),
        group: group_name(decided, node),
        cause: RemovalCause::GroupMax,
        since: node.asked_at,
        stop_at: node.asked_at.map(|_| node.stop_at),
        longest_s: settings.drain_timeout_s,
        holds: node.holds.clone(),
    };
    decided.excess.iter().map(node).collect()
}

fn group_name(decided: &Decided<'_>, node: &DrainingExcess) -> String {
    let group = decided.state.groups.get(node.group);
    group.map_or_else(String::new, |group| group.config.name.clone())
}
