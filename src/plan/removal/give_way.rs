//! Giving way: nodes that are only kept ready go at once where demand needs their room.
//!
//! Kubernetes does the same with pods of lower priority that only keep a place. As there, no more go
//! than are needed, as far as that can be told: which of them leaves the room where it is needed,
//! the scheduler knows alone.

use crate::plan::nodes::life::Stage;
use crate::plan::nodes::node::{Fate, PlannedNode};
use crate::plan::outcome::cause::RemovalCause;
use crate::plan::packing::state::World;

/// Removes nodes that are only kept ready, until so many cores are free: those first in which Ray
/// does not run yet, then those that have been idle for longest. Launches without a pod are given
/// up in any case, since they free nothing and would only compete.
pub(crate) fn give_way(world: &mut World, cores: f64) {
    let mut left = world.count(PlannedNode::stays);
    let mut numbers: Vec<usize> = world.order.clone();
    let is_only_ready = |node: &PlannedNode| is_idle(node) && world.is_on_standby(node);
    numbers.retain(|number| world.nodes.get(*number).is_some_and(is_only_ready));
    numbers.sort_by_key(|number| {
        let node = world.nodes.get(*number);
        node.map(|node| (node.stage() == Stage::Running, -node.idle_ms))
    });
    let mut missing = cores;
    for number in numbers {
        let Some(node) = world.nodes.get(number) else {
            continue;
        };
        let (group, has_pod) = (node.group(), node.pod().is_some());
        let least = world.group(node).map_or(0, |group| group.config.min);
        let of_group = group.and_then(|group| left.get_mut(group));
        let Some(counted) = of_group.filter(|counted| **counted >= least + node.count) else {
            continue;
        };
        if has_pod && missing <= 0.0 {
            continue;
        }
        *counted -= node.count;
        if has_pod {
            missing -= world
                .cpu
                .and_then(|cpu| node.amount(cpu)?.total)
                .unwrap_or(0.0);
        }
        if let Some(node) = world.nodes.get_mut(number) {
            node.fate = Fate::Remove(RemovalCause::GivesWay);
        }
    }
}

fn is_idle(node: &PlannedNode) -> bool {
    let is_idle = node.stage() != Stage::Running || node.idle_ms > 0;
    let is_there = node.fate == Fate::Stay && node.stage() != Stage::Stopping && !node.head;
    node.is_unneeded() && is_idle && is_there
}
