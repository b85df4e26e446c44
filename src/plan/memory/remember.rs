//! The history that one round leaves for the next.

use std::collections::{BTreeMap, BTreeSet};

use crate::hash::HashSet;
use crate::plan::decided::Decided;
use crate::plan::growth::suggestion;
use crate::plan::memory::{availability, blocked, bursts, early_ends, growth_backoff, jumps};
use crate::plan::nodes::life::{NodeLife, RayInPod, Stage};
use crate::plan::nodes::node::{Fate, PlannedNode};
use crate::plan::nodes::standby_role::StandbyRole;
use crate::plan::outcome::cause::RemovalCause;
use crate::plan::outcome::plan::Plan;
use crate::snapshot::Snapshot;
use crate::snapshot::history::{
    ExcessMemory, History, Instance, InstanceStatus, ResizeMemory, StandbyMemory, ToldDeparture,
};

/// Returns the history after a plan.
pub(crate) fn history(snapshot: &Snapshot, decided: &Decided<'_>, plan: &Plan) -> History {
    let previous = &snapshot.history;
    let instances = instances(previous, decided, plan);
    let (at_work, bursts) = bursts::update(decided);
    let mut unavailable = previous.unavailable.clone();
    for (group, at) in availability::failures(decided, &instances) {
        let last = unavailable.entry(group.to_owned()).or_insert(at);
        // Failures come in the order of pods and launches, and not of time.
        *last = last.max(at);
    }
    let running = decided.state.count(|node| node.stage() == Stage::Running);
    let runs = |group: &str| {
        let number = decided.config.number(group);
        number.is_some_and(|number| running.count(number) > 0)
    };
    // A failure is forgotten with its group, and once a node of the group runs and the failure has
    // ceased to count for the choice between groups.
    unavailable.retain(|group, at| {
        let counts = !runs(group) || decided.now - *at < availability::RECOVERY_S;
        counts && decided.config.number(group).is_some()
    });
    History {
        instances,
        growth_backoffs: growth_backoff::update(previous, decided),
        at_work,
        bursts,
        // Groups come and go under any name: what is not forgotten with them would add up.
        launch_limits: (previous.launch_limits.iter())
            .filter(|(group, _)| decided.config.number(group).is_some())
            .map(|(group, cap)| (group.clone(), *cap))
            .collect(),
        blocked: blocked::update(previous, decided),
        early_ends: early_ends::update(previous, decided),
        excess: excess(previous, decided, plan),
        gangs: decided.gangs.clone(),
        jump: jumps::update(decided),
        // The caller fills it in: `idle_end` decides on it once the plan is made.
        unused: None,
        departing: (decided.departures.iter())
            .map(|(pod, departure)| (pod.clone(), departure.since))
            .collect(),
        told: announcements(previous, decided, plan),
        unavailable,
        unneeded_since: decided.unneeded_since.clone(),
        rooms: decided.state.rooms.clone(),
        resizes: (decided.state.in_order())
            .filter_map(|node| Some((node.pod()?.to_owned(), resize(snapshot, decided, node)?)))
            .collect(),
        // Idle nodes that are, or were, needed for headroom.
        standby: (decided.state.in_order())
            .filter(|node| node.is_idle() && node.stays() && node.standby != StandbyRole::None)
            .filter_map(|node| {
                let released_at = node.standby.released_at();
                Some((node.pod()?.to_owned(), StandbyMemory { released_at }))
            })
            .collect(),
    }
}

/// Departures that have been announced to Ray nodes that are about to leave.
fn announcements(
    previous: &History,
    decided: &Decided<'_>,
    plan: &Plan,
) -> BTreeMap<String, ToldDeparture> {
    let announced = previous.told.iter();
    let announced = announced.filter(|(pod, _)| decided.departures.contains_key(*pod));
    let mut departures: BTreeMap<String, ToldDeparture> = announced
        .map(|(pod, departure)| (pod.clone(), *departure))
        .collect();
    for drain in &plan.drains {
        if drain.cause == RemovalCause::NodeLeaves
            && let Some(departure) = &drain.departure
        {
            let departure = ToldDeparture {
                gone_at: departure.gone_at,
                is_known: departure.is_known,
            };
            departures.insert(drain.pod.clone(), departure);
        }
    }
    departures
}

