//! Placement groups whose pods did not all get a Kubernetes node: when they are tried again.
//!
//! A placement group runs with all of its pods or not at all. Where others take the room for the
//! rest, the pods that have a node hold room that is of use to nobody, and two placement groups may
//! hold each other up for ever. So the pods of one are given up after a while, and it is tried again
//! later: after a minute, then two, up to ten, each a little longer or shorter for each placement
//! group, so that the same two do not meet again. Those that are to be tried again are tried one at a
//! time.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::hash::{HashMap, HashSet};
use crate::plan::decided::Decided;
use crate::plan::demand::requests::{Demand, DemandOrigin};
use crate::plan::demand::shape::ShapeId;
use crate::plan::list::{DemandIndex, List};
use crate::plan::nodes::node::{PlannedNode, Stage};
use crate::plan::outcome::unmet::UnmetReason;
use crate::plan::packing::state::DecisionState;
use crate::plan::slices::gangs::gated;
use crate::plan::slices::gangs::reason::NextTry;
use crate::seconds::Retry;
use crate::snapshot::history::GangMemory;

/// The times after which a placement group is tried again, on average.
const RETRY: Retry = Retry::UP_TO_TEN_MINUTES;

/// The shortest time for which pods may look for a Kubernetes node, in seconds.
const LEAST_S: f64 = 5.0;

/// The most placement groups that are remembered.
const MOST: usize = 200;

/// The placement groups that have been given up and still wait, by their titles.
pub(super) type Gangs = BTreeMap<String, GangMemory>;

/// Keeps those demands back that are not to be tried now. Returns the shapes of their bundles:
/// what could hold one is to make room.
pub(super) fn keep_back(
    waiting: &Gangs,
    demands: &mut List<DemandIndex, Demand<'_>>,
    now: f64,
) -> HashSet<ShapeId> {
    let mut shapes = HashSet::default();
    let due = waiting.iter().filter(|(_, memory)| memory.retry_at <= now);
    let tried = due.min_by(|(one, is), (other, was)| {
        (is.retry_at.total_cmp(&was.retry_at)).then_with(|| one.cmp(other))
    });
    let tried = tried.map(|(title, _)| title.as_str());
    for demand in demands.iter_mut() {
        let DemandOrigin::Gang(_, gang) = demand.kind else {
            continue;
        };
        let title = gang.title();
        let Some(memory) = waiting.get(title).filter(|_| tried != Some(title)) else {
            continue;
        };
        let why = if memory.retry_at > now {
            NextTry::At(memory.retry_at)
        } else {
            NextTry::InTurn
        };
        if let Ok(batches) = std::mem::replace(&mut demand.batches, Err(UnmetReason::GivenUp(why)))
        {
            shapes.extend(batches.iter().map(|batch| batch.shape));
        }
    }
    shapes
}

/// Gives up the placement groups of which a pod has been without a Kubernetes node for too long:
/// longer than pods may be unschedulable, with none on its way (`awaited`), or with scheduling gates and in the
/// way of others. Returns whether there are any.
pub(super) fn give_up(waiting: &mut Gangs, decided: &Decided<'_>, awaited: &HashSet<&str>) -> bool {
    let (state, now) = (&decided.state, decided.situation.now);
    let cluster = &*decided.situation.snapshot.title();
    let unschedulable_s = decided.situation.settings.unschedulable_s;
    let gates = gated::gated_s(decided);
    let mut is_any = false;
    for (number, demand) in decided.demands.enumerate() {
        let (DemandOrigin::Gang(_, gang), Ok(_)) = (demand.kind, &demand.batches) else {
            continue;
        };
        let title = gang.title();
        let times = waiting.get(title).map_or(0, |memory| memory.times);
        let patience = unschedulable_s.max(LEAST_S) * (1.0 + 0.5 * spread(cluster, title, times));
        let waits = || {
            finds_no_node(state, number, patience, awaited)
                || is_in_the_way(state, number, patience, &gates)
        };
        // A single bundle is there or is not, and holds nothing while it waits for others.
        if demand.units() < 2 || title.is_empty() || !waits() {
            continue;
        }
        // A tenant may make any number of placement groups. Those that are known are still
        // tried again.
        if times == 0 && waiting.len() >= MOST {
            continue;
        }
        let times = times.saturating_add(1);
        let later = RETRY.wait_s(times) * (0.5 + spread(cluster, title, times));
        let memory = GangMemory {
            times,
            retry_at: now + later,
        };
        // Remembered by title, because Ray's report has the placement groups in another order each time.
        waiting.insert(title.to_owned(), memory);
        is_any = true;
    }
    is_any
}

/// True if a pod for a placement group has found no Kubernetes node for that long, and none is on its way.
fn finds_no_node(
    state: &DecisionState,
    gang: DemandIndex,
    patience_s: f64,
    awaited: &HashSet<&str>,
) -> bool {
    state.tables.unschedulable_s.iter().any(|(number, waits)| {
        let node = &state.nodes[*number];
        let is_awaited = node.pod().is_some_and(|pod| awaited.contains(pod));
        *waits >= patience_s && !is_awaited && is_for(node, gang)
    })
}

/// True if a placement group whose pods have had scheduling gates for that long is in the way of others.
///
/// Pods with scheduling gates take nothing from anybody, and are admitted as soon as all of
/// them can be. They only are in the way of what was asked for together with them, and for
/// them others may hold room.
fn is_in_the_way(
    state: &DecisionState,
    gang: DemandIndex,
    patience_s: f64,
    gates: &HashMap<&str, f64>,
) -> bool {
    let gated_s = |node: &PlannedNode| gates.get(node.pod()?);
    let waits = |node: &PlannedNode| {
        is_for(node, gang) && gated_s(node).is_some_and(|waits| *waits >= patience_s)
    };
    let is_hindered = |node: &PlannedNode| {
        if is_for(node, gang) {
            node.stage() == Stage::Running
        } else {
            gated_s(node).is_some() && node.stays()
        }
    };
    !gates.is_empty() && state.in_order().any(waits) && state.in_order().any(is_hindered)
}

fn is_for(node: &PlannedNode, gang: DemandIndex) -> bool {
    node.takes.iter().any(|take| take.demand == gang)
}

/// A number from 0 up to 1 that is the same whenever it is asked for, and another one for each
/// placement group and each of its tries.
fn spread(cluster: &str, title: &str, times: u32) -> f64 {
    // Its keys are always the same, unlike those of a `HashMap`, and equal snapshots are to give
    // equal plans.
    let mut hasher = DefaultHasher::new();
    (cluster, title, times).hash(&mut hasher);
    let share = u32::try_from(hasher.finish() >> 32).unwrap_or_default();
    f64::from(share) / (f64::from(u32::MAX) + 1.0)
}
