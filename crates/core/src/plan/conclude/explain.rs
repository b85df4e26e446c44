//! The report of a decision: where each demand went, and the reasons in words.

use std::collections::BTreeMap;

use crate::hash::HashMap;
use crate::plan::conclude::{describe, sizes};
use crate::plan::decided::Decided;
use crate::plan::demand::requests::Demand;
use crate::plan::growth::resize::{Resize, ResizeProgress};
use crate::plan::growth::size::{from_cores, milli};
use crate::plan::list::{GroupIndex, List, NodeIndex, StandbyIndex};
use crate::plan::nodes::node::{Fate, PlannedNode, Stage};
use crate::plan::nodes::tables::{KeptReason, SizeNotes};
use crate::plan::outcome::plan::Plan;
use crate::plan::outcome::remark::NodeRemark;
use crate::plan::outcome::report::{
    CpuAndMemory, DemandReport, GroupReport, NodeReport, Placed, PlanReport, StandbyReport,
};
use crate::plan::outcome::step::PlacementStep;
use crate::plan::outcome::unmet::Shortfall;
use crate::plan::packing::state::DecisionState;
use crate::plan::slices::findings::Findings;
use crate::plan::slices::small_pods::reason::KeptSmall;
use crate::plan::slices::standby::ready::{StandbyDemand, StandbyKind};
use crate::quantity::Quantity;
use crate::seconds::second_of;

/// The most pods that a report names for one reason.
const NAMED: usize = 3;

/// Returns the report of a decision.
pub(crate) fn report(
    decided: &Decided<'_>,
    findings: Option<&Findings<'_>>,
    plan: &Plan,
) -> PlanReport {
    if decided.state.work.is_over() {
        // A decision that was given up has no reasons to report.
        return PlanReport::default();
    }
    let standby = findings.map(|findings| &findings.standby);
    let (demands, ready) = demands(decided, standby, plan);
    PlanReport {
        demands,
        standby: ready,
        groups: groups(decided),
        nodes: nodes(decided, standby),
    }
}

/// The numbers of units placed and of their nodes, by step and group.
type Places = BTreeMap<(PlacementStep, Option<GroupIndex>), (u64, u64)>;

fn demands(
    decided: &Decided<'_>,
    standby: Option<&List<StandbyIndex, StandbyDemand>>,
    plan: &Plan,
) -> (Vec<DemandReport>, Vec<StandbyReport>) {
    let mut placed = decided.demands.map(|_| Places::new());
    let mut rooms = standby.map_or_else(List::default, |all| all.map(|_| Places::new()));
    for node in decided.state.in_order() {
        for take in &node.takes {
            // Standby demands are numbered after the demands, so a number behind the list is one of theirs.
            let tally = match decided.demands.behind(take.demand) {
                None => placed.get_mut(take.demand),
                Some(number) => rooms.get_mut(StandbyIndex::from(number)),
            };
            if let Some(tally) = tally {
                let (count, nodes) = tally.entry((take.step, node.group())).or_default();
                *count = count.saturating_add(take.count.saturating_mul(node.count));
                *nodes = nodes.saturating_add(node.count);
            }
        }
    }
    let unmet = plan.unmet.iter();
    let unmet: HashMap<_, u64> = unmet
        .map(|one| ((one.kind, one.index), one.count))
        .collect();
    let report = |(demand, placed): (&Demand<'_>, Places)| {
        let (kind, index) = demand.place();
        let unmet = unmet.get(&(kind, index)).copied().unwrap_or(0);
        DemandReport {
            kind,
            index,
            demand: describe::demand(demand),
            // A demand that is not tried has no batches, and is unmet as a whole.
            count: demand.units().max(unmet),
            placed: in_words(&decided.state, placed),
            unmet,
        }
    };
    let demands = decided.demands.iter().zip(placed).map(report).collect();
    let ready = |(goal, rooms): (&StandbyDemand, Places)| {
        let rooms = match goal.what {
            StandbyKind::Room(..) => rooms,
            StandbyKind::Nodes(group) => (goal.nodes.iter())
                .map(|(step, count)| ((*step, Some(group)), (*count, *count)))
                .collect(),
        };
        StandbyReport {
            demand: describe::standby(&decided.state, goal),
            count: goal.count,
            placed: in_words(&decided.state, rooms),
            unmet: goal.shortfall,
        }
    };
    let standby = standby.into_iter().flat_map(List::iter);
    (demands, standby.zip(rooms).map(ready).collect())
}