/// Memory of the nodes above a maximum, after a plan, so that their time ends when it was said to. A node that was
/// asked to leave and does not drain yet is remembered for as long as its stop is awaited.
fn excess(history: &History, decided: &Decided<'_>, plan: &Plan) -> BTreeMap<String, ExcessMemory> {
    let (previous, now) = (&history.excess, decided.now);
    let mut excess_memory: BTreeMap<String, ExcessMemory> = BTreeMap::new();
    for node in decided.state.in_order() {
        if node.removal() == Some(RemovalCause::StopRequested)
            && let Some((pod, memory)) = node.pod().and_then(|pod| previous.get_key_value(pod))
        {
            excess_memory.insert(pod.clone(), *memory);
        }
    }
    for excess in &decided.excess {
        excess_memory.insert(excess.node.pod.clone(), excess.memory);
    }
    for drain in &plan.drains {
        let Some(stop_at) = drain.stop_at.filter(|_| plan.strategy.is_rayfit()) else {
            continue;
        };
        let previous = previous.get(&drain.pod).copied();
        let fresh = ExcessMemory {
            since: now,
            stopped_at: None,
        };
        let mut memory = previous.unwrap_or(fresh);
        if stop_at <= now {
            memory.stopped_at = Some(now);
        }
        excess_memory.insert(drain.pod.clone(), memory);
    }
    excess_memory
}

/// The launches that have no pod yet, and the pods whose Ray node was asked to stop; with strategy `Ray`
/// all pods, in the order of Ray's table.
fn instances(previous: &History, decided: &Decided<'_>, plan: &Plan) -> Vec<Instance> {
    let drained: BTreeSet<&str> = plan.drains.iter().map(|drain| drain.pod.as_str()).collect();
    let mut launches = decided.state.groups.map(|_| 0);
    for plan in &plan.groups {
        let number = decided.config.number(&plan.name);
        if let Some(launches) = number.and_then(|number| launches.get_mut(number)) {
            *launches = plan.launch_now;
        }
    }
    let mut rows: Vec<&PlannedNode> = decided.state.in_order().collect();
    // In the order in which they came, and not in that of packing: by it Ray launches what waits.
    rows.sort_by_key(|node| node.born);
    let mut instances = Vec::new();
    for node in rows {
        let group = decided.state.group_name(node).to_owned();
        let (status, since) = match (&node.life, node.fate) {
            (NodeLife::Existing { pod, ray, .. }, _) => match ray {
                RayInPod::Running { .. } if drained.contains(pod.as_str()) => {
                    (InstanceStatus::StopRequested, Some(decided.now))
                }
                RayInPod::Stopping { since } => (InstanceStatus::StopRequested, *since),
                // Ray's table keeps the place that a pod has had since it was asked for, and of
                // several that are equally good, or equally idle, the first one is taken.
                RayInPod::Running { .. } | RayInPod::Absent if !decided.state.strategy.is_rayfit() => {
                    (InstanceStatus::Allocated, None)
                }
                RayInPod::Running { .. } | RayInPod::Absent => continue,
            },
            (NodeLife::Requested { since }, Fate::Stay) => {
                (InstanceStatus::Requested, since.or(Some(decided.now)))
            }
            (NodeLife::Queued, Fate::Stay) | (NodeLife::New, Fate::Launch)
                // A plan that waits asks KubeRay for nothing, and the next round decides on these
                // anew.
                if plan.waiting.is_none() =>
            {
                let launches = node.group().and_then(|group| launches.get_mut(group));
                let now = launches.map_or(0, |launches| {
                    let now = node.count.min(*launches);
                    *launches -= now;
                    now
                });
                for (status, count) in [
                    (InstanceStatus::Requested, now),
                    (InstanceStatus::Queued, node.count - now),
                ] {
                    let launch = Instance {
                        group: group.clone(),
                        pod: None,
                        status,
                        since: Some(decided.now),
                        count,
                    };
                    add(&mut instances, launch);
                }
                continue;
            }
            _ => continue,
        };
        let instance = Instance {
            group,
            pod: node.pod().map(str::to_owned),
            status,
            since,
            count: node.count,
        };
        add(&mut instances, instance);
    }
    instances.extend(stopping(previous, decided));
    instances
}

