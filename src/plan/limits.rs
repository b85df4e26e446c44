//! Minimum and maximum of groups and cluster, and idle nodes.
//! (Ray, `scheduler.py`, `_enforce_*`.)

use std::cmp::Ordering;

use super::node::{Cause, Fate, Node, Stage};
use super::world::World;

/// Adds what the groups' minima lack, in front of all other nodes.
pub(crate) fn enforce_minima(world: &mut World) {
    let mut order = Vec::new();
    for (group, lacking) in world.lacking(Node::stays).into_iter().enumerate() {
        for _ in 0..lacking {
            order.extend(world.launch(group));
        }
    }
    order.append(&mut world.order);
    world.order = order;
}

/// Takes out what a group has above its maximum. The list is regrouped: those that go first, then
/// the groups in the order of their first node.
pub(crate) fn enforce_group_maxima(world: &mut World) {
    let (gone, staying) = split(world);
    let mut groups: Vec<(usize, Vec<usize>)> = Vec::new();
    for number in staying {
        let group = world
            .nodes
            .get(number)
            .map_or(usize::MAX, |node| node.group);
        match groups.iter_mut().find(|(of, _)| *of == group) {
            Some((_, numbers)) => numbers.push(number),
            None => groups.push((group, vec![number])),
        }
    }
    let mut order = gone;
    let mut kept = Vec::new();
    for (group, numbers) in groups {
        let max = world
            .groups
            .get(group)
            .map_or(u64::MAX, |config| config.max);
        let (out, stays) = take_out(world, numbers, max, Cause::GroupMax);
        order.extend(out);
        kept.extend(stays);
    }
    order.extend(kept);
    world.order = order;
}

/// Takes out what the cluster has above its maximum.
pub(crate) fn enforce_cluster_maximum(world: &mut World) {
    let (mut gone, staying) = split(world);
    if world.max_nodes == 0 || staying.len() as u64 <= world.max_nodes {
        return;
    }
    let (out, stays) = take_out(world, staying, world.max_nodes, Cause::ClusterMax);
    gone.extend(out);
    gone.extend(stays);
    world.order = gone;
}

fn split(world: &World) -> (Vec<usize>, Vec<usize>) {
    let goes = |number: &usize| world.nodes.get(*number).is_some_and(|node| !node.stays());
    world.order.iter().partition(|number| goes(number))
}

/// Of `numbers`, the first in [`removal_order`] go until `max` are left; never the head, which
/// moves to the end.
fn take_out(
    world: &mut World,
    mut numbers: Vec<usize>,
    max: u64,
    cause: Cause,
) -> (Vec<usize>, Vec<usize>) {
    let extra = (numbers.len() as u64).saturating_sub(max);
    if extra == 0 {
        return (Vec::new(), numbers);
    }
    let before = numbers.clone();
    sort_for_removal(world, &mut numbers);
    let is_head = |number: &usize| world.nodes.get(*number).is_some_and(|node| node.head);
    let head = numbers
        .iter()
        .position(is_head)
        .map(|at| numbers.remove(at));
    let extra = usize::try_from(extra)
        .unwrap_or(usize::MAX)
        .min(numbers.len());
    let mut stays = numbers.split_off(extra);
    stays.extend(head);
    for number in &numbers {
        if let Some(node) = world.nodes.get_mut(*number) {
            node.fate = Fate::Remove(cause);
        }
    }
    if world.improvements.steady_choices {
        // Their order decides between equals, and should in the next round as in this one.
        let still = |number: &usize| world.nodes.get(*number).is_some_and(Node::stays);
        stays = before.into_iter().filter(still).collect();
    }
    (numbers, stays)
}

fn sort_for_removal(world: &World, numbers: &mut [usize]) {
    let uses: Vec<f64> = world.nodes.iter().map(Node::mean_use).collect();
    let by = |left: &usize, right: &usize| match (world.nodes.get(*left), world.nodes.get(*right)) {
        (Some(one), Some(other)) => removal_order(one, other).then_with(|| {
            let share = |number: &usize| uses.get(*number).copied().unwrap_or(0.0);
            share(left).total_cmp(&share(right))
        }),
        _ => Ordering::Equal,
    };
    numbers.sort_by(by);
}