fn in_words(state: &DecisionState, places: Places) -> Vec<Placed> {
    let words = |((step, group), (count, nodes)): ((_, Option<GroupIndex>), _)| Placed {
        step,
        group: group.map_or_else(String::new, |group| state.name(group).to_owned()),
        count,
        nodes,
    };
    places.into_iter().map(words).collect()
}

fn groups(decided: &Decided<'_>) -> Vec<GroupReport> {
    let state = &decided.state;
    let running = state.count(|node| node.stays() && node.stage() == Stage::Running);
    let launch = state.count(|node| node.fate == Fate::Launch);
    let pending = state.count(|node| node.fate == Fate::Stay && node.stage() != Stage::Running);
    let remove = state.count(|node| !node.stays());
    let terminating = decided.situation.own_pods.iter();
    let terminating = decided.config.count(terminating.filter(|pod| pod.deleting));
    let mut below = below_limits(state);
    let mut sizes = sizes::by_group(decided);
    let groups = state.groups.enumerate().map(|(number, group)| {
        let group = &group.config;
        let running = running[number];
        let (pending, launch) = (pending[number], launch[number]);
        let all = running.saturating_add(pending).saturating_add(launch);
        let is_full = !group.is_head() && all >= group.max;
        GroupReport {
            name: group.name.clone(),
            running,
            pending,
            terminating: terminating[number],
            launch,
            remove: remove[number],
            max: group.max,
            limit: is_full
                .then(|| Shortfall::MaxReplicas(group.max_replicas.unwrap_or(0)).to_string()),
            below_limits: below.remove(&number),
            sizes: sizes.remove(&number),
        }
    });
    groups.collect()
}

/// By the number of the group, what running pods do not take of their resize limits, if they were
/// resized before and could grow again if they were asked to.
fn below_limits(state: &DecisionState) -> HashMap<GroupIndex, CpuAndMemory> {
    let mut all: HashMap<GroupIndex, CpuAndMemory> = HashMap::default();
    let running = state.in_order();
    for node in running.filter(|node| node.stage() == Stage::Running) {
        let (Some(group), Some(resize)) = (node.group(), &node.resize) else {
            continue;
        };
        let is_by_choice = resize.noted.is_some() && !resize.is_in_progress() && resize.can_grow();
        let (size, limits) = (resize.current, resize.limits);
        if is_by_choice && size.is_below(limits) {
            let lacking = CpuAndMemory {
                cpu_milli: milli((limits.cpu - size.cpu).max(0.0)),
                memory_bytes: limits.memory.saturating_sub(size.memory).max(0),
            };
            let below = all.entry(group).or_default();
            // Limits are a user's numbers: two of several exbibytes are beyond 64 bits together.
            *below = below.join(lacking, i64::saturating_add);
        }
    }
    all
}

/// The reports on single nodes: why a pod did not grow, or why it is removed.
fn nodes(
    decided: &Decided<'_>,
    standby: Option<&List<StandbyIndex, StandbyDemand>>,
) -> Vec<NodeReport> {
    let mut reports: Vec<NodeReport> = Vec::new();
    let mut index: HashMap<(Option<GroupIndex>, NodeRemark), usize> = HashMap::default();
    for (number, node) in decided.state.entries() {
        let reason = remark(decided, standby, number, node);
        let Some((pod, reason)) = node.pod().zip(reason) else {
            continue;
        };
        // One entry for equal reasons: a report on ten thousand nodes would be as many lines otherwise.
        let at = *index
            .entry((node.group(), reason.clone()))
            .or_insert_with(|| {
                reports.push(NodeReport {
                    group: (node.group())
                        .map_or_else(String::new, |group| decided.state.name(group).to_owned()),
                    pods: Vec::new(),
                    count: 0,
                    reason,
                });
                reports.len() - 1
            });
        let report = &mut reports[at];
        report.count += 1;
        if report.pods.len() < NAMED {
            report.pods.push(pod.to_owned());
        }
    }
    reports
}

