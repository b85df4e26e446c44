//! From packed nodes to the actions of a plan.

use crate::plan::conclude::reasons::unmet;
use crate::plan::conclude::resizes::{notes, raylet_syncs, resizes};
use crate::plan::conclude::{deletions, drains, launch};
use crate::plan::decided::Decided;
use crate::plan::list::{ByGroup, GroupIndex};
use crate::plan::nodes::node::{Fate, PlannedNode, Stage};
use crate::plan::nodes::tables::StandbyRole;
use crate::plan::outcome::plan::{GroupPlan, Plan, PlanWait};
use crate::plan::outcome::problem::{Problem, ProblemPlace, ProblemReason};
use crate::plan::remember;
use crate::plan::removal::idle_end;
use crate::plan::situation::Situation;
use crate::plan::slices::departures::is_evicted;
use crate::plan::slices::findings::Findings;
use crate::plan::slices::gangs::jumps;
use crate::plan::slices::standby::reason::StandbyLaunch;
use crate::plan::slices::{holds, initial_sizes};
use crate::snapshot::group_spec::GroupSpec;
use crate::snapshot::pod::{Pod, PodRole};

/// Returns the plan of a decision.
pub(crate) fn plan(decided: &Decided<'_>, findings: Option<&Findings<'_>>) -> Plan {
    let Situation {
        snapshot,
        settings,
        now,
        ..
    } = *decided.situation;
    let mut plan = Plan {
        cluster: snapshot.title(),
        strategy: settings.strategy,
        problems: decided.problems.clone(),
        ..Plan::default()
    };
    if decided.state.work.is_over() {
        give_up(decided, &mut plan);
        return plan;
    }
    plan.unmet = unmet(decided);
    // Ray resizes nodes that go, too, which restarts their idle time.
    let only_staying = findings.is_some();
    plan.raylet_syncs = raylet_syncs(decided, only_staying);
    if let Some(findings) = findings {
        plan.departures = findings.departures.values().cloned().collect();
    }
    let running = |node: &PlannedNode| node.head && node.stage() == Stage::Running;
    if decided.state.in_order().any(running) {
        plan.drains = drains::drains(decided, findings);
        plan.holds = holds::holds(decided, findings.is_some());
        plan.resizes = resizes(decided, only_staying);
        match findings {
            None => plan.groups = groups(decided, None, &launch::as_ray(decided)),
            Some(found) => launch_and_delete(decided, found, &mut plan),
        }
    } else {
        // While the head does not run, Ray still deletes the pods of stopped raylets. Here these
        // pods are deleted as soon as the head runs.
        plan.waiting = Some(PlanWait::NoHead);
        plan.groups = unchanged(decided);
    }
    plan.notes = notes(decided, &plan, only_staying);
    let mut history = remember::history(decided, &plan, findings.is_none());
    if let Some(findings) = findings {
        findings.remember(&mut history, decided, &plan);
    }
    plan.remember = history;
    let (end, unused) = idle_end::decide(snapshot, settings.strategy, now);
    plan.end = end.filter(|_| plan.waiting.is_none());
    plan.remember.unused = unused;
    plan
}

/// Gives the decision up: nothing is done, and nothing is forgotten.
fn give_up(decided: &Decided<'_>, plan: &mut Plan) {
    plan.waiting = Some(PlanWait::GivenUp);
    plan.groups = unchanged(decided);
    plan.problems.push(Problem {
        at: ProblemPlace::Demand,
        reason: ProblemReason::TooMuchWork,
        effect:
            "nothing is launched, resized or removed; ask with fewer different requests at once"
                .into(),
    });
    plan.remember = decided.situation.history().clone();
}

/// Plans the launches and deletions of all groups by the findings of the slices.
fn launch_and_delete(decided: &Decided<'_>, findings: &Findings<'_>, plan: &mut Plan) {
    plan.excess = (findings.excess.iter())
        .map(|one| one.node.clone())
        .collect();
    let jump = jumps::room(decided, findings.attempts.jump.as_ref());
    let launch_now = launch::now(decided, jump.as_ref());
    plan.groups = groups(decided, Some(findings), &launch_now);
    if jump.is_some_and(|jump| jump.is_short) {
        plan.problems.push(Problem {
            at: ProblemPlace::Workers,
            reason: ProblemReason::JumpRefused,
            effect: "fewer are asked for at once, so that what can be admitted is".into(),
        });
    }
    deletions::of_removed_groups(decided, &mut plan.groups, &mut plan.problems);
}

