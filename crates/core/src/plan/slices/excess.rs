//! Nodes above a maximum that have been asked to leave: how long they may finish their work.
//!
//! A node above a maximum takes no new work and goes when it has none left. Work that never ends,
//! such as a detached actor's, would keep it for ever, and the maximum would never hold. So its
//! time is limited: once that is over the node is stopped, as Ray's autoscaler stops it at once.

use std::collections::BTreeMap;

use crate::plan::decided::Decided;
use crate::plan::list::{ByGroup, GroupIndex};
use crate::plan::nodes::node::PlannedNode;
use crate::plan::outcome::cause::RemovalCause;
use crate::plan::outcome::plan::{ExcessNode, Plan};
use crate::plan::slices::objects::hanging::HangingPods;
use crate::snapshot::history::ExcessMemory;
use crate::snapshot::pod::Pod;

/// Seconds after which a node that was stopped and still drains is stopped again. Raylets take
/// up to thirty seconds to end.
const STOP_AGAIN_S: f64 = 60.0;

/// A draining node of a group that is above its maximum.
#[derive(Debug)]
pub(crate) struct DrainingExcess {
    pub(crate) node: ExcessNode,
    pub(crate) group: GroupIndex,
    pub(crate) node_id: String,
    /// Memory of it, as of now where nothing is remembered.
    pub(crate) memory: ExcessMemory,
    pub(crate) stop_at: f64,
}

impl DrainingExcess {
    /// True for a node that is to be stopped now.
    pub(crate) fn is_stopped(&self, now: f64) -> bool {
        let again = |at: f64| now - at >= STOP_AGAIN_S;
        now >= self.stop_at && self.memory.stopped_at.is_none_or(again)
    }
}

/// Counts the pods that are draining, or hang though they were to be gone, towards their group's maximum.
pub(crate) fn count_draining(decided: &mut Decided<'_>, hanging: &HangingPods<'_>) {
    let config = &decided.config;
    for pod in decided.leftovers.draining.iter().chain(hanging.pods()) {
        // KubeRay counts no pod that is listed for deletion, so that one takes no place any more.
        let is_listed = config.is_listed(pod.group, pod.name);
        let group = config.number(pod.group).filter(|_| !is_listed);
        if let Some(group) = group {
            decided.state.groups[group].draining += 1;
        }
    }
}

/// The draining nodes that their groups have above their maxima, those first that were asked to
/// leave first. A group whose maximum was raised again has none, whatever was asked before.
pub(crate) fn excess_nodes(decided: &Decided<'_>) -> Vec<DrainingExcess> {
    let (situation, config, state) = (decided.situation, &decided.config, &decided.state);
    let (timeout, now) = (situation.settings.drain_timeout_s, situation.now);
    let remembered = &situation.history().excess;
    let mut excess: ByGroup<u64> = (state.groups.iter())
        .zip(state.count(PlannedNode::stays))
        .map(|(group, staying)| {
            let present = staying.saturating_add(group.draining);
            present.saturating_sub(group.config.max)
        })
        .collect();
    let of = |pod: &&Pod<'_>| {
        let group = config.number(pod.group)?;
        let ray = situation.live.get(pod.name)?;
        let old_memory = remembered.get(pod.name).copied();
        let mut memory = old_memory.unwrap_or(ExcessMemory {
            since: now,
            stopped_at: None,
        });
        // The clock may have been set back, and would let the node stay for as much longer.
        memory.since = memory.since.min(now);
        let stop_at = memory.since + timeout;
        let is_above = excess[group] > 0 && !config.is_listed(pod.group, pod.name);
        is_above.then(|| DrainingExcess {
            node: ExcessNode {
                pod: pod.name.to_owned(),
                group: pod.group.to_owned(),
                cause: RemovalCause::GroupMax,
                since: old_memory.map(|_| memory.since),
                stop_at: old_memory.map(|_| stop_at),
                longest_s: timeout,
                holds: ray.used_amounts(),
            },
            group,
            node_id: ray.node_id.clone(),
            memory,
            stop_at,
        })
    };
    let draining = decided.leftovers.draining.iter();
    let mut excess_nodes: Vec<DrainingExcess> = draining.filter_map(of).collect();
    excess_nodes.sort_by(|one, other| {
        let by_time = one.memory.since.total_cmp(&other.memory.since);
        by_time.then_with(|| one.node.pod.cmp(&other.node.pod))
    });
    excess_nodes.retain(|node| {
        let surplus = &mut excess[node.group];
        let is_above = *surplus > 0;
        *surplus = surplus.saturating_sub(1);
        is_above
    });
    excess_nodes
}

/// Memory of the nodes above a maximum, after a plan, so that their time ends when it was said to. A node that was
/// asked to leave and does not drain yet is remembered for as long as its stop is awaited.
pub(crate) fn remember(
    decided: &Decided<'_>,
    excess_nodes: &[DrainingExcess],
    plan: &Plan,
) -> BTreeMap<String, ExcessMemory> {
    let (previous, now) = (&decided.situation.history().excess, decided.situation.now);
    let mut excess_memory: BTreeMap<String, ExcessMemory> = BTreeMap::new();
    for node in decided.state.in_order() {
        if node.removal() == Some(RemovalCause::StopRequested)
            && let Some((pod, memory)) = node.pod().and_then(|pod| previous.get_key_value(pod))
        {
            excess_memory.insert(pod.clone(), *memory);
        }
    }
    for excess in excess_nodes {
        excess_memory.insert(excess.node.pod.clone(), excess.memory);
    }
    for drain in &plan.drains {
        let Some(stop_at) = drain.stop_at else {
            continue;
        };
        let previous = previous.get(&drain.pod).copied();
        let fresh = ExcessMemory {
            since: now,
            stopped_at: None,
        };
        let mut memory = previous.unwrap_or(fresh);
        if stop_at <= now {
            memory.stopped_at = Some(now);
        }
        excess_memory.insert(drain.pod.clone(), memory);
    }
    excess_memory
}
