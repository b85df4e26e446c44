//! The phases of a decision, in their order: from a snapshot to a plan. (Ray, `scheduler.py`,
//! `ResourceDemandScheduler.schedule`.)

use std::collections::BTreeMap;

use super::decided::Decided;
use super::serve::serve;
use super::settings::PlanSettings;
use super::situation::Situation;
use crate::hash::{HashMap, HashSet};
use crate::plan::conclude::{actions, explain};
use crate::plan::demand::requests::{self, Demand, RequestBatch};
use crate::plan::demand::shape::{ShapeId, Shapes};
use crate::plan::growth::headroom::NodeHeadroom;
use crate::plan::list::{ByGroup, DemandIndex, List};
use crate::plan::memory::attempts::Attempts;
use crate::plan::memory::{availability, blocked, bursts, growth_backoff};
use crate::plan::nodes::assemble::NodeAssembly;
use crate::plan::nodes::blocked::Evidence;
use crate::plan::nodes::departure::departures;
use crate::plan::nodes::group::ClusterConfig;
use crate::plan::nodes::hanging::HangingPods;
use crate::plan::nodes::node::{NodeClasses, PlannedNode};
use crate::plan::nodes::rows::{Leftovers, NodeRow};
use crate::plan::nodes::view::NodeReader;
use crate::plan::nodes::{assemble, full, problems, raylet, rows, view};
use crate::plan::outcome::plan::Plan;
use crate::plan::outcome::problem::{Problem, ProblemEffect, ProblemPlace};
use crate::plan::outcome::problem_reason::ProblemReason;
use crate::plan::outcome::report::PlanReport;
use crate::plan::outcome::unmet::CountedAtBase;
use crate::plan::packing::budget::{BUDGET, WorkBudget};
use crate::plan::packing::servable::servable;
use crate::plan::packing::state::{DecisionState, PlannedGroup};
use crate::plan::pressure;
use crate::plan::removal::keep::Keep;
use crate::plan::removal::make_room::{await_room, make_room};
use crate::plan::removal::{deadline, enforce, give_up};
use crate::plan::shrink::{holders, shrink};
use crate::plan::standby::goals::StandbyGoals;
use crate::plan::standby::ready;
use crate::snapshot::Snapshot;
use crate::snapshot::pod::Pod;

/// Decides what is to be done about the RayCluster of a snapshot. This is a pure function: equal
/// snapshots give equal plans.
pub fn decide(snapshot: &Snapshot, settings: &PlanSettings) -> (Plan, PlanReport) {
    let own_pods: Vec<Pod<'_>> = snapshot.pods.iter().collect();
    let live = snapshot.gcs.live();
    let read = || ClusterConfig::read(&snapshot.ray_cluster, settings.strategy);
    let config = read();
    let now = snapshot.seconds().unwrap_or_default();
    let mut situation = Situation {
        snapshot,
        settings: settings.clone(),
        own_pods: &own_pods,
        live: &live,
        departures: BTreeMap::new(),
        now,
    };
    let mut goals = StandbyGoals::default();
    let mut attempts = Attempts::default();
    if situation.is_rayfit() {
        goals = StandbyGoals::at(&settings.headroom, &settings.schedules, now);
        let times = (settings.drain_timeout_s, now);
        situation.departures = departures(snapshot, &own_pods, &config, times);
        goals.replace(situation.departures.values(), &live);
        attempts = Attempts::of(snapshot, now);
    } else {
        // Ray knows nothing of these improvements, so its strategy goes without them.
        situation.settings = PlanSettings {
            learn_gaps: false,
            make_room: false,
            keep_small_s: None,
            shrink_after_s: None,
            follow_memory: false,
            ..settings.clone()
        };
    }
    let mut decided = run(&situation, &goals, config, &attempts);
    let (cluster, patience) = (snapshot.title(), settings.unschedulable_s);
    // Given up pods leave their room to others, which may change anything decided after it: all of it is decided
    // once more.
    if situation.is_rayfit() && attempts.give_up(&decided, &cluster, patience) {
        decided = run(&situation, &goals, read(), &attempts);
    }
    let plan = actions::plan(snapshot, settings, &decided);
    let report = explain::report(&decided, &plan);
    (plan, report)
}

