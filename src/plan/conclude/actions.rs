//! From packed nodes to the actions of a plan.

use crate::hash::HashMap;
use crate::plan::conclude::launch::LaunchBounds;
use crate::plan::conclude::reasons::Reasons;
use crate::plan::conclude::resizes::{notes, raylet_syncs, resizes};
use crate::plan::conclude::{deletions, describe, drains, holds, initial_sizes, launch, orphans};
use crate::plan::decided::Decided;
use crate::plan::list::{ByGroup, DemandIndex, GroupIndex};
use crate::plan::memory::jumps::JumpRoom;
use crate::plan::memory::{jumps, remember};
use crate::plan::nodes::departure::is_evicted;
use crate::plan::nodes::group::GroupConfig;
use crate::plan::nodes::life::Stage;
use crate::plan::nodes::node::{Fate, PlannedNode};
use crate::plan::nodes::standby_role::StandbyRole;
use crate::plan::outcome::plan::{GroupPlan, Plan, PlanWait};
use crate::plan::outcome::standby_reason::StandbyLaunch;
use crate::plan::outcome::unmet::{Unmet, UnmetReason};
use crate::plan::packing::budget;
use crate::plan::removal::idle_end;
use crate::plan::settings::PlanSettings;
use crate::snapshot::Snapshot;
use crate::snapshot::pod::PodRole;

/// Returns the plan of a decision.
pub(crate) fn plan(snapshot: &Snapshot, settings: &PlanSettings, decided: &Decided<'_>) -> Plan {
    if decided.state.work.is_over() {
        return given_up(snapshot, settings, decided);
    }
    let mut plan = Plan {
        cluster: snapshot.title(),
        strategy: settings.strategy,
        problems: decided.problems.clone(),
        unmet: unmet(decided),
        raylet_syncs: raylet_syncs(decided),
        departures: decided.departures.values().cloned().collect(),
        ..Plan::default()
    };
    let running = |node: &PlannedNode| node.head && node.stage() == Stage::Running;
    if decided.state.in_order().any(running) {
        plan.drains = drains::drains(snapshot, settings, decided);
        plan.excess = drains::excess(settings, decided);
        plan.holds = holds::holds(settings, decided);
        plan.resizes = resizes(decided);
        let jump = jumps::room(decided);
        plan.groups = groups(snapshot, settings, decided, jump.as_ref());
        plan.problems.extend(jump.and_then(|jump| jump.problem()));
        orphans::place(decided, &mut plan.groups, &mut plan.problems);
    } else {
        // While the head does not run, Ray still deletes the pods of stopped raylets. Here these
        // pods are deleted as soon as the head runs.
        plan.waiting = Some(PlanWait::NoHead);
        plan.groups = unchanged(decided);
    }
    plan.notes = notes(decided, &plan);
    plan.remember = remember::history(snapshot, decided, &plan);
    let ends = plan.waiting.is_none();
    let (end, unused) = idle_end::decide(snapshot, settings.strategy, decided.now);
    (plan.end, plan.remember.unused) = (end.filter(|_| ends), unused);
    plan
}

/// The plan of a decision that was given up: nothing is done, and nothing is forgotten.
fn given_up(snapshot: &Snapshot, settings: &PlanSettings, decided: &Decided<'_>) -> Plan {
    let mut problems = decided.problems.clone();
    problems.push(budget::given_up());
    Plan {
        cluster: snapshot.title(),
        strategy: settings.strategy,
        waiting: Some(PlanWait::GivenUp),
        groups: unchanged(decided),
        problems,
        remember: snapshot.history.clone(),
        ..Plan::default()
    }
}

fn workers<'a>(decided: &'a Decided<'_>) -> impl Iterator<Item = (GroupIndex, &'a GroupConfig)> {
    let groups = decided.state.groups.enumerate();
    let groups = groups.map(|(number, group)| (number, &group.config));
    groups.filter(|(_, group)| !group.is_head)
}

fn unchanged(decided: &Decided<'_>) -> Vec<GroupPlan> {
    let same = |(_, group): (GroupIndex, &GroupConfig)| GroupPlan {
        name: group.name.clone(),
        replicas_now: group.replicas,
        replicas: group.replicas.unwrap_or(group.min_replicas),
        ..GroupPlan::default()
    };
    workers(decided).map(same).collect()
}

