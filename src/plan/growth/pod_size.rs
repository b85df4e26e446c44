//! The size that a pod has, the size that it was asked to become, and how its last resize went.
//! (Ray, `ippr_provider.py`, `_get_ippr_status_from_pod`.)

use crate::plan::growth::in_use::InUse;
use crate::plan::growth::resize::{Resize, ResizeProgress};
use crate::plan::growth::size::{ContainerAmounts, Size, bytes, cores};
use crate::plan::growth::suggestion;
use crate::plan::outcome::problem_reason::ProblemReason;
use crate::plan::outcome::resize_note::ResizeNote;
use crate::plan::strategy::Strategy;
use crate::quantity::Quantity;
use crate::ray::resource::Amounts;
use crate::seconds::{Retry, second_of};
use crate::snapshot::history::ResizeMemory;
use crate::snapshot::pod::Pod;
use crate::snapshot::pod_condition::PodCondition;

/// Seconds by which a time in a note may be ahead of the clock.
const SKEW_S: i64 = 5;

/// Facts about a pod's resizes that are not in the pod itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Around {
    pub(crate) now: f64,
    pub(crate) strategy: Strategy,
    /// The longest time that one resize may take, in seconds.
    pub(crate) timeout_s: i64,
    /// Seconds for which a deferred resize is left as it is.
    pub(crate) deferred_s: f64,
    pub(crate) memory: ResizeMemory,
    /// The part of the pod that is in use, as its raylet reports it.
    pub(crate) used: Size,
    /// The memory really in use, if that is known and followed.
    pub(crate) in_use: Option<InUse>,
}

/// The resize of a pod whose group may grow. Returns an error where Ray's loop would abort.
pub(crate) fn resize(
    pod: &Pod<'_>,
    limits: Size,
    base: Size,
    around: Around,
) -> Result<Resize, ProblemReason> {
    let is_rayfit = around.strategy.is_rayfit();
    let container = ContainerAmounts::of(pod);
    let current = size(container.given_requests, container.given_limits)?;
    let desired = size(container.requests, container.limits)?;
    let noted =
        ResizeNote::of(pod).map_err(|error| ProblemReason::NoteNotJson(error.to_string()))?;
    let mut resize = Resize {
        limits,
        base,
        current,
        desired,
        note: noted.clone().unwrap_or_default(),
        never_shrinks: is_rayfit,
        noted,
        shrink_failures: around.memory.shrink_failures,
        spare: around.memory.spare,
        in_use: around.in_use,
        followed: around.memory.followed.filter(|_| is_rayfit),
        ..Resize::default()
    };
    if is_rayfit {
        let note = &mut resize.note;
        if suggestion::is_old(around.memory, around.now) {
            (note.suggested_max_cpu, note.suggested_max_memory) = (None, None);
        }
        // A clock that has been set back since would let a resize, or the wait after it, last as much
        // longer. The clocks of two replicas may differ a little.
        let now = second_of(around.now);
        let times = [&mut note.resizing_at, &mut note.last_failed_at];
        for at in times.into_iter().flatten() {
            if *at > now.saturating_add(SKEW_S) {
                *at = now;
            }
        }
    }
    let message = read_conditions(&mut resize, pod, &container, around)?;
    fail(&mut resize, message, around);
    resize.noted_sync = resize.is_to_sync();
    if is_rayfit {
        bound(&mut resize, around);
        // A failure bars the pod from growing for a while only.
        #[expect(clippy::cast_precision_loss, reason = "seconds since 1970")]
        let noted = resize.note.last_failed_at.map(|at| at as f64);
        let failed_at = noted.into_iter().chain(around.memory.failed_at);
        if let Some(at) = failed_at.reduce(f64::max) {
            let until = at + Retry::UP_TO_AN_HOUR.wait_s(around.memory.failures);
            if until > around.now {
                resize.barred_until = Some(until);
            } else {
                let note = &mut resize.note;
                (note.last_failed_at, note.last_failed_reason) = (None, None);
            }
        }
    }
    Ok(resize)
}

