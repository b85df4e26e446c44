//! In-place resizes of pods: the calls, and their order.

use std::collections::VecDeque;

use crate::plan::{PodResize, RayletSync, ResizeNote};
use crate::ray::resource::CpuAndMemory;
use crate::reconcile::effects::chain::ChainStep;
use crate::reconcile::effects::effect::{Effect, RayletResize};
use crate::reconcile::effects::size::PodSize;
use crate::snapshot::NodeId;

/// The parts of a plan that concern one pod.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Planned<'a> {
    pub(crate) resize: Option<&'a PodResize>,
    pub(crate) sync: Option<&'a RayletSync>,
    pub(crate) note: Option<&'a ResizeNote>,
    /// The Ray node that runs in the pod.
    pub(crate) node_id: Option<NodeId>,
}

impl Planned<'_> {
    /// The size that the raylet is to be told.
    pub(crate) fn raylet_size(&self) -> Option<RayletResize> {
        let sync = self.sync?;
        Some(RayletResize {
            pod: sync.pod.clone(),
            node_id: self.node_id?,
            cpu_milli: Some(sync.cpu_milli),
            memory_bytes: Some(sync.memory_bytes),
        })
    }

    /// The steps that are needed, in order; none if nothing is.
    pub(crate) fn steps(self, pod: PodSize) -> VecDeque<ChainStep> {
        let call = |effect| ChainStep::Call(Box::new(effect));
        let mut steps = VecDeque::new();
        steps.extend((self.raylet_size()).map(|size| call(Effect::ResizeRaylet(size))));
        if let (Some(resize), Some(node_id)) = (self.resize, self.node_id) {
            // The raylet gives up its amounts before the pod is resized: until then Ray may place work on them.
            let less = |then: i64, now: i64| (then < now).then_some(then);
            let cpu_milli = less(resize.cpu_milli, resize.cpu_milli_now);
            let memory_bytes = less(resize.memory_bytes, resize.memory_bytes_now);
            if cpu_milli.is_some() || memory_bytes.is_some() {
                steps.push_back(ChainStep::Shrink(RayletResize {
                    pod: resize.pod.clone(),
                    node_id,
                    cpu_milli,
                    memory_bytes,
                }));
            }
        }
        steps.extend(self.note.map(|note| call(pod.noted(note))));
        if let Some(resize) = self.resize {
            steps.push_back(ChainStep::Resize {
                pod: Box::new(pod),
                target: CpuAndMemory {
                    cpu_milli: resize.cpu_milli,
                    memory_bytes: resize.memory_bytes,
                },
                note: self.note.cloned().unwrap_or_default(),
                only_shrinks: resize.only_shrinks(),
            });
        }
        steps
    }
}
