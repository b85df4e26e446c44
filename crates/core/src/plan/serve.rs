//! Serving the demands in Ray's order.

use crate::plan::demand::requests::{Demand, DemandOrigin, RequestBatch};
use crate::plan::list::{DemandIndex, List};
use crate::plan::nodes::amounts::CountedAmounts;
use crate::plan::packing::pack::PackingRules;
use crate::plan::packing::state::DecisionState;

/// Serves the demands in order, each by these rules of packing. Returns the request batches that could not be placed.
pub(crate) fn serve(
    state: &mut DecisionState,
    demands: &List<DemandIndex, Demand<'_>>,
    rules: PackingRules,
) -> Vec<RequestBatch> {
    let mut remainder = Vec::new();
    let mut tasks = Vec::new();
    for demand in demands.iter() {
        if state.work.is_over() {
            break;
        }
        let Ok(batches) = &demand.batches else {
            continue;
        };
        let source = match demand.kind {
            DemandOrigin::Tasks(..) => {
                tasks.extend(batches.iter().copied());
                continue;
            }
            // One `request_resources()` holds at a time, so only the first one that Ray reports
            // counts.
            DemandOrigin::Constraint(0) => CountedAmounts::Total,
            DemandOrigin::Constraint(_) => {
                remainder.extend(batches.iter().copied());
                continue;
            }
            DemandOrigin::Gang(..) => CountedAmounts::Free,
        };
        let packed = state.pack(batches.clone(), source, rules);
        if packed.has_placed_all() {
            packed.commit();
        } else {
            // All of it is left, also what would have fitted: nothing of it was put into effect.
            remainder.extend(batches.iter().copied());
        }
    }
    // Tasks and actors are packed together and last, as in Ray: whatever fits of them is placed.
    remainder.extend(state.pack(tasks, CountedAmounts::Free, rules).commit());
    remainder
}
