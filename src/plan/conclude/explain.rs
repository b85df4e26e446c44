//! The report of a decision: where each demand went, and the reasons in words.

use std::collections::BTreeMap;

use crate::hash::HashMap;
use crate::plan::conclude::{describe, sizes};
use crate::plan::decided::Decided;
use crate::plan::demand::requests::Demand;
use crate::plan::growth::resize::{Resize, ResizeProgress};
use crate::plan::growth::size::{from_cores, milli};
use crate::plan::list::{GroupIndex, ListPosition, StandbyIndex};
use crate::plan::nodes::life::Stage;
use crate::plan::nodes::node::{Fate, PlannedNode};
use crate::plan::nodes::standby_role::KeptReason;
use crate::plan::outcome::plan::Plan;
use crate::plan::outcome::remark::{NodeRemark, ResizedResource};
use crate::plan::outcome::report::{
    BelowLimits, DemandReport, GroupReport, NodeReport, Placed, PlanReport, StandbyReport,
};
use crate::plan::outcome::step::PlacementStep;
use crate::plan::outcome::unmet::GroupLimit;
use crate::plan::packing::state::DecisionState;
use crate::plan::standby::ready::{StandbyDemand, StandbyKind};
use crate::quantity::Quantity;
use crate::seconds::second_of;

/// How many pods a report names, where one reason holds for many.
const NAMED: usize = 3;

/// Returns the report of a decision.
pub(crate) fn report(decided: &Decided<'_>, plan: &Plan) -> PlanReport {
    if decided.state.work.is_over() {
        // A decision that was given up has no reasons to report.
        return PlanReport::default();
    }
    let (demands, standby) = demands(decided, plan);
    PlanReport {
        demands,
        standby,
        groups: groups(decided),
        nodes: nodes(decided),
    }
}

/// How many units were placed on how many nodes, by step and group.
type Places = BTreeMap<(PlacementStep, Option<GroupIndex>), (u64, u64)>;

fn demands(decided: &Decided<'_>, plan: &Plan) -> (Vec<DemandReport>, Vec<StandbyReport>) {
    let mut placed = decided.demands.map(|_| Places::new());
    let mut rooms = decided.standby.map(|_| Places::new());
    for node in decided.state.in_order() {
        for take in &node.takes {
            let tally = match decided.demands.behind(take.demand) {
                None => placed.get_mut(take.demand),
                Some(number) => rooms.get_mut(StandbyIndex::at(number)),
            };
            if let Some(tally) = tally {
                let (count, nodes) = tally.entry((take.step, node.group())).or_default();
                *count = count.saturating_add(take.count.saturating_mul(node.count));
                *nodes = nodes.saturating_add(node.count);
            }
        }
    }
    let unmet: HashMap<_, u64> = plan
        .unmet
        .iter()
        .map(|u| ((u.kind, u.index), u.count))
        .collect();
    let report = |(demand, placed): (&Demand<'_>, Places)| {
        let (kind, index) = demand.place();
        let units = demand.batches.iter().flatten().map(|batch| batch.count);
        let units = units.fold(0, u64::saturating_add);
        DemandReport {
            kind,
            index,
            demand: describe::demand(demand),
            // A demand that is not tried has no batches, and is unmet as a whole.
            count: units.max(unmet.get(&(kind, index)).copied().unwrap_or(0)),
            placed: in_words(&decided.state, placed),
            unmet: unmet.get(&(kind, index)).copied().unwrap_or(0),
        }
    };
    let demands = decided.demands.iter().zip(placed).map(report).collect();
    let standby = decided.standby.iter().zip(rooms);
    let ready = standby.map(|(kept, placed)| ready(&decided.state, kept, placed));
    (demands, ready.collect())
}

fn ready(state: &DecisionState, kept: &StandbyDemand, rooms: Places) -> StandbyReport {
    let places = match &kept.what {
        StandbyKind::Room(..) => rooms,
        StandbyKind::Nodes(group) => (kept.nodes.iter())
            .map(|(step, count)| ((*step, Some(*group)), (*count, *count)))
            .collect(),
    };
    StandbyReport {
        demand: describe::standby(state, kept),
        count: kept.count,
        placed: in_words(state, places),
        unmet: kept.left,
    }
}

