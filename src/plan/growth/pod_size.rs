//! The size that a pod has, the size that it was asked to become, and how its last resize went.
//! (Ray, `ippr_provider.py`, `_get_ippr_status_from_pod`.)

use crate::plan::growth::container::ContainerAmounts;
use crate::plan::growth::in_use::InUse;
use crate::plan::growth::resize::{Resize, ResizeLimits, ResizeProgress};
use crate::plan::growth::size::{Size, bytes, cores};
use crate::plan::growth::suggestion;
use crate::plan::outcome::problem_reason::ResizeError;
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
    limits: ResizeLimits,
    base: Size,
    around: Around,
) -> Result<Resize, ResizeError> {
    let container = ContainerAmounts::of(pod);
    let mut resize = Resize {
        limits,
        base,
        current: size(container.given_requests, container.given_limits)?,
        desired: size(container.requests, container.limits)?,
        resizing_at: None,
        progress: ResizeProgress::Finished,
        message: None,
        suggested_cpu: None,
        suggested_memory: None,
        failed_at: None,
        failure: None,
        raylet: None,
        kube_node: None,
        noted_sync: false,
        never_shrinks: around.strategy.is_rayfit(),
        noted: None,
        barred_until: None,
        shrink_failures: around.memory.shrink_failures,
        spare: around.memory.spare,
        shrinks_for: None,
        in_use: around.in_use,
        monitored: false,
        followed: around
            .memory
            .followed
            .filter(|_| around.strategy.is_rayfit()),
        memory_reason: None,
        kept_for: None,
        of_gaps: None,
    };
    restore(&mut resize, pod)?;
    forget_old(&mut resize, around);
    read_conditions(&mut resize, pod, &container, around)?;
    fail(&mut resize, around);
    resize.noted_sync = resize.is_to_sync();
    if around.strategy.is_rayfit() {
        let mut used = around.used;
        if let Some(really) = around.in_use {
            used.memory = used.memory.max(really.bytes);
        }
        bound(&mut resize, used);
    }
    if around.strategy.is_rayfit() {
        wait_after_failure(&mut resize, around);
    }
    Ok(resize)
}

/// The size by the limits, or else by the requests.
pub(crate) fn size(requests: Amounts, limits: Amounts) -> Result<Size, ResizeError> {
    let either = limits.or(requests);
    let find = |resource| {
        let amount = either.get(resource);
        amount.ok_or(ResizeError::NoAmount(resource))
    };
    Ok(Size {
        cpu: cores(find("cpu")?),
        memory: bytes(find("memory")?),
    })
}

fn restore(resize: &mut Resize, pod: &Pod<'_>) -> Result<(), ResizeError> {
    let note = ResizeNote::of(pod).map_err(|error| ResizeError::NoteNotJson(error.to_string()))?;
    let Some(note) = note else { return Ok(()) };
    resize.raylet.clone_from(&note.raylet_id);
    resize.resizing_at = note.resizing_at;
    resize.suggested_cpu = note.suggested_max_cpu;
    resize.suggested_memory = note.suggested_max_memory;
    resize.failed_at = note.last_failed_at;
    resize.failure.clone_from(&note.last_failed_reason);
    resize.noted = Some(note);
    Ok(())
}

/// Forgets suggestions that have grown old.
fn forget_old(resize: &mut Resize, around: Around) {
    if !around.strategy.is_rayfit() {
        return;
    }
    if suggestion::is_old(around.memory, around.now) {
        resize.suggested_cpu = None;
        resize.suggested_memory = None;
    }
    // A clock that has been set back since would let a resize, or the wait after it, last as much
    // longer. The clocks of two replicas may differ a little.
    let now = second_of(around.now);
    let times = [&mut resize.resizing_at, &mut resize.failed_at];
    for at in times.into_iter().flatten() {
        if *at > now.saturating_add(SKEW_S) {
            *at = now;
        }
    }
}

/// Whether the scheduler may still make room for a resize that the kubelet has deferred: it ends pods
/// of a lower priority for it (Kubernetes, feature `InPlacePodVerticalScalingSchedulerPreemption`), and
/// no more once the resize asks for less.
fn may_get_room(resize: &Resize, around: Around) -> bool {
    #[expect(clippy::cast_precision_loss, reason = "seconds since 1970")]
    let waited = |at: i64| around.now - at as f64;
    let is_young = resize
        .resizing_at
        .is_some_and(|at| waited(at) < around.deferred_s);
    around.strategy.is_rayfit() && is_young
}

