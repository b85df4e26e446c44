//! The phases of a decision, in their order: from a snapshot to a plan. (Ray, `scheduler.py`,
//! `ResourceDemandScheduler.schedule`.)

use std::collections::BTreeMap;

use super::decided::Decided;
use super::serve::serve;
use super::settings::PlanSettings;
use crate::hash::{HashMap, HashSet};
use crate::plan::conclude::{actions, explain};
use crate::plan::demand::requests::{self, Demand};
use crate::plan::demand::shape::Shapes;
use crate::plan::growth::headroom::NodeHeadroom;
use crate::plan::list::{ByGroup, DemandIndex, List, StandbyIndex};
use crate::plan::memory::attempts::Attempts;
use crate::plan::memory::{availability, blocked, bursts, growth_backoff};
use crate::plan::nodes::assemble::NodeAssembly;
use crate::plan::nodes::blocked::Evidence;
use crate::plan::nodes::departure::departures;
use crate::plan::nodes::group::ClusterConfig;
use crate::plan::nodes::hanging::HangingPods;
use crate::plan::nodes::node::{NodeClasses, PlannedNode};
use crate::plan::nodes::rows::{Leftovers, Row};
use crate::plan::nodes::view::NodeReader;
use crate::plan::nodes::{assemble, full, problems, raylet, rows, view};
use crate::plan::outcome::cause::Departure;
use crate::plan::outcome::plan::Plan;
use crate::plan::outcome::problem::Problem;
use crate::plan::outcome::report::PlanReport;
use crate::plan::packing::budget::{BUDGET, WorkBudget};
use crate::plan::packing::servable::servable;
use crate::plan::packing::state::{DecisionState, PlannedGroup};
use crate::plan::pressure;
use crate::plan::removal::enforce::Timeouts;
use crate::plan::removal::keep::Keep;
use crate::plan::removal::make_room::{RoomContext, await_room, make_room};
use crate::plan::removal::{deadline, enforce, give_up};
use crate::plan::shrink::{holders, shrink};
use crate::plan::standby::claims::StandbyContext;
use crate::plan::standby::ready::{self, StandbyDemand};
use crate::plan::standby::wanted::Wanted;
use crate::snapshot::Snapshot;
use crate::snapshot::gcs::LiveNodes;
use crate::snapshot::pod::Pod;

/// Decides what is to be done about the RayCluster of a snapshot. This is a pure function: equal
/// snapshots give equal plans.
pub fn decide(snapshot: &Snapshot, settings: &PlanSettings) -> (Plan, PlanReport) {
    let own: Vec<Pod<'_>> = snapshot.pods.iter().collect();
    let read = || ClusterConfig::read(&snapshot.ray_cluster, settings.strategy);
    let config = read();
    let now = snapshot.seconds().unwrap_or_default();
    let mut decision = Decision {
        snapshot,
        settings: settings.clone(),
        wanted: Wanted::default(),
        departures: BTreeMap::new(),
        own: &own,
        live: &snapshot.gcs.live(),
        now,
    };
    let mut attempts = Attempts::default();
    if decision.is_rayfit() {
        decision.wanted = Wanted::at(&settings.headroom, &settings.schedules, now);
        let times = (settings.drain_timeout_s, now);
        decision.departures = departures(snapshot, &own, &config, times);
        let leaving = decision.departures.values();
        decision.wanted.replace(leaving, decision.live);
        attempts = Attempts::of(snapshot, now);
    } else {
        // Ray knows nothing of these improvements, so its strategy goes without them.
        decision.settings = PlanSettings {
            learn_gaps: false,
            make_room: false,
            keep_small_s: None,
            shrink_after_s: None,
            follow_memory: false,
            ..settings.clone()
        };
    }
    let mut decided = decision.run(config, &attempts);
    let (cluster, patience) = (snapshot.title(), settings.unschedulable_s);
    if decision.is_rayfit() && attempts.give_up(&decided, &cluster, patience) {
        decided = decision.run(read(), &attempts);
    }
    let plan = actions::plan(snapshot, settings, &decided);
    let report = explain::report(&decided, &plan);
    (plan, report)
}

struct Decision<'a> {
    snapshot: &'a Snapshot,
    settings: PlanSettings,
    wanted: Wanted,
    departures: BTreeMap<String, Departure>,
    own: &'a [Pod<'a>],
    live: &'a LiveNodes<'a>,
    now: f64,
}

