//! Making room: idle nodes go before their idle timeout where demand that waits could run in their
//! room, and cannot run on them.
//!
//! Demand waits for room in two ways: for a pod that the scheduler cannot place, and for a running
//! pod to grow where its Kubernetes node is full. In both cases the Kubernetes node is looked for
//! on which the fewest idle nodes have to go. No more go than that, and none where it would not be
//! enough. For a pod only Kubernetes nodes count on which it may run: a pod of a like group is there, and the
//! scheduler has not left the room that is there already. Pods that go already leave room, too: no other
//! one goes for what will fit in that, and an idle node that will grow into it stays until then.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::hash::{HashMap, HashSet};
use crate::plan::decided::Decided;
use crate::plan::demand::requests::RequestBatch;
use crate::plan::growth::headroom::NodeHeadroom;
use crate::plan::list::{GroupIndex, KubeNodeIndex, List, NodeIndex};
use crate::plan::nodes::amounts::CountedAmounts;
use crate::plan::nodes::node::{Fate, PlannedNode, Stage};
use crate::plan::nodes::rows::Leftovers;
use crate::plan::nodes::tables::KeptReason;
use crate::plan::outcome::cause::RemovalCause;
use crate::plan::packing::budget::WorkBudget;
use crate::plan::packing::fit::FitTrial;
use crate::plan::packing::state::DecisionState;
use crate::plan::situation::Situation;
use crate::plan::slices::rooms::unplaced::{UnplacedPod, is_refused, suits, unscheduled};
use crate::plan::slices::shrinking::about_to_go;
use crate::ray::resource::Amounts;
use crate::snapshot::history::RoomMemory;
use crate::snapshot::pod::Pod;

/// Seconds for which a node has been idle before it makes room: between two tasks of one burst a
/// node is idle for a moment only. If nodes go before that, it is half of their idle timeout: all
/// of them would go at once, come again, and be in each other's way as before.
const IDLE_S: f64 = 10.0;

/// The most steps for looking for room. They do not count towards the work budget of the decision.
const STEPS: u64 = 1_000_000;

/// The most steps for looking for idle nodes that wait for room. Those that are not found go a moment too early.
const WAITING_STEPS: u64 = 10_000;

/// The most Kubernetes nodes of which it is remembered that they have room. On any further one, room counts for
/// as long as it is there.
const MOST: usize = 1000;

/// The reason why idle nodes are kept that could grow for demand that waits.
const AWAITS_ROOM: &str =
    "pods go from its Kubernetes node, and leave it room to grow for demand that waits";

/// The pods whose Ray node is draining, or has stopped: they go. One that has ended takes nothing of its Kubernetes
/// node any more.
fn leaving<'l, 'a>(leftovers: &'l Leftovers<'a>) -> impl Iterator<Item = &'a Pod<'a>> + 'l {
    let leaving = leftovers.draining.iter().chain(&leftovers.stopped);
    leaving.copied().filter(|pod| !pod.ended)
}

/// Removes idle nodes in whose room the demand in `rest` could run, or a pod that the scheduler
/// cannot place and that demand needs. Returns the room to remember.
pub(crate) fn make_room(decided: &mut Decided<'_>, rest: &[RequestBatch]) -> RoomMemory {
    let situation = decided.situation;
    let pods = situation.pods_by_name();
    let mut rooms = Rooms::of(decided, &pods);
    let state = &mut decided.state;
    let waiting = unscheduled(state, &pods);
    rooms.remember(state, &waiting, situation);
    if rooms.idle.iter().all(Vec::is_empty) {
        return rooms.memory;
    }
    let work = std::mem::replace(&mut state.work, WorkBudget::new(STEPS));
    let mut refused = None;
    for waiting in waiting {
        // Equal pods, one after the other, find no room either.
        if refused != Some(waiting) && !rooms.for_pod(state, waiting, situation.now) {
            refused = Some(waiting);
        }
    }
    for batch in rest {
        for _ in 0..batch.count {
            if state.work.is_over() || !rooms.for_growth(state, *batch) {
                break;
            }
        }
    }
    state.work = work;
    rooms.memory
}

