//! The minimum and maximum of groups, the maximum of the cluster, and idle nodes. (Ray,
//! `scheduler.py`, `_enforce_*`.)

use std::collections::BTreeMap;

use crate::hash::HashMap;
use crate::plan::list::{ByGroup, GroupIndex, NodeIndex};
use crate::plan::nodes::node::{Fate, PlannedNode, Stage};
use crate::plan::nodes::tables::KeptReason;
use crate::plan::outcome::cause::RemovalCause;
use crate::plan::packing::state::{DecisionState, PlannedGroup, with_parts};

/// The most pods of a group of which it is remembered since when no demand has needed them.
const REMEMBERED: usize = 100_000;

/// The reason why idle nodes stay that their group's minimum needs.
const MINIMUM: &str = "its group has no more pods than its minReplicas";

/// Launches the nodes that are missing for the groups' minima, each as `likeness` has it, and puts them in front of all
/// other nodes.
pub(crate) fn enforce_minima(
    state: &mut DecisionState,
    likeness: fn(&PlannedGroup) -> &PlannedNode,
) {
    let mut order = Vec::new();
    let mut places = state.places();
    for (group, lacking) in state.lacking(PlannedNode::stays).enumerate() {
        let count = places.min(*lacking);
        state.is_cut |= count < *lacking;
        places -= count;
        if count > 0 {
            order.push(state.launch(group, count, likeness));
        }
    }
    order.append(&mut state.order);
    state.order = order;
}

/// Removes the nodes that a group has above its maximum. The list is regrouped: first the removed
/// nodes, then the groups in the order of their first node. Of those that stay Ray puts first what it would have
/// removed next, unless they keep their order (`keeps_order`).
pub(crate) fn enforce_group_maxima(state: &mut DecisionState, keeps_order: bool) {
    let (gone, staying) = split(state);
    let mut groups: Vec<(Option<GroupIndex>, Vec<NodeIndex>)> = Vec::new();
    let mut places: HashMap<Option<GroupIndex>, usize> = HashMap::default();
    for number in staying {
        let group = state.nodes[number].group();
        let at = *places.entry(group).or_insert(groups.len());
        match groups.get_mut(at) {
            Some((_, numbers)) => numbers.push(number),
            None => groups.push((group, vec![number])),
        }
    }
    let mut order = gone;
    let mut rest = Vec::new();
    for (group, numbers) in groups {
        let max = group.map_or(u64::MAX, |group| state.groups[group].config.max);
        let (out, stays) = take_out(state, numbers, max, RemovalCause::GroupMax, keeps_order);
        order.extend(out);
        rest.extend(stays);
    }
    order.extend(rest);
    state.order = order;
}

/// Removes the nodes that the cluster has above its maximum.
pub(crate) fn enforce_cluster_maximum(state: &mut DecisionState, keeps_order: bool) {
    let (mut gone, staying) = split(state);
    // Ray takes a maximum of 0 for no maximum.
    if state.max_nodes == 0 || state.sum(&staying) <= state.max_nodes {
        return;
    }
    let (out, stays) = take_out(
        state,
        staying,
        state.max_nodes,
        RemovalCause::ClusterMax,
        keeps_order,
    );
    gone.extend(out);
    gone.extend(stays);
    state.order = gone;
}

fn split(state: &DecisionState) -> (Vec<NodeIndex>, Vec<NodeIndex>) {
    let order = state.order.iter();
    order.partition(|number| !state.nodes[**number].stays())
}

/// Removes the first nodes of `numbers`, in the order of removal, until `max` are left. The head is
/// never removed, and moves to the end.
fn take_out(
    state: &mut DecisionState,
    mut numbers: Vec<NodeIndex>,
    max: u64,
    cause: RemovalCause,
    keeps_order: bool,
) -> (Vec<NodeIndex>, Vec<NodeIndex>) {
    let mut extra = state.sum(&numbers).saturating_sub(max);
    if extra == 0 {
        return (Vec::new(), numbers);
    }
    let listed = numbers.clone();
    sort_for_removal(state, &mut numbers);
    let head = numbers.iter().position(|number| state.nodes[*number].head);
    let head = head.map(|at| numbers.remove(at));
    let (mut gone, mut stays) = (Vec::new(), Vec::new());
    for number in numbers {
        let count = state.nodes[number].count;
        if extra == 0 {
            stays.push(number);
        } else if count <= extra {
            gone.push(number);
        } else {
            gone.push(state.split(number, extra));
            stays.push(number);
        }
        extra = extra.saturating_sub(count);
    }
    stays.extend(head);
    for number in &gone {
        state.nodes[*number].fate = Fate::Remove(cause);
    }
    if keeps_order {
        // The order of the nodes decides between equally good ones, and should do so in the next
        // round as in this one.
        let still = |number: &NodeIndex| state.nodes[*number].stays();
        stays = listed.into_iter().filter(still).collect();
    }
    (gone, stays)
}

