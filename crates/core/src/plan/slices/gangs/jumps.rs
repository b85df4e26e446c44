//! Jumps that are not admitted: the number of replicas asked for at once where scheduling gates stay.
//!
//! A queue such as Kueue's admits all new pods of a cluster or none of them: it counts the cluster as
//! one request, with all of its groups. A jump that does not fit its quota would wait as a whole, though
//! a part of it could run. So a jump that has not been admitted for a while is halved, again and again,
//! until something is admitted or one replica is left, which waits: it asks for as little as possible,
//! and takes no quota while it does. What is admitted is then searched for between what was and what was not.
//! Later steps begin with one replica and double, and a larger one that fails makes the next wait longer.
//!
//! Groups take turns if the one replica that is left is of a group that cannot be admitted.
//!
//! Placement groups are not halved, because they are of use as a whole only ([`placement_groups`](super::placement_groups)).

use crate::hash::HashSet;
use crate::plan::decided::Decided;
use crate::plan::list::{ByGroup, GroupIndex};
use crate::plan::nodes::node::{PlannedNode, Stage};
use crate::plan::slices::gangs::gated::{GatedReplica, Jump, sum};
use crate::seconds::Retry;
use crate::snapshot::history::JumpMemory;

/// The times for which a step is no larger than what is known to be left.
const RETRY: Retry = Retry::UP_TO_TEN_MINUTES;

/// Seconds without scheduling gates after which a jump is forgotten.
pub(super) const FORGOTTEN_AFTER_S: f64 = 3600.0;

/// The number of nodes that may be launched now beside what has not been admitted.
#[derive(Debug)]
pub(crate) struct JumpRoom {
    /// By group; `None` sets no bound.
    pub(crate) limits: ByGroup<Option<u64>>,
    /// Less than what is needed.
    pub(crate) is_short: bool,
}

/// Takes back a part of the jump, if it was not admitted. Returns its pods, by name.
pub(super) fn shrink(memory: &mut Option<JumpMemory>, decided: &Decided<'_>) -> HashSet<String> {
    let mut withdrawn = HashSet::default();
    let (state, now) = (&decided.state, decided.situation.now);
    let mut nodes = state.in_order();
    // While the head does not run, nothing is done.
    let acts = nodes.any(|node| node.head && node.stage() == Stage::Running);
    let Some(jump) = Jump::of(decided, memory.as_ref()) else {
        return withdrawn;
    };
    if !jump.is_refused || !acts || state.is_left_alone() || state.work.is_over() {
        return withdrawn;
    }
    let all = jump.replicas.len();
    let vain = jump.replicas.iter().filter(|one| !one.is_needed).count();
    let makes_way = (memory.as_ref()).and_then(|memory| makes_way(memory, &jump, decided));
    let goal = match vain {
        0 if all > 1 => all - all / 2,
        0 => usize::from(makes_way.is_some()),
        // They go by themselves once their time is over.
        _ if vain == all => 0,
        _ => vain,
    };
    let is_asked = |node: &PlannedNode| node.pod().is_some() || node.stage() == Stage::Requested;
    let mut counts = state.count(|node| node.stays() && is_asked(node));
    // KubeRay makes what a group's minimum needs again.
    let may_go = |one: &&GatedReplica<'_>| {
        let min = state.groups[one.group].config.min;
        let rest = counts[one.group].checked_sub(one.pods.len() as u64);
        let rest = rest.filter(|rest| *rest >= min);
        if let Some(rest) = rest {
            counts[one.group] = rest;
        }
        rest.is_some()
    };
    for one in jump.replicas.iter().filter(may_go).take(goal) {
        withdrawn.extend(one.pods.iter().map(|pod| (*pod).to_owned()));
    }
    if withdrawn.is_empty() {
        return withdrawn;
    }
    let memory = memory.get_or_insert_default();
    if now - memory.at >= FORGOTTEN_AFTER_S {
        memory.times = 0;
    }
    if now >= larger_at(memory) {
        memory.times = memory.times.saturating_add(1);
    }
    memory.refused = makes_way.is_none().then(|| jump.all());
    (memory.at, memory.seen_at, memory.admitted) = (now, now, jump.admitted);
    for number in jump.groups() {
        let name = state.name(number).to_owned();
        memory.groups.entry(name).or_default();
    }
    let turn = makes_way.and_then(|group| memory.groups.get_mut(state.name(group)));
    if let Some(turn) = turn {
        turn.times = turn.times.saturating_add(1);
        turn.until = now + RETRY.wait_s(turn.times);
    }
    withdrawn
}

