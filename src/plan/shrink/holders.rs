//! The pods that keep their size because a task waits for it.
//!
//! Ray fails tasks that wait in the queue of a raylet once no Ray node of the cluster could hold them any more, whatever is
//! free, and does not try them again. (`local_lease_manager.cc`, `GrantScheduledLeasesToWorkers`: "Lease granting failed due
//! to the lease becoming infeasible".) What no node could hold from the beginning waits for one. So of the nodes that
//! could hold a task that waits, at least one stays as large as that.
//!
//! Tasks of which the GCS has not told yet are not known here.

use crate::hash::HashSet;
use crate::plan::demand::names::Name;
use crate::plan::demand::placement_group;
use crate::plan::demand::requests::{Demand, DemandOrigin};
use crate::plan::demand::shape::Shape;
use crate::plan::growth::resize::Resize;
use crate::plan::growth::size::{SAME, counted};
use crate::plan::list::{DemandIndex, List, NodeIndex};
use crate::plan::nodes::node::{Fate, PlannedNode};
use crate::plan::packing::budget::WorkBudget;
use crate::plan::packing::servable::could_hold;
use crate::plan::packing::state::DecisionState;

/// The most steps for finding out. If they are not enough, no pod becomes smaller.
const STEPS: u64 = 1_000_000;

/// The nodes whose pods are not to become smaller, for what waits.
pub(crate) fn holders(
    state: &DecisionState,
    demands: &List<DemandIndex, Demand<'_>>,
) -> HashSet<NodeIndex> {
    let mut kept = HashSet::default();
    let is_grown = |resize: &Resize| resize.base.is_below(resize.current);
    let mut resizes = state.nodes.iter().filter_map(|node| node.resize.as_deref());
    if !state.strategy.is_rayfit() || !resizes.any(is_grown) {
        return kept;
    }
    let work = WorkBudget::new(STEPS);
    let tasks = demands
        .iter()
        .filter(|demand| matches!(demand.kind, DemandOrigin::Tasks(..)));
    let batches = tasks.flat_map(|demand| demand.batches.iter().flatten());
    for batch in batches.filter(|batch| batch.count > 0) {
        let shape = state.shapes.get(batch.shape);
        // Resources of a placement group stay, whatever the size of its nodes.
        if placement_group::of_shape(&state.names, shape).is_some() {
            continue;
        }
        let mut holders: Vec<(NodeIndex, &PlannedNode)> = Vec::new();
        for (number, node) in state.nodes.enumerate() {
            if !work.spend(shape.steps) {
                return state.nodes.positions().collect();
            }
            if holds(state, node, shape) {
                holders.push((number, node));
            }
        }
        // A node may also hold it after its pod has become as small as it may.
        let stays_large = |node: &PlannedNode| {
            let resize = node.resize.as_deref();
            resize
                .filter(|resize| resize.may_shrink())
                .is_none_or(|resize| {
                    let base = (resize.base.cpu, counted(resize.base.memory));
                    shape.positive().all(|(name, needed)| {
                        sized(state, base, name).is_none_or(|base| base + SAME >= needed)
                    })
                })
        };
        let mut all = holders.iter();
        if all.any(|(number, node)| kept.contains(number) || stays_large(node)) {
            continue;
        }
        // The one with the most in use has the least to give up.
        let in_use = |node: &PlannedNode| state.cpu.and_then(|cpu| node.taken(cpu)).unwrap_or(0.0);
        let most = (holders.into_iter().rev())
            .max_by(|(_, one), (_, other)| in_use(one).total_cmp(&in_use(other)));
        kept.extend(most.map(|(number, _)| number));
    }
    kept
}

/// Whether the Ray node could hold a unit of the shape if nothing else ran on it, at the size that its raylet has
/// now, or is being given.
fn holds(state: &DecisionState, node: &PlannedNode, shape: &Shape) -> bool {
    let size = node.raylet_size().filter(|_| node.fate == Fate::Stay);
    let Some((mut cpu, mut memory)) = size else {
        return false;
    };
    // For a second after a raylet was told to be smaller, the GCS shows what it had before.
    if let Some(resize) = &node.resize {
        cpu = cpu.min(resize.desired.cpu);
        memory = memory.min(counted(resize.desired.memory));
    }
    could_hold(state, node, shape, |name| {
        let has = sized(state, (cpu, memory), name).or_else(|| node.total(name));
        has.unwrap_or(0.0) + SAME
    })
}

/// The amount of a resource at a size, if the size decides on that.
fn sized(state: &DecisionState, (cpu, memory): (f64, f64), name: Name) -> Option<f64> {
    match Some(name) {
        name if name == state.cpu => Some(cpu),
        name if name == state.memory => Some(memory),
        _ => None,
    }
}
