//! Raylets whose size differs from the size of their pods.

use crate::plan::demand::names::Name;
use crate::plan::growth::resize::{Resize, ResizeProgress};
use crate::plan::nodes::node::PlannedNode;

/// How far a raylet's CPU may be from its pod's CPU: Ray keeps four decimals.
const RAYLET_STEP: f64 = 1e-4;

/// Has the raylet told the pod's size if the raylet has another size, or if a resize is complete.
/// From then on the node counts at the pod's size, and its pod may grow again. A node whose resize
/// is taken back counts at the pod's present size at once, and its raylet gets that size when Kubernetes
/// has agreed.
pub(crate) fn mend(node: &mut PlannedNode, cpu: Option<Name>, memory: Option<Name>) {
    let runs = node.ray_id().is_some();
    let size = node.raylet().map(|raylet| (raylet.cpu, raylet.memory));
    let Some(resize) = &mut node.resize else {
        return;
    };
    let syncs = runs && (resize.is_to_sync() || differs(size, resize));
    resize.noted_sync = syncs;
    if syncs {
        resize.resizing_at = None;
    }
    let current = resize.current;
    let settled = syncs || (runs && resize.is_taken_back());
    if let (true, Some(cpu), Some(memory)) = (settled, cpu, memory) {
        node.set_total(cpu, current.cpu);
        #[expect(clippy::cast_precision_loss, reason = "Ray counts memory in f64 too")]
        node.set_total(memory, current.memory as f64);
    }
}

/// Whether no resize is under way and the raylet's size differs from its pod's size.
fn differs(raylet_size: Option<(f64, f64)>, resize: &Resize) -> bool {
    let Some((cpu, memory)) = raylet_size else {
        return false;
    };
    let quiet = resize.resizing_at.is_none() && resize.progress == ResizeProgress::Finished;
    #[expect(clippy::cast_precision_loss, reason = "Ray counts memory in f64 too")]
    let (pod_cpu, pod_memory) = (resize.current.cpu, resize.current.memory as f64);
    // Where it starts, the raylet rounds the CPU up to whole cores and finds its memory by itself,
    // so that these amounts may differ from the pod's.
    let at_first_size = resize.current == resize.base;
    let cpu_apart = (cpu - pod_cpu).abs() > RAYLET_STEP;
    let rounded_up = at_first_size && (cpu - pod_cpu.ceil()).abs() <= RAYLET_STEP;
    let memory_apart =
        (resize.noted.is_some() || !at_first_size) && (memory - pod_memory).abs() > 1.0;
    quiet && ((cpu_apart && !rounded_up) || memory_apart)
}
