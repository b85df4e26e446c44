//! The cluster as the slices see it before anything is decided: as its objects have it, with nodes that will grow at the
//! size that they will have.

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
use crate::plan::outcome::problem::{COUNTED_UP_TO_TOTAL, Problem};
use crate::plan::packing::state::DecisionState;
use crate::plan::situation::Situation;
use crate::plan::slice::Slice;
use crate::plan::slices::blocked::evidence::Evidence;
use crate::plan::slices::departures::departures;
use crate::plan::slices::departures::reason::Departure;
use crate::plan::slices::findings::Findings;
use crate::plan::slices::gangs::attempts::Attempts;
use crate::plan::slices::growth_backoff::{backoff, sizes};
use crate::plan::slices::objects::hanging::HangingPods;
use crate::plan::slices::objects::{faults, rows, started};
use crate::plan::slices::standby::goals::StandbyGoals;
use crate::plan::slices::{raylets, resizes};

/// Reads the objects of a situation: a decision in which nothing is decided yet, with the findings so far, and the goals
/// of standby.
pub(crate) fn read<'a>(
    situation: &'a Situation<'a>,
    attempts: &'a Attempts,
) -> (Decided<'a>, Findings<'a>, StandbyGoals) {
    let (own_pods, live) = (situation.own_pods, situation.live);
    let (settings, now) = (situation.settings, situation.now);
    let cluster = &situation.snapshot.ray_cluster;
    let mut config = if settings.has(Slice::Objects) {
        started::read(cluster)
    } else {
        ClusterConfig::of(cluster)
    };
    let mut problems = std::mem::take(&mut config.problems);
    problems.extend(problems::all(situation.snapshot, own_pods));
    let unlike = settings.with(Slice::Raylets, || raylets::believe(&mut config, situation));
    problems.extend(unlike);
    let hanging = settings.with(Slice::Objects, || HangingPods::of(own_pods, &config, now));
    problems.extend(hanging.problems());
    let departures = settings.with(Slice::Departures, || departures(situation, &config));
    let goals = settings.with(Slice::Standby, || {
        let mut goals = StandbyGoals::at(&settings.headroom, &settings.schedules, now);
        goals.replace(departures.values(), live);
        goals
    });
    let (mut rows, leftovers) = observe(situation, &departures, &config, &hanging);
    let evidence = Evidence::of(situation, &rows, &config);
    rows::take_out_unknown(&mut rows, &config);
    let further: Vec<&str> = goals.resources().collect();
    let (mut state, demands, unread) = in_numbers(situation, &config, &rows, &further, &evidence);
    problems.extend(unread);
    faults::mark_going(&mut state, &rows, &evidence.given_up, &departures);
    let findings = Findings {
        evidence,
        excess: Vec::new(),
        hanging,
        standby: List::default(),
        at_work: List::default(),
        bursts: None,
        attempts,
        departures,
        rooms: BTreeMap::new(),
    };
    let decided = Decided {
        situation,
        config,
        state,
        demands,
        remainder: Vec::new(),
        leftovers,
        problems,
    };
    (decided, findings, goals)
}

/// The rows of the nodes as the objects have them, and the pods without a row.
fn observe<'a: 'c, 'c>(
    situation: &'a Situation<'a>,
    departures: &BTreeMap<String, Departure>,
    config: &'c ClusterConfig,
    hanging: &HangingPods<'_>,
) -> (Vec<NodeRow<'c>>, Leftovers<'a>) {
    let (mut list, mut leftovers) = base_rows::rows(situation);
    rows::settle(&mut list, &mut leftovers, situation);
    // The rows of pods to come borrow from the groups.
    let mut list: Vec<NodeRow<'c>> = list;
    rows::add_awaited(&mut list, config, situation.own_pods, departures, hanging);
    (list, leftovers)
}

/// The nodes, the groups and the requests in numbers, each node at the size at which it counts, and what cannot be read.
fn in_numbers<'a>(
    situation: &Situation<'a>,
    config: &ClusterConfig,
    rows: &[NodeRow<'_>],
    further: &[&str],
    evidence: &Evidence<'_>,
) -> (DecisionState, List<DemandIndex, Demand<'a>>, Vec<Problem>) {
    let (settings, now) = (situation.settings, situation.now);
    let (mut state, demands) = assemble::state(situation, config, rows, further);
    state.unread_nodes = config.unread_nodes;
    let mut problems = assemble::faults(&state, COUNTED_UP_TO_TOTAL);
    faults::correct_amounts(&mut state);
    let mut kube_nodes = HashMap::default();
    if let Some(nodes) = &situation.snapshot.nodes
        && settings.has(Slice::NodeHeadroom)
    {
        let loads = &situation.snapshot.loads;
        (state.headrooms, kube_nodes) = NodeHeadroom::all(nodes, situation.own_pods, loads);
    }
    let mut notes = HashMap::default();
    let read = resizes::reader(situation, &kube_nodes, &mut notes);
    problems.extend(assemble::read_resizes(&mut state, rows, read));
    state.tables.sizes = notes;
    settings.with(Slice::Raylets, || raylets::mend(&mut state));
    for (number, row) in state.nodes.positions().zip(rows) {
        if let Some(pod) = row.pod.filter(|pod| pod.is_unschedulable()) {
            let age = (now - pod.created().unwrap_or(now)).max(0.0);
            state.tables.unschedulable_s.insert(number, age);
        }
    }
    settings.with(Slice::GrowthBackoff, || {
        let too_large = &evidence.has_too_large;
        backoff::mark(&mut state, situation.history(), too_large, now);
    });
    settings.with(Slice::SizesToCome, || sizes::hold_back(&mut state));
    assemble::count_at_limits(&mut state);
    settings.with(Slice::SizesToCome, || sizes::count_nodes(&mut state));
    (state, demands, problems)
}
