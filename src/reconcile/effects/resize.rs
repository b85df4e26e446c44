//! In-place resizes of pods: the calls, their order, and how their answers are used.

use std::collections::VecDeque;

use serde_json::json;

use crate::plan::{PodResize, RayletSync, ResizeNote, STATUS_ANNOTATION};
use crate::ray::resource::CpuAndMemory;
use crate::reconcile::effects::effect::{Effect, PodPatch, RayletResize, Reply};
use crate::reconcile::effects::failure::{Failure, Meaning};
use crate::reconcile::effects::size::PodSize;
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
        wanted: CpuAndMemory,
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
            calls.extend(shrink(resize, node_id).map(ResizeCall::Shrink));
        }
        calls.extend(planned.note.cloned().map(ResizeCall::Note));
        if let Some(resize) = planned.resize {
            calls.push_back(ResizeCall::Resize {
                wanted: CpuAndMemory {
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
            ResizeCall::Note(note) => Effect::NotePod(self.note(note)),
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
            (ResizeCall::Shrink(_), Ok(Reply::RayletTotals { cpu, memory })) => {
                self.keep(*cpu, *memory);
            }
            (_, Ok(_)) => {}
            (
                ResizeCall::Resize {
                    mut note,
                    only_shrinks,
                    ..
                },
                Err(failure),
            ) => {
                self.calls.clear();
                if self.learn(&mut note, failure, only_shrinks, now) {
                    self.calls.push_back(ResizeCall::Note(note));
                }
            }
            (_, Err(_)) => self.calls.clear(),
        }
    }

    /// Raises the wanted size to what the raylet kept, since the pod must not shrink below that. If
    /// no change is left then, no further call is made.
    fn keep(&mut self, cpu: Option<f64>, memory: Option<f64>) {
        let pod = &self.pod;
        let mut idle = false;
        for call in &mut self.calls {
            if let ResizeCall::Resize { wanted, .. } = call {
                *wanted = pod.at_least(*wanted, cpu, memory);
                idle = !pod.differs(*wanted);
            }
        }
        if idle {
            self.calls.clear();
        }
    }

    /// Writes into the note why the pod was not resized, and says whether the note has changed.
    fn learn(
        &self,
        note: &mut ResizeNote,
        failure: &Failure,
        only_shrinks: bool,
        now: f64,
    ) -> bool {
        let is_limit_known = match failure.meaning() {
            Meaning::TooLarge(allocatable) => self.pod.learn(note, allocatable),
            Meaning::Refused | Meaning::Forbidden => false,
            // This failure may not happen again. The entry that a resize was requested ends by
            // itself, when the raylet is told the size that the pod has.
            _ => return false,
        };
        note.resizing_at = None;
        // A pod that could not be made smaller has its size, and may still grow.
        if !is_limit_known && !only_shrinks {
            let at = second_of(now);
            note.last_failed_at = Some(at);
            note.last_failed_reason = Some(failure.to_string());
        }
        true
    }

    fn note(&self, note: &ResizeNote) -> PodPatch {
        let (pod, text) = (&self.pod, note.text());
        let metadata = json!({"uid": pod.uid, "annotations": {STATUS_ANNOTATION: text}});
        PodPatch {
            pod: pod.name.clone(),
            body: json!({ "metadata": metadata }),
        }
    }
}

/// The amounts that the raylet has to give up before the pod is resized.
fn shrink(resize: &PodResize, node_id: NodeId) -> Option<RayletResize> {
    let less = |then: i64, now: i64| (then < now).then_some(then);
    let cpu_milli = less(resize.cpu_milli, resize.cpu_milli_now);
    let memory_bytes = less(resize.memory_bytes, resize.memory_bytes_now);
    (cpu_milli.is_some() || memory_bytes.is_some()).then(|| RayletResize {
        pod: resize.pod.clone(),
        node_id,
        cpu_milli,
        memory_bytes,
    })
}
