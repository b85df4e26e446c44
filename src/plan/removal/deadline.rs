//! Nodes above a maximum that have been asked to leave: how long they may finish their work.
//!
//! A node above a maximum takes no new work and goes when it has none left. Work that never ends,
//! such as a detached actor's, would keep it for ever, and the maximum would never hold. So its
//! time is limited: once that is over the node is stopped, as Ray's autoscaler stops it at once.

use std::collections::BTreeMap;

use crate::plan::list::{ByGroup, GroupIndex};
use crate::plan::nodes::group::ClusterConfig;
use crate::plan::nodes::node::PlannedNode;
use crate::plan::nodes::rows::Leftovers;
use crate::plan::packing::state::DecisionState;
use crate::snapshot::gcs::LiveNodes;
use crate::snapshot::history::ExcessMemory;
use crate::snapshot::pod::Pod;

/// Seconds after which a node that was stopped and still drains is stopped again. Raylets take
/// up to thirty seconds to end.
const STOP_AGAIN_S: f64 = 60.0;

/// A draining node of a group that is above its maximum.
#[derive(Debug)]
pub(crate) struct DrainingExcess {
    pub(crate) pod: String,
    pub(crate) group: GroupIndex,
    pub(crate) node_id: String,
    /// The time at which it was asked to leave, in seconds since 1970, if that is remembered.
    pub(crate) asked_at: Option<f64>,
    /// The time since which its time counts, in seconds since 1970: from now on where that is not
    /// remembered.
    pub(crate) since: f64,
    pub(crate) stop_at: f64,
    pub(crate) stopped_at: Option<f64>,
    /// Amounts that its work holds of each resource.
    pub(crate) holds: BTreeMap<String, f64>,
}

impl DrainingExcess {
    /// Whether the node is to be stopped now.
    pub(crate) fn is_stopped(&self, now: f64) -> bool {
        let again = |at: f64| now - at >= STOP_AGAIN_S;
        now >= self.stop_at && self.stopped_at.is_none_or(again)
    }
}

/// The draining nodes that their groups have above their maxima, those first that were asked to
/// leave first. A group whose maximum was raised again has none, whatever was asked before.
pub(crate) fn excess_nodes(
    state: &DecisionState,
    config: &ClusterConfig,
    leftovers: &Leftovers<'_>,
    live: &LiveNodes<'_>,
    remembered: &BTreeMap<String, ExcessMemory>,
    (timeout, now): (f64, f64),
) -> Vec<DrainingExcess> {
    let mut excess: ByGroup<u64> = (state.groups.iter())
        .zip(state.count(PlannedNode::stays))
        .map(|(group, staying)| {
            let there = staying.saturating_add(group.draining);
            there.saturating_sub(group.config.max)
        })
        .collect();
    let of = |pod: &&Pod<'_>| {
        let group = config.number(pod.group)?;
        let ray = live.get(pod.name)?;
        let memory = remembered.get(pod.name).copied();
        // The clock may have been set back, and would let the node stay for as much longer.
        let asked_at = memory.map(|memory| memory.since.min(now));
        let since = asked_at.unwrap_or(now);
        let is_above = excess.count(group) > 0 && !config.is_listed(pod.group, pod.name);
        is_above.then(|| DrainingExcess {
            pod: pod.name.to_owned(),
            group,
            node_id: ray.node_id.clone(),
            asked_at,
            since,
            stop_at: since + timeout,
            stopped_at: memory.and_then(|memory| memory.stopped_at),
            holds: ray.held(),
        })
    };
    let mut excess_nodes: Vec<DrainingExcess> = leftovers.draining.iter().filter_map(of).collect();
    excess_nodes.sort_by(|one, other| {
        (one.since.total_cmp(&other.since)).then_with(|| one.pod.cmp(&other.pod))
    });
    excess_nodes.retain(|node| {
        let left = excess.get_mut(node.group);
        left.is_some_and(|left| {
            let is_above = *left > 0;
            *left = left.saturating_sub(1);
            is_above
        })
    });
    excess_nodes
}