/// The group whose last replica makes way for another group of the jump.
fn makes_way(memory: &JumpMemory, jump: &Jump<'_>, decided: &Decided<'_>) -> Option<GroupIndex> {
    let [last] = jump.replicas.as_slice() else {
        return None;
    };
    let waits = |(number, needed): (GroupIndex, &u64)| {
        let turn = memory.groups.get(decided.state.name(number));
        let is_due = turn.is_some_and(|turn| turn.until <= decided.situation.now);
        number != last.group && *needed > 0 && is_due
    };
    jump.needed.enumerate().any(waits).then_some(last.group)
}

/// The launches allowed now; `None` if there is no bound.
pub(crate) fn room(decided: &Decided<'_>, memory: Option<&JumpMemory>) -> Option<JumpRoom> {
    let (state, now) = (&decided.state, decided.situation.now);
    let jump = Jump::of(decided, memory)?;
    let mut allowance = match memory {
        _ if jump.is_refused => 0,
        None => return None,
        Some(memory) => {
            let step = match memory.refused {
                // The quota that is left is known to be less than that.
                Some(refused) if now < larger_at(memory) => {
                    refused.saturating_sub(jump.admitted) / 2
                }
                _ => jump.admitted.saturating_sub(memory.admitted),
            };
            step.max(1).saturating_sub(sum(&jump.pending))
        }
    };
    let turn = |number: GroupIndex| memory?.groups.get(state.name(number)).copied();
    let mut concerned: Vec<(u32, GroupIndex)> = jump
        .groups()
        .map(|number| (turn(number).map_or(0, |turn| turn.times), number))
        .collect();
    // A group that has made way for others comes after these.
    concerned.sort_unstable();
    let mut room = JumpRoom {
        limits: state.groups.map(|_| None),
        is_short: false,
    };
    for (times, number) in concerned {
        let hosts = state.hosts(number);
        let needed = jump.needed[number].div_ceil(hosts);
        let makes_way = turn(number).is_some_and(|turn| turn.until > now);
        let most = match times {
            _ if makes_way => 0,
            0 => allowance,
            // Of such a group nobody knows yet whether any can be admitted.
            _ => allowance.min(1_u64.saturating_sub(jump.pending[number])),
        };
        let count = needed.min(most);
        allowance -= count;
        room.is_short |= count < needed;
        let gangs = jump.of_gangs[number].div_ceil(hosts);
        room.limits[number] = Some(count.saturating_add(gangs).saturating_mul(hosts));
    }
    Some(room)
}

/// Memory for the next round.
pub(crate) fn update(decided: &Decided<'_>, previous: Option<&JumpMemory>) -> Option<JumpMemory> {
    let now = decided.situation.now;
    let jump = Jump::of(decided, previous)?;
    let fresh = || JumpMemory {
        admitted: jump.admitted,
        ..JumpMemory::default()
    };
    // A smaller request is another one, whatever made it smaller, and gets its time.
    let is_another = jump.is_gated && jump.is_less;
    let mut memory = match previous {
        Some(memory) => memory.clone(),
        None if is_another => fresh(),
        None => return None,
    };
    if is_another {
        memory.at = now;
    }
    if jump.is_gated {
        memory.seen_at = now;
    }
    if jump.is_refused {
        memory.refused = Some(jump.all());
        memory.admitted = jump.admitted;
    }
    // Steps double from the fewest that were admitted since.
    memory.admitted = memory.admitted.min(jump.admitted);
    memory.groups.retain(|name, turn| {
        let counts = turn.times == 0 || now - turn.until < FORGOTTEN_AFTER_S;
        counts && decided.config.number(name).is_some()
    });
    Some(memory)
}

/// The time at which a larger step is tried again, in seconds since 1970.
fn larger_at(memory: &JumpMemory) -> f64 {
    memory.at + RETRY.wait_s(memory.times)
}
