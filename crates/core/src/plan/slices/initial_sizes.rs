//! The size with which pods of new nodes are made.
//!
//! A pod starts with the size of its template and grows once it runs, if its Kubernetes node has room
//! for that. The scheduler knows only of the size with which it starts. So where a single request needs
//! more than that, new pods of the group are made as large as the largest such request, in whole
//! multiples of the template: the scheduler then finds them a Kubernetes node on which it can run.
//! Several small requests do not make pods larger, because other pods serve them as well.

use crate::plan::decided::Decided;
use crate::plan::demand::names::Name;
use crate::plan::demand::shape::ShapeId;
use crate::plan::growth::size::{SAME, Size, milli};
use crate::plan::list::GroupIndex;
use crate::plan::nodes::node::PlannedNode;
use crate::plan::outcome::plan::GroupPlan;
use crate::plan::settings::SizedFor;
use crate::ray::initial_sizes::InitialSizes;
use crate::ray::resource::CpuAndMemory;
use crate::snapshot::Snapshot;
use crate::snapshot::pod_object::Resources;

/// The size that new pods of a group are to be made with, where that is not the size of their template.
pub(crate) fn of_group(decided: &Decided<'_>, number: GroupIndex) -> Option<CpuAndMemory> {
    let state = &decided.state;
    // Kueue admits new pods as their template asks.
    let is_queued = decided.situation.snapshot.ray_cluster.is_queued;
    let sized_for = decided
        .situation
        .settings
        .initial_sizes
        .filter(|_| !is_queued)?;
    let group = state.groups.get(number)?;
    let config = &group.config;
    let (base, limits) = (config.base?, config.resize_limits?);
    // All hosts of a replica are alike; and a pod with resources as a whole is more than its container.
    let is_plain =
        !config.is_head() && config.hosts == 1 && config.pod_level == Resources::default();
    if !is_plain || group.at_base.is_some() {
        return None;
    }
    let is_to_come =
        |node: &&PlannedNode| node.group() == Some(number) && node.pod().is_none() && node.stays();
    let nodes = state.in_order().filter(is_to_come);
    #[expect(clippy::cast_possible_truncation, reason = "whole bytes, saturating")]
    let size = |amount: &dyn Fn(Name) -> f64| Size {
        cpu: amount(state.cpu),
        memory: amount(state.memory).ceil() as i64,
    };
    let of_request = |shape: &ShapeId| {
        let shape = state.shapes.get(*shape);
        size(&|name| {
            let needed = shape.positive().find(|(needed, _)| *needed == name);
            needed.map_or(0.0, |(_, amount)| amount)
        })
    };
    let largest = nodes.fold(base, |largest, node| match sized_for {
        SizedFor::Request => {
            let requests = node.placed.iter().flatten().map(of_request);
            requests.fold(largest, Size::max)
        }
        SizedFor::Demand => largest.max(size(&|name| node.amounts.taken(name).unwrap_or(0.0))),
    });
    let size = multiple(largest, base, limits);
    base.is_below(size).then(|| CpuAndMemory {
        cpu_milli: milli(size.cpu),
        memory_bytes: size.memory,
    })
}

/// The sizes of new pods, as the RayCluster is to say them once these groups are as planned.
pub(crate) fn initial_sizes<'a>(
    snapshot: &Snapshot,
    groups: impl Iterator<Item = &'a GroupPlan>,
) -> InitialSizes {
    let mut sizes = snapshot.ray_cluster.initial_sizes.clone();
    let now = snapshot.seconds().unwrap_or_default();
    // The sizes of other groups stay: KubeRay may still make their pods of the round before.
    for group in groups.filter(|group| group.launch_now > 0) {
        sizes.set(&group.name, group.initial_size, now);
    }
    sizes
}

/// The smallest whole multiple of the base size in each dimension that holds what is needed, within the
/// limits.
fn multiple(needed: Size, base: Size, limits: Size) -> Size {
    // Ray keeps four decimals, so what is a hair above a multiple still fits it.
    let times = ((needed.cpu - SAME) / base.cpu).ceil().max(1.0);
    let cpu = if base.cpu > 0.0 {
        base.cpu * times
    } else {
        needed.cpu
    };
    let rest = needed.memory.checked_rem(base.memory).unwrap_or(0);
    let memory = if rest > 0 {
        needed.memory.saturating_add(base.memory - rest)
    } else {
        needed.memory
    };
    Size {
        cpu: cpu.min(limits.cpu).max(base.cpu),
        memory: memory.min(limits.memory).max(base.memory),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GI: i64 = 1 << 30;

    fn size(cpu: f64, gibibytes: i64) -> Size {
        Size {
            cpu,
            memory: gibibytes * GI,
        }
    }

    #[test]
    fn each_dimension_is_a_whole_multiple_within_the_limits() {
        let of = |needed| multiple(needed, size(2.0, 8), size(8.0, 32));
        assert_eq!(of(size(2.0, 8)), size(2.0, 8));
        assert_eq!(of(size(6.0, 8)), size(6.0, 8));
        assert_eq!(of(size(5.0, 9)), size(6.0, 16));
        assert_eq!(of(size(2.0, 32)), size(2.0, 32));
        let odd = |needed| multiple(needed, size(1.5, 4), size(4.0, 10));
        assert_eq!(odd(size(4.0, 9)), size(4.0, 10));
        assert_eq!(odd(size(3.0, 4)), size(3.0, 4));
    }

    #[test]
    fn no_base_size_makes_it_panic_or_endless() {
        let none = size(0.0, 0);
        assert_eq!(multiple(size(3.0, 5), none, size(8.0, 32)), size(3.0, 5));
        assert_eq!(multiple(none, none, none), none);
    }
}