fn remark(
    decided: &Decided<'_>,
    standby: Option<&List<StandbyIndex, StandbyDemand>>,
    number: NodeIndex,
    node: &PlannedNode,
) -> Option<NodeRemark> {
    let tables = &decided.state.tables;
    match node.fate {
        Fate::Remove(cause) => return Some(NodeRemark::Removed(cause)),
        Fate::Hold(cause) if decided.state.is_left_alone() => {
            return Some(NodeRemark::WaitsForKubeRay(cause));
        }
        Fate::Hold(cause) => return Some(NodeRemark::WaitsForHosts(cause)),
        Fate::Stay | Fate::Launch => {}
    }
    if let Some(keep_reason) = tables.kept.get(&number) {
        return Some(match *keep_reason {
            KeptReason::Standby(number) => NodeRemark::Kept(standby?.get(number)?.reason.clone()),
            KeptReason::Released(since) => {
                NodeRemark::Released(whole(decided.situation.now - since))
            }
            KeptReason::For(reason) => NodeRemark::KeptFor(reason),
        });
    }
    if node.stage() == Stage::Stopping {
        return Some(NodeRemark::Stopping);
    }
    let resize = node.resize.as_deref()?;
    let notes = tables.sizes.get(&number).copied().unwrap_or_default();
    let why = why_not_grown(decided, resize, notes);
    let has = resize.current.memory;
    let in_use = notes.in_use.filter(|used| used.fills(has));
    match in_use.filter(|_| !resize.is_to_send() && !node.is_idle()) {
        Some(used) => Some(NodeRemark::NearlyFull {
            used: used.bytes,
            has,
            why: why.map(Box::new),
        }),
        None => why,
    }
}

fn why_not_grown(decided: &Decided<'_>, resize: &Resize, notes: SizeNotes) -> Option<NodeRemark> {
    if resize.is_to_send() {
        return None;
    }
    // A resize in progress comes first: as long as it lasts, the pod is asked for nothing else.
    if let Some(at) = resize.note.resizing_at {
        #[expect(clippy::cast_precision_loss, reason = "seconds since 1970")]
        let since = (decided.situation.now - at as f64).max(0.0);
        return Some(NodeRemark::InFlight(whole(since)));
    }
    if let Some(until) = resize.barred_until {
        return Some(NodeRemark::Barred {
            why: (resize.note.last_failed_reason.clone())
                .unwrap_or_else(|| "it could not be asked for".to_owned()),
            seconds: whole(until - decided.situation.now),
        });
    }
    match &resize.progress {
        ResizeProgress::Finished => {}
        ResizeProgress::Pending(reason) => return Some(NodeRemark::Pending(reason.clone())),
        ResizeProgress::Underway | ResizeProgress::New => return Some(NodeRemark::Underway),
        ResizeProgress::Error => return Some(NodeRemark::Failed),
    }
    let note = &resize.note;
    if let (Some(_), Some(reason)) = (note.last_failed_at, &note.last_failed_reason) {
        return Some(NodeRemark::FailedForGood(reason.clone()));
    }
    if let Some((seconds, of_gaps)) = notes.kept {
        return Some(NodeRemark::KeptSmall(KeptSmall {
            seconds: whole(seconds),
            of_gaps,
        }));
    }
    if let Some(spare) = notes.spare {
        return Some(NodeRemark::Spare {
            needed_milli: milli(spare.peak()),
            has_milli: milli(resize.current.cpu),
        });
    }
    if !resize.current.is_below(resize.limit()) {
        return Some(NodeRemark::AtResizeLimit);
    }
    node_full(decided, resize)
}

/// The remark that the Kubernetes node lacks a resource for the pod to reach its resize limits, if it does.
fn node_full(decided: &Decided<'_>, resize: &Resize) -> Option<NodeRemark> {
    let headroom = resize.headroom(&decided.state.headrooms)?;
    let (limit, goal) = (resize.limit(), resize.goal(Some(headroom)));
    let (free, short) = if goal.cpu < limit.cpu {
        let free = headroom.cpu.max(Quantity::ZERO);
        let short = from_cores(limit.cpu - goal.cpu).display_cpu();
        (format!("{} CPU", free.display_cpu()), short)
    } else if goal.memory != limit.memory {
        let free = headroom.memory.max(Quantity::ZERO);
        let short = Quantity::from_units(limit.memory - goal.memory).display_memory();
        (format!("{} memory", free.display_memory()), short)
    } else {
        return None;
    };
    Some(NodeRemark::NodeFull {
        node: headroom.node.clone(),
        free,
        short,
    })
}

/// Seconds for people.
fn whole(seconds: f64) -> i64 {
    second_of(seconds.round_ties_even())
}