fn groups(
    snapshot: &Snapshot,
    settings: &PlanSettings,
    decided: &Decided<'_>,
    jump: Option<&JumpRoom>,
) -> Vec<GroupPlan> {
    let bounds = LaunchBounds {
        scale_up: settings.scale_up,
        limits: &snapshot.history.launch_limits,
        jump,
        own: decided.own,
        now: decided.now,
    };
    let launch_now = launch::now(&decided.state, decided.config.conservative, &bounds);
    let launches = decided.state.count(|node| node.fate == Fate::Launch);
    let cancelled = decided.state.count(is_cancelled);
    let awaited = decided.state.count(is_awaited);
    let mut deletions = deletions::deletions(decided);
    let observed = observed(decided);
    let replaced = replaced(decided);
    let mut plans: Vec<GroupPlan> = workers(decided)
        .map(|(number, group)| GroupPlan {
            name: group.name.clone(),
            replicas_now: group.replicas,
            replicas: 0,
            launch: launches.count(number),
            launch_now: launch_now.count(number),
            initial_size: (launch_now.count(number) > 0)
                .then(|| initial_sizes::of_group(snapshot, settings, decided, number))
                .flatten(),
            standby: ready(decided, number),
            cancel: cancelled.count(number),
            delete: deletions.remove(&number).unwrap_or_default(),
            orphans: Vec::new(),
        })
        .collect();
    let acts = plans
        .iter()
        .any(|plan| plan.launch_now > 0 || !plan.delete.is_empty());
    for (plan, (number, group)) in plans.iter_mut().zip(workers(decided)) {
        let observed = observed.get(group.name.as_str()).copied().unwrap_or(0);
        plan.replicas = if decided.state.strategy.is_rayfit() {
            let awaited = awaited.count(number);
            // KubeRay makes as many pods as are missing for all that are there. Once nothing is to
            // be made any more, a pod that is about to leave is not to be made again.
            let is_whole = awaited == 0 && plan.launch_now == 0;
            let gone = if is_whole { replaced.count(number) } else { 0 };
            settled(observed.saturating_sub(gone), awaited, group, plan)
        } else if acts {
            // Ray writes `replicas` only in a round in which it launches or deletes pods.
            as_ray(observed, group, plan)
        } else {
            group.replicas.unwrap_or(group.min_replicas)
        };
    }
    if decided.state.strategy.is_rayfit() {
        count_evicted(decided, &awaited, &mut plans);
    }
    plans
}

/// Adds pods that somebody deletes with their Kubernetes node, or that hang in termination, to the
/// `replicas` of groups in which pods are still to be made, as far as maxima allow: KubeRay counts these
/// pods until they are gone, and would make the others only then.
fn count_evicted(decided: &Decided<'_>, awaited: &ByGroup<u64>, plans: &mut [GroupPlan]) {
    let nodes = |plan: &GroupPlan, group: &GroupConfig| group.nodes(plan.replicas);
    let all = plans.iter().zip(workers(decided));
    let all = all.map(|(plan, (_, group))| nodes(plan, group));
    let all = all.fold(0, u64::saturating_add);
    let mut room = decided.state.max_workers.saturating_sub(all);
    for (plan, (number, group)) in plans.iter_mut().zip(workers(decided)) {
        if awaited.count(number) == 0 && plan.launch_now == 0 {
            continue;
        }
        let of_group = decided.own.iter().filter(|pod| pod.group == group.name);
        let hanging = &decided.leftovers.hanging;
        let evicted = of_group.filter(|pod| {
            is_evicted(&decided.departures, &decided.config, pod) || hanging.holds(pod)
        });
        let allowed = u64::try_from(group.max_replicas.saturating_sub(plan.replicas)).unwrap_or(0);
        let counted = (evicted.count() as u64).div_ceil(group.hosts);
        let counted = counted.min(allowed).min(room / group.hosts);
        room -= counted * group.hosts;
        plan.replicas = plan.replicas.saturating_add_unsigned(counted);
    }
}

/// The new nodes of a group that no demand needs, by what they are for.
fn ready(decided: &Decided<'_>, group: GroupIndex) -> Vec<StandbyLaunch> {
    let mut launches: Vec<StandbyLaunch> = Vec::new();
    for node in decided.state.in_order() {
        let StandbyRole::Launched(kept) = node.standby else {
            continue;
        };
        let kept = decided.standby.get(kept);
        let Some(kept) = kept.filter(|_| node.group() == Some(group)) else {
            continue;
        };
        let same = launches
            .iter_mut()
            .find(|launch| launch.reason == kept.reason);
        match same {
            Some(launch) => launch.nodes = launch.nodes.saturating_add(node.count),
            None => launches.push(StandbyLaunch {
                nodes: node.count,
                reason: kept.reason.clone(),
            }),
        }
    }
    launches
}

