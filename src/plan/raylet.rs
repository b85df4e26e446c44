//! Raylets that are not as large as their pods.

use super::names::Name;
use super::node::Node;
use super::resize::{Progress, Resize};

/// How far a raylet may be off its pod: Ray keeps four decimals.
const RAYLET_STEP: f64 = 1e-4;

/// Has the raylet told the pod's size if it has another one, or if a resize has come through; from
/// then on the node counts as that large, and its pod may grow again.
pub(crate) fn mend(node: &mut Node, cpu: Option<Name>, memory: Option<Name>) {
    let wanted = |resize: &&Resize| resize.is_to_sync() || is_apart(node, resize);
    let (Some(current), Some(cpu), Some(memory)) = (
        node.resize
            .as_ref()
            .filter(wanted)
            .map(|resize| resize.current),
        cpu,
        memory,
    ) else {
        return;
    };
    node.set_total(cpu, current.cpu);
    #[expect(clippy::cast_precision_loss, reason = "Ray counts memory in f64 too")]
    node.set_total(memory, current.memory as f64);
    if let Some(resize) = &mut node.resize {
        resize.noted_sync = true;
        resize.resizing_at = None;
    }
}

/// No resize is under way, and the raylet is not as large as its pod. A pod at its first size may
/// have a raylet that rounds its cores up and that found its memory itself.
fn is_apart(node: &Node, resize: &Resize) -> bool {
    let Some((cpu, memory)) = node.raylet_size else {
        return false;
    };
    let quiet = resize.resizing_at.is_none() && resize.progress == Progress::Finished;
    #[expect(clippy::cast_precision_loss, reason = "Ray counts memory in f64 too")]
    let (pod_cpu, pod_memory) = (resize.current.cpu, resize.current.memory as f64);
    let at_first_size = resize.current == resize.base;
    let cpu_apart = (cpu - pod_cpu).abs() > RAYLET_STEP;
    let rounded_up = at_first_size && (cpu - pod_cpu.ceil()).abs() <= RAYLET_STEP;
    let memory_apart =
        (resize.noted.is_some() || !at_first_size) && (memory - pod_memory).abs() > 1.0;
    quiet && !node.ray_id.is_empty() && ((cpu_apart && !rounded_up) || memory_apart)
}
