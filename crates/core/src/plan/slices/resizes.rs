//! Resizes that end well: old suggestions are forgotten, refusals are believed, a failure bars a pod from growing for a
//! while only, and nothing shrinks below what is in use.
//!
//! Ray keeps a suggestion for ever, waits for the timeout of a resize that the kubelet has called infeasible, and never
//! lets a pod grow again after a failure.

use std::collections::BTreeMap;

use crate::hash::HashMap;
use crate::plan::decided::Decided;
use crate::plan::growth::in_use::{InUse, logical_use};
use crate::plan::growth::pod_size::{
    self, has_failed, note_failure, read_progress, sizes, take_back,
};
use crate::plan::growth::resize::{Resize, ResizeProgress};
use crate::plan::growth::size::{ContainerAmounts, Size};
use crate::plan::growth::suggestion;
use crate::plan::list::{KubeNodeIndex, NodeIndex};
use crate::plan::nodes::node::PlannedNode;
use crate::plan::nodes::rows::NodeRow;
use crate::plan::nodes::tables::SizeNotes;
use crate::plan::outcome::problem::ProblemReason;
use crate::plan::situation::Situation;
use crate::plan::slice::Slice;
use crate::seconds::{Retry, second_of};
use crate::snapshot::group_spec::GroupSpec;
use crate::snapshot::history::{History, ResizeMemory, ShrinkFailures};
use crate::snapshot::pod::Pod;
use crate::snapshot::pod_condition::PodCondition;

/// Seconds by which a time in a note may be ahead of the clock.
const SKEW_S: i64 = 5;

/// A function that reads the resize of the pod of a row, and adds `notes` about it.
pub(crate) fn reader<'s>(
    situation: &'s Situation<'_>,
    kube_nodes: &'s HashMap<String, KubeNodeIndex>,
    notes: &'s mut HashMap<NodeIndex, SizeNotes>,
) -> impl FnMut(
    NodeIndex,
    &NodeRow<'_>,
    &Pod<'_>,
    &GroupSpec,
    (Size, Size),
) -> Result<Resize, ProblemReason>
+ 's {
    let (settings, now) = (situation.settings, situation.now);
    move |number, row, pod, group, (limits, base)| {
        let in_use = row.ray.and_then(|ray| ray.memory_in_use);
        let in_use = in_use.filter(|_| settings.has(Slice::MemoryInUse));
        let memory = situation.history().resizes.get(pod.name);
        let around = Around {
            now,
            timeout_s: group.resize_timeout_s,
            deferred_s: settings.deferred_s,
            memory: memory.copied().unwrap_or_default(),
            used: row.ray.map(logical_use).unwrap_or_default(),
            in_use: in_use.and_then(|report| InUse::of(report, now)),
        };
        let mut shrink_failures = around.memory.shrink_failures;
        let mut resize = if settings.has(Slice::Resizes) {
            resize(pod, limits, base, around, &mut shrink_failures)?
        } else {
            pod_size::resize(pod, (limits, base), (around.timeout_s, now))?
        };
        let pod_notes = SizeNotes {
            shrink_failures,
            spare: around.memory.spare,
            in_use: around.in_use,
            monitored: group.memory_monitor,
            followed: around.memory.followed,
            ..SizeNotes::default()
        };
        notes.insert(number, pod_notes);
        resize.kube_node = pod.node.and_then(|node| kube_nodes.get(node)).copied();
        Ok(resize)
    }
}

/// Facts about a pod's resizes that are not in the pod itself.
#[derive(Debug, Clone, Copy)]
struct Around {
    now: f64,
    /// The longest time that one resize may take, in seconds.
    timeout_s: i64,
    /// Seconds for which a deferred resize is left as it is.
    deferred_s: f64,
    memory: ResizeMemory,
    /// The part of the pod that is in use, as its raylet reports it.
    used: Size,
    /// The memory really in use, if that is known and followed.
    in_use: Option<InUse>,
}