fn run<'a>(
    situation: &'a Situation<'a>,
    goals: &StandbyGoals,
    mut config: ClusterConfig,
    attempts: &Attempts,
) -> Decided<'a> {
    let Situation {
        own_pods,
        live,
        now,
        ..
    } = *situation;
    let history = situation.history();
    let mut problems = std::mem::take(&mut config.problems);
    problems.extend(problems::all(situation.snapshot, own_pods));
    if situation.is_rayfit() {
        // Groups count as their raylets report them from then on.
        problems.extend(raylet::believe(&mut config, own_pods, live));
    }
    let (list, leftovers, evidence) = observe(situation, &config, &mut problems);
    let (mut state, mut demands) =
        state(situation, goals, &config, &list, &evidence, &mut problems);
    let kept_back = attempts.keep_back(&mut state, &mut demands, now);
    problems.extend(blocked::mark(&mut state, &evidence, history, own_pods, now));
    if situation.is_rayfit() {
        let draining = assemble::draining(&config, &leftovers);
        for (group, draining) in state.groups.iter_mut().zip(draining) {
            group.draining = draining;
        }
    }
    // This is Ray's order: the minima of the groups, then the maxima, then the demands, and
    // idle nodes at last. A demand must not be served by a node that a maximum forces out.
    enforce::enforce_minima(&mut state);
    enforce::enforce_group_maxima(&mut state);
    enforce::enforce_cluster_maximum(&mut state);
    let excess = if situation.is_rayfit() {
        let times = (situation.settings.drain_timeout_s, now);
        deadline::excess_nodes(&state, &config, &leftovers, live, &history.excess, times)
    } else {
        Vec::new()
    };
    // Memory that is nearly full comes before demand: work that runs would be killed for it.
    let reliefs = pressure::reserve(&mut state);
    let remainder = serve(&mut state, &demands);
    pressure::grant(&mut state, &reliefs, now);
    let (standby, only_ready) =
        ready::keep_ready(&mut state, goals, situation, &leftovers, &demands);
    problems.extend(standby.is_none().then(ready::given_up));
    let waiting = servable(&state, &remainder);
    let waits = |pod: &Pod<'_>| pod.is_unschedulable() && !only_ready.contains(pod.name);
    let demand_waits = !waiting.is_empty() || own_pods.iter().any(waits);
    let mut decided = Decided {
        at_work: bursts::at_work(history, &state),
        bursts: (situation.settings.learn_gaps).then(|| bursts::record(history, &state, now)),
        unneeded_since: BTreeMap::new(),
        state,
        config,
        demands,
        remainder,
        standby: standby.unwrap_or_default(),
        own_pods,
        live,
        leftovers,
        evidence,
        excess,
        gangs: attempts.gangs.clone(),
        jump: attempts.jump.clone(),
        departures: &situation.departures,
        problems,
        now,
    };
    release(&mut decided, situation, &kept_back, &waiting, demand_waits);
    decided
}

/// The phases after packing: what nothing needs any more goes, or becomes smaller. `waiting` is the demand that is
/// left and that a node could serve, if there were room.
fn release(
    decided: &mut Decided<'_>,
    situation: &Situation<'_>,
    kept_back: &HashSet<ShapeId>,
    waiting: &[RequestBatch],
    demand_waits: bool,
) {
    let (settings, now) = (&situation.settings, situation.now);
    let history = situation.history();
    let Decided {
        state,
        leftovers,
        demands,
        ..
    } = decided;
    let idle_timeout_s = decided.config.idle_timeout_s;
    give_up::launches(state);
    give_up::scattered(state, kept_back);
    // Demand of blocked groups went to others meanwhile, so their pods and those of the others are not all needed.
    let was_blocked = state.has_blocked || !history.blocked.is_empty();
    let withdrawn = was_blocked.then_some(give_up::WITHDRAWN_AFTER_S);
    let makes_room = demand_waits && settings.make_room;
    // Before idle nodes go: those that will grow into the room of others must not be among them.
    if makes_room {
        await_room(state, situation, leftovers, idle_timeout_s, waiting);
    }
    let pending_s = settings.pending_idle_timeout_s.or(withdrawn);
    let small = settings.keep_small_s.filter(|_| !demand_waits);
    let small = small.map(|longest| Keep {
        longest,
        most: &decided.at_work,
        bursts: decided.bursts.as_ref(),
    });
    if pending_s.is_some() {
        decided.unneeded_since = enforce::note_unneeded(state, &history.unneeded_since, now);
    }
    enforce::enforce_idle(state, (idle_timeout_s, pending_s), small, now);
    enforce::forget_removed(state, &mut decided.unneeded_since);
    // After the removals, because a node that goes holds nothing and has nothing to give up.
    let holders = holders(state, demands);
    shrink(state, settings.shrink_after_s, demand_waits, &holders, now);
    pressure::give_back(state, &holders, now);
    if situation.is_rayfit() && demand_waits {
        give_up::vain(state);
    }
    // Last, because what shrinks and what goes in any case may leave enough room.
    if makes_room {
        make_room(state, situation, leftovers, idle_timeout_s, waiting);
    }
    // After all removals: a host goes only if all hosts of its replica do.
    state.hold_back();
    if state.is_cut {
        decided.problems.push(Problem {
            at: ProblemPlace::Workers,
            reason: ProblemReason::TooManyWorkers(state.max_workers),
            effect: ProblemEffect::NoMoreLaunched,
        });
    }
}

