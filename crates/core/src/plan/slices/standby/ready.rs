//! Finding nodes for what is to be kept ready, and giving them up where demand needs their room.

use std::collections::BTreeMap;

use crate::hash::HashSet;
use crate::plan::decided::Decided;
use crate::plan::demand::requests::{Demand, RequestBatch};
use crate::plan::demand::shape::Shape;
use crate::plan::list::{DemandIndex, GroupIndex, List, NodeIndex, StandbyIndex};
use crate::plan::nodes::amounts::CountedAmounts;
use crate::plan::nodes::node::{Fate, PlannedNode, Stage};
use crate::plan::nodes::tables::{Floor, StandbyRole};
use crate::plan::outcome::problem::{Problem, ProblemPlace, ProblemReason};
use crate::plan::outcome::step::PlacementStep;
use crate::plan::packing::budget::WorkBudget;
use crate::plan::packing::state::{DecisionState, PlannedGroup};
use crate::plan::slices::standby::claims::{claims, give_way};
use crate::plan::slices::standby::goals::StandbyGoals;
use crate::plan::slices::standby::reason::StandbyReason;
use crate::snapshot::gcs::ResourceRequest;
use crate::snapshot::history::StandbyMemory;
use crate::snapshot::is_default;

/// The most steps for finding room for standby. They never count towards the work budget of the
/// decision about demand.
const STEPS: u64 = 4_000_000;

/// Something that is to be kept ready.
#[derive(Debug)]
pub(crate) struct StandbyDemand {
    pub(crate) what: StandbyKind,
    pub(crate) reason: StandbyReason,
    /// The number of requests to have room for, or of nodes to have.
    pub(crate) count: u64,
    /// The number of them that there is no room for.
    pub(crate) shortfall: u64,
    /// Of a minimum, the number of nodes, by the step in which they come.
    pub(crate) nodes: Vec<(PlacementStep, u64)>,
}

/// The kind of a standby demand.
#[derive(Debug)]
pub(crate) enum StandbyKind {
    /// Room for requests; with the percentage of so many CPUs in use, if it follows from that.
    Room(ResourceRequest, Option<(u32, f64)>),
    /// Nodes of a group.
    Nodes(GroupIndex),
}

/// Finds nodes for what is wanted, when all demand has been served, and gives up what that demand
/// needs more. Returns what was wanted, `None` if finding nodes takes too many steps, and the pods on
/// their way that are for that alone.
pub(crate) fn keep_ready(
    decided: &mut Decided<'_>,
    goals: &StandbyGoals,
) -> (Option<List<StandbyIndex, StandbyDemand>>, HashSet<String>) {
    let (history, now) = (decided.situation.history(), decided.situation.now);
    // A decision out of steps is abandoned as a whole, so nothing more is worth finding.
    if is_default(goals) && history.standby.is_empty() || decided.state.work.is_over() {
        return (Some(List::default()), HashSet::default());
    }
    let (cores_short, begins) = claims(decided);
    let launch = cores_short.is_none() && !begins;
    let state = &mut decided.state;
    let standby_demands = place(state, goals, &decided.demands, launch);
    let required = state.required();
    let only_ready = state.entries().filter_map(|(number, node)| {
        let is_ready = state.is_on_standby(number) && !required[number];
        let is_one = is_ready && node.stage() != Stage::Running;
        node.pod().filter(|_| is_one).map(str::to_owned)
    });
    let only_ready = only_ready.collect();
    if let Some(cores) = cores_short {
        give_way(state, cores);
        state.tables.standby.clear();
        state.tables.floors.clear();
        return (standby_demands, only_ready);
    }
    // Idle nodes that are not needed on standby any more remember since when that has been so.
    for (number, node) in state.nodes.enumerate() {
        let memory = node.pod().and_then(|pod| history.standby.get(pod));
        let is_free = node.is_idle() && node.fate == Fate::Stay;
        if let Some(memory) = memory.filter(|_| is_free) {
            // The need goes up and down with demand, and nodes should not come and go with it.
            let released = memory.released_at.unwrap_or(now);
            let role = StandbyRole::Released(released.min(now));
            state.tables.standby.entry(number).or_insert(role);
        }
    }
    (standby_demands, only_ready)
}

/// The problem that says that finding room took too many steps.
pub(crate) fn given_up() -> Problem {
    Problem {
        at: ProblemPlace::Standby,
        reason: ProblemReason::TooMuchWork,
        effect: "nothing is kept ready; ask for fewer different requests".into(),
    }
}