/// The size by the limits, or else by the requests.
pub(crate) fn size(requests: Amounts, limits: Amounts) -> Result<Size, ProblemReason> {
    let either = limits.or(requests);
    let find = |name| either.get(name).ok_or(ProblemReason::NoAmount(name));
    Ok(Size {
        cpu: cores(find("cpu")?),
        memory: bytes(find("memory")?),
    })
}

/// Reads what Kubernetes says of the resize, and follows what it suggests. Returns its message.
fn read_conditions(
    resize: &mut Resize,
    pod: &Pod<'_>,
    container: &ContainerAmounts,
    around: Around,
) -> Result<Option<String>, ProblemReason> {
    let is_known = |one: &&PodCondition| {
        one.is_true() && matches!(&*one.kind, "PodResizePending" | "PodResizeInProgress")
    };
    // Kubernetes may set both conditions at once. The first one in the list counts, as it does for
    // Ray.
    let Some(condition) = pod.object.status.conditions.iter().find(is_known) else {
        return Ok(None);
    };
    let message = condition.message.clone();
    if condition.kind == "PodResizeInProgress" {
        resize.progress = match condition.reason.as_deref() {
            Some("Error") => ResizeProgress::Error,
            _ => ResizeProgress::Underway,
        };
        return Ok(message);
    }
    let reason = condition.reason.as_deref().unwrap_or_default();
    let reason = reason.to_lowercase();
    let is_rayfit = around.strategy.is_rayfit();
    // The scheduler may still make room for a resize that the kubelet has deferred: it ends pods
    // of a lower priority for it (Kubernetes, feature `InPlacePodVerticalScalingSchedulerPreemption`), and
    // no more once the resize asks for less.
    #[expect(clippy::cast_precision_loss, reason = "seconds since 1970")]
    let is_young = |at: i64| around.now - (at as f64) < around.deferred_s;
    let asked_at = resize.note.resizing_at;
    let may_get_room = is_rayfit && reason == "deferred" && asked_at.is_some_and(is_young);
    // A pod of class Guaranteed beside a static CPU manager is such a case: the kubelet says that the
    // resize can never be, and does not say what could be. Kubernetes before 1.34 does not say which
    // generation of the pod's spec it is about.
    let generations = condition
        .observed_generation
        .zip(pod.object.metadata.generation);
    let is_of_now = generations.is_none_or(|(observed, present)| observed >= present);
    let can_never_be = is_rayfit && reason == "infeasible" && asked_at.is_some() && is_of_now;
    resize.progress = ResizeProgress::Pending(reason);
    if !may_get_room {
        let text = message.as_deref().unwrap_or_default();
        let has_suggested = suggestion::follow(resize, text, container)?;
        if can_never_be && !has_suggested {
            resize.progress = ResizeProgress::Error;
        }
    }
    Ok(message)
}

/// Takes back a resize that failed or took too long.
fn fail(resize: &mut Resize, message: Option<String>, around: Around) {
    let now = around.now;
    let is_error = resize.progress == ResizeProgress::Error;
    #[expect(clippy::cast_precision_loss, reason = "seconds since 1970")]
    let deadline = |at: i64| at.saturating_add(around.timeout_s) as f64;
    // A resize that is complete and only waits for its raylet has not timed out.
    let asked_at = resize.note.resizing_at.filter(|_| !resize.is_to_sync());
    if !is_error && asked_at.is_none_or(|at| deadline(at) >= now) {
        return;
    }
    // A pod that could not be made smaller, because it uses more memory than that, may still grow.
    let shrinks = resize.desired.is_below(resize.current);
    if around.strategy.is_rayfit() && shrinks && !resize.current.is_below(resize.desired) {
        resize.shrink_failures = resize.shrink_failures.and_one(now);
    } else if resize.note.last_failed_at.is_none() {
        resize.note.last_failed_at = Some(second_of(now));
        let message = message.filter(|message| !message.is_empty());
        resize.note.last_failed_reason = Some(match (is_error, message) {
            (true, Some(message)) => message,
            (true, None) => "Pod resize failed".to_owned(),
            (false, _) => "Pod resize timed out".to_owned(),
        });
    }
    // The kubelet goes on trying what the spec asks for, and the scheduler counts a deferred resize
    // as taken. Asking for the present size ends both.
    let current = resize.current;
    resize.ask(Some(current.cpu), Some(current.memory));
}