fn workers<'a>(decided: &'a Decided<'_>) -> impl Iterator<Item = (GroupIndex, &'a GroupSpec)> {
    let groups = decided.state.groups.enumerate();
    let groups = groups.map(|(number, group)| (number, &group.config));
    groups.filter(|(_, group)| !group.is_head())
}

fn unchanged(decided: &Decided<'_>) -> Vec<GroupPlan> {
    let same = |(_, group): (GroupIndex, &GroupSpec)| GroupPlan {
        name: group.name.clone(),
        replicas_now: group.replicas,
        replicas: group.replicas.or(group.min_replicas).unwrap_or(0),
        ..GroupPlan::default()
    };
    workers(decided).map(same).collect()
}

fn groups(
    decided: &Decided<'_>,
    findings: Option<&Findings<'_>>,
    launch_now: &ByGroup<u64>,
) -> Vec<GroupPlan> {
    let state = &decided.state;
    let launches = state.count(|node| node.fate == Fate::Launch);
    // A launch of an earlier round that nothing has needed, and that has no pod yet, is given up.
    let cancelled =
        state.count(|node| node.pod().is_none() && !node.stays() && node.stage() != Stage::New);
    let mut deletions = deletions::deletions(decided, findings.is_some());
    let plan = |(number, group): (GroupIndex, &GroupSpec)| {
        let launch_now = launch_now[number];
        let of_group = || findings.and_then(|_| initial_sizes::of_group(decided, number));
        GroupPlan {
            name: group.name.clone(),
            replicas_now: group.replicas,
            launch: launches[number],
            launch_now,
            initial_size: (launch_now > 0).then(of_group).flatten(),
            standby: findings.map_or_else(Vec::new, |found| ready(decided, found, number)),
            cancel: cancelled[number],
            delete: deletions.remove(&number).unwrap_or_default(),
            ..GroupPlan::default()
        }
    };
    let mut plans: Vec<GroupPlan> = workers(decided).map(plan).collect();
    match findings {
        None => set_replicas_as_ray(decided, &mut plans),
        Some(findings) => set_replicas(decided, findings, &mut plans),
    }
    plans
}

/// The new nodes of a group that no demand needs, by what they are for.
fn ready(decided: &Decided<'_>, findings: &Findings<'_>, group: GroupIndex) -> Vec<StandbyLaunch> {
    let mut launches: Vec<StandbyLaunch> = Vec::new();
    let nodes = decided.state.entries();
    for (number, node) in nodes.filter(|(_, node)| node.group() == Some(group)) {
        let role = decided.state.tables.standby.get(&number);
        let Some(StandbyRole::Launched(standby)) = role else {
            continue;
        };
        let standby = findings.standby.get(*standby);
        let Some(reason) = standby.map(|standby| &standby.reason) else {
            continue;
        };
        match launches.iter_mut().find(|launch| launch.reason == *reason) {
            Some(launch) => launch.nodes = launch.nodes.saturating_add(node.count),
            None => launches.push(StandbyLaunch {
                nodes: node.count,
                reason: reason.clone(),
            }),
        }
    }
    launches
}

/// The number of pods of each group that stay as far as KubeRay is concerned.
fn observed(decided: &Decided<'_>) -> ByGroup<u64> {
    let config = &decided.config;
    let stays = |pod: &&Pod<'_>| {
        pod.role == PodRole::Worker && !pod.deleting && !config.is_listed(pod.group, pod.name)
    };
    config.count(decided.situation.own_pods.iter().filter(stays))
}

