//! In-place resizes of pods: the calls, their order, and how their answers are used.

use std::collections::VecDeque;

use serde_json::json;

use crate::plan::{PodResize, RayletSync, ResizeNote, STATUS_ANNOTATION};
use crate::reconcile::effects::effect::{Effect, PodPatch, RayletResize, Reply};
use crate::reconcile::effects::failure::{Failure, Meaning};
use crate::reconcile::effects::size::{PodSize, WantedSize};
use crate::seconds::second_of;
use crate::snapshot::NodeId;

/// The calls that are left for one pod.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PodSteps {
    pod: PodSize,
    calls: VecDeque<ResizeCall>,
}

/// One call of a resize.
#[derive(Debug, Clone, PartialEq)]
enum ResizeCall {
    /// Tells the raylet the size that the pod has.
    Sync(RayletResize),
    /// Asks the raylet to give up what the pod is to lose. What the raylet keeps, the pod keeps
    /// too.
    Shrink(RayletResize),
    Note(ResizeNote),
    Resize {
        wanted: WantedSize,
        note: ResizeNote,
        /// Whether the plan only gives something up.
        only_shrinks: bool,
    },
}

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
}

impl PodSteps {
    /// The calls that are needed, in order; `None` if none is.
    pub(crate) fn of(pod: PodSize, planned: Planned<'_>) -> Option<Self> {
        let mut calls = VecDeque::new();
        calls.extend(planned.raylet_size().map(ResizeCall::Sync));
        if let (Some(resize), Some(node_id)) = (planned.resize, planned.node_id) {
            // The amounts that the raylet has to give up before the pod is resized.
            let less = |then: i64, now: i64| (then < now).then_some(then);
            let cpu_milli = less(resize.cpu_milli, resize.cpu_milli_now);
            let memory_bytes = less(resize.memory_bytes, resize.memory_bytes_now);
            if cpu_milli.is_some() || memory_bytes.is_some() {
                calls.push_back(ResizeCall::Shrink(RayletResize {
                    pod: resize.pod.clone(),
                    node_id,
                    cpu_milli,
                    memory_bytes,
                }));
            }
        }
        calls.extend(planned.note.cloned().map(ResizeCall::Note));
        if let Some(resize) = planned.resize {
            calls.push_back(ResizeCall::Resize {
                wanted: WantedSize {
                    cpu_milli: resize.cpu_milli,
                    memory_bytes: resize.memory_bytes,
                },
                note: planned.note.cloned().unwrap_or_default(),
                only_shrinks: resize.only_shrinks(),
            });
        }
        (!calls.is_empty()).then_some(Self { pod, calls })
    }

    /// The next call.
    pub(crate) fn effect(&self) -> Option<Effect> {
        Some(match self.calls.front()? {
            ResizeCall::Sync(raylet) | ResizeCall::Shrink(raylet) => {
                Effect::ResizeRaylet(raylet.clone())
            }
            ResizeCall::Note(note) => Effect::NotePod(PodPatch {
                pod: self.pod.name.clone(),
                body: json!({ "metadata": {
                    "uid": self.pod.uid, "annotations": { STATUS_ANNOTATION: note.text() }
                } }),
            }),
            ResizeCall::Resize { wanted, .. } => Effect::ResizePod(PodPatch {
                pod: self.pod.name.clone(),
                body: self.pod.patch(*wanted),
            }),
        })
    }

    /// Takes in the answer to the call that [`PodSteps::effect`] gave.
    pub(crate) fn answered(&mut self, answer: Result<&Reply, &Failure>, now: f64) {
        let Some(call) = self.calls.pop_front() else {
            return;
        };
        match (call, answer) {
            // The pod must not shrink below what the raylet kept, and need not be resized if no change is left.
            (ResizeCall::Shrink(_), Ok(Reply::RayletTotals { cpu, memory })) => {
                let mut is_idle = false;
                for call in &mut self.calls {
                    if let ResizeCall::Resize { wanted, .. } = call {
                        *wanted = self.pod.at_least(*wanted, *cpu, *memory);
                        is_idle = !self.pod.differs(*wanted);
                    }
                }
                if is_idle {
                    self.calls.clear();
                }
            }
            (_, Ok(_)) => {}
            (call, Err(failure)) => {
                self.calls.clear();
                let ResizeCall::Resize {
                    mut note,
                    only_shrinks,
                    ..
                } = call
                else {
                    return;
                };
                // The note says why the pod was not resized.
                let is_limit_known = match failure.meaning() {
                    Meaning::TooLarge(allocatable) => self.pod.learn(&mut note, allocatable),
                    Meaning::Refused | Meaning::Forbidden => false,
                    // This failure may not happen again. The entry that a resize was requested ends by
                    // itself, when the raylet is told the size that the pod has.
                    _ => return,
                };
                note.resizing_at = None;
                // A pod that could not be made smaller has its size, and may still grow.
                if !is_limit_known && !only_shrinks {
                    note.last_failed_at = Some(second_of(now));
                    note.last_failed_reason = Some(failure.to_string());
                }
                self.calls.push_back(ResizeCall::Note(note));
            }
        }
    }
}
