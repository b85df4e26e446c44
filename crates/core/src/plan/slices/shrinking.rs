//! Shrinking in place: a pod that has grown comes down to the CPU that it uses, once the rest has
//! been spare for long enough.
//!
//! Ray leaves a pod at the size to which it has grown until the pod is removed. A small pod costs
//! little to keep, and it grows again within a second, without a new pod. Memory comes down only in a
//! pod in which nothing has run for as long, to no less than what is really in use, where that is known.
//! The kubelet refuses it if the pod uses more. (What a pod was given because its memory was nearly
//! full comes down in `pressure`.)
//!
//! In: nodes with the demand that was placed on them, and what is remembered of what they had to spare. Out: the
//! resizes of those that give up something.

use crate::hash::HashSet;
use crate::plan::demand::names::Name;
use crate::plan::demand::placement_group;
use crate::plan::demand::requests::{Demand, DemandOrigin};
use crate::plan::demand::shape::Shape;
use crate::plan::growth::resize::Resize;
use crate::plan::growth::size::{SAME, Size, counted};
use crate::plan::list::{DemandIndex, List, NodeIndex};
use crate::plan::nodes::node::{Fate, PlannedNode, Stage};
use crate::plan::nodes::tables::SizeNotes;
use crate::plan::packing::budget::WorkBudget;
use crate::plan::packing::servable::could_hold;
use crate::plan::packing::state::DecisionState;
use crate::snapshot::history::SpareCpu;

/// The most steps for finding out. If they are not enough, no pod becomes smaller.
const STEPS: u64 = 1_000_000;

/// Seconds for which CPU must have been spare while other demand waits for room.
const WHILE_DEMAND_WAITS_S: f64 = 10.0;

/// The nodes whose pods are not to become smaller, because a task waits for their size.
///
/// Ray fails tasks that wait in the queue of a raylet once no Ray node of the cluster could hold them any more,
/// whatever is free, and does not try them again. (`local_lease_manager.cc`, `GrantScheduledLeasesToWorkers`: "Lease
/// granting failed due to the lease becoming infeasible".) What no node could hold from the beginning waits for one. So
/// of the nodes that could hold a task that waits, at least one stays as large as that. Tasks of which the GCS has not
/// told yet are not known here.
pub(crate) fn holders(
    state: &DecisionState,
    demands: &List<DemandIndex, Demand<'_>>,
) -> HashSet<NodeIndex> {
    let mut holders = HashSet::default();
    let is_grown = |resize: &Resize| resize.base.is_below(resize.current);
    let mut resizes = state.nodes.iter().filter_map(|node| node.resize.as_deref());
    if !resizes.any(is_grown) {
        return holders;
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
        let mut able: Vec<(NodeIndex, &PlannedNode)> = Vec::new();
        for (number, node) in state.nodes.enumerate() {
            if !work.spend(shape.steps) {
                return state.nodes.positions().collect();
            }
            if holds(state, node, shape) {
                able.push((number, node));
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
        let mut all = able.iter();
        if all.any(|(number, node)| holders.contains(number) || stays_large(node)) {
            continue;
        }
        // The one with the most in use has the least to give up.
        let in_use = |node: &PlannedNode| node.amounts.taken(state.cpu).unwrap_or(0.0);
        let most = (able.into_iter().rev())
            .max_by(|(_, one), (_, other)| in_use(one).total_cmp(&in_use(other)));
        holders.extend(most.map(|(number, _)| number));
    }
    holders
}

/// Fits a shape onto a node: true if the Ray node could hold a unit of the shape if nothing else ran on it, at the size that its raylet has
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
        let has = sized(state, (cpu, memory), name).or_else(|| node.amounts.total(name));
        has.unwrap_or(0.0) + SAME
    })
}

/// The amount of a resource at a size, if the size decides on that.
fn sized(state: &DecisionState, (cpu, memory): (f64, f64), name: Name) -> Option<f64> {
    match name {
        name if name == state.cpu => Some(cpu),
        name if name == state.memory => Some(memory),
        _ => None,
    }
}