/// Places what is wanted. `None` if that takes too many steps; then nothing is kept ready.
fn place(
    state: &mut DecisionState,
    goals: &StandbyGoals,
    demands: &List<DemandIndex, Demand<'_>>,
    launch: bool,
) -> Option<List<StandbyIndex, StandbyDemand>> {
    let old_nodes = state.nodes.clone();
    let (old_order, old_tables) = (state.order.clone(), state.tables.clone());
    let (headrooms, is_cut) = (state.headrooms.clone(), state.is_cut);
    let work = std::mem::replace(&mut state.work, WorkBudget::new(STEPS));
    for number in state.nodes.positions() {
        // A part that is split off says so by this number.
        state.nodes[number].born = number;
    }
    let mut standby_demands = List::default();
    minima(state, goals, launch, &mut standby_demands);
    headroom(state, goals, demands, launch, &mut standby_demands);
    let is_over = state.work.is_over();
    // Nothing grows for what is kept ready, so it takes no headroom. Where a maximum leaves no room
    // for it, its own report says so.
    (state.headrooms, state.is_cut, state.work) = (headrooms, is_cut, work);
    if is_over {
        (state.nodes, state.order, state.tables) = (old_nodes, old_order, old_tables);
        return None;
    }
    // The nodes are as they were, apart from what was launched, and it is noted which of them have room
    // that is kept ready.
    for number in state.nodes.positions() {
        let node = &mut state.nodes[number];
        let (takes, count) = (std::mem::take(&mut node.takes), node.count);
        let standby = takes.iter().find_map(|take| demands.behind(take.demand));
        let standby = standby.map(StandbyIndex::from);
        let mut role: fn(StandbyIndex) -> StandbyRole = StandbyRole::Needed;
        if let Some(was) = old_nodes.get(number).or_else(|| old_nodes.get(node.born)) {
            node.clone_from(was);
        } else {
            node.placed = [Vec::new(), Vec::new()];
            role = StandbyRole::Launched;
        }
        (node.takes, node.count) = (takes, count);
        if let Some(standby) = state.tables.needed_for(number).or(standby) {
            state.tables.standby.insert(number, role(standby));
        }
    }
    Some(standby_demands)
}

/// The nodes of the groups for which schedules have minima.
fn minima(
    state: &mut DecisionState,
    goals: &StandbyGoals,
    launch: bool,
    standby_demands: &mut List<StandbyIndex, StandbyDemand>,
) {
    for (name, (replicas, reason)) in &goals.minima {
        let named = |group: &PlannedGroup| !group.config.is_head() && group.config.name == *name;
        let Some((number, _)) = state.groups.enumerate().find(|(_, group)| named(group)) else {
            continue;
        };
        let config = &state.groups[number].config;
        let nodes = config.nodes((*replicas).into()).min(config.max);
        if nodes <= config.min {
            continue;
        }
        let count = |state: &DecisionState, is: fn(&PlannedNode) -> bool| {
            state.count(|node| node.stays() && is(node))[number]
        };
        let running = count(state, |node| node.stage() == Stage::Running).min(nodes);
        let pending = count(state, |node| node.stage() != Stage::Running).min(nodes - running);
        let lacking = nodes - running - pending;
        let places = state.launchable(|node| !node.is_deleted())[number];
        let places = places.min(state.places()).min(state.nodes_left());
        let launched = if launch { lacking.min(places) } else { 0 };
        if launched > 0 {
            let entry = state.launch(number, launched, |group| &group.template);
            let role = StandbyRole::Needed(standby_demands.upcoming(0));
            state.tables.standby.insert(entry, role);
            state.order.push(entry);
        }
        let standby = standby_demands.upcoming(0);
        state.tables.floors.insert(number, Floor { nodes, standby });
        let places = [
            (PlacementStep::Free, running),
            (PlacementStep::Pending, pending),
            (PlacementStep::Launch, launched),
        ];
        standby_demands.push(StandbyDemand {
            what: StandbyKind::Nodes(number),
            reason: reason.clone(),
            count: nodes,
            shortfall: lacking - launched,
            nodes: places.into_iter().filter(|(_, count)| *count > 0).collect(),
        });
    }
}