/// Sorts nodes in the order of removal: those in which Ray does not run first, then those that have been idle
/// for longest, then those that are least in use.
pub(crate) fn sort_for_removal(state: &DecisionState, numbers: &mut [NodeIndex]) {
    // The shares once for each node, because sorting compares each of them many times.
    let share = |number: &NodeIndex| (*number, state.nodes[*number].amounts.mean_use());
    let mut shares: Vec<(NodeIndex, f64)> = numbers.iter().map(share).collect();
    shares.sort_by(|(left, share), (right, other_share)| {
        let (one, other) = (&state.nodes[*left], &state.nodes[*right]);
        (one.ray_id().is_some().cmp(&other.ray_id().is_some()))
            .then(other.idle_ms.cmp(&one.idle_ms))
            .then_with(|| share.total_cmp(other_share))
    });
    for (place, (number, _)) in numbers.iter_mut().zip(shares) {
        *place = number;
    }
}

/// Removes nodes that no demand needs and that have been idle for longer than the timeout, but none
/// that its group's minimum needs, or that is kept ready. The timeouts, in seconds, are that of the cluster and
/// that of pending nodes; without the latter these are kept.
pub(crate) fn enforce_idle(
    state: &mut DecisionState,
    (cluster_s, pending_s): (f64, Option<f64>),
    now: f64,
) {
    let mut removal = PartialRemoval::begin(state);
    let mut numbers = state.order.clone();
    sort_for_removal(state, &mut numbers);
    for number in numbers {
        let node = &state.nodes[number];
        let Some(group) = node.group() else {
            continue;
        };
        let config = &state.groups[group].config;
        // A requested launch is left out, as by Ray. It has been idle for no time, so it never goes for
        // that.
        let timeout = if matches!(node.stage(), Stage::Queued | Stage::Allocated) {
            pending_s
        } else {
            let of_node = state.tables.idle_timeout_s(number);
            of_node.or(config.idle_timeout_s()).or(Some(cluster_s))
        };
        #[expect(clippy::cast_precision_loss, reason = "Ray does so, too")]
        let is_idle_for = |timeout: f64| node.idle_ms as f64 > timeout * 1000.0;
        let (staying, min) = (removal.counts[group], config.min);
        if node.fate != Fate::Stay
            || node.head
            || !node.is_unneeded()
            || state.tables.kept.contains_key(&number)
        {
            continue;
        }
        let Some(timeout) = timeout.filter(|timeout| is_idle_for(*timeout)) else {
            continue;
        };
        let keep_reason = if staying <= min {
            Some(KeptReason::For(MINIMUM))
        } else {
            let of_group = (group, staying);
            (state.tables).keep_reason(number, of_group, (timeout, now))
        };
        if let Some(why) = keep_reason {
            state.tables.kept.insert(number, why);
        } else {
            let least = min.max(state.tables.floor(group));
            removal.remove(state, number, least, RemovalCause::Idle);
        }
    }
    removal.end(state);
}

