//! Marks by which workers with work keep node autoscalers from taking their Kubernetes nodes away.
//!
//! A mark is a write, so a worker is marked once it has work, and unmarked when it has had none for a
//! while, or is to go.

use crate::hash::HashMap;
use crate::plan::decided::Decided;
use crate::plan::nodes::life::Stage;
use crate::plan::nodes::node::PlannedNode;
use crate::plan::outcome::plan::NodeHold;
use crate::plan::settings::PlanSettings;
use crate::snapshot::pod::Pod;

/// For how long a worker has had no work before its mark is removed, in milliseconds: between two
/// bursts of tasks a mark stays.
const IDLE_MS: i64 = 30_000;

/// How many marks change in a round.
const MOST: usize = 50;

/// The workers to mark or unmark.
pub(crate) fn holds(settings: &PlanSettings, decided: &Decided<'_>) -> Vec<NodeHold> {
    if !settings.strategy.is_rayfit() {
        return Vec::new();
    }
    let pods: HashMap<&str, &Pod<'_>> = decided.own.iter().map(|pod| (pod.name, pod)).collect();
    let change = |node: &PlannedNode| {
        let pod = pods.get(node.pod()?)?;
        let runs = node.stage() == Stage::Running && !node.head;
        let is_marked = pod.object.metadata.annotations.holds_node.is_some();
        let holds = match (settings.hold_busy_nodes && node.stays(), is_marked) {
            (true, false) if runs && node.idle_ms == 0 => true,
            (false, true) => false,
            (true, true) if runs && node.idle_ms >= IDLE_MS => false,
            _ => return None,
        };
        let pod = pod.name.to_owned();
        Some(NodeHold { pod, holds })
    };
    decided
        .state
        .in_order()
        .filter_map(change)
        .take(MOST)
        .collect()
}
