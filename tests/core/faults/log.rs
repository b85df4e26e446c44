//! What was done in a world, for whatever checks it.

use std::fmt;

use rayfit_core::reconcile::{Effect, Failure, Reply};
use rayfit_core::simulate::world::objects::DeletionCause;

/// Something that was done.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum LogEntry {
    /// The scaler made a call.
    Called {
        /// The call.
        effect: Box<Effect>,
        /// Whether it was carried out, whatever the answer was.
        is_done: bool,
        /// The answer.
        result: Result<Reply, Failure>,
    },
    /// The scaler patched the hand-over record.
    Claimed(Result<(), Failure>),
    /// KubeRay's operator deleted a pod.
    Deleted {
        /// The name of the pod.
        name: String,
        /// The reason why it was deleted.
        cause: DeletionCause,
        /// The number of jobs that ran on it.
        jobs: usize,
    },
    /// The process of a job was killed because its pod had too little memory.
    MemoryKill {
        /// The name of the pod.
        pod: String,
    },
    /// Ray has failed tasks that waited, because its node that could hold them became smaller.
    TasksFailed {
        /// The name of the pod.
        pod: String,
        /// The number of tasks.
        tasks: usize,
        /// The longest wait of one of them, in seconds.
        waited_s: f64,
    },
    /// The webhook has denied a change of the RayCluster.
    Denied {
        /// The user who wanted to change it.
        user: String,
        /// The reason for the denial.
        why: String,
    },
    /// Something went wrong in the world, or somebody changed an object.
    Fault(String),
}

impl LogEntry {
    /// Whether the entry is a write to the API server that the scaler asked for.
    pub(crate) fn is_api_write(&self) -> bool {
        match self {
            Self::Called { effect, .. } => effect.is_kubernetes(),
            Self::Claimed(_) => true,
            Self::Deleted { .. }
            | Self::MemoryKill { .. }
            | Self::TasksFailed { .. }
            | Self::Denied { .. }
            | Self::Fault(_) => false,
        }
    }
}

impl fmt::Display for LogEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Called {
                effect,
                is_done,
                result,
            } => {
                match &**effect {
                    Effect::PatchCluster(patch) => {
                        let lines = patch.changes.iter().map(|change| change.line.as_str());
                        f.write_str(&lines.collect::<Vec<_>>().join("; "))?;
                    }
                    Effect::NotePod(patch) | Effect::ResizePod(patch) => {
                        write!(f, "{effect}: {}", patch.body)?;
                    }
                    Effect::ResizeRaylet(resize) => {
                        write!(f, "{effect}: {:?} thousandths of a CPU", resize.cpu_milli)?;
                    }
                    Effect::Drain(drain) => write!(f, "{effect}: {}", drain.message)?,
                    Effect::PutError(text) => write!(f, "{effect}: {text:?}")?,
                    Effect::Report(_) | Effect::DeleteCluster { .. } => write!(f, "{effect}")?,
                }
                match result {
                    Ok(reply) => write!(f, ": {reply:?}"),
                    Err(failure) if *is_done => write!(f, ": done, but {failure}"),
                    Err(failure) => write!(f, ": {failure}"),
                }
            }
            Self::Claimed(Ok(())) => f.write_str("the hand-over record is written"),
            Self::Claimed(Err(failure)) => write!(f, "the hand-over record: {failure}"),
            Self::Deleted {
                name, cause, jobs, ..
            } => write!(
                f,
                "KubeRay deletes {name} ({cause:?}), on which {jobs} jobs run"
            ),
            Self::MemoryKill { pod } => {
                write!(f, "work is killed, because the memory of {pod} is full")
            }
            Self::TasksFailed {
                pod,
                tasks,
                waited_s,
            } => write!(
                f,
                "Ray fails {tasks} tasks that waited for up to {waited_s} s for {pod} as it was"
            ),
            Self::Denied { user, why } => write!(f, "the webhook denies {user}: {why}"),
            Self::Fault(text) => f.write_str(text),
        }
    }
}