impl<'a> Decision<'a> {
    fn is_rayfit(&self) -> bool {
        self.settings.strategy.is_rayfit()
    }

    fn run(&self, mut config: ClusterConfig, attempts: &Attempts) -> Decided<'a> {
        let now = self.now;
        let mut problems = std::mem::take(&mut config.problems);
        problems.extend(problems::all(self.snapshot, self.own));
        if self.is_rayfit() {
            // Groups count as their raylets report them from then on.
            problems.extend(raylet::believe(&mut config, self.own, self.live));
        }
        let (list, leftovers, evidence) = self.observe(&config, &mut problems);
        let (mut state, mut demands) = self.state(&config, &list, &evidence, now, &mut problems);
        let kept_back = attempts.keep_back(&mut state, &mut demands, now);
        let history = &self.snapshot.history;
        problems.extend(blocked::mark(&mut state, &evidence, history, self.own, now));
        if self.is_rayfit() {
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
        let excess = if self.is_rayfit() {
            let remembered = &history.excess;
            let times = (self.settings.drain_timeout_s, now);
            deadline::excess_nodes(&state, &config, &leftovers, self.live, remembered, times)
        } else {
            Vec::new()
        };
        let reliefs = pressure::reserve(&mut state);
        let left = serve(&mut state, &demands);
        pressure::grant(&mut state, &reliefs, now);
        let (standby, only_ready) = self.standby(&mut state, &demands, &leftovers, now);
        problems.extend(standby.is_none().then(ready::given_up));
        let waiting = servable(&state, &left);
        let waits = |pod: &Pod<'_>| pod.is_unschedulable() && !only_ready.contains(pod.name);
        let demand_waits = !waiting.is_empty() || self.own.iter().any(waits);
        let at_work = bursts::at_work(history, &state);
        let learns = self.settings.learn_gaps;
        let bursts = learns.then(|| bursts::seen(history, &state, now));
        give_up::launches(&mut state);
        give_up::scattered(&mut state, &kept_back);
        let withdrawn = give_up::pending_timeout(&state, history);
        let makes_room = demand_waits && self.settings.make_room;
        let room = RoomContext::new(self.own, &leftovers, history, (config.idle_timeout_s, now));
        if makes_room {
            await_room(&mut state, &room, &waiting);
        }
        let small = self.settings.keep_small_s.filter(|_| !demand_waits);
        let timeouts = Timeouts {
            cluster: config.idle_timeout_s,
            pending: self.settings.pending_idle_timeout_s.or(withdrawn),
            small: small.map(|longest| Keep {
                longest,
                most: &at_work,
                bursts: bursts.as_ref(),
            }),
            now,
        };
        let mut unneeded_since = BTreeMap::new();
        if timeouts.pending.is_some() {
            unneeded_since = enforce::note_unneeded(&mut state, &history.unneeded_since, now);
        }
        enforce::enforce_idle(&mut state, timeouts);
        enforce::forget_removed(&state, &mut unneeded_since);
        let holders = holders(&state, &demands);
        let shrinks = self.settings.shrink_after_s;
        shrink(&mut state, shrinks, demand_waits, &holders, now);
        pressure::give_back(&mut state, &holders, now);
        if self.is_rayfit() && demand_waits {
            give_up::vain(&mut state);
        }
        if makes_room {
            make_room(&mut state, &room, &waiting);
        }
        state.hold_back();
        problems.extend(state.is_cut.then(|| enforce::cut_short(state.max_workers)));
        Decided {
            state,
            config,
            demands,
            left,
            standby: standby.unwrap_or_default(),
            own: self.own,
            live: self.live,
            leftovers,
            unneeded_since,
            at_work,
            bursts,
            evidence,
            excess,
            gangs: attempts.gangs.clone(),
            jump: attempts.jump.clone(),
            departures: self.departures.clone(),
            problems,
            now,
        }
    }