/// The resize of a pod whose group may grow. Returns an error where Ray's loop would abort.
fn resize(
    pod: &Pod<'_>,
    limits: Size,
    base: Size,
    around: Around,
    shrink_failures: &mut ShrinkFailures,
) -> Result<Resize, ProblemReason> {
    let (memory, now) = (around.memory, around.now);
    let container = ContainerAmounts::of(pod);
    let mut resize = Resize {
        never_shrinks: true,
        ..sizes(pod, &container, limits, base)?
    };
    let note = &mut resize.note;
    if is_old(memory, now) {
        (note.suggested_max_cpu, note.suggested_max_memory) = (None, None);
    }
    // A clock that has been set back since would let a resize, or the wait after it, last as much
    // longer. The clocks of two replicas may differ a little.
    let second = second_of(now);
    let times = [&mut note.resizing_at, &mut note.last_failed_at];
    for at in times.into_iter().flatten() {
        if *at > second.saturating_add(SKEW_S) {
            *at = second;
        }
    }
    let condition = read_progress(&mut resize, pod);
    let message = condition.and_then(|condition| condition.message.as_deref());
    let can_never_be = condition.is_some_and(|condition| is_infeasible(&resize, pod, condition));
    if !may_get_room(&resize, around) {
        let has_suggested =
            suggestion::follow(&mut resize, message.unwrap_or_default(), &container)?;
        if can_never_be && !has_suggested {
            resize.progress = ResizeProgress::Error;
        }
    }
    if has_failed(&resize, around.timeout_s, now) {
        // A pod that could not be made smaller, because it uses more memory than that, may still grow.
        let shrinks = resize.desired.is_below(resize.current);
        if shrinks && !resize.current.is_below(resize.desired) {
            *shrink_failures = shrink_failures.and_one(now);
        } else {
            note_failure(&mut resize, message, now);
        }
        take_back(&mut resize);
    }
    resize.noted_sync = resize.is_to_sync();
    bound(&mut resize, around);
    bar(&mut resize, around);
    Ok(resize)
}

/// True for a resize that the kubelet has deferred and for which the scheduler may still make room: it ends pods of a
/// lower priority for it (Kubernetes, feature `InPlacePodVerticalScalingSchedulerPreemption`), and no more once the
/// resize asks for less.
fn may_get_room(resize: &Resize, around: Around) -> bool {
    #[expect(clippy::cast_precision_loss, reason = "seconds since 1970")]
    let is_young = |at: i64| around.now - (at as f64) < around.deferred_s;
    let is_deferred =
        matches!(&resize.progress, ResizeProgress::Pending(reason) if reason == "deferred");
    is_deferred && resize.note.resizing_at.is_some_and(is_young)
}

/// True for a resize that can never be, as for a pod of class Guaranteed beside a static CPU manager: the kubelet does
/// not say what could be. Kubernetes before 1.34 does not say which generation of the pod's spec it is about.
fn is_infeasible(resize: &Resize, pod: &Pod<'_>, condition: &PodCondition) -> bool {
    let generations = condition
        .observed_generation
        .zip(pod.object.metadata.generation);
    let is_of_now = generations.is_none_or(|(observed, present)| observed >= present);
    let is_refused =
        matches!(&resize.progress, ResizeProgress::Pending(reason) if reason == "infeasible");
    is_refused && resize.note.resizing_at.is_some() && is_of_now
}

/// Bars the pod from growing for a while after a failure.
fn bar(resize: &mut Resize, around: Around) {
    #[expect(clippy::cast_precision_loss, reason = "seconds since 1970")]
    let noted = resize.note.last_failed_at.map(|at| at as f64);
    let failed_at = noted.into_iter().chain(around.memory.failed_at);
    let Some(at) = failed_at.reduce(f64::max) else {
        return;
    };
    let until = at + Retry::UP_TO_AN_HOUR.wait_s(around.memory.failures);
    if until > around.now {
        resize.barred_until = Some(until);
    } else {
        let note = &mut resize.note;
        (note.last_failed_at, note.last_failed_reason) = (None, None);
    }
}