fn read_conditions(
    resize: &mut Resize,
    pod: &Pod<'_>,
    container: &ContainerAmounts,
    around: Around,
) -> Result<(), ResizeError> {
    // Kubernetes may set both conditions at once. The first one in the list counts, as it does for
    // Ray.
    for condition in pod
        .object
        .status
        .conditions
        .iter()
        .filter(|one| one.is_true())
    {
        let message = condition.message.clone();
        match condition.kind.as_str() {
            "PodResizePending" => {
                resize.message = message;
                let reason = condition
                    .reason
                    .as_deref()
                    .unwrap_or_default()
                    .to_lowercase();
                // A pod of class Guaranteed beside a static CPU manager is such a case: the kubelet
                // says that the resize can never be, and does not say what could be.
                let never = reason == "infeasible" && resize.resizing_at.is_some();
                let waits = reason == "deferred" && may_get_room(resize, around);
                resize.progress = ResizeProgress::Pending(reason);
                if waits {
                    return Ok(());
                }
                let told = suggestion::follow(resize, container)?;
                let believed = around.strategy.is_rayfit();
                if believed && never && !told && is_of_now(condition, pod) {
                    resize.progress = ResizeProgress::Error;
                }
                return Ok(());
            }
            "PodResizeInProgress" => {
                resize.message = message;
                let failed = condition.reason.as_deref() == Some("Error");
                resize.progress = if failed {
                    ResizeProgress::Error
                } else {
                    ResizeProgress::Underway
                };
                return Ok(());
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether the condition is about the pod's present spec, as far as Kubernetes says.
fn is_of_now(condition: &PodCondition, pod: &Pod<'_>) -> bool {
    let seen = condition.observed_generation;
    let there = pod.object.metadata.generation;
    // Kubernetes before 1.34 does not say which generation it is about.
    seen.zip(there).is_none_or(|(seen, there)| seen >= there)
}

/// Takes back a resize that failed or took too long.
fn fail(resize: &mut Resize, around: Around) {
    let now = around.now;
    let errored = resize.progress == ResizeProgress::Error;
    if !errored && !resize.is_timed_out(now) {
        return;
    }
    // A pod that could not be made smaller, because it uses more memory than that, may still grow.
    let shrinks = resize.desired.is_below(resize.current);
    if around.strategy.is_rayfit() && shrinks && !resize.current.is_below(resize.desired) {
        resize.shrink_failures = resize.shrink_failures.and_one(now);
    } else if resize.failed_at.is_none() {
        resize.failed_at = Some(second_of(now));
        let told = resize.message.clone().filter(|message| !message.is_empty());
        resize.failure = Some(match (errored, told) {
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
fn bound(resize: &mut Resize, used: Size) {
    let (now, base, limits) = (resize.current, resize.base, resize.limits);
    let cpu = |then: f64| {
        let floor = base.cpu.max(used.cpu).min(now.cpu);
        if then < now.cpu {
            then.max(floor)
        } else {
            then.min(limits.cpu.max(now.cpu))
        }
    };
    let memory = |then: i64| {
        let floor = base.memory.max(used.memory).min(now.memory);
        if then < now.memory {
            then.max(floor)
        } else {
            then.min(limits.memory.max(now.memory))
        }
    };
    // A suggestion says how far a pod can grow. Ray makes a pod smaller by one that is below its
    // size, work or not.
    resize.suggested_cpu = resize.suggested_cpu.map(|then| cpu(then.max(now.cpu)));
    resize.suggested_memory = resize
        .suggested_memory
        .map(|then| memory(then.max(now.memory)));
    if resize.progress == ResizeProgress::New {
        resize.desired = Size {
            cpu: cpu(resize.desired.cpu),
            memory: memory(resize.desired.memory),
        };
    }
}

/// Lets a failure bar the pod from growing for a while only.
fn wait_after_failure(resize: &mut Resize, around: Around) {
    #[expect(clippy::cast_precision_loss, reason = "seconds since 1970")]
    let noted = resize.failed_at.map(|at| at as f64);
    let Some(at) = [noted, around.memory.failed_at]
        .into_iter()
        .flatten()
        .reduce(f64::max)
    else {
        return;
    };
    let until = at + Retry::UP_TO_AN_HOUR.wait_s(around.memory.failures);
    if until <= around.now {
        resize.failed_at = None;
        resize.failure = None;
    } else {
        resize.barred_until = Some(until);
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
        let limits = ResizeLimits {
            cpu: 4.0,
            memory: 4 << 30,
            timeout: 30,
        };
        let times = |strategy| {
            let around = Around {
                now: 1000.0,
                strategy,
                deferred_s: 0.0,
                memory: ResizeMemory::default(),
                used: size,
                in_use: None,
            };
            let resize = resize(&Pod::of(&pod), limits, size, around).unwrap();
            (resize.resizing_at, resize.failed_at)
        };
        assert_eq!(times(Strategy::Rayfit), (Some(1000), Some(1003)));
        assert_eq!(times(Strategy::Ray), (Some(5000), Some(1003)), "as Ray");
    }
}