    /// The rows of the nodes, the pods without a row, and why groups cannot be served now.
    fn observe<'c>(
        &self,
        config: &'c ClusterConfig,
        problems: &mut Vec<Problem>,
    ) -> (Vec<Row<'c>>, Leftovers<'a>, Evidence<'a>)
    where
        'a: 'c,
    {
        let (pods, strategy) = ((self.own, self.live), self.settings.strategy);
        let (mut list, mut leftovers) = rows::rows(self.snapshot, pods, strategy, self.now);
        if !self.is_rayfit() {
            return (list, leftovers, Evidence::none(config));
        }
        leftovers.hanging = HangingPods::of(self.own, config, self.now);
        problems.extend(leftovers.hanging.problems());
        let hanging = &leftovers.hanging;
        rows::add_awaited(&mut list, config, self.own, &self.departures, hanging);
        let waits = (
            self.settings.unschedulable_s,
            self.settings.progress_deadline_s,
        );
        let objects = (self.own, &list[..]);
        let evidence = Evidence::of(self.snapshot, objects, self.live, config, waits);
        (list, leftovers, evidence)
    }

    /// Turns the nodes, the groups and the requests into numbers, so that comparing them is cheap.
    fn state(
        &self,
        config: &ClusterConfig,
        rows: &[Row<'_>],
        evidence: &Evidence<'_>,
        now: f64,
        problems: &mut Vec<Problem>,
    ) -> (DecisionState, List<DemandIndex, Demand<'a>>) {
        let gcs = &self.snapshot.gcs;
        let names = view::names(self.snapshot, config, self.wanted.resources());
        let reader = NodeReader::new(&names, gcs, self.wanted.resources());
        let groups = config.groups.enumerate();
        let mut templates: ByGroup<PlannedNode> = groups
            .map(|(number, group)| reader.template(group, number))
            .collect();
        let (headrooms, kube_nodes) = match &self.snapshot.nodes {
            Some(nodes) if self.is_rayfit() => {
                NodeHeadroom::all(nodes, self.own, &self.snapshot.loads)
            }
            _ => (List::default(), HashMap::default()),
        };
        let mut assembly = NodeAssembly {
            history: &self.snapshot.history,
            strategy: self.settings.strategy,
            deferred_s: self.settings.deferred_s,
            follows_memory: self.settings.follow_memory,
            config,
            reader: &reader,
            kube_nodes: &kube_nodes,
            given_up: &evidence.given_up,
            departures: &self.departures,
            now,
            list: List::default(),
        };
        for row in rows {
            assembly.add(row, problems);
        }
        let mut list = assembly.list;
        let (cpu, memory, gpu) = (names.get("CPU"), names.get("memory"), names.get("GPU"));
        let (bases, too_large) = (templates.clone(), &evidence.has_too_large);
        let unavailable = &self.snapshot.history.unavailable;
        let preferences = availability::preferences(&config.groups, unavailable, now);
        let mut shapes = Shapes::default();
        let demands = requests::all(gcs, &names, &mut shapes);
        let history = Some(&self.snapshot.history).filter(|_| self.is_rayfit());
        let starting =
            || full::groups_without_room(&list, &headrooms, &shapes, &bases, (cpu, memory));
        let at_base = assemble::size(
            config,
            growth_backoff::of_groups(history, &config.groups, too_large, starting, now),
            (cpu, memory),
            &mut templates,
            &mut list,
            &headrooms,
            self.settings.strategy,
        );
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
        let groups = groups.map(group).collect();
        let state = DecisionState {
            names,
            cpu,
            memory,
            gpu,
            shapes,
            classes: NodeClasses::default(),
            groups,
            has_blocked: false,
            order: list.positions().collect(),
            nodes: list,
            headrooms,
            rooms: BTreeMap::new(),
            max_nodes: config.max_nodes,
            max_workers: self.settings.max_workers,
            unread_nodes: config.unread_nodes,
            is_cut: false,
            work: WorkBudget::new(BUDGET),
            conserve_gpus: self.settings.conserve_gpus,
            strategy: self.settings.strategy,
        };
        (state, demands)
    }

    /// The standby demands, `None` if finding nodes for them takes too many steps, and the pending
    /// pods that only standby needs.
    fn standby(
        &self,
        state: &mut DecisionState,
        demands: &List<DemandIndex, Demand<'_>>,
        leftovers: &Leftovers<'_>,
        now: f64,
    ) -> (Option<List<StandbyIndex, StandbyDemand>>, HashSet<String>) {
        let history = &self.snapshot.history;
        if self.wanted.is_nothing() && history.standby.is_empty() || state.work.is_over() {
            return (Some(List::default()), HashSet::default());
        }
        let context = StandbyContext {
            own: self.own,
            draining: &leftovers.draining,
            history,
            demands,
            now,
        };
        ready::keep_ready(state, &self.wanted, &context)
    }
}
