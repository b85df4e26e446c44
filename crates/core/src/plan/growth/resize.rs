//! The in-place resize of a pod: how far it is, and how large the pod may become. (Ray,
//! `v2/schema.py`, `IPPRStatus`.)

use crate::plan::growth::headroom::NodeHeadroom;
use crate::plan::growth::size::Size;
use crate::plan::list::{KubeNodeIndex, List};
use crate::plan::outcome::resize_note::ResizeNote;

/// The progress of the last resize, as Kubernetes reports it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum ResizeProgress {
    /// Kubernetes reports nothing: the resize is complete, or there was none.
    #[default]
    Finished,
    /// The resize was decided on here, and Kubernetes was not asked for it yet.
    New,
    /// The resize is under way.
    Underway,
    /// The resize failed.
    Error,
    /// The kubelet cannot do it now (`deferred`), can never do it (`infeasible`), or gives another
    /// reason.
    Pending(String),
}

/// The in-place growth of one pod.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Resize {
    /// The limits up to which the pods of its group may be resized in place.
    pub(crate) limits: Size,
    /// The base size, with which the pod was made.
    pub(crate) base: Size,
    /// The size that its container has.
    pub(crate) current: Size,
    /// The size that its spec asks for, or that was decided on.
    pub(crate) desired: Size,
    pub(crate) progress: ResizeProgress,
    /// The note that the pod is to have about its resizes. The running raylet replaces the one that was
    /// resized last, once that is known.
    pub(crate) note: ResizeNote,
    /// Its Kubernetes node, if the headroom of that is known.
    pub(crate) kube_node: Option<KubeNodeIndex>,
    /// The raylet is to be told the pod's size.
    pub(crate) noted_sync: bool,
    /// Growing in one dimension leaves the other one as it is, even if the pod has more of
    /// that than its resize limits allow.
    pub(crate) never_shrinks: bool,
    /// The note about its resizes that is on the pod, if it was ever resized.
    pub(crate) noted: Option<ResizeNote>,
    /// The time until which the pod must not grow after a failure, whatever Ray thinks, in seconds
    /// since 1970.
    pub(crate) barred_until: Option<f64>,
}

impl Resize {
    /// Decides on a new size. Returns whether it differs from the size before.
    pub(crate) fn ask(&mut self, cpu: Option<f64>, memory: Option<i64>) -> bool {
        let size = Size {
            cpu: cpu.unwrap_or(self.desired.cpu),
            memory: memory.unwrap_or(self.desired.memory),
        };
        if size == self.desired {
            return false;
        }
        self.desired = size;
        // Kubernetes gets the whole timeout anew for another size. (Ray, `queue_resize_request`.)
        self.note.resizing_at = None;
        self.progress = ResizeProgress::New;
        true
    }

    /// True for a resize that is to be sent to Kubernetes now.
    pub(crate) fn is_to_send(&self) -> bool {
        // As in Ray, a pod is resized only if it is known which raylet has to learn of it.
        self.note.raylet_id.is_some() && self.progress == ResizeProgress::New
    }

    /// True for a resize that Kubernetes was asked for, or is about to be.
    pub(crate) fn is_in_progress(&self) -> bool {
        self.note.resizing_at.is_some() || self.is_to_send()
    }

    /// True for a resize that Kubernetes has completed, and of which the raylet must be told.
    pub(crate) fn is_to_sync(&self) -> bool {
        self.note.raylet_id.is_some()
            && self.note.resizing_at.is_some()
            && self.progress == ResizeProgress::Finished
            && self.desired == self.current
    }

    /// The size up to which the pod may grow: what its node suggested, or else its resize limits.
    pub(crate) fn limit(&self) -> Size {
        Size {
            cpu: self.note.suggested_max_cpu.unwrap_or(self.limits.cpu),
            memory: self.note.suggested_max_memory.unwrap_or(self.limits.memory),
        }
    }

    /// The size to grow to now: the limit, or as near to it as the node headroom allows.
    pub(crate) fn goal(&self, headroom: Option<&NodeHeadroom>) -> Size {
        // The spec of a pod has room for one wish: asking again would replace a resize that is under way.
        let limit = self.limit();
        match headroom {
            Some(headroom) => headroom.bound(self.current, limit),
            None if self.never_shrinks => limit.max(self.current),
            None => limit,
        }
    }

    /// The size that it has or is about to have, and that counts as a load on its Kubernetes node.
    pub(crate) fn has(&self) -> Size {
        match self.progress {
            // The kubelet has put it off or refused it, so it gives the pod nothing yet.
            ResizeProgress::Pending(_) | ResizeProgress::Error => self.current,
            _ => self.current.max(self.desired),
        }
    }

    /// The size to which it could grow once what goes on with its size is over.
    pub(crate) fn most(&self, headroom: Option<&NodeHeadroom>) -> Size {
        let has = self.has();
        let fails = self.note.last_failed_at.is_some() || self.barred_until.is_some();
        match headroom {
            _ if fails || self.note.raylet_id.is_none() => has,
            Some(headroom) => headroom.bound(has, self.limit()),
            None => self.limit().max(has),
        }
    }

    /// The headroom of its Kubernetes node, if that is known.
    pub(crate) fn headroom<'r>(
        &self,
        headrooms: &'r List<KubeNodeIndex, NodeHeadroom>,
    ) -> Option<&'r NodeHeadroom> {
        Some(&headrooms[self.kube_node?])
    }

    /// True for a pod with less than its resize limits allow.
    pub(crate) fn is_below_limits(&self) -> bool {
        self.current.is_below(self.limits)
    }

    /// True for a pod that may shrink, because nothing else goes on with its size.
    pub(crate) fn may_shrink(&self) -> bool {
        self.note.raylet_id.is_some()
            && self.is_at_rest()
            && !self.noted_sync
            // The next smaller size is a multiple of the base size, which must not be zero.
            && self.base.cpu > 0.0
    }

    /// True for a pod that may be asked to grow.
    pub(crate) fn can_grow(&self) -> bool {
        self.is_at_rest() && self.current.is_below(self.limit())
    }

    /// True for a pod that Kubernetes was asked for nothing, and whose last resize has not failed.
    fn is_at_rest(&self) -> bool {
        self.progress == ResizeProgress::Finished
            && self.note.resizing_at.is_none()
            && self.note.last_failed_at.is_none()
            && self.barred_until.is_none()
    }

    /// True once a resize that the note on the pod shows as asked for is complete, without having
    /// been taken back.
    pub(crate) fn has_come_through(&self) -> bool {
        let noted = self.noted.as_ref();
        let is_asked = noted.is_some_and(|note| note.resizing_at.is_some());
        is_asked && self.noted_sync && self.note.last_failed_at.is_none()
    }
}
