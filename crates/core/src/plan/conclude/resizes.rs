//! From the sizes that were decided on to resizes of pods, what raylets are told, and the notes on both.

use crate::plan::conclude::describe;
use crate::plan::decided::Decided;
use crate::plan::growth::resize::Resize;
use crate::plan::growth::size::milli;
use crate::plan::list::NodeIndex;
use crate::plan::nodes::node::PlannedNode;
use crate::plan::outcome::plan::{GrowthDemand, Plan, PodResize, RayletSync};
use crate::plan::outcome::resize_note::ResizeNote;
use crate::plan::outcome::step::PlacementStep;
use crate::seconds::second_of;

/// The pods that are to be resized.
pub(crate) fn resizes(decided: &Decided<'_>, only_staying: bool) -> Vec<PodResize> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "saturating, and never negative"
    )]
    let whole = |seconds: f64| seconds.round() as u32;
    let state = &decided.state;
    let resize = |(number, node): (NodeIndex, &PlannedNode)| {
        let resize = sized(node, only_staying).filter(|resize| resize.is_to_send())?;
        let notes = state.tables.sizes.get(&number).copied().unwrap_or_default();
        let (now, then) = (resize.current, resize.desired);
        Some(PodResize {
            pod: node.pod()?.to_owned(),
            cpu_milli_now: milli(now.cpu),
            memory_bytes_now: now.memory,
            cpu_milli: milli(then.cpu),
            memory_bytes: then.memory,
            raylet_first: then.is_below(now),
            spare_seconds: notes.shrinks_for.map(whole),
            memory_reason: notes.memory_reason,
            demand: grows_for(decided, node),
        })
    };
    state.entries().filter_map(resize).collect()
}

/// The demand that a node serves only because it grows.
fn grows_for(decided: &Decided<'_>, node: &PlannedNode) -> Option<GrowthDemand> {
    let mut served = node.takes.iter();
    let first = served.find(|take| take.step == PlacementStep::Grow)?;
    let demand = describe::demand(decided.demands.get(first.demand)?);
    let mut growth = GrowthDemand {
        demand,
        count: first.count,
        others: 0,
    };
    for take in served.filter(|take| take.step == PlacementStep::Grow) {
        let is_first = take.demand == first.demand;
        let sum = if is_first {
            &mut growth.count
        } else {
            &mut growth.others
        };
        *sum = sum.saturating_add(take.count);
    }
    Some(growth)
}

/// The resize of a node, unless only those of nodes that stay count.
fn sized(node: &PlannedNode, only_staying: bool) -> Option<&Resize> {
    let is_one = node.stays() || !only_staying;
    node.resize.as_deref().filter(|_| is_one)
}

/// The note of each pod whose resize begins, ends or fails, or whose node said how much it can
/// give.
pub(crate) fn notes(
    decided: &Decided<'_>,
    plan: &Plan,
    only_staying: bool,
) -> Vec<(String, ResizeNote)> {
    let note = |node: &PlannedNode| {
        let resize = sized(node, only_staying)?;
        let mut note = resize.note.clone();
        if resize.noted_sync {
            // The raylet is told first. (Ray, `ippr_provider.py`, `sync_with_raylets`.)
            note.resizing_at = None;
        }
        let mut noted = resize.noted.clone().unwrap_or_default();
        // Another raylet alone is not worth a write.
        noted.raylet_id.clone_from(&note.raylet_id);
        if plan.waiting.is_some() && !resize.noted_sync {
            return None;
        }
        if resize.is_to_send() && plan.waiting.is_none() {
            note.resizing_at = Some(second_of(decided.situation.now));
        } else if note == noted {
            return None;
        }
        Some((node.pod()?.to_owned(), note))
    };
    decided.state.in_order().filter_map(note).collect()
}

/// The raylets that are to be told the sizes of their pods.
pub(crate) fn raylet_syncs(decided: &Decided<'_>, only_staying: bool) -> Vec<RayletSync> {
    let state = &decided.state;
    let sync = |node: &PlannedNode| {
        let resize = sized(node, only_staying)?;
        let pod = node.pod().filter(|_| resize.noted_sync)?;
        Some(RayletSync {
            pod: pod.to_owned(),
            node_id: resize.note.raylet_id.clone().unwrap_or_default(),
            cpu_milli: milli(resize.current.cpu),
            memory_bytes: resize.current.memory,
        })
    };
    state.in_order().filter_map(sync).collect()
}
