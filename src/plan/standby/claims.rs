//! Claims of demand that was served before and still waits for room, which standby must not take.

use crate::hash::{HashMap, HashSet};
use crate::plan::growth::size::cores;
use crate::plan::nodes::life::Stage;
use crate::plan::nodes::node::PlannedNode;
use crate::plan::packing::state::DecisionState;
use crate::snapshot::history::History;
use crate::snapshot::pod::Pod;

/// The room and the nodes that demand still needs which was served before.
pub(crate) struct Claims {
    /// The cores that demand lacks while it waits for room that standby nodes may take, beyond
    /// those of pods about to go. It can be 0 until the scheduler has placed its pods.
    pub(crate) cores_short: Option<f64>,
    /// Whether a node that demand needs has no Kubernetes node yet, so that nothing is launched
    /// that could take its place.
    pub(crate) begins: bool,
}

impl Claims {
    pub(crate) fn of(
        state: &DecisionState,
        own: &[Pod<'_>],
        draining: &[&Pod<'_>],
        history: &History,
        now: f64,
    ) -> Self {
        let pods: HashMap<&str, &Pod<'_>> = own.iter().map(|pod| (pod.name, pod)).collect();
        let required = state.required();
        let (mut cores_short, mut begins) = (0.0, false);
        for number in &state.order {
            let is_required = required.holds(*number);
            let Some(node) = state.nodes.get(*number).filter(|_| is_required) else {
                continue;
            };
            let pod = node.pod().and_then(|name| pods.get(name));
            match node.stage() {
                Stage::Running | Stage::Stopping => {}
                _ => begins |= pod.is_none_or(|pod| pod.node.is_none()),
            }
            if let Some(pod) = pod.filter(|pod| pod.is_unschedulable()) {
                cores_short += cpu(pod);
            }
        }
        let waits = cores_short > 0.0;
        if waits {
            // Pods that go already make room, too, if that is soon: not a pod that is still there
            // when its grace period is over, as on a Kubernetes node that is gone, and not one
            // above a maximum, which may finish its work.
            let is_soon = |pod: &&Pod<'_>| pod.killed_at().is_some_and(|at| at > now);
            let leaves = own.iter().filter(|pod| pod.deleting && !pod.ended);
            let leaves = leaves.filter(is_soon);
            let draining = draining.iter().copied();
            let works = |pod: &Pod<'_>| history.excess.contains_key(pod.name);
            let draining = draining.filter(|pod| !pod.deleting && !works(pod));
            let leaves = leaves.chain(draining);
            let goes = |node: &&PlannedNode| !node.stays();
            let goes = state.in_order().filter(goes).filter_map(PlannedNode::pod);
            let goes = goes.filter_map(|name| pods.get(name).copied());
            let mut seen = HashSet::default();
            let freed = leaves.chain(goes).filter(|pod| seen.insert(pod.name));
            cores_short = (cores_short - freed.map(cpu).sum::<f64>()).max(0.0);
        }
        // At the maximum of workers each node that is only kept ready has the place of one that
        // demand needs.
        let cores_short = if state.is_cut {
            Some(f64::INFINITY)
        } else {
            waits.then_some(cores_short)
        };
        Self {
            cores_short,
            begins,
        }
    }
}

fn cpu(pod: &Pod<'_>) -> f64 {
    pod.requests().cpu.map_or(0.0, cores)
}