/// Keeps idle nodes that could grow for the demand in `rest` as soon as pods that are going have
/// gone. There may be more of them than will find room; once the pods have gone, none of them is
/// kept for that any more.
pub(crate) fn await_room(decided: &mut Decided<'_>, rest: &[RequestBatch]) {
    let situation = decided.situation;
    let goes = |pod: &Pod<'_>| pod.deleting && !pod.ended;
    if rest.is_empty()
        || leaving(&decided.leftovers).next().is_none() && !situation.own_pods.iter().any(goes)
    {
        return;
    }
    let pods = situation.pods_by_name();
    let rooms = Rooms::of(decided, &pods);
    let state = &mut decided.state;
    let growing = rooms.growing.enumerate();
    let growing = growing.filter(|(at, _)| rooms.is_left.contains(at));
    let growing = growing.flat_map(|(at, numbers)| numbers.iter().map(move |number| (at, *number)));
    let is_idle = |number: NodeIndex| state.nodes[number].is_idle_worker();
    // With a short idle timeout they would be removed a moment before there is room.
    let mut idle: Vec<_> = growing.filter(|(_, number)| is_idle(*number)).collect();
    let work = std::mem::replace(&mut state.work, WorkBudget::new(WAITING_STEPS));
    for batch in rest {
        let mut count = batch.count;
        idle.retain(|(at, number)| {
            let stays = count > 0
                && state.work.spend(1)
                && could_take(state, *number, &rooms.rest[*at], *batch);
            if stays {
                state
                    .tables
                    .kept
                    .insert(*number, KeptReason::For(AWAITS_ROOM));
                count -= 1;
            }
            !stays
        });
    }
    state.work = work;
}

/// An idle node with what it leaves when it goes.
type Idle = (NodeIndex, Amounts);

/// Room on the Kubernetes nodes, and the nodes on them.
struct Rooms {
    /// The headroom of each Kubernetes node when all pods have gone that are to go.
    rest: List<KubeNodeIndex, NodeHeadroom>,
    /// The cores that pods on it are about to give up.
    shrinks: List<KubeNodeIndex, f64>,
    /// The idle nodes on it that may go, the one last that has been idle for longest.
    idle: List<KubeNodeIndex, Vec<Idle>>,
    /// The running nodes on it that may grow.
    growing: List<KubeNodeIndex, Vec<NodeIndex>>,
    /// The Kubernetes nodes that pods leave.
    is_left: HashSet<KubeNodeIndex>,
    /// The groups of the pods on it.
    groups: List<KubeNodeIndex, HashSet<GroupIndex>>,
    /// The time since which they have had room for pods that wait.
    memory: RoomMemory,
}

impl Rooms {
    fn of(decided: &Decided<'_>, pods: &HashMap<&str, &Pod<'_>>) -> Self {
        let state = &decided.state;
        let mut rooms = Self {
            rest: state.headrooms.clone(),
            shrinks: state.headrooms.map(|_| 0.0),
            idle: state.headrooms.map(|_| Vec::new()),
            growing: state.headrooms.map(|_| Vec::new()),
            is_left: HashSet::default(),
            groups: state.headrooms.map(|_| HashSet::default()),
            memory: RoomMemory::new(),
        };
        let names = state.headrooms.enumerate();
        let names: HashMap<&str, KubeNodeIndex> =
            names.map(|(at, one)| (one.node.as_str(), at)).collect();
        let place = |pod: &Pod<'_>| pod.node.and_then(|node| names.get(node)).copied();
        rooms.add_going(decided, pods, place);
        let mut above = state.count(PlannedNode::stays);
        let mut numbers: Vec<NodeIndex> = state.order.clone();
        numbers.sort_by_key(|number| Reverse(state.nodes[*number].idle_ms));
        for number in numbers {
            let node = &state.nodes[number];
            let pod = node.pod().and_then(|pod| pods.get(pod));
            let Some((at, pod)) = pod.and_then(|pod| Some((place(pod)?, pod))) else {
                continue;
            };
            rooms.groups[at].extend(node.group());
            if node.fate != Fate::Stay || node.stage() != Stage::Running || node.head {
                continue;
            }
            let resize = node.resize.as_deref();
            if let Some((resize, notes)) = resize.zip(state.tables.sizes.get(&number)) {
                rooms.shrinks[at] += about_to_go(resize, notes, decided.situation.now);
                if resize.can_grow() {
                    rooms.growing[at].push(number);
                }
            }
            if let Some(group) = node.group()
                && above[group] > state.groups[group].config.min
                // A host goes with its whole replica only, and that may be on other Kubernetes
                // nodes.
                && state.hosts(group) <= 1
                && may_go(state, number, decided.config.idle_timeout_s)
            {
                above[group] -= 1;
                rooms.idle[at].push((number, pod.requests()));
            }
        }
        rooms.idle.iter_mut().for_each(|idle| idle.reverse());
        rooms
    }