/// Notes how much CPU each pod has to spare, and asks the pods to shrink whose CPU has been spare
/// for long enough, but for the `holders`; without seconds to hold it, forgets what pods had to spare. The hold is
/// watched in two halves.
pub(crate) fn shrink(
    state: &mut DecisionState,
    hold_s: Option<f64>,
    demand_waits: bool,
    holders: &HashSet<NodeIndex>,
    now: f64,
) {
    let Some(hold_s) = hold_s else {
        for notes in state.tables.sizes.values_mut() {
            notes.spare = None;
        }
        return;
    };
    let hold_s = if demand_waits {
        hold_s.min(WHILE_DEMAND_WAITS_S)
    } else {
        hold_s
    };
    for number in state.nodes.positions() {
        let node = &mut state.nodes[number];
        let Some(notes) = state.tables.sizes.get_mut(&number) else {
            continue;
        };
        let needed = node.amounts.taken(state.cpu).unwrap_or(0.0);
        notes.spare = spare(node, notes, needed, now);
        // It may once nothing waits for its size any more, without another hold.
        if let Some(resize) = &mut node.resize
            && !holders.contains(&number)
        {
            give_up_spare(resize, notes, hold_s, now);
        }
    }
}

/// Asks a pod to shrink whose CPU has been spare for long enough.
fn give_up_spare(resize: &mut Resize, notes: &mut SizeNotes, hold_s: f64, now: f64) {
    let is_half_over = |spare: &SpareCpu| now - spare.since >= hold_s / 2.0;
    let Some(spare) = notes.spare.filter(is_half_over) else {
        return;
    };
    let size = smallest(resize, notes, spare.most, now);
    match spare.earlier {
        Some(earlier) if !size.is_below(smallest(resize, notes, earlier, now)) => {
            resize.ask(Some(size.cpu), Some(size.memory));
            notes.shrinks_for = Some(hold_s);
            // A pod that is still seen at its old size later on shrinks after another hold
            // only.
            notes.spare = None;
        }
        _ => {
            notes.spare = Some(SpareCpu {
                since: now,
                most: 0.0,
                // A pod whose need was higher in the first half than in the second waits for
                // one half more, so that it shrinks once instead of step by step.
                earlier: Some(spare.most),
            });
        }
    }
}

/// The CPU that the pod has had to spare, if it has any to spare now.
fn spare(node: &PlannedNode, notes: &SizeNotes, needed: f64, now: f64) -> Option<SpareCpu> {
    let resize = node
        .resize
        .as_deref()
        .filter(|resize| resize.may_shrink())?;
    // Actors that ask for no CPU keep a node busy without using any of it in Ray's books. How much
    // they really use is not known, and demand that is placed here may want memory only.
    let uses_unknown = needed < SAME && (node.idle_ms == 0 || !node.is_unneeded());
    if node.head || node.fate != Fate::Stay || node.stage() != Stage::Running || uses_unknown {
        return None;
    }
    let mut spare = notes.spare.unwrap_or(SpareCpu {
        since: now,
        most: 0.0,
        earlier: None,
    });
    // The clock may have been set back.
    spare.since = spare.since.min(now);
    spare.most = spare.most.max(needed);
    let size = smallest(resize, notes, spare.peak(), now);
    size.is_below(resize.current).then_some(spare)
}

/// The cores that a pod is about to give up: those that it is asked to, and those that it will be
/// if they stay spare.
pub(crate) fn about_to_go(resize: &Resize, notes: &SizeNotes, now: f64) -> f64 {
    let then = match notes.spare {
        Some(spare) => smallest(resize, notes, spare.peak(), now),
        None => resize.desired,
    };
    (resize.current.cpu - then.cpu).max(0.0)
}

/// The smallest size of a pod that needs so much CPU: the base size, or a multiple of it in whole
/// cores. A pod that could not shrink keeps its memory the next time, and after that its CPU too.
fn smallest(resize: &Resize, notes: &SizeNotes, cpu: f64, now_s: f64) -> Size {
    let (now, base) = (resize.current, resize.base);
    let failures = notes.shrink_failures.lately(now_s);
    // Ray counts whole cores where it starts. What the pod leaves on its Kubernetes node is of use
    // to others in such steps only.
    let step = base.cpu.ceil();
    let least = if cpu - SAME <= base.cpu {
        base.cpu
    } else {
        ((cpu - SAME) / step).ceil() * step
    };
    Size {
        cpu: if failures < 2 {
            least.min(now.cpu)
        } else {
            now.cpu
        },
        memory: if failures < 1 && cpu < SAME {
            let in_use = notes.in_use.map_or(0, |used| used.right(base.memory));
            base.memory.max(in_use).min(now.memory)
        } else {
            now.memory
        },
    }
}