/// The remembered pods whose Ray node was asked to stop, and that are still there.
///
/// They no longer count as nodes. The next GCS may never have heard of the Ray node, and the container of a raylet that
/// was drained goes on until somebody deletes the pod, because such a raylet ends without an error. (Ray, `scripts.py`,
/// `start`.)
fn stopping(previous: &History, decided: &Decided<'_>) -> Vec<Instance> {
    // Of a cluster at rest nothing is remembered, and its pods need not be gone through.
    if previous.instances.is_empty() {
        return Vec::new();
    }
    let pods = (decided.leftovers.stopped.iter()).chain(&decided.leftovers.draining);
    let pods: HashSet<&str> = pods.map(|pod| pod.name).collect();
    let stops = previous.instances.iter().filter(|instance| {
        let pod = instance.pod.as_deref();
        instance.status == InstanceStatus::StopRequested
            && pod.is_some_and(|pod| pods.contains(pod))
    });
    stops.cloned().collect()
}

/// Adds an instance. Equal launches, one after the other, become one entry.
fn add(instances: &mut Vec<Instance>, instance: Instance) {
    if instance.count == 0 {
        return;
    }
    let alike = |last: &&mut Instance| {
        last.pod.is_none()
            && instance.pod.is_none()
            && last.group == instance.group
            && last.status == instance.status
            && last.since == instance.since
    };
    match instances.last_mut().filter(alike) {
        Some(last) => last.count = last.count.saturating_add(instance.count),
        None => instances.push(instance),
    }
}

fn resize(snapshot: &Snapshot, decided: &Decided<'_>, node: &PlannedNode) -> Option<ResizeMemory> {
    let resize = node.resize.as_deref()?;
    let previous = snapshot.history.resizes.get(node.pod()?);
    let previous = previous.copied().unwrap_or_default();
    let has_failed = resize.note.last_failed_at.is_some();
    let is_done = resize.has_come_through();
    let new_note = &resize.note;
    let is_suggested =
        new_note.suggested_max_cpu.is_some() || new_note.suggested_max_memory.is_some();
    let is_old = suggestion::is_old(previous, decided.now);
    let suggested_at = previous.suggested_at.filter(|_| !is_old);
    // A failure of this round is one that the note on the pod does not have yet.
    let noted = resize.noted.as_ref();
    let is_noted = noted.is_some_and(|note| note.last_failed_at.is_some());
    let one_more = |previous: u32, is_one: bool| previous.saturating_add(is_one.into());
    let memory = ResizeMemory {
        failures: if is_done {
            0
        } else {
            one_more(previous.failures, has_failed && !is_noted)
        },
        suggested_at: is_suggested.then(|| suggested_at.unwrap_or(decided.now)),
        suggestions: if is_done && !is_suggested {
            0
        } else {
            one_more(previous.suggestions, is_suggested && suggested_at.is_none())
        },
        failed_at: previous.failed_at.filter(|_| !is_done),
        spare: resize.spare,
        shrink_failures: resize.shrink_failures,
        followed: resize.followed,
    };
    let is_grown = !has_failed && !resize.base.is_below(resize.current) && previous.failures == 0;
    let is_worth_it = !is_grown
        || memory.suggested_at.is_some()
        || memory.failures > 0
        || memory.spare.is_some()
        || memory.followed.is_some()
        || memory.shrink_failures.lately(decided.now) > 0;
    is_worth_it.then_some(memory)
}