fn in_words(state: &DecisionState, places: Places) -> Vec<Placed> {
    let words = |((step, group), (count, nodes))| Placed {
        step,
        group: group_name(state, group),
        count,
        nodes,
    };
    places.into_iter().map(words).collect()
}

fn group_name(state: &DecisionState, group: Option<GroupIndex>) -> String {
    let group = group.and_then(|group| state.groups.get(group));
    group.map_or_else(String::new, |group| group.config.name.clone())
}

fn groups(decided: &Decided<'_>) -> Vec<GroupReport> {
    let state = &decided.state;
    let running = state.count(|node| node.stays() && node.stage() == Stage::Running);
    let launch = state.count(|node| node.fate == Fate::Launch);
    let pending = state.count(|node| node.fate == Fate::Stay && node.stage() != Stage::Running);
    let remove = state.count(|node| !node.stays());
    let mut terminating: HashMap<&str, u64> = HashMap::default();
    for pod in decided.own.iter().filter(|pod| pod.deleting) {
        *terminating.entry(pod.group).or_default() += 1;
    }
    let mut below = below_limits(state);
    let mut sizes = sizes::by_group(decided);
    let groups = state.groups.enumerate().map(|(number, group)| {
        let group = &group.config;
        let (running, pending, launch) = (
            running.count(number),
            pending.count(number),
            launch.count(number),
        );
        let full =
            !group.is_head && running.saturating_add(pending).saturating_add(launch) >= group.max;
        GroupReport {
            name: group.name.clone(),
            running,
            pending,
            terminating: terminating.get(group.name.as_str()).copied().unwrap_or(0),
            launch,
            remove: remove.count(number),
            max: group.max,
            limit: full.then_some(GroupLimit::MaxReplicas(group.max_replicas)),
            below_limits: below.remove(&number),
            sizes: sizes.remove(&number),
        }
    });
    groups.collect()
}

/// Whether a pod that was resized before could grow again if it were asked to.
fn is_small_by_choice(resize: &Resize) -> bool {
    resize.noted.is_some() && !resize.is_in_progress() && resize.can_grow()
}

/// By the number of the group, what running pods do not take of their resize limits, if they were
/// resized before.
fn below_limits(state: &DecisionState) -> HashMap<GroupIndex, BelowLimits> {
    let mut all: HashMap<GroupIndex, BelowLimits> = HashMap::default();
    for node in state
        .in_order()
        .filter(|node| node.stage() == Stage::Running)
    {
        let resize = node.resize.as_deref();
        let resize = resize.filter(|resize| is_small_by_choice(resize));
        let (Some(group), Some(resize)) = (node.group(), resize) else {
            continue;
        };
        let (size, limits) = (resize.current, resize.limits.size());
        if size.is_below(limits) {
            let below = all.entry(group).or_default();
            // Limits are a user's numbers: two of several exbibytes are beyond 64 bits together.
            let cpu = milli((limits.cpu - size.cpu).max(0.0));
            below.cpu_milli = below.cpu_milli.saturating_add(cpu);
            let memory = limits.memory.saturating_sub(size.memory).max(0);
            below.memory_bytes = below.memory_bytes.saturating_add(memory);
        }
    }
    all
}

/// The reports on single nodes: why a pod did not grow, or why it is removed.
fn nodes(decided: &Decided<'_>) -> Vec<NodeReport> {
    let mut reports: Vec<NodeReport> = Vec::new();
    let mut index: HashMap<(Option<GroupIndex>, NodeRemark), usize> = HashMap::default();
    for node in decided.state.in_order() {
        let Some(pod) = node.pod() else { continue };
        let Some(reason) = remark(decided, node) else {
            continue;
        };
        let at = *index
            .entry((node.group(), reason.clone()))
            .or_insert(reports.len());
        if at == reports.len() {
            let group = group_name(&decided.state, node.group());
            reports.push(NodeReport {
                group,
                pods: Vec::new(),
                count: 0,
                reason,
            });
        }
        if let Some(report) = reports.get_mut(at) {
            report.count += 1;
            if report.pods.len() < NAMED {
                report.pods.push(pod.to_owned());
            }
        }
    }
    reports
}

