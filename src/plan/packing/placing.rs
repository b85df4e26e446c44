//! What placing requests and resizing change of a node.

use crate::plan::demand::batch::RequestBatch;
use crate::plan::growth::resize::Resize;
use crate::plan::growth::size::{Size, counted};
use crate::plan::nodes::life::Stage;
use crate::plan::nodes::node::{CountedAmounts, Fate, Placement, PlannedNode, SizeNames};
use crate::plan::outcome::step::PlacementStep;
use crate::plan::packing::fit::FitTrial;

/// The step of packing that placing a request on the node, as it is now, belongs to.
pub(crate) fn step_of(node: &PlannedNode) -> PlacementStep {
    let in_progress = node.resize.as_deref().is_some_and(Resize::is_in_progress);
    match node.stage() {
        Stage::Running if in_progress => PlacementStep::InFlight,
        Stage::Running => PlacementStep::Free,
        _ if node.fate == Fate::Launch => PlacementStep::Launch,
        _ => PlacementStep::Pending,
    }
}

/// Puts a trial into effect on its node.
pub(crate) fn apply(
    node: &mut PlannedNode,
    trial: &FitTrial,
    source: CountedAmounts,
    batches: &[RequestBatch],
    step: PlacementStep,
) {
    // Nodes of one class are equal in the amounts that count for this demand, and may differ in the
    // others, so only the former are taken over.
    for after in &trial.amounts {
        match node
            .amounts
            .iter_mut()
            .find(|amount| amount.name == after.name)
        {
            Some(amount) => amount.free[source as usize] = after.free[source as usize],
            None => node.amounts.push(*after),
        }
    }
    node.labels.clone_from(&trial.labels);
    node.placed[source as usize].clone_from(&trial.placed);
    let takes = trial.taken.iter().filter_map(|(batch, count)| {
        batches.get(*batch).map(|batch| Placement {
            demand: batch.demand,
            count: *count,
            step,
        })
    });
    node.takes.extend(takes);
    node.class = [None; 2];
}

/// Counts a node with a resize in progress at the size that `size` gives.
pub(crate) fn show_resize(
    node: &mut PlannedNode,
    names: SizeNames,
    size: impl Fn(&Resize) -> Size,
) {
    if node.resize.as_deref().is_some_and(Resize::is_in_progress) {
        show_size(node, names, size);
    }
}

/// Counts a node that may grow at the size that `size` gives.
pub(crate) fn show_size(node: &mut PlannedNode, names: SizeNames, size: impl Fn(&Resize) -> Size) {
    let Some(size) = node.resize.as_deref().map(size) else {
        return;
    };
    if let (Some(cpu), Some(memory)) = names {
        node.set_total(cpu, size.cpu);
        node.set_total(memory, counted(size.memory));
    }
}