/// Nodes without Ray first, then the longest idle.
fn removal_order(one: &Node, other: &Node) -> Ordering {
    let running = |node: &Node| !node.ray_id.is_empty();
    running(one)
        .cmp(&running(other))
        .then(other.idle_ms.cmp(&one.idle_ms))
}

/// The timeouts for idle nodes, in seconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeouts {
    pub(crate) cluster: f64,
    /// For pods on their way that nothing needs; `None` keeps them.
    pub(crate) pending: Option<f64>,
}

/// Takes out nodes that nothing needs and that have been idle for longer than the timeout.
pub(crate) fn enforce_idle(world: &mut World, timeouts: Timeouts) {
    let mut left = world.count(Node::stays);
    let mut numbers = world.order.clone();
    sort_for_removal(world, &mut numbers);
    for number in numbers {
        let Some(node) = world.nodes.get(number) else {
            continue;
        };
        let Some(group) = world.groups.get(node.group) else {
            continue;
        };
        let timeout = timeout(node, group.idle_timeout_s, timeouts);
        let counted = left.get(node.group).copied().unwrap_or(0);
        if node.fate != Fate::Stay
            || node.head
            || !timeout.is_some_and(|timeout| is_idle_for(node, timeout))
            || !node.is_unneeded()
            || counted <= group.min
        {
            continue;
        }
        if let Some(counted) = left.get_mut(node.group) {
            *counted -= 1;
        }
        if let Some(node) = world.nodes.get_mut(number) {
            node.fate = Fate::Remove(Cause::Idle);
        }
    }
}

fn timeout(node: &Node, of_group: Option<f64>, timeouts: Timeouts) -> Option<f64> {
    if matches!(node.stage, Stage::Queued | Stage::Allocated) {
        timeouts.pending
    } else {
        Some(of_group.unwrap_or(timeouts.cluster))
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "milliseconds, as Ray compares them"
)]
fn is_idle_for(node: &Node, timeout: f64) -> bool {
    node.idle_ms as f64 > timeout * 1000.0
}

/// Gives pods on their way that nothing needs the times since when so many were not needed, the
/// longest to the least advanced; the times to remember. (Ray,
/// `_update_pending_nodes_idle_duration`.)
pub(crate) fn note_unneeded(
    world: &mut World,
    remembered: &std::collections::BTreeMap<String, Vec<f64>>,
    now: f64,
) -> std::collections::BTreeMap<String, Vec<f64>> {
    let mut notes = std::collections::BTreeMap::new();
    for (group, config) in world.groups.iter().enumerate() {
        let unneeded = |number: &usize| {
            let node = world.nodes.get(*number);
            node.is_some_and(|node| {
                node.group == group
                    && node.fate == Fate::Stay
                    && !node.head
                    && matches!(node.stage, Stage::Queued | Stage::Allocated)
                    && node.is_unneeded()
            })
        };
        let mut numbers: Vec<usize> = world.order.iter().copied().filter(unneeded).collect();
        if numbers.is_empty() {
            continue;
        }
        numbers.sort_by_key(|number| {
            world
                .nodes
                .get(*number)
                .map(|node| node.stage == Stage::Allocated)
        });
        let mut since = remembered.get(&config.name).cloned().unwrap_or_default();
        since.resize(numbers.len(), now);
        for (number, since) in numbers.iter().zip(&since) {
            if let Some(node) = world.nodes.get_mut(*number) {
                #[expect(clippy::cast_possible_truncation, reason = "milliseconds")]
                let idle = ((now - since) * 1000.0) as i64;
                node.idle_ms = idle;
            }
        }
        notes.insert(config.name.clone(), since);
    }
    notes
}

/// Forgets the times of pods that go for being idle, so that no other pod inherits them.
pub(crate) fn forget_removed(
    world: &World,
    notes: &mut std::collections::BTreeMap<String, Vec<f64>>,
) {
    for node in world.in_order() {
        let idle = node.fate == Fate::Remove(Cause::Idle);
        if !idle || !matches!(node.stage, Stage::Queued | Stage::Allocated) {
            continue;
        }
        let name = world.groups.get(node.group).map(|group| &group.name);
        if let Some(since) = name
            .and_then(|name| notes.get_mut(name))
            .filter(|since| !since.is_empty())
        {
            since.remove(0);
        }
    }
}
