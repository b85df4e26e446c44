//! The time since which nodes above a maximum have been draining, so that their time ends when it
//! was said to.

use std::collections::BTreeMap;

use crate::plan::decided::Decided;
use crate::plan::outcome::cause::RemovalCause;
use crate::plan::outcome::plan::Plan;
use crate::snapshot::History;
use crate::snapshot::history::ExcessMemory;

/// Memory of the nodes above a maximum, after a plan. A node that was asked to leave and does not
/// drain yet is remembered for as long as its stop is awaited.
pub(crate) fn after(
    history: &History,
    decided: &Decided<'_>,
    plan: &Plan,
) -> BTreeMap<String, ExcessMemory> {
    let before = &history.excess;
    let now = decided.now;
    let mut after: BTreeMap<String, ExcessMemory> = BTreeMap::new();
    for node in decided.state.in_order() {
        if node.removal() == Some(RemovalCause::StopRequested)
            && let Some((pod, memory)) = node.pod().and_then(|pod| before.get_key_value(pod))
        {
            after.insert(pod.clone(), *memory);
        }
    }
    for node in &decided.excess {
        let memory = ExcessMemory {
            since: node.since,
            stopped_at: node.stopped_at,
        };
        after.insert(node.pod.clone(), memory);
    }
    for drain in &plan.drains {
        let Some(stop_at) = drain.stop_at.filter(|_| plan.strategy.is_rayfit()) else {
            continue;
        };
        let before = before.get(&drain.pod).copied();
        let fresh = ExcessMemory {
            since: now,
            stopped_at: None,
        };
        let mut memory = before.unwrap_or(fresh);
        if stop_at <= now {
            memory.stopped_at = Some(now);
        }
        after.insert(drain.pod.clone(), memory);
    }
    after
}