    /// Adds the room that pods leave which go.
    fn add_going(
        &mut self,
        decided: &Decided<'_>,
        pods: &HashMap<&str, &Pod<'_>>,
        place: impl Fn(&Pod<'_>) -> Option<KubeNodeIndex>,
    ) {
        let deleted = decided.situation.own_pods.iter();
        let deleted = deleted.filter(|pod| pod.deleting && !pod.ended);
        let goes = |node: &&PlannedNode| matches!(node.fate, Fate::Remove(_));
        let removed = decided.state.in_order().filter(goes);
        let removed = removed.filter_map(|node| pods.get(node.pod()?).copied());
        let mut going: HashSet<&str> = HashSet::default();
        for pod in leaving(&decided.leftovers).chain(deleted).chain(removed) {
            if going.insert(pod.name)
                && let Some(at) = place(pod)
            {
                self.rest[at].put(pod.requests());
                self.is_left.insert(at);
            }
        }
    }

    /// Remembers which Kubernetes nodes have room for pods that wait, although nothing leaves them.
    fn remember(
        &mut self,
        state: &DecisionState,
        waiting: &[UnplacedPod],
        situation: &Situation<'_>,
    ) {
        let mut groups = HashSet::default();
        for (group, amounts) in waiting {
            // Pods of one group mostly ask for the same.
            if !groups.insert(*group) {
                continue;
            }
            let name = state.name(*group).to_owned();
            let remembered = situation.history().rooms.get(&name);
            for (at, room) in self.rest.enumerate() {
                if !room.holds(*amounts, 0.0)
                    || self.is_left.contains(&at)
                    || !self.may_run(state, *group, at)
                {
                    continue;
                }
                let since = remembered.and_then(|nodes| nodes.get(&room.node));
                // The clock may have been set back.
                let since = since.map_or(situation.now, |since| since.min(situation.now));
                if self.memory.values().map(BTreeMap::len).sum::<usize>() < MOST {
                    let nodes = self.memory.entry(name.clone()).or_default();
                    nodes.insert(room.node.clone(), since);
                }
            }
        }
    }

    /// True if a pod of a group may run on a Kubernetes node, as far as is known.
    fn may_run(&self, state: &DecisionState, group: GroupIndex, at: KubeNodeIndex) -> bool {
        let mut neighbour = self.groups[at].iter();
        neighbour.any(|neighbour| suits(state, group, Some(*neighbour)))
    }

    /// Makes room for a pod. Returns whether there is any.
    fn for_pod(
        &mut self,
        state: &mut DecisionState,
        (group, amounts): UnplacedPod,
        now: f64,
    ) -> bool {
        let makes = |(number, _): &Idle| suits(state, group, state.nodes[*number].group());
        let holds = |at: KubeNodeIndex, gone: &[Idle], room: &NodeHeadroom| {
            room.holds(amounts, self.shrinks[at])
                && gone.iter().all(makes)
                && (!gone.is_empty()
                    || self.may_run(state, group, at)
                        && !is_refused(state, &self.memory, (group, at), now))
        };
        let Some((at, count)) = self.fewest(state, holds) else {
            return false;
        };
        self.remove(state, at, count);
        self.rest[at].take(amounts);
        true
    }

    /// Makes room for a running node that then takes a unit of the batch. Returns whether there is
    /// any such node.
    fn for_growth(&mut self, state: &mut DecisionState, batch: RequestBatch) -> bool {
        let takes = |at: KubeNodeIndex, gone: &[Idle], room: &NodeHeadroom| {
            let stays = |number: &&NodeIndex| gone.iter().all(|(gone, _)| gone != *number);
            let mut staying = self.growing[at].iter().filter(stays);
            staying.any(|number| could_take(state, *number, room, batch))
        };
        let Some((at, count)) = self.fewest(state, takes) else {
            return false;
        };
        self.remove(state, at, count);
        // The next round knows what else could run there.
        self.idle[at].clear();
        self.growing[at].clear();
        true
    }

    /// The Kubernetes node on which the fewest idle nodes have to go until `suffices` is true of
    /// what is left then, and how many these are.
    fn fewest(
        &self,
        state: &DecisionState,
        suffices: impl Fn(KubeNodeIndex, &[Idle], &NodeHeadroom) -> bool,
    ) -> Option<(KubeNodeIndex, usize)> {
        let mut best: Option<(KubeNodeIndex, usize)> = None;
        for (at, idle) in self.idle.enumerate() {
            let mut room = self.rest[at].clone();
            // Only fewer is better, so of equally good Kubernetes nodes the first one is kept.
            let most = best.map_or(idle.len(), |(_, fewest)| fewest.saturating_sub(1));
            for count in 0..=most.min(idle.len()) {
                if !state.work.spend(1) {
                    return None;
                }
                let first_gone = idle.len() - count;
                if let Some((_, amounts)) = idle.get(first_gone) {
                    room.put(*amounts);
                }
                let gone = idle.get(first_gone..).unwrap_or_default();
                if suffices(at, gone, &room) {
                    best = Some((at, count));
                    break;
                }
            }
            if best.is_some_and(|(_, fewest)| fewest == 0) {
                break;
            }
        }
        best
    }

    /// Removes so many of the idle nodes on a Kubernetes node.
    fn remove(&mut self, state: &mut DecisionState, at: KubeNodeIndex, count: usize) {
        for _ in 0..count {
            let Some((number, amounts)) = self.idle[at].pop() else {
                return;
            };
            self.rest[at].put(amounts);
            self.is_left.insert(at);
            self.growing[at].retain(|growing| *growing != number);
            state.nodes[number].fate = Fate::Remove(RemovalCause::GivesWay);
        }
    }
}

/// True for an idle node that may go before its idle timeout.
#[expect(clippy::cast_precision_loss, reason = "milliseconds")]
fn may_go(state: &DecisionState, number: NodeIndex, of_cluster: f64) -> bool {
    let node = &state.nodes[number];
    let of_group = state.group(node).and_then(|of| of.config.idle_timeout_s());
    let idle_s = IDLE_S.min(of_group.unwrap_or(of_cluster) / 2.0);
    let is_idle = node.is_idle_worker() && node.idle_ms as f64 >= idle_s * 1000.0;
    is_idle && !state.is_on_standby(number)
}

/// True if a running node could take a unit of the batch, given so much room on its Kubernetes node.
fn could_take(
    state: &DecisionState,
    number: NodeIndex,
    room: &NodeHeadroom,
    batch: RequestBatch,
) -> bool {
    let mut node = state.nodes[number].clone();
    let resize = node.resize.as_deref();
    if let Some(goal) = resize.map(|resize| resize.goal(Some(room))) {
        node.set_size((state.cpu, state.memory), goal);
    }
    let one = RequestBatch { count: 1, ..batch };
    FitTrial::of(&node, &[one], CountedAmounts::Free, state).is_some()
}