/// Gives pending nodes that no demand needs the times since when that has been so: queued launches
/// get the longest waits, and nodes with a pod the shortest. (Ray, `_update_pending_nodes_idle_duration`.)
pub(crate) fn note_unneeded(
    state: &mut DecisionState,
    remembered: &BTreeMap<String, Vec<f64>>,
    now: f64,
) {
    let mut waiting: BTreeMap<GroupIndex, Vec<NodeIndex>> = BTreeMap::new();
    for (number, node) in state.entries() {
        let is_pending = matches!(node.stage(), Stage::Queued | Stage::Allocated);
        let waits = is_pending && node.fate == Fate::Stay && !node.head && node.is_unneeded();
        if let Some(group) = node.group().filter(|_| waits) {
            waiting.entry(group).or_default().push(number);
        }
    }
    let mut notes = BTreeMap::new();
    let mut parts: HashMap<NodeIndex, Vec<NodeIndex>> = HashMap::default();
    for (group, mut numbers) in waiting {
        let name = state.name(group).to_owned();
        numbers.sort_by_key(|number| state.nodes[*number].stage() == Stage::Allocated);
        let mut since = remembered.get(&name).cloned().unwrap_or_default();
        let count = usize::try_from(state.sum(&numbers)).unwrap_or(usize::MAX);
        // Ray does not remember by node either: where fewer nodes wait than before, the oldest
        // times stay.
        since.resize(count.min(REMEMBERED), now);
        let mut times = since.as_slice();
        for number in numbers {
            note_since(state, number, &mut times, now, &mut parts);
        }
        notes.insert(name, since);
    }
    state.order = with_parts(std::mem::take(&mut state.order), &parts);
    state.unneeded_since = notes;
}

/// Takes a time for each of the nodes that an entry stands for. Nodes with the same time stay one
/// entry.
fn note_since(
    state: &mut DecisionState,
    number: NodeIndex,
    times: &mut &[f64],
    now: f64,
    parts: &mut HashMap<NodeIndex, Vec<NodeIndex>>,
) {
    loop {
        let count = state.nodes[number].count;
        let since = times.first().copied().unwrap_or(now);
        let same = times.iter();
        let same = same
            .take_while(|time| time.total_cmp(&since).is_eq())
            .count();
        let is_last = same == times.len() || same as u64 >= count;
        let part = if is_last {
            number
        } else {
            state.split(number, same as u64)
        };
        let taken = usize::try_from(count).map_or(same, |count| same.min(count));
        *times = times.get(taken..).unwrap_or_default();
        #[expect(clippy::cast_possible_truncation, reason = "milliseconds")]
        let idle = ((now - since) * 1000.0) as i64;
        state.nodes[part].idle_ms = idle;
        if is_last {
            return;
        }
        parts.entry(number).or_default().push(part);
    }
}

/// Forgets the times of pending nodes that are removed as idle.
pub(crate) fn forget_removed(state: &mut DecisionState) {
    let gone = state.count(|node| {
        node.fate == Fate::Remove(RemovalCause::Idle)
            && matches!(node.stage(), Stage::Queued | Stage::Allocated)
    });
    for (group, count) in state.groups.iter().zip(gone) {
        if let Some(since) = state.unneeded_since.get_mut(&group.config.name) {
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            // No other node may inherit these times.
            since.drain(..count.min(since.len()));
        }
    }
}

/// A removal of several entries, with what it leaves of each group. Launches without pods are one entry for several
/// nodes, of which a minimum may need some.
pub(crate) struct PartialRemoval {
    counts: ByGroup<u64>,
    parts: HashMap<NodeIndex, Vec<NodeIndex>>,
}

impl PartialRemoval {
    pub(crate) fn begin(state: &DecisionState) -> Self {
        Self {
            counts: state.count(PlannedNode::stays),
            parts: HashMap::default(),
        }
    }

    /// Removes as many nodes of an entry as its group has above `least`.
    pub(crate) fn remove(
        &mut self,
        state: &mut DecisionState,
        number: NodeIndex,
        least: u64,
        cause: RemovalCause,
    ) {
        let node = &state.nodes[number];
        let Some(group) = node.group() else {
            return;
        };
        let count = node.count.min(self.counts[group].saturating_sub(least));
        if count == 0 {
            return;
        }
        self.counts[group] -= count;
        let mut removed = number;
        if count < node.count {
            removed = state.split(number, count);
            self.parts.entry(number).or_default().push(removed);
        }
        state.nodes[removed].fate = Fate::Remove(cause);
    }

    /// Takes the parts that were split off into the order.
    pub(crate) fn end(self, state: &mut DecisionState) {
        state.order = with_parts(std::mem::take(&mut state.order), &self.parts);
    }
}
