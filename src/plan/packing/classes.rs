//! Node classes: nodes of one class are in the same state, so they take the same requests.

use crate::hash::HashMap;
use crate::plan::list::ListPosition;
use crate::plan::nodes::life::Stage;
use crate::plan::nodes::node::{CountedAmounts, PlannedNode};

/// Numbers distinct node states, for one decision.
#[derive(Debug, Default)]
pub(crate) struct NodeClasses(HashMap<Vec<u64>, u32>);

impl NodeClasses {
    /// The number of the node's state, as `source` sees it.
    pub(crate) fn number(&mut self, node: &PlannedNode, source: CountedAmounts) -> u32 {
        let next = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        *self.0.entry(code(node, source)).or_insert(next)
    }
}

/// The node's state as a list of numbers.
fn code(node: &PlannedNode, source: CountedAmounts) -> Vec<u64> {
    let running = node.stage() == Stage::Running;
    // `u64::MAX` is the bit pattern of a NaN; NaN amounts in the GCS's answer were rejected before.
    let bits = |amount: Option<f64>| amount.map_or(u64::MAX, f64::to_bits);
    let mut code = vec![
        node.group().map_or(u64::MAX, |group| group.number() as u64),
        u64::from(running) * 2 + u64::from(node.head),
        node.untouched.into(),
        node.amounts.len() as u64,
    ];
    for amount in &node.amounts {
        let free = amount.free[source as usize];
        code.extend([amount.name.0.into(), bits(amount.total), bits(free)]);
    }
    code.extend(
        node.labels
            .iter()
            .flat_map(|(label, value)| [u64::from(label.0), u64::from(value.0)]),
    );
    // Ray treats nodes that do not run yet as equal when their resources are equal, whatever was
    // placed on them.
    if running {
        // Labels and shapes are numbers below this one, which shows where the labels end.
        code.push(u64::MAX);
        code.extend(
            node.placed[source as usize]
                .iter()
                .map(|shape| u64::from(shape.0)),
        );
    }
    code
}
