//! The decision with all slices: Ray's decision, and what is added to it, in this order.
//!
//! 1. Reading. Rows, groups and resizes count as the objects have them ([`rows`], [`started`], [`resizes`], [`raylets`]).
//!    Nodes that go in any case take nothing ([`faults`], [`departures`], [`blocked`], [`hanging`]), and those
//!    that will grow count at the size that they will have ([`growth_backoff`]).
//! 2. Before demand: what has been given up for now is not tried ([`gangs`]), memory that is nearly full comes before
//!    demand, because work that runs would be killed for it ([`memory_in_use`]), and nodes above a maximum get their time
//!    ([`excess`]).
//! 3. After demand: what is to be kept ready is placed on what is left ([`standby`]).
//! 4. After packing: what nothing needs any more goes ([`given_up`], [`small_pods`]), or becomes smaller ([`shrinking`],
//!    [`memory_in_use`]), and last, because what goes and shrinks in any case may leave enough room, idle nodes go for
//!    what waits ([`rooms`]). The hosts of a replica go together ([`whole_replicas`]).
//!
//! [`departures`]: crate::plan::slices::departures
//! [`hanging`]: crate::plan::slices::objects::hanging
//! [`small_pods`]: crate::plan::slices::small_pods
//! [`standby`]: crate::plan::slices::standby
//! [`gangs`]: crate::plan::slices::gangs
//! [`memory_in_use`]: crate::plan::slices::memory_in_use
//! [`rooms`]: crate::plan::slices::rooms
//! [`growth_backoff`]: crate::plan::slices::growth_backoff

use std::collections::BTreeMap;

use crate::hash::HashMap;
use crate::plan::assemble;
use crate::plan::decided::Decided;
use crate::plan::demand::requests::Demand;
use crate::plan::growth::headroom::NodeHeadroom;
use crate::plan::list::{DemandIndex, List};
use crate::plan::nodes::group::ClusterConfig;
use crate::plan::nodes::rows::{Leftovers, NodeRow};
use crate::plan::nodes::{problems, rows as base_rows};
use crate::plan::outcome::cause::Departure;
use crate::plan::outcome::problem::{Problem, ProblemEffect};
use crate::plan::packing::servable::servable;
use crate::plan::packing::state::DecisionState;
use crate::plan::packing::steps::by_steps;
use crate::plan::removal::enforce;
use crate::plan::serve::serve;
use crate::plan::situation::Situation;
use crate::plan::slices::blocked::evidence::Evidence;
use crate::plan::slices::blocked::memory as blocked;
use crate::plan::slices::departures::departures;
use crate::plan::slices::findings::Findings;
use crate::plan::slices::gangs::attempts::Attempts;
use crate::plan::slices::growth_backoff::{backoff, sizes};
use crate::plan::slices::objects::hanging::HangingPods;
use crate::plan::slices::objects::{faults, rows, started};
use crate::plan::slices::rooms::make_room::{await_room, make_room};
use crate::plan::slices::shrinking::{holders, shrink};
use crate::plan::slices::small_pods::bursts;
use crate::plan::slices::small_pods::keep::{Keep, keep_small};
use crate::plan::slices::standby::goals::StandbyGoals;
use crate::plan::slices::standby::ready;
use crate::plan::slices::{excess, given_up, memory_in_use, raylets, resizes, whole_replicas};
use crate::snapshot::pod::Pod;

/// The inputs of the slices that are the same however often the decision is made.
pub(crate) struct Inputs {
    goals: StandbyGoals,
    departures: BTreeMap<String, Departure>,
}

impl Inputs {
    /// The pods that will leave by the objects, and the goals of standby.
    pub(crate) fn of(situation: &Situation<'_>) -> Self {
        let (settings, now) = (situation.settings, situation.now);
        let config = started::read(&situation.snapshot.ray_cluster);
        let times = (settings.drain_timeout_s, now);
        let departures = departures(situation.snapshot, situation.own_pods, &config, times);
        let mut goals = StandbyGoals::at(&settings.headroom, &settings.schedules, now);
        goals.replace(departures.values(), situation.live);
        Self { goals, departures }
    }
}