/// Sets the `replicas` of groups as Ray does, which writes them only in a round in which it launches or deletes pods:
/// the nodes that are asked for or exist, plus launches, minus deletions, in whole replicas rounded down. (Ray,
/// `cloud_provider.py`, `_initialize_scale_request`.)
fn set_replicas_as_ray(decided: &Decided<'_>, plans: &mut [GroupPlan]) {
    let observed = observed(decided);
    let acts = |plan: &GroupPlan| plan.launch_now > 0 || !plan.delete.is_empty();
    let acts = plans.iter().any(acts);
    for (plan, (number, group)) in plans.iter_mut().zip(workers(decided)) {
        if !acts {
            plan.replicas = group.replicas.or(group.min_replicas).unwrap_or(0);
            continue;
        }
        // Ray reads `replicas` that are absent as 1, whatever KubeRay makes of them.
        let requested = group
            .replicas
            .unwrap_or(1)
            .max(group.min_replicas.unwrap_or(0));
        let nodes = group.nodes(requested).max(observed[number]);
        let nodes = nodes.saturating_add(plan.launch_now);
        let nodes = nodes.saturating_sub(plan.delete.len() as u64);
        let replicas = nodes.checked_div(group.hosts).unwrap_or(0);
        let replicas = i64::try_from(replicas).unwrap_or(i64::MAX);
        plan.replicas = replicas.min(group.max_replicas.unwrap_or(0));
    }
}

/// Sets the `replicas` of groups whose launches and deletions are decided on, in every round, to what is there and
/// still needed.
fn set_replicas(decided: &Decided<'_>, findings: &Findings<'_>, plans: &mut [GroupPlan]) {
    let observed = observed(decided);
    // KubeRay was asked for these already, and they have no pod yet.
    let awaited = (decided.state).count(|node| node.stage() == Stage::Requested && node.stays());
    for (plan, (number, group)) in plans.iter_mut().zip(workers(decided)) {
        // KubeRay makes as many pods as are missing for all that are there. Once nothing is to
        // be made any more, a pod that drains because its Kubernetes node is about to leave is
        // not to be made again.
        let awaited = awaited[number];
        let is_whole = awaited == 0 && plan.launch_now == 0;
        let draining = decided.leftovers.draining.iter();
        let gone = draining.filter(|pod| {
            let leaves = pod.group == group.name && findings.departures.contains_key(pod.name);
            is_whole && leaves && !group.listed.contains(pod.name)
        });
        let stay = observed[number].saturating_sub(gone.count() as u64);
        plan.replicas = settled(stay, awaited, group, plan);
    }
    count_evicted(decided, findings, &awaited, plans);
}

/// Adds pods that somebody deletes with their Kubernetes node, or that hang in termination, to the
/// `replicas` of groups in which pods are still to be made, as far as maxima allow: KubeRay counts these
/// pods until they are gone, and would make the others only then.
fn count_evicted(
    decided: &Decided<'_>,
    findings: &Findings<'_>,
    awaited: &ByGroup<u64>,
    plans: &mut [GroupPlan],
) {
    let all = plans.iter().zip(workers(decided));
    let all = all.map(|(plan, (_, group))| group.nodes(plan.replicas));
    let all = all.fold(0, u64::saturating_add);
    let mut room = decided.state.max_workers.saturating_sub(all);
    for (plan, (number, group)) in plans.iter_mut().zip(workers(decided)) {
        if awaited[number] == 0 && plan.launch_now == 0 {
            continue;
        }
        let evicted = decided.situation.own_pods.iter().filter(|pod| {
            pod.group == group.name
                && (is_evicted(&findings.departures, &decided.config, pod)
                    || findings.hanging.holds(pod))
        });
        let max = group.max_replicas.unwrap_or(0);
        let allowed = max.saturating_sub(plan.replicas).max(0).unsigned_abs();
        let counted = (evicted.count() as u64).div_ceil(group.hosts);
        let counted = counted.min(allowed).min(room / group.hosts);
        room -= counted * group.hosts;
        plan.replicas = plan.replicas.saturating_add_unsigned(counted);
    }
}

/// `replicas` for every pod that stays and every launch that is still needed, rounded up to whole
/// replicas.
fn settled(observed: u64, awaited: u64, group: &GroupSpec, plan: &GroupPlan) -> i64 {
    let stays = observed.saturating_sub(plan.delete.len() as u64);
    let nodes = stays
        .saturating_add(awaited)
        .saturating_add(plan.launch_now);
    let replicas =
        |nodes: u64| i64::try_from(nodes.div_ceil(group.hosts.max(1))).unwrap_or(i64::MAX);
    // More pods than the maximum allows are there until they have drained.
    let ceiling = group.max_replicas.unwrap_or(0).max(replicas(stays));
    replicas(nodes).clamp(group.min_replicas.unwrap_or(0).min(ceiling), ceiling)
}
