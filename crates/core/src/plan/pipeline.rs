//! The decision with all slices: Ray's decision, and what is added to it, in this order, which is that of the table in
//! `docs/planner.md`. A slice is left out where the settings say so ([`Slice`]).
//!
//! 1. Reading. Rows, groups and resizes count as the objects have them (`objects`, `resizes`, `raylets`).
//!    Nodes that go in any case take nothing (`departures`, `blocked`), and those
//!    that will grow count at the size that they will have (`growth_backoff`).
//! 2. Before demand: what has been given up for now is not tried (`gangs`), memory that is nearly full comes before
//!    demand, because work that runs would be killed for it (`memory_in_use`), and nodes above a maximum get their time
//!    (`excess`).
//! 3. After demand: what is to be kept ready is placed on what is left (`standby`).
//! 4. After packing: what nothing needs any more goes (`given_up`, `small_pods`), or becomes smaller (`shrinking`,
//!    `memory_in_use`), and last, because what goes and shrinks in any case may leave enough room, idle nodes go for
//!    what waits (`rooms`). The hosts of a replica go together (`whole_replicas`).
//! 5. In the plan: new pods are made as large as their demand (`initial_sizes`), and workers with work are marked
//!    (`holds`).

use crate::hash::HashSet;
use crate::plan::decided::Decided;
use crate::plan::demand::shape::ShapeId;
use crate::plan::packing::pack::PackingRules;
use crate::plan::packing::servable::servable;
use crate::plan::removal::enforce;
use crate::plan::serve::serve;
use crate::plan::situation::Situation;
use crate::plan::slice::Slice;
use crate::plan::slices::blocked::memory as blocked;
use crate::plan::slices::findings::Findings;
use crate::plan::slices::gangs::attempts::Attempts;
use crate::plan::slices::rooms::make_room::{await_room, make_room};
use crate::plan::slices::shrinking::{holders, shrink};
use crate::plan::slices::small_pods::bursts;
use crate::plan::slices::small_pods::keep::keep_small;
use crate::plan::slices::standby::ready;
use crate::plan::slices::{excess, given_up, memory_in_use, read, whole_replicas};
use crate::snapshot::pod::Pod;

/// Decides with all slices, while `attempts` are not tried.
pub(crate) fn decide<'a>(
    situation: &'a Situation<'a>,
    attempts: &'a Attempts,
) -> (Decided<'a>, Findings<'a>) {
    let (settings, history, now) = (situation.settings, situation.history(), situation.now);
    let (mut decided, mut findings, goals) = read::read(situation, attempts);
    let kept_back = attempts.keep_back(&mut decided);
    let evidence = &findings.evidence;
    let blocks = settings.with(Slice::Blocked, || blocked::mark(&mut decided, evidence));
    decided.problems.extend(blocks);
    settings.with(Slice::Excess, || {
        excess::count_draining(&mut decided, &findings.hanging);
    });
    let state = &mut decided.state;
    enforce::enforce_minima(state, |group| &group.template);
    enforce::enforce_group_maxima(state, true);
    enforce::enforce_cluster_maximum(state, true);
    findings.excess = settings.with(Slice::Excess, || excess::excess_nodes(&decided));
    let state = &mut decided.state;
    let reliefs = memory_in_use::reserve(state);
    let rules = settings.with(Slice::SteadyPacking, || PackingRules::Steady);
    decided.remainder = serve(state, &decided.demands, rules);
    memory_in_use::grant(state, &reliefs, now);
    let (standby, only_ready) = ready::keep_ready(&mut decided, &goals);
    let given_up = standby.is_none().then(ready::given_up);
    decided.problems.extend(given_up);
    findings.standby = standby.unwrap_or_default();
    let state = &decided.state;
    findings.at_work = bursts::at_work(history, state);
    findings.bursts = settings.with(Slice::Gaps, || Some(bursts::record(history, state, now)));
    release(&mut decided, &mut findings, &kept_back, &only_ready);
    decided.problems.extend(decided.state.cut());
    (decided, findings)
}

/// The slices after packing: what nothing needs any more goes, or becomes smaller. `only_ready` are the pods that are
/// for nothing but what is to be kept ready, by name.
fn release(
    decided: &mut Decided<'_>,
    findings: &mut Findings<'_>,
    kept_back: &HashSet<ShapeId>,
    only_ready: &HashSet<String>,
) {
    // The demand that is left and that a node could serve; `None` where neither demand nor a pod waits for room.
    let waiting = servable(&decided.state, &decided.remainder);
    let waits = |pod: &Pod<'_>| pod.is_unschedulable() && !only_ready.contains(pod.name);
    let is_any = !waiting.is_empty() || decided.situation.own_pods.iter().any(waits);
    let waiting = is_any.then_some(&*waiting);
    let (situation, idle_s) = (decided.situation, decided.config.idle_timeout_s);
    let (settings, history, now) = (situation.settings, situation.history(), situation.now);
    let in_need = waiting.filter(|_| settings.has(Slice::Rooms));
    settings.with(Slice::GivenUp, || {
        given_up::launches(&mut decided.state);
        given_up::scattered(&mut decided.state, kept_back);
    });
    // Before idle nodes go: those that will grow into the room of others must not be among them.
    if let Some(waiting) = in_need {
        await_room(decided, waiting);
    }
    let state = &mut decided.state;
    // Demand of blocked groups went to others meanwhile, so their pods and those of the others are not all needed.
    let was_blocked = state.has_blocked || !history.blocked.is_empty();
    let withdrawn_s = was_blocked.then_some(given_up::WITHDRAWN_AFTER_S);
    let withdrawn_s = withdrawn_s.filter(|_| settings.has(Slice::GivenUp));
    let pending_s = settings.pending_idle_timeout_s.or(withdrawn_s);
    if pending_s.is_some() {
        enforce::note_unneeded(state, &history.unneeded_since, now);
    }
    let keeps_small = waiting.is_none() && settings.has(Slice::SmallPods);
    if let Some(longest) = settings.keep_small_s.filter(|_| keeps_small) {
        keep_small(state, findings, (idle_s, longest));
    }
    enforce::enforce_idle(state, (idle_s, pending_s), now);
    enforce::forget_removed(state);
    // After the removals, because a node that goes holds nothing and has nothing to give up.
    let holders = holders(state, &decided.demands);
    let shrink_after_s = settings.with(Slice::Shrinking, || settings.shrink_after_s);
    shrink(state, shrink_after_s, waiting.is_some(), &holders, now);
    memory_in_use::give_back(state, &holders, now);
    if waiting.is_some() && settings.has(Slice::GivenUp) {
        given_up::vain(state);
    }
    if let Some(waiting) = in_need {
        findings.rooms = make_room(decided, waiting);
    }
    let state = &mut decided.state;
    settings.with(Slice::WholeReplicas, || whole_replicas::hold_back(state));
}