/// Whether a launch of an earlier round is given up: nothing has needed it, and it has no pod yet.
fn is_cancelled(node: &PlannedNode) -> bool {
    node.pod().is_none() && !node.stays() && node.stage() != Stage::New
}

/// Whether KubeRay was asked for a launch that is still needed and has no pod yet.
fn is_awaited(node: &PlannedNode) -> bool {
    node.stage() == Stage::Requested && node.stays()
}

/// By group, how many pods drain because they are about to leave with their Kubernetes node.
fn replaced(decided: &Decided<'_>) -> ByGroup<u64> {
    let mut replaced = decided.config.groups.map(|_| 0);
    for pod in &decided.leftovers.draining {
        let is_one = decided.departures.contains_key(pod.name)
            && !decided.config.is_listed(pod.group, pod.name);
        let group = decided.config.number(pod.group).filter(|_| is_one);
        if let Some(count) = group.and_then(|group| replaced.get_mut(group)) {
            *count += 1;
        }
    }
    replaced
}

/// By group, how many pods stay as far as KubeRay is concerned.
fn observed<'a>(decided: &'a Decided<'_>) -> HashMap<&'a str, u64> {
    let mut observed: HashMap<&str, u64> = HashMap::default();
    for pod in decided.own {
        let listed = decided.config.is_listed(pod.group, pod.name);
        if pod.role == PodRole::Worker && !pod.deleting && !listed {
            *observed.entry(pod.group).or_default() += 1;
        }
    }
    observed
}

/// `replicas` by Ray's arithmetic: the nodes that are asked for or exist, plus launches, minus
/// deletions, in whole replicas rounded down. (Ray, `cloud_provider.py`,
/// `_initialize_scale_request`.)
fn as_ray(observed: u64, group: &GroupConfig, plan: &GroupPlan) -> i64 {
    // Ray reads `replicas` that are absent as 1, whatever KubeRay makes of them.
    let asked = group.replicas.unwrap_or(1).max(group.min_replicas);
    let nodes = group.nodes(asked).max(observed);
    let nodes = nodes.saturating_add(plan.launch_now);
    let nodes = nodes.saturating_sub(plan.delete.len() as u64);
    let replicas = nodes.checked_div(group.hosts).unwrap_or(0);
    i64::try_from(replicas)
        .unwrap_or(i64::MAX)
        .min(group.max_replicas)
}

/// `replicas` for every pod that stays and every launch that is still needed, rounded up to whole
/// replicas.
fn settled(observed: u64, awaited: u64, group: &GroupConfig, plan: &GroupPlan) -> i64 {
    let stays = observed.saturating_sub(plan.delete.len() as u64);
    let nodes = stays
        .saturating_add(awaited)
        .saturating_add(plan.launch_now);
    let replicas = nodes.div_ceil(group.hosts.max(1));
    let replicas = i64::try_from(replicas).unwrap_or(i64::MAX);
    // More pods than the maximum allows are there until they have drained.
    let ceiling = group
        .max_replicas
        .max(i64::try_from(stays.div_ceil(group.hosts.max(1))).unwrap_or(i64::MAX));
    replicas.clamp(group.min_replicas.min(ceiling), ceiling)
}

fn unmet(decided: &Decided<'_>) -> Vec<Unmet> {
    let mut counts: HashMap<DemandIndex, u64> = HashMap::default();
    let mut order = Vec::new();
    for batch in &decided.left {
        let count = counts.entry(batch.demand).or_insert_with(|| {
            order.push(batch.demand);
            0
        });
        *count = count.saturating_add(batch.count);
    }
    let mut reasons = Reasons::of(decided);
    let invalid = decided
        .demands
        .enumerate()
        .filter(|(_, demand)| demand.batches.is_err());
    order.extend(invalid.map(|(number, _)| number));
    let mut unmet = |number: DemandIndex| {
        let demand = decided.demands.get(number)?;
        let (kind, index) = demand.place();
        let count = counts.get(&number).copied();
        let is_later = matches!(
            demand.batches,
            Err(UnmetReason::TriedAgain { .. } | UnmetReason::TriedInTurn)
        );
        // A demand that is kept back has no batches any more: it is one placement group.
        let count = count.unwrap_or(u64::from(is_later));
        let reasons = reasons.of_demand(number);
        Some(Unmet {
            kind,
            index,
            count,
            demand: describe::demand(demand),
            reasons,
        })
    };
    order.into_iter().filter_map(&mut unmet).collect()
}