/// The rows of the nodes, the pods without a row, and why groups cannot be served now.
fn observe<'a, 'c>(
    situation: &'a Situation<'a>,
    config: &'c ClusterConfig,
    problems: &mut Vec<Problem>,
) -> (Vec<NodeRow<'c>>, Leftovers<'a>, Evidence<'a>)
where
    'a: 'c,
{
    let Situation {
        own_pods,
        live,
        now,
        ..
    } = *situation;
    let settings = &situation.settings;
    let snapshot = situation.snapshot;
    let (mut list, mut leftovers) = rows::rows(snapshot, (own_pods, live), settings.strategy, now);
    if !situation.is_rayfit() {
        return (list, leftovers, Evidence::none(config));
    }
    leftovers.hanging = HangingPods::of(own_pods, config, now);
    problems.extend(leftovers.hanging.problems());
    let hanging = &leftovers.hanging;
    rows::add_awaited(&mut list, config, own_pods, &situation.departures, hanging);
    let waits = (settings.unschedulable_s, settings.progress_deadline_s);
    let evidence = Evidence::of(snapshot, (own_pods, &list[..]), live, config, waits);
    (list, leftovers, evidence)
}

/// Turns the nodes, the groups and the requests into numbers, so that comparing them is cheap.
fn state<'a>(
    situation: &Situation<'a>,
    goals: &StandbyGoals,
    config: &ClusterConfig,
    rows: &[NodeRow<'_>],
    evidence: &Evidence<'_>,
    problems: &mut Vec<Problem>,
) -> (DecisionState, List<DemandIndex, Demand<'a>>) {
    let (snapshot, settings) = (situation.snapshot, &situation.settings);
    let names = view::names(snapshot, config, goals.resources());
    let reader = NodeReader::new(&names, &snapshot.gcs, goals.resources());
    let bases: ByGroup<PlannedNode> = (config.groups.enumerate())
        .map(|(number, group)| reader.template(group, number))
        .collect();
    let (headrooms, kube_nodes) = match &snapshot.nodes {
        Some(nodes) if situation.is_rayfit() => {
            NodeHeadroom::all(nodes, situation.own_pods, &snapshot.loads)
        }
        _ => (List::default(), HashMap::default()),
    };
    let mut assembly = NodeAssembly {
        situation,
        config,
        reader: &reader,
        kube_nodes: &kube_nodes,
        given_up: &evidence.given_up,
        list: List::default(),
    };
    for row in rows {
        assembly.add(row, problems);
    }
    let mut nodes = assembly.list;
    let mut shapes = Shapes::default();
    let demands = requests::all(&snapshot.gcs, &names, &mut shapes);
    let sizes = (names.get("CPU"), names.get("memory"));
    let history = Some(situation.history()).filter(|_| situation.is_rayfit());
    let (groups, too_large) = (&config.groups, &evidence.has_too_large);
    let starting = || full::groups_without_room(&nodes, &headrooms, &shapes, &bases, sizes);
    let at_base = growth_backoff::of_groups(history, groups, too_large, starting, situation.now);
    let mut templates = bases.clone();
    let at_base = assemble::size(
        config,
        at_base,
        sizes,
        &mut templates,
        &mut nodes,
        &headrooms,
        settings.strategy,
    );
    let state = DecisionState {
        cpu: sizes.0,
        memory: sizes.1,
        gpu: names.get("GPU"),
        names,
        shapes,
        classes: NodeClasses::default(),
        groups: planned_groups(situation, config, (bases, templates), at_base),
        has_blocked: false,
        order: nodes.positions().collect(),
        nodes,
        headrooms,
        rooms: BTreeMap::new(),
        max_nodes: config.max_nodes,
        max_workers: settings.max_workers,
        unread_nodes: config.unread_nodes,
        is_cut: false,
        work: WorkBudget::new(BUDGET),
        conserve_gpus: settings.conserve_gpus,
        strategy: settings.strategy,
    };
    (state, demands)
}

/// The groups with a node of each, at its base size and as large as a new one counts.
fn planned_groups(
    situation: &Situation<'_>,
    config: &ClusterConfig,
    (bases, templates): (ByGroup<PlannedNode>, ByGroup<PlannedNode>),
    at_base: ByGroup<Option<CountedAtBase>>,
) -> ByGroup<PlannedGroup> {
    let unavailable = &situation.history().unavailable;
    let preferences = availability::preferences(&config.groups, unavailable, situation.now);
    let groups = (config.groups.iter().cloned())
        .zip(preferences)
        .zip(bases.into_iter().zip(templates))
        .zip(at_base);
    let group = |(((config, preference), (base, template)), at_base)| PlannedGroup {
        config,
        preference,
        block: None,
        base,
        template,
        at_base,
        draining: 0,
        floor: None,
    };
    groups.map(group).collect()
}