/// True for a suggestion that no longer holds, because other pods may have left the node since. The first
/// one holds for a minute, each further one in a row for twice as long.
pub(crate) fn is_old(memory: ResizeMemory, now: f64) -> bool {
    let lifetime = Retry::UP_TO_TEN_MINUTES.wait_s(memory.suggestions);
    memory.suggested_at.is_some_and(|at| now - at > lifetime)
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

/// Memory of the resizes of pods after a decision, by the name of the pod.
pub(crate) fn remember(decided: &Decided<'_>) -> BTreeMap<String, ResizeMemory> {
    let (previous, now) = (decided.situation.history(), decided.situation.now);
    let state = &decided.state;
    let memory = |(number, node): (NodeIndex, &PlannedNode)| {
        let notes = state.tables.sizes.get(&number)?;
        Some((node.pod()?.to_owned(), memory(previous, node, notes, now)?))
    };
    state.entries().filter_map(memory).collect()
}

fn memory(
    previous: &History,
    node: &PlannedNode,
    notes: &SizeNotes,
    now: f64,
) -> Option<ResizeMemory> {
    let resize = node.resize.as_deref()?;
    let previous = previous.resizes.get(node.pod()?);
    let previous = previous.copied().unwrap_or_default();
    let has_failed = resize.note.last_failed_at.is_some();
    let is_done = resize.has_come_through();
    let new_note = &resize.note;
    let is_suggested =
        new_note.suggested_max_cpu.is_some() || new_note.suggested_max_memory.is_some();
    let is_old = is_old(previous, now);
    let suggested_at = previous.suggested_at.filter(|_| !is_old);
    // A failure of this round is one that the note on the pod does not have yet.
    let on_pod = resize.noted.as_ref();
    let is_noted = on_pod.is_some_and(|note| note.last_failed_at.is_some());
    let one_more = |previous: u32, is_one: bool| previous.saturating_add(is_one.into());
    let memory = ResizeMemory {
        failures: if is_done {
            0
        } else {
            one_more(previous.failures, has_failed && !is_noted)
        },
        suggested_at: is_suggested.then(|| suggested_at.unwrap_or(now)),
        suggestions: if is_done && !is_suggested {
            0
        } else {
            one_more(previous.suggestions, is_suggested && suggested_at.is_none())
        },
        failed_at: previous.failed_at.filter(|_| !is_done),
        spare: notes.spare,
        shrink_failures: notes.shrink_failures,
        followed: notes.followed,
    };
    let is_grown = !has_failed && !resize.base.is_below(resize.current) && previous.failures == 0;
    let is_worth_it = !is_grown
        || memory.suggested_at.is_some()
        || memory.failures > 0
        || memory.spare.is_some()
        || memory.followed.is_some()
        || memory.shrink_failures.lately(now) > 0;
    is_worth_it.then_some(memory)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::plan::growth::pod_size;
    use crate::plan::outcome::resize_note::{ResizeNote, STATUS_ANNOTATION};

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
        let pod = Pod::of(&pod);
        let around = Around {
            now: 1000.0,
            timeout_s: 30,
            deferred_s: 0.0,
            memory: ResizeMemory::default(),
            used: size,
            in_use: None,
        };
        let times = |resize: Resize| (resize.note.resizing_at, resize.note.last_failed_at);
        let mut failures = ShrinkFailures::default();
        let improved = resize(&pod, limits, size, around, &mut failures).unwrap();
        assert_eq!(times(improved), (Some(1000), Some(1003)));
        let as_ray = pod_size::resize(&pod, (limits, size), (30, 1000.0)).unwrap();
        assert_eq!(times(as_ray), (Some(5000), Some(1003)), "as Ray");
    }
}