/// Room for requests.
fn headroom(
    state: &mut DecisionState,
    goals: &StandbyGoals,
    demands: &List<DemandIndex, Demand<'_>>,
    launch: bool,
    standby_demands: &mut List<StandbyIndex, StandbyDemand>,
) {
    let requests = goals.requests.iter();
    let mut rooms: Vec<StandbyDemand> = requests
        .map(|(request, count, reason)| room(request.clone(), u64::from(*count), reason, None))
        .collect();
    rooms.extend(cpus(state, goals));
    let staying = state.count(PlannedNode::stays);
    let required = state.required();
    let stays_anyway = |(number, node): (NodeIndex, &PlannedNode)| {
        let floor = node.group().and_then(|group| {
            let floor = state.tables.floors.get(&group)?;
            Some(staying[group] <= floor.nodes)
        });
        let is_busy = node.stage() == Stage::Running && node.idle_ms == 0;
        node.stays() && (required[number] || is_busy || floor == Some(true))
    };
    let needed = state.nodes.enumerate().map(stays_anyway).collect();
    let (mut with_gpus, mut others) = (Vec::new(), Vec::new());
    for room in rooms {
        let StandbyKind::Room(request, _) = &room.what else {
            continue;
        };
        let shape = state.shapes.number(Shape::of(request, &state.names));
        let batch = RequestBatch {
            shape,
            count: room.count,
            demand: demands.upcoming(standby_demands.len()),
        };
        if state.shapes.get(shape).names_gpu {
            with_gpus.push(batch);
        } else {
            others.push(batch);
        }
        standby_demands.push(room);
    }
    for (batches, gpus) in [(with_gpus, true), (others, false)] {
        if batches.is_empty() {
            continue;
        }
        let packed = state.pack_standby(batches, &needed, gpus, launch);
        for batch in packed.commit() {
            let number = demands.behind(batch.demand).map(StandbyIndex::from);
            if let Some(demand) = number.and_then(|number| standby_demands.get_mut(number)) {
                demand.shortfall = demand.shortfall.saturating_add(batch.count);
            }
        }
    }
}

/// The CPUs to keep free: the larger one of the share of those in use and of the fixed number.
fn cpus(state: &DecisionState, goals: &StandbyGoals) -> Option<StandbyDemand> {
    let staying = state.in_order().filter(|node| node.stays());
    let used = |node: &PlannedNode| {
        let amount = node.amounts.get(state.cpu)?;
        let free = amount.free[CountedAmounts::Free as usize].unwrap_or(0.0);
        #[expect(clippy::cast_precision_loss, reason = "a number of nodes")]
        let count = node.count as f64;
        Some((amount.total? - free).max(0.0) * count)
    };
    let in_use: f64 = staying.filter_map(used).sum();
    let share = goals.share_percent.as_ref().map(|(percent, reason)| {
        // Ray counts in ten-thousandths; a sum may be a little off.
        let cpus = (in_use * f64::from(*percent) / 100.0 - 1e-4)
            .ceil()
            .max(0.0);
        (cpus, reason, Some((*percent, in_use)))
    });
    let fixed = goals.cpus.as_ref();
    let fixed = fixed.map(|(cpus, reason)| (f64::from(*cpus), reason, None));
    let larger = match (fixed, share) {
        (Some(fixed), Some(share)) if share.0 > fixed.0 => Some(share),
        (fixed, share) => fixed.or(share),
    };
    let (cpus, reason, share) = larger.filter(|(cpus, ..)| *cpus > 0.0)?;
    let request = ResourceRequest {
        resources_bundle: BTreeMap::from([("CPU".to_owned(), 1.0)]),
        ..ResourceRequest::default()
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "whole, not negative, and saturates"
    )]
    let count = cpus as u64;
    Some(room(request, count, reason, share))
}

fn room(
    request: ResourceRequest,
    count: u64,
    reason: &StandbyReason,
    share: Option<(u32, f64)>,
) -> StandbyDemand {
    StandbyDemand {
        what: StandbyKind::Room(request, share),
        reason: reason.clone(),
        count,
        shortfall: 0,
        nodes: Vec::new(),
    }
}

/// Idle nodes that are, or were, needed for headroom, to remember.
pub(crate) fn remember(state: &DecisionState) -> BTreeMap<String, StandbyMemory> {
    let nodes = state.entries();
    let nodes = nodes.filter(|(_, node)| node.is_idle() && node.stays());
    let memory = nodes.filter_map(|(number, node)| {
        let released_at = match state.tables.standby.get(&number)? {
            StandbyRole::Released(at) => Some(*at),
            StandbyRole::Needed(_) | StandbyRole::Launched(_) => None,
        };
        Some((node.pod()?.to_owned(), StandbyMemory { released_at }))
    });
    memory.collect()
}
