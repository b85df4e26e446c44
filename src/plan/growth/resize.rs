//! Growing a pod in place: where it is, what it may become.
//! (Ray, `v2/schema.py`, `IPPRStatus`.)

use crate::plan::growth::headroom::NodeHeadroom;
use crate::plan::growth::size::Size;
use crate::plan::outcome::resize_note::ResizeNote;

/// How far a group's pods may grow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ResizeLimits {
    /// Cores.
    pub(crate) cpu: f64,
    /// Bytes.
    pub(crate) memory: i64,
    /// Seconds for one resize.
    pub(crate) timeout: i64,
}

/// What Kubernetes says about the last resize.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ResizeProgress {
    /// Nothing: it is done, or there was none.
    Finished,
    /// Decided here, not yet asked for.
    New,
    /// Under way.
    Underway,
    /// It failed.
    Error,
    /// The node cannot do it now (`deferred`), never (`infeasible`), or another reason.
    Pending(String),
}

/// The in-place growth of one pod.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Resize {
    pub(crate) caps: ResizeLimits,
    /// The size that the pod was made with.
    pub(crate) base: Size,
    /// What its container has.
    pub(crate) current: Size,
    /// What its spec asks for, or what was decided.
    pub(crate) desired: Size,
    /// When Kubernetes was asked, in whole seconds since 1970, until the raylet knows.
    pub(crate) resizing_at: Option<i64>,
    pub(crate) progress: ResizeProgress,
    pub(crate) message: Option<String>,
    /// What the node said it can give.
    pub(crate) suggested_cpu: Option<f64>,
    pub(crate) suggested_memory: Option<i64>,
    pub(crate) failed_at: Option<i64>,
    pub(crate) failure: Option<String>,
    /// The raylet that was resized last; replaced by the one that runs, once known.
    pub(crate) raylet: Option<String>,
    /// The number of the room that its Kubernetes node has left; none has the number `usize::MAX`.
    pub(crate) room: usize,
    /// The raylet is to be told the pod's size.
    pub(crate) noted_sync: bool,
    /// Growing in one dimension leaves the other as it is, even if its cap is lower.
    pub(crate) never_shrinks: bool,
    /// The record of its resizes as it stands on the pod, if it was ever resized.
    pub(crate) noted: Option<ResizeNote>,
    /// Growing is out of the question for now, whatever Ray thinks.
    pub(crate) barred: Option<String>,
}

impl Resize {
    /// Decides on a new size. Whether it is another than before.
    pub(crate) fn ask(&mut self, cpu: Option<f64>, memory: Option<i64>) -> bool {
        let size = Size {
            cpu: cpu.unwrap_or(self.desired.cpu),
            memory: memory.unwrap_or(self.desired.memory),
        };
        if size == self.desired {
            return false;
        }
        self.desired = size;
        self.resizing_at = None;
        self.progress = ResizeProgress::New;
        self.message = None;
        true
    }

    /// It is to be sent now.
    pub(crate) fn is_to_send(&self) -> bool {
        self.raylet.is_some() && self.progress == ResizeProgress::New
    }

    /// It is to be sent, and asks for what the pod has: an earlier resize is taken back.
    pub(crate) fn is_taken_back(&self) -> bool {
        self.is_to_send() && self.desired == self.current
    }

    /// Asked for, or about to be.
    pub(crate) fn is_in_progress(&self) -> bool {
        self.resizing_at.is_some() || self.is_to_send()
    }

    /// Kubernetes is done and the raylet must be told.
    pub(crate) fn is_to_sync(&self) -> bool {
        self.raylet.is_some()
            && self.resizing_at.is_some()
            && self.progress == ResizeProgress::Finished
            && self.desired == self.current
    }

    /// As large as it may become.
    pub(crate) fn limit(&self) -> Size {
        Size {
            cpu: self.suggested_cpu.unwrap_or(self.caps.cpu),
            memory: self.suggested_memory.unwrap_or(self.caps.memory),
        }
    }

    /// What to grow to now: the limit, or as near to it as the room allows.
    pub(crate) fn goal(&self, room: Option<&NodeHeadroom>) -> Size {
        let limit = self.limit();
        match room {
            Some(room) => room.bound(self.current, limit),
            None if self.never_shrinks => limit.max(self.current),
            None => limit,
        }
    }

    /// It may be asked to grow.
    pub(crate) fn can_grow(&self) -> bool {
        let limit = self.limit();
        self.failed_at.is_none()
            && self.progress == ResizeProgress::Finished
            && self.resizing_at.is_none()
            && self.barred.is_none()
            && (self.current.cpu < limit.cpu || self.current.memory < limit.memory)
    }

    /// Asked for too long ago.
    pub(crate) fn is_timed_out(&self, now: f64) -> bool {
        #[expect(clippy::cast_precision_loss, reason = "seconds since 1970")]
        let deadline = |at: i64| at.saturating_add(self.caps.timeout) as f64;
        !self.is_to_sync() && self.resizing_at.is_some_and(|at| deadline(at) < now)
    }

    /// What is known of it, as the note that is to stand on the pod.
    pub(crate) fn note(&self) -> ResizeNote {
        ResizeNote {
            raylet_id: self.raylet.clone(),
            resizing_at: self.resizing_at,
            suggested_max_cpu: self.suggested_cpu,
            suggested_max_memory: self.suggested_memory,
            last_failed_at: self.failed_at,
            last_failed_reason: self.failure.clone(),
        }
    }

    /// It stood on the pod as asked for, is done, and did not have to be taken back.
    pub(crate) fn has_come_through(&self) -> bool {
        let noted = self.noted.as_ref();
        let asked = noted.is_some_and(|note| note.resizing_at.is_some());
        asked && self.noted_sync && self.failed_at.is_none()
    }
}
