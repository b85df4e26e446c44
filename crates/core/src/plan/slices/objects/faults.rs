//! Faults that concern one object alone, and nodes that go in any case: nothing is placed on these.
//!
//! Ray's loop aborts on a node of which more is free than it has, and on a node of a removed group; it counts a node
//! that stops already as an empty one that is about to start.

use std::collections::BTreeMap;

use crate::hash::HashMap;
use crate::plan::nodes::node::{Fate, Stage};
use crate::plan::nodes::rows::NodeRow;
use crate::plan::outcome::cause::RemovalCause;
use crate::plan::packing::state::DecisionState;
use crate::plan::slices::departures::reason::Departure;

/// Counts what is free between zero and the total amount.
pub(crate) fn correct_amounts(state: &mut DecisionState) {
    let amounts = state
        .nodes
        .iter_mut()
        .flat_map(|node| &mut node.amounts.listed);
    for amount in amounts {
        let Some(total) = amount.total else { continue };
        for free in &mut amount.free {
            // Ray leaves a resource of which nothing is listed as free out of its scores, so that a
            // node scores less the moment the resource is used up.
            let listed = free.unwrap_or(0.0);
            // `clamp` panics at a total below zero.
            *free = Some(if total > 0.0 {
                listed.clamp(0.0, total)
            } else {
                listed
            });
        }
    }
}

/// Marks the nodes that go in any case: of removed groups, given up, about to leave with their Kubernetes node, or
/// stopping already.
pub(crate) fn mark_going(
    state: &mut DecisionState,
    rows: &[NodeRow<'_>],
    given_up: &HashMap<&str, RemovalCause>,
    departures: &BTreeMap<String, Departure>,
) {
    for (node, row) in state.nodes.iter_mut().zip(rows) {
        let pod = row.pod.map_or("", |pod| pod.name);
        // While the GCS restarts it reports no Ray nodes, so a pod that runs may have work.
        let is_pending = row.pod.is_some_and(|pod| pod.phase == Some("Pending"));
        let begins = row.stage == Stage::Allocated && is_pending;
        let cause = if node.group().is_none() {
            RemovalCause::GroupGone
        } else if let Some(cause) = given_up.get(pod) {
            *cause
        } else if !node.head
            && (begins || row.stage == Stage::Running)
            && departures.contains_key(pod)
        {
            RemovalCause::NodeLeaves
        } else if row.stage == Stage::Stopping {
            RemovalCause::StopRequested
        } else {
            continue;
        };
        node.fate = Fate::Remove(cause);
    }
}
