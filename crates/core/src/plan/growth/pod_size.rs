//! The size that a pod has, the size that it was asked to become, and how its last resize went.
//! (Ray, `ippr_provider.py`, `_get_ippr_status_from_pod`.)

use crate::plan::growth::resize::{Resize, ResizeProgress};
use crate::plan::growth::size::{ContainerAmounts, Size, bytes, cores};
use crate::plan::growth::suggestion;
use crate::plan::outcome::problem::ProblemReason;
use crate::plan::outcome::resize_note::ResizeNote;
use crate::quantity::Quantity;
use crate::seconds::second_of;
use crate::snapshot::pod::Pod;
use crate::snapshot::pod_condition::PodCondition;
use crate::snapshot::pod_object::Resources;

/// The resize of a pod whose group may grow, where one resize may take `timeout_s` seconds. Returns an error where Ray's
/// loop would abort.
pub(crate) fn resize(
    pod: &Pod<'_>,
    (limits, base): (Size, Size),
    (timeout_s, now): (i64, f64),
) -> Result<Resize, ProblemReason> {
    let container = ContainerAmounts::of(pod);
    let mut resize = sizes(pod, &container, limits, base)?;
    let condition = read_progress(&mut resize, pod);
    let message = condition.and_then(|condition| condition.message.as_deref());
    suggestion::follow(&mut resize, message.unwrap_or_default(), &container)?;
    if has_failed(&resize, timeout_s, now) {
        note_failure(&mut resize, message, now);
        take_back(&mut resize);
    }
    resize.noted_sync = resize.is_to_sync();
    Ok(resize)
}

/// The sizes of a pod and the note on it, without what Kubernetes says of its last resize.
pub(crate) fn sizes(
    pod: &Pod<'_>,
    container: &ContainerAmounts,
    limits: Size,
    base: Size,
) -> Result<Resize, ProblemReason> {
    let current = size(container.given)?;
    let desired = size(container.asked)?;
    let noted =
        ResizeNote::of(pod).map_err(|error| ProblemReason::NoteNotJson(error.to_string()))?;
    Ok(Resize {
        limits,
        base,
        current,
        desired,
        note: noted.clone().unwrap_or_default(),
        noted,
        ..Resize::default()
    })
}

/// The size by the limits, or else by the requests.
pub(crate) fn size(resources: Resources) -> Result<Size, ProblemReason> {
    let either = resources.limits.or(resources.requests);
    let find = |name| either.get(name).ok_or(ProblemReason::NoAmount(name));
    Ok(Size {
        cpu: cores(find("cpu")?),
        memory: bytes(find("memory")?),
    })
}

/// Reads what Kubernetes says of the resize. Returns the condition that says it.
pub(crate) fn read_progress<'p>(resize: &mut Resize, pod: &Pod<'p>) -> Option<&'p PodCondition> {
    let is_known = |one: &&PodCondition| {
        one.is_true() && matches!(&*one.kind, "PodResizePending" | "PodResizeInProgress")
    };
    // Kubernetes may set both conditions at once. The first one in the list counts, as it does for
    // Ray.
    let condition = pod.object.status.conditions.iter().find(is_known)?;
    let reason = condition.reason.as_deref();
    resize.progress = match (&*condition.kind, reason) {
        ("PodResizeInProgress", Some("Error")) => ResizeProgress::Error,
        ("PodResizeInProgress", _) => ResizeProgress::Underway,
        _ => ResizeProgress::Pending(reason.unwrap_or_default().to_lowercase()),
    };
    Some(condition)
}

/// True for a resize that failed or took too long.
pub(crate) fn has_failed(resize: &Resize, timeout_s: i64, now: f64) -> bool {
    #[expect(clippy::cast_precision_loss, reason = "seconds since 1970")]
    let deadline = |at: i64| at.saturating_add(timeout_s) as f64;
    // A resize that is complete and only waits for its raylet has not timed out.
    let asked_at = resize.note.resizing_at.filter(|_| !resize.is_to_sync());
    resize.progress == ResizeProgress::Error || asked_at.is_some_and(|at| deadline(at) < now)
}

/// Notes the failure of a resize, unless one is noted already.
pub(crate) fn note_failure(resize: &mut Resize, message: Option<&str>, now: f64) {
    if resize.note.last_failed_at.is_some() {
        return;
    }
    let is_error = resize.progress == ResizeProgress::Error;
    let message = message.filter(|message| !message.is_empty());
    resize.note.last_failed_at = Some(second_of(now));
    resize.note.last_failed_reason = Some(match (is_error, message) {
        (true, Some(message)) => message.to_owned(),
        (true, None) => "Pod resize failed".to_owned(),
        (false, _) => "Pod resize timed out".to_owned(),
    });
}

/// Takes back a resize. The kubelet goes on trying what the spec asks for, and the scheduler counts a deferred resize
/// as taken. Asking for the present size ends both.
pub(crate) fn take_back(resize: &mut Resize) {
    let current = resize.current;
    resize.ask(Some(current.cpu), Some(current.memory));
}

/// The amounts by which the first container's limits exceed its requests, in CPU and memory.
pub(crate) fn gap(pod: &Pod<'_>) -> (Quantity, Quantity) {
    let Resources { requests, limits } = ContainerAmounts::of(pod).given;
    let gap = |name| crate::ray::container::gap(limits.get(name), requests.get(name));
    (gap("cpu"), gap("memory"))
}