/// Decides with all slices, while `attempts` are not tried.
pub(crate) fn decide<'a>(
    situation: &'a Situation<'a>,
    inputs: &'a Inputs,
    attempts: &'a Attempts,
) -> (Decided<'a>, Findings<'a>) {
    let Situation {
        own_pods,
        live,
        now,
        ..
    } = *situation;
    let (settings, history) = (situation.settings, situation.history());
    let mut config = started::read(&situation.snapshot.ray_cluster);
    let mut problems = std::mem::take(&mut config.problems);
    problems.extend(problems::all(situation.snapshot, own_pods));
    problems.extend(raylets::believe(&mut config, own_pods, live));
    let hanging = HangingPods::of(own_pods, &config, now);
    problems.extend(hanging.problems());
    let (mut rows, leftovers) = observe(situation, inputs, &config, &hanging);
    let evidence = Evidence::of(situation, &rows, &config);
    rows::take_out_unknown(&mut rows, &config);
    let (mut state, mut demands) =
        read(situation, inputs, &config, &rows, &evidence, &mut problems);
    let kept_back = attempts.keep_back(&mut state, &mut demands, now);
    problems.extend(blocked::mark(&mut state, &evidence, history, own_pods, now));
    excess::count_draining(&mut state, &config, &leftovers, &hanging);
    enforce::enforce_minima(&mut state, |group| &group.template);
    enforce::enforce_group_maxima(&mut state, true);
    enforce::enforce_cluster_maximum(&mut state, true);
    let excess = excess::excess_nodes(situation, &state, &config, &leftovers);
    let reliefs = memory_in_use::reserve(&mut state);
    let remainder = serve(&mut state, &demands, by_steps);
    memory_in_use::grant(&mut state, &reliefs, now);
    let goals = &inputs.goals;
    let (standby, only_ready) =
        ready::keep_ready(&mut state, goals, situation, &leftovers, &demands);
    problems.extend(standby.is_none().then(ready::given_up));
    let mut findings = Findings {
        at_work: bursts::at_work(history, &state),
        bursts: settings
            .learn_gaps
            .then(|| bursts::record(history, &state, now)),
        evidence,
        excess,
        hanging,
        standby: standby.unwrap_or_default(),
        attempts,
        departures: &inputs.departures,
        rooms: BTreeMap::new(),
    };
    let waiting = servable(&state, &remainder);
    let waits = |pod: &Pod<'_>| pod.is_unschedulable() && !only_ready.contains(pod.name);
    let demand_waits = !waiting.is_empty() || own_pods.iter().any(waits);
    let idle_s = config.idle_timeout_s;
    given_up::launches(&mut state);
    given_up::scattered(&mut state, &kept_back);
    // Before idle nodes go: those that will grow into the room of others must not be among them.
    if demand_waits && settings.make_room {
        await_room(&mut state, situation, &leftovers, idle_s, &waiting);
    }
    // Demand of blocked groups went to others meanwhile, so their pods and those of the others are not all needed.
    let was_blocked = state.has_blocked || !history.blocked.is_empty();
    let withdrawn_s = was_blocked.then_some(given_up::WITHDRAWN_AFTER_S);
    let pending_s = settings.pending_idle_timeout_s.or(withdrawn_s);
    if pending_s.is_some() {
        enforce::note_unneeded(&mut state, &history.unneeded_since, now);
    }
    if let Some(longest) = settings.keep_small_s.filter(|_| !demand_waits) {
        keep_small(&mut state, Keep::of(longest, &findings), idle_s);
    }
    enforce::enforce_idle(&mut state, (idle_s, pending_s), now);
    enforce::forget_removed(&mut state);
    // After the removals, because a node that goes holds nothing and has nothing to give up.
    let holders = holders(&state, &demands);
    shrink(
        &mut state,
        settings.shrink_after_s,
        demand_waits,
        &holders,
        now,
    );
    memory_in_use::give_back(&mut state, &holders, now);
    if demand_waits {
        given_up::vain(&mut state);
    }
    if demand_waits && settings.make_room {
        findings.rooms = make_room(&mut state, situation, &leftovers, idle_s, &waiting);
    }
    whole_replicas::hold_back(&mut state);
    problems.extend(state.cut());
    let decided = Decided {
        situation,
        config,
        state,
        demands,
        remainder,
        leftovers,
        problems,
    };
    (decided, findings)
}

/// The rows of the nodes as the objects have them, and the pods without a row.
fn observe<'a: 'c, 'c>(
    situation: &'a Situation<'a>,
    inputs: &Inputs,
    config: &'c ClusterConfig,
    hanging: &HangingPods<'_>,
) -> (Vec<NodeRow<'c>>, Leftovers<'a>) {
    let (mut list, mut leftovers) = base_rows::rows(situation);
    rows::settle(&mut list, &mut leftovers, situation);
    // The rows of pods to come borrow from the groups.
    let mut list: Vec<NodeRow<'c>> = list;
    let (departures, own_pods) = (&inputs.departures, situation.own_pods);
    rows::add_awaited(&mut list, config, own_pods, departures, hanging);
    (list, leftovers)
}

/// The nodes, the groups and the requests in numbers, each node at the size at which it counts.
fn read<'a>(
    situation: &Situation<'a>,
    inputs: &Inputs,
    config: &ClusterConfig,
    rows: &[NodeRow<'_>],
    evidence: &Evidence<'_>,
    problems: &mut Vec<Problem>,
) -> (DecisionState, List<DemandIndex, Demand<'a>>) {
    let now = situation.now;
    let further: Vec<&str> = inputs.goals.resources().collect();
    let (mut state, demands) = assemble::state(situation, config, rows, &further);
    state.unread_nodes = config.unread_nodes;
    problems.extend(assemble::faults(&state, &ProblemEffect::CountedUpToTotal));
    faults::correct_amounts(&mut state);
    faults::mark_going(&mut state, rows, &evidence.given_up, &inputs.departures);
    let mut kube_nodes = HashMap::default();
    if let Some(nodes) = &situation.snapshot.nodes {
        let loads = &situation.snapshot.loads;
        (state.headrooms, kube_nodes) = NodeHeadroom::all(nodes, situation.own_pods, loads);
    }
    let mut notes = HashMap::default();
    let read = resizes::reader(situation, &kube_nodes, &mut notes);
    problems.extend(assemble::read_resizes(&mut state, rows, read));
    state.notes = notes;
    raylets::mend(&mut state);
    faults::note_waits(&mut state, rows, now);
    backoff::mark(
        &mut state,
        situation.history(),
        &evidence.has_too_large,
        now,
    );
    sizes::hold_back(&mut state);
    assemble::count_at_limits(&mut state);
    sizes::count_nodes(&mut state);
    (state, demands)
}