/// Keeps what is asked for from shrinking below the base size or the resources in use, and from
/// growing beyond the resize limits.
fn bound(resize: &mut Resize, around: Around) {
    let (now, base, limits) = (resize.current, resize.base, resize.limits);
    let mut used = around.used;
    if let Some(in_use) = around.in_use {
        used.memory = used.memory.max(in_use.bytes);
    }
    let cpu = |then: f64| {
        if then < now.cpu {
            then.max(base.cpu.max(used.cpu).min(now.cpu))
        } else {
            then.min(limits.cpu.max(now.cpu))
        }
    };
    let memory = |then: i64| {
        if then < now.memory {
            then.max(base.memory.max(used.memory).min(now.memory))
        } else {
            then.min(limits.memory.max(now.memory))
        }
    };
    // A suggestion says how far a pod can grow. Ray makes a pod smaller by one that is below its
    // size, work or not.
    let note = &mut resize.note;
    note.suggested_max_cpu = note.suggested_max_cpu.map(|then| cpu(then.max(now.cpu)));
    note.suggested_max_memory =
        (note.suggested_max_memory).map(|then| memory(then.max(now.memory)));
    if resize.progress == ResizeProgress::New {
        resize.desired = Size {
            cpu: cpu(resize.desired.cpu),
            memory: memory(resize.desired.memory),
        };
    }
}

/// The amounts by which the first container's limits exceed its requests, in CPU and memory.
pub(crate) fn gap(pod: &Pod<'_>) -> (Quantity, Quantity) {
    let container = ContainerAmounts::of(pod);
    let gap = |resource| {
        crate::ray::container::gap(
            container.given_limits.get(resource),
            container.given_requests.get(resource),
        )
    };
    (gap("cpu"), gap("memory"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::plan::outcome::resize_note::STATUS_ANNOTATION;

    #[test]
    fn times_of_a_clock_that_was_set_back_count_as_now() {
        let noted = ResizeNote {
            resizing_at: Some(5000),
            last_failed_at: Some(1003),
            ..ResizeNote::default()
        };
        let resources = json!({"limits": {"cpu": "1", "memory": "1Gi"}});
        let pod = serde_json::from_value(json!({
            "metadata": {"name": "w", "annotations": {STATUS_ANNOTATION: noted.text()}},
            "spec": {"containers": [{"name": "ray", "resources": resources}]},
            "status": {"containerStatuses": [{"name": "ray", "resources": resources}]},
        }));
        let pod = pod.unwrap();
        let size = Size {
            cpu: 1.0,
            memory: 1 << 30,
        };
        let limits = Size {
            cpu: 4.0,
            memory: 4 << 30,
        };
        let times = |strategy| {
            let around = Around {
                now: 1000.0,
                strategy,
                timeout_s: 30,
                deferred_s: 0.0,
                memory: ResizeMemory::default(),
                used: size,
                in_use: None,
            };
            let resize = resize(&Pod::of(&pod), limits, size, around).unwrap();
            (resize.note.resizing_at, resize.note.last_failed_at)
        };
        assert_eq!(times(Strategy::Rayfit), (Some(1000), Some(1003)));
        assert_eq!(times(Strategy::Ray), (Some(5000), Some(1003)), "as Ray");
    }
}