fn remark(decided: &Decided<'_>, node: &PlannedNode) -> Option<NodeRemark> {
    match node.fate {
        Fate::Remove(cause) => return Some(NodeRemark::Removed(cause)),
        Fate::Hold(cause) if decided.state.is_left_alone() => {
            return Some(NodeRemark::WaitsForKubeRay(cause));
        }
        Fate::Hold(cause) => return Some(NodeRemark::WaitsForHosts(cause)),
        Fate::Stay | Fate::Launch => {}
    }
    match node.kept {
        Some(KeptReason::Standby(number)) => {
            let reason = decided.standby.get(number)?.reason.clone();
            return Some(NodeRemark::Kept(reason));
        }
        Some(KeptReason::Released(since)) => {
            let seconds = whole(decided.now - since);
            return Some(NodeRemark::Released { seconds });
        }
        Some(KeptReason::AwaitsRoom) => return Some(NodeRemark::AwaitsRoom),
        None => {}
    }
    if node.stage() == Stage::Stopping {
        return Some(NodeRemark::Stopping);
    }
    let resize = node.resize.as_deref()?;
    let why = why_not_grown(decided, resize);
    let has = resize.current.memory;
    let in_use = resize.in_use.filter(|used| used.fills(has));
    match in_use.filter(|_| !resize.is_to_send() && !node.is_idle()) {
        Some(used) => Some(NodeRemark::NearlyFull {
            used: used.bytes,
            has,
            why: why.map(Box::new),
        }),
        None => why,
    }
}

fn why_not_grown(decided: &Decided<'_>, resize: &Resize) -> Option<NodeRemark> {
    if resize.is_to_send() {
        return None;
    }
    if let Some(at) = resize.resizing_at {
        #[expect(clippy::cast_precision_loss, reason = "seconds since 1970")]
        let since = (decided.now - at as f64).max(0.0);
        let seconds = whole(since);
        return Some(NodeRemark::InFlight { seconds });
    }
    if let Some(until) = resize.barred_until {
        return Some(NodeRemark::Barred {
            why: resize.failure.clone(),
            seconds: whole(until - decided.now),
        });
    }
    match &resize.progress {
        ResizeProgress::Finished => {}
        ResizeProgress::Pending(reason) => return Some(NodeRemark::Pending(reason.clone())),
        ResizeProgress::Underway | ResizeProgress::New => return Some(NodeRemark::Underway),
        ResizeProgress::Error => return Some(NodeRemark::Failed),
    }
    if let Some(reason) = resize
        .failure
        .as_ref()
        .filter(|_| resize.failed_at.is_some())
    {
        return Some(NodeRemark::FailedForGood(reason.clone()));
    }
    if let Some(kept) = resize.kept_for {
        return Some(NodeRemark::KeptSmall {
            seconds: whole(kept),
            of_gaps: resize.of_gaps,
        });
    }
    if let Some(spare) = resize.spare {
        return Some(NodeRemark::Spare {
            needed_milli: milli(spare.peak()),
            has_milli: milli(resize.current.cpu),
        });
    }
    if !resize.current.is_below(resize.limit()) {
        return Some(NodeRemark::AtResizeLimit);
    }
    short(decided, resize)
}

fn whole(seconds: f64) -> i64 {
    second_of(seconds.round_ties_even())
}

/// What the Kubernetes node lacks for the pod to reach its resize limits.
fn short(decided: &Decided<'_>, resize: &Resize) -> Option<NodeRemark> {
    let headroom = resize.headroom(&decided.state.headrooms)?;
    let (limit, goal) = (resize.limit(), resize.goal(Some(headroom)));
    let full = |resource, free: Quantity, short| NodeRemark::NodeFull {
        node: headroom.node.clone(),
        resource,
        free: free.max(Quantity::ZERO),
        short,
    };
    if goal.cpu < limit.cpu {
        let lacking = from_cores(limit.cpu - goal.cpu);
        return Some(full(ResizedResource::Cpu, headroom.cpu, lacking));
    }
    let lacking = Quantity::from_units(limit.memory - goal.memory);
    (!lacking.is_zero()).then(|| full(ResizedResource::Memory, headroom.memory, lacking))
}
