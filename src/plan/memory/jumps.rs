//! Jumps that are not admitted: the number of replicas asked for at once where scheduling gates stay.
//!
//! A queue such as Kueue's admits all new pods of a cluster or none of them: it counts the cluster as
//! one request, with all of its groups. A jump that does not fit its quota would wait as a whole, though
//! a part of it could run. So a jump that has not been admitted for a while is halved, again and again,
//! until something is admitted or one replica is left, which waits: it asks for as little as possible,
//! and takes no quota while it does. What is admitted is then searched for between what was and what was not.
//! Later steps begin with one replica and double, and a larger one that fails makes the next wait longer.
//!
//! Groups take turns if the one replica that is left is of a group that cannot be admitted.
//!
//! Placement groups are not halved, because they are of use as a whole only ([`gangs`](super::gangs)).

use crate::hash::HashSet;
use crate::plan::decided::Decided;
use crate::plan::list::{ByGroup, GroupIndex};
use crate::plan::memory::gated::{GatedReplica, Jump, sum};
use crate::plan::nodes::life::Stage;
use crate::plan::nodes::node::PlannedNode;
use crate::seconds::Retry;
use crate::snapshot::history::JumpMemory;

/// The times for which a step is no larger than what is known to be left.
const RETRY: Retry = Retry::UP_TO_TEN_MINUTES;

/// Seconds without scheduling gates after which a jump is forgotten.
pub(super) const FORGOTTEN_AFTER_S: f64 = 3600.0;

/// The number of nodes that may be launched now beside what has not been admitted.
#[derive(Debug)]
pub(crate) struct JumpRoom {
    /// By group; `None` sets no bound.
    pub(crate) limits: ByGroup<Option<u64>>,
    /// Less than what is needed.
    pub(crate) is_short: bool,
}

/// Takes back a part of the jump, if it was not admitted. Returns its pods, by name.
pub(super) fn shrink(memory: &mut Option<JumpMemory>, decided: &Decided<'_>) -> HashSet<String> {
    let mut withdrawn = HashSet::default();
    let (state, now) = (&decided.state, decided.now);
    let mut nodes = state.in_order();
    // While the head does not run, nothing is done.
    let acts = nodes.any(|node| node.head && node.stage() == Stage::Running);
    let Some(jump) = Jump::of(decided, memory.as_ref()) else {
        return withdrawn;
    };
    if !jump.is_refused || !acts || state.is_left_alone() || state.work.is_over() {
        return withdrawn;
    }
    let all = jump.replicas.len();
    let vain = jump.replicas.iter().filter(|one| !one.is_needed).count();
    let makes_way = (memory.as_ref()).and_then(|memory| makes_way(memory, &jump, decided));
    let goal = match vain {
        0 if all > 1 => all - all / 2,
        0 => usize::from(makes_way.is_some()),
        // They go by themselves once their time is over.
        _ if vain == all => 0,
        _ => vain,
    };
    let is_asked = |node: &PlannedNode| node.pod().is_some() || node.stage() == Stage::Requested;
    let mut counts = state.count(|node| node.stays() && is_asked(node));
    // KubeRay makes what a group's minimum needs again.
    let may_go = |one: &&GatedReplica<'_>| {
        let min = state.groups.get(one.group).map_or(0, |of| of.config.min);
        let rest = counts.count(one.group).checked_sub(one.pods.len() as u64);
        let rest = rest.filter(|rest| *rest >= min);
        if let (Some(count), Some(rest)) = (counts.get_mut(one.group), rest) {
            *count = rest;
        }
        rest.is_some()
    };
    for one in jump.replicas.iter().filter(may_go).take(goal) {
        withdrawn.extend(one.pods.iter().map(|pod| (*pod).to_owned()));
    }
    if withdrawn.is_empty() {
        return withdrawn;
    }
    let memory = memory.get_or_insert_default();
    if now - memory.at >= FORGOTTEN_AFTER_S {
        memory.times = 0;
    }
    if now >= larger_at(memory) {
        memory.times = memory.times.saturating_add(1);
    }
    memory.refused = makes_way.is_none().then(|| jump.all());
    (memory.at, memory.seen_at, memory.admitted) = (now, now, jump.admitted);
    for number in jump.groups() {
        let name = state.name(number).to_owned();
        memory.groups.entry(name).or_default();
    }
    let turn = makes_way.and_then(|group| memory.groups.get_mut(state.name(group)));
    if let Some(turn) = turn {
        turn.times = turn.times.saturating_add(1);
        turn.until = now + RETRY.wait_s(turn.times);
    }
    withdrawn
}

/// The group whose last replica makes way for another group of the jump.
fn makes_way(memory: &JumpMemory, jump: &Jump<'_>, decided: &Decided<'_>) -> Option<GroupIndex> {
    let [last] = jump.replicas.as_slice() else {
        return None;
    };
    let waits = |(number, needed): (GroupIndex, &u64)| {
        let turn = memory.groups.get(decided.state.name(number));
        let is_due = turn.is_some_and(|turn| turn.until <= decided.now);
        number != last.group && *needed > 0 && is_due
    };
    jump.needed.enumerate().any(waits).then_some(last.group)
}

/// The launches allowed now; `None` if there is no bound.
pub(crate) fn room(decided: &Decided<'_>) -> Option<JumpRoom> {
    let (state, now) = (&decided.state, decided.now);
    let jump = Jump::of(decided, decided.jump.as_ref())?;
    let mut allowance = match &decided.jump {
        _ if jump.is_refused => 0,
        None => return None,
        Some(memory) => {
            let step = match memory.refused {
                // The quota that is left is known to be less than that.
                Some(refused) if now < larger_at(memory) => {
                    refused.saturating_sub(jump.admitted) / 2
                }
                _ => jump.admitted.saturating_sub(memory.admitted),
            };
            step.max(1).saturating_sub(sum(&jump.pending))
        }
    };
    let turn = |number: GroupIndex| {
        let memory = decided.jump.as_ref()?;
        memory.groups.get(state.name(number)).copied()
    };
    let mut concerned: Vec<(u32, GroupIndex)> = jump
        .groups()
        .map(|number| (turn(number).map_or(0, |turn| turn.times), number))
        .collect();
    // A group that has made way for others comes after these.
    concerned.sort_unstable();
    let mut room = JumpRoom {
        limits: state.groups.map(|_| None),
        is_short: false,
    };
    for (times, number) in concerned {
        let hosts = state.hosts(number);
        let needed = jump.needed.count(number).div_ceil(hosts);
        let makes_way = turn(number).is_some_and(|turn| turn.until > now);
        let most = match times {
            _ if makes_way => 0,
            0 => allowance,
            // Of such a group nobody knows yet whether any can be admitted.
            _ => allowance.min(1_u64.saturating_sub(jump.pending.count(number))),
        };
        let count = needed.min(most);
        allowance -= count;
        room.is_short |= count < needed;
        let gangs = jump.of_gangs.count(number).div_ceil(hosts);
        if let Some(limit) = room.limits.get_mut(number) {
            *limit = Some(count.saturating_add(gangs).saturating_mul(hosts));
        }
    }
    Some(room)
}

/// Memory for the next round.
pub(crate) fn update(decided: &Decided<'_>) -> Option<JumpMemory> {
    let now = decided.now;
    let jump = Jump::of(decided, decided.jump.as_ref())?;
    let fresh = || JumpMemory {
        admitted: jump.admitted,
        ..JumpMemory::default()
    };
    // A smaller request is another one, whatever made it smaller, and gets its time.
    let is_another = jump.is_gated && jump.is_less;
    let mut memory = match &decided.jump {
        Some(memory) => memory.clone(),
        None if is_another => fresh(),
        None => return None,
    };
    if is_another {
        memory.at = now;
    }
    if jump.is_gated {
        memory.seen_at = now;
    }
    if jump.is_refused {
        memory.refused = Some(jump.all());
        memory.admitted = jump.admitted;
    }
    // Steps double from the fewest that were admitted since.
    memory.admitted = memory.admitted.min(jump.admitted);
    memory.groups.retain(|name, turn| {
        let counts = turn.times == 0 || now - turn.until < FORGOTTEN_AFTER_S;
        counts && decided.config.number(name).is_some()
    });
    Some(memory)
}

/// The time at which a larger step is tried again, in seconds since 1970.
fn larger_at(memory: &JumpMemory) -> f64 {
    memory.at + RETRY.wait_s(memory.times)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use serde_json::{Value, json};

    use crate::plan::{Plan, PlanSettings, ProblemReason, RemovalCause, Strategy, check, decide};
    use crate::snapshot::Snapshot;
    use crate::snapshot::history::{History, InstanceStatus};

    /// Seconds since 1970 of the first round.
    const START: u32 = 1_768_392_000;

    #[derive(Debug, Clone)]
    struct PlayedPod {
        name: String,
        group: &'static str,
        replica: u64,
        made: u32,
        admitted: bool,
    }

    #[derive(Debug, Clone, Copy)]
    struct PlayedGroup {
        name: &'static str,
        hosts: u64,
        min: u64,
        /// The number of tasks of one CPU that need its nodes, each a node of its own.
        tasks: usize,
        /// The number of its pods that the quota has room for.
        quota: usize,
    }

    /// A RayCluster in a queue that admits all of its pods or none of those that are new, as Kueue
    /// does.
    #[derive(Default)]
    struct PlayedCluster {
        groups: Vec<PlayedGroup>,
        /// The number of bundles of the waiting placement group, each as large as a node.
        bundles: usize,
        settings: PlanSettings,
        pods: Vec<PlayedPod>,
        made: u64,
        history: History,
        /// The number of times that pods were asked for or taken back.
        changes: u32,
    }

    fn group(name: &'static str, tasks: usize, quota: usize) -> PlayedGroup {
        PlayedGroup {
            name,
            hosts: 1,
            min: 0,
            tasks,
            quota,
        }
    }

    fn of(groups: &[PlayedGroup]) -> PlayedCluster {
        PlayedCluster {
            groups: groups.to_vec(),
            ..PlayedCluster::default()
        }
    }

    impl PlayedCluster {
        fn running(&self, group: &str) -> usize {
            let of = |pod: &&PlayedPod| pod.group == group && pod.admitted;
            self.pods.iter().filter(of).count()
        }

        fn gated(&self) -> usize {
            self.pods.iter().filter(|pod| !pod.admitted).count()
        }

        fn snapshot(&self, later: u32) -> Snapshot {
            let at = |later: u32| crate::snapshot::moment(f64::from(START + later));
            let meta = |name: &str, kind: &str, group: &str, made: u32| {
                json!({ "name": name, "uid": name, "creationTimestamp": at(made), "labels": {
                    "ray.io/cluster": "demo", "ray.io/node-type": kind, "ray.io/group": group } })
            };
            let node = |name: &str, group: &str, total: &Value| {
                json!({ "nodeId": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==", "instanceId": name,
                    "rayNodeTypeName": group, "status": "RUNNING", "labels": { "zone": group },
                    "totalResources": total })
            };
            let head = json!({ "metadata": meta("h", "head", "headgroup", 0),
                "status": { "phase": "Running" } });
            let mut pods = vec![head];
            let mut nodes = vec![node(
                "h",
                "headgroup",
                &json!({ "node:__internal_head__": 1 }),
            )];
            for one in &self.pods {
                let mut meta = meta(&one.name, "worker", one.group, one.made);
                if self
                    .groups
                    .iter()
                    .any(|group| group.name == one.group && group.hosts > 1)
                {
                    meta["labels"]["ray.io/worker-group-replica-name"] =
                        json!(format!("{}-{}", one.group, one.replica));
                }
                let (spec, phase) = if one.admitted {
                    nodes.push(node(&one.name, one.group, &json!({ "CPU": 1 })));
                    (json!({ "nodeName": "n" }), "Running")
                } else {
                    let gates = json!([{ "name": "kueue.x-k8s.io/elastic-job" }]);
                    (json!({ "schedulingGates": gates }), "Pending")
                };
                pods.push(json!({ "metadata": meta, "spec": spec, "status": { "phase": phase } }));
            }
            let size = json!({ "limits": { "cpu": "1", "memory": "1Gi" } });
            let container = json!({ "name": "ray", "resources": size });
            let template = json!({ "spec": { "containers": [container] } });
            let groups = self.groups.iter().map(|group| {
                let of = self
                    .pods
                    .iter()
                    .filter(|pod| pod.group == group.name)
                    .count() as u64;
                json!({ "groupName": group.name, "replicas": of / group.hosts,
                    "minReplicas": group.min, "maxReplicas": 10, "numOfHosts": group.hosts,
                    "labels": { "zone": group.name }, "rayStartParams": {}, "template": template })
            });
            let tasks = self.groups.iter().map(|group| {
                let waiting = group.tasks.saturating_sub(self.running(group.name));
                let zone = json!({ "labelKey": "zone", "operator": "LABEL_OPERATOR_IN",
                    "labelValues": [group.name] });
                json!({ "count": waiting, "request": { "resourcesBundle": { "CPU": 1 },
                    "labelSelectors": [{ "labelConstraints": [zone] }] } })
            });
            let bundles: Vec<Value> = (0..self.bundles)
                .map(|_| json!({ "resourcesBundle": { "CPU": 1 } }))
                .collect();
            let gangs = json!([{ "requests": bundles, "details": "g:SPREAD|PENDING" }]);
            let mut snapshot: Snapshot = serde_json::from_value(json!({
                "apiVersion": "rayfit.dev/v1alpha1", "kind": "Snapshot", "time": at(later),
                "rayCluster": { "metadata": { "name": "demo", "namespace": "ray" }, "spec": {
                    "headGroupSpec": { "rayStartParams": { "num-cpus": "0" }, "template": template },
                    "workerGroupSpecs": groups.collect::<Vec<_>>(),
                } },
                "pods": pods,
                "gcs": { "nodeStates": nodes,
                    "pendingResourceRequests": tasks.collect::<Vec<_>>(),
                    "pendingGangResourceRequests": if self.bundles > 0 { gangs } else { json!([]) } },
            }))
            .unwrap();
            snapshot.history = self.history.clone();
            snapshot
        }

        /// Carries out a round. KubeRay makes pods at once.
        fn round(&mut self, later: u32) -> Plan {
            let snapshot = self.snapshot(later);
            let (plan, _) = decide(&snapshot, &self.settings);
            assert_eq!(check::check(&snapshot, &plan), []);
            let groups = plan.groups.iter();
            let gone: BTreeSet<&str> = groups
                .flat_map(|group| group.deletions().map(|deletion| deletion.pod.as_str()))
                .collect();
            // KubeRay has taken note of the plan, and has not acted yet.
            let mut sent = snapshot.clone();
            sent.history = plan.remember.clone();
            sent.pods.retain(|pod| !gone.contains(pod.name));
            sent.ray_cluster.edit(|cluster| {
                for (at, group) in plan.groups.iter().enumerate() {
                    let spec = &mut cluster["spec"]["workerGroupSpecs"][at];
                    let listed = group.deletions().map(|deletion| &deletion.pod);
                    let listed = listed.collect::<Vec<_>>();
                    spec["replicas"] = json!(group.replicas);
                    spec["scaleStrategy"] = json!({ "workersToDelete": listed });
                }
            });
            let (again, _) = decide(&sent, &self.settings);
            assert!(again.is_quiet(), "{plan}\nand again:\n{again}");
            self.pods.retain(|pod| !gone.contains(pod.name.as_str()));
            self.changes += u32::from(!plan.is_quiet());
            for (group, planned) in self.groups.iter().zip(&plan.groups) {
                let there = self.pods.iter().filter(|pod| pod.group == group.name);
                let there = there.count() as u64;
                let asked = u64::try_from(planned.replicas).unwrap().max(group.min);
                for _ in there..asked * group.hosts {
                    self.made += 1;
                    self.pods.push(PlayedPod {
                        name: format!("{}-{:03}", group.name, self.made),
                        group: group.name,
                        replica: self.made.div_ceil(group.hosts),
                        made: later,
                        admitted: false,
                    });
                }
            }
            self.history = plan.remember.clone();
            let instances = &mut self.history.instances;
            instances.retain(|one| one.status == InstanceStatus::Queued);
            plan
        }

        /// Admits all pods, if the quota has room for all of them.
        fn admit(&mut self) {
            let fits = |group: &PlayedGroup| {
                let of = self.pods.iter().filter(|pod| pod.group == group.name);
                of.count() <= group.quota
            };
            if self.groups.iter().all(fits) {
                self.pods.iter_mut().for_each(|pod| pod.admitted = true);
            }
        }

        /// Plays on for so many seconds, from a time on, with a round every few seconds.
        fn play(&mut self, from: u32, seconds: u32) {
            let pace = if seconds > 900 { 30 } else { 3 };
            for later in (from..from + seconds).step_by(pace) {
                self.round(later);
                self.admit();
            }
        }
    }

    #[test]
    fn what_can_be_admitted_is_whatever_the_quota() {
        for quota in [0, 1, 3, 7, 8] {
            let mut cluster = of(&[group("cpu", 8, quota)]);
            cluster.play(0, 180);
            assert_eq!(cluster.running("cpu"), quota);
            assert_eq!(cluster.gated(), usize::from(quota < 8), "quota for {quota}");
            assert!(
                cluster.changes <= 8,
                "quota for {quota}: {}",
                cluster.changes
            );
            let before = cluster.changes;
            cluster.play(180, 1200);
            assert_eq!(
                cluster.changes, before,
                "quota for {quota}: what is left waits"
            );
            // Quota that is freed is used.
            cluster.groups[0].quota = 8;
            cluster.play(1380, 120);
            assert_eq!(cluster.running("cpu"), 8, "quota for {quota}");
        }
    }

    #[test]
    fn a_jump_gets_its_time_and_is_then_halved() {
        let mut cluster = of(&[group("cpu", 8, 0)]);
        let mut pods = BTreeMap::new();
        for later in (0..200).step_by(2) {
            let plan = cluster.round(later);
            let mut causes = (plan.groups[0].deletions()).map(|deletion| deletion.cause);
            assert!(causes.all(|cause| cause == RemovalCause::NotAdmitted));
            let is_told =
                |problem: &&crate::plan::Problem| problem.reason == ProblemReason::JumpRefused;
            let told = plan.problems.iter().filter(is_told).count();
            assert_eq!(told, usize::from(later >= 30), "at {later}");
            pods.entry(cluster.gated()).or_insert(later);
        }
        let pods: Vec<(usize, u32)> = pods.into_iter().collect();
        assert_eq!(pods, [(1, 90), (2, 60), (4, 30), (8, 0)]);
    }

    #[test]
    fn a_quota_that_comes_and_goes_changes_little() {
        let mut cluster = of(&[group("cpu", 8, 1)]);
        for minute in 0..60 {
            // One place more for a while, whichever pod has it, and one less again.
            cluster.groups[0].quota = 1 + usize::try_from(minute % 3).unwrap();
            cluster.play(minute * 60, 60);
            let last = cluster.pods.iter().rposition(|pod| pod.admitted);
            if let Some(last) = last.filter(|_| minute % 3 == 2) {
                cluster.pods.remove(last);
            }
        }
        assert!(cluster.changes <= 60, "{}", cluster.changes);
    }

    #[test]
    fn what_is_not_admitted_is_not_grown_past() {
        let scale_up = crate::plan::ScaleUp {
            max_pods: 1,
            per_s: 5,
        };
        let mut cluster = of(&[group("cpu", 10, 2)]);
        cluster.settings.scale_up = Some(scale_up);
        for later in (0..300).step_by(2) {
            cluster.round(later);
            cluster.admit();
            assert!(cluster.gated() <= 1, "at {later}");
        }
        assert_eq!((cluster.running("cpu"), cluster.gated()), (2, 1));
        cluster.groups[0].quota = 5;
        cluster.play(300, 60);
        assert_eq!(cluster.running("cpu"), 5);
    }

    #[test]
    fn a_group_without_quota_does_not_keep_others_waiting() {
        for groups in [
            [group("gpu", 3, 0), group("cpu", 6, 6)],
            [group("cpu", 6, 6), group("gpu", 3, 0)],
        ] {
            let mut cluster = of(&groups);
            cluster.play(0, 600);
            assert_eq!((cluster.running("cpu"), cluster.running("gpu")), (6, 0));
            let before = cluster.changes;
            cluster.play(600, 3600);
            assert!(
                cluster.changes - before <= 16,
                "{}",
                cluster.changes - before
            );
            for group in &mut cluster.groups {
                group.quota = 10;
            }
            cluster.play(4200, 700);
            assert_eq!(cluster.running("gpu"), 3);
        }
    }

    #[test]
    fn a_replica_of_several_hosts_is_taken_back_as_a_whole() {
        for quota in 0..=6 {
            let hosts = PlayedGroup {
                hosts: 2,
                ..group("tpu", 12, quota * 2 + 1)
            };
            let mut cluster = of(&[hosts]);
            cluster.play(0, 200);
            assert_eq!(cluster.running("tpu"), quota * 2);
            assert_eq!(cluster.gated(), if quota < 6 { 2 } else { 0 });
        }
    }

    #[test]
    fn what_the_minimum_needs_is_not_taken_back() {
        let four = PlayedGroup {
            min: 4,
            ..group("cpu", 8, 3)
        };
        let mut cluster = of(&[four]);
        cluster.play(0, 600);
        assert_eq!((cluster.running("cpu"), cluster.gated()), (0, 4));
        let before = cluster.changes;
        for later in (600..1200).step_by(5) {
            let plan = cluster.round(later);
            assert!(plan.is_quiet(), "{plan}");
        }
        assert_eq!(cluster.changes, before);
        cluster.groups[0].quota = 6;
        cluster.play(1200, 120);
        assert_eq!(cluster.running("cpu"), 6);
    }

    #[test]
    fn a_placement_group_is_asked_for_as_a_whole() {
        let mut alone = of(&[group("cpu", 0, 3)]);
        alone.bundles = 6;
        alone.play(0, 3600);
        assert_eq!((alone.gated(), alone.changes), (6, 1));

        let mut beside = of(&[group("cpu", 2, 3)]);
        beside.bundles = 6;
        let mut most = 0;
        for later in (0..1200).step_by(2) {
            beside.round(later);
            beside.admit();
            most = most.max(beside.running("cpu"));
        }
        assert_eq!(
            most, 2,
            "the tasks run, once the placement group has made way"
        );
    }

    #[test]
    fn a_pod_whose_gate_is_forgotten_does_not_bound_the_others() {
        let mut cluster = of(&[group("cpu", 1, 8)]);
        cluster.round(0);
        cluster.groups[0].tasks = 5;
        for later in (2..200).step_by(2) {
            cluster.round(later);
            let rest = cluster.pods.iter_mut().skip(1);
            rest.for_each(|pod| pod.admitted = pod.made < later);
            if later == 60 {
                cluster.groups[0].tasks = 9;
            }
        }
        assert_eq!(cluster.running("cpu"), 8);
    }

    #[test]
    fn strategy_ray_waits_as_ray_does() {
        let mut cluster = of(&[group("cpu", 8, 3)]);
        cluster.settings = PlanSettings {
            strategy: Strategy::Ray,
            ..PlanSettings::default()
        };
        for later in (0..600).step_by(2) {
            let snapshot = cluster.snapshot(later);
            let (plan, _) = decide(&snapshot, &cluster.settings);
            assert_eq!((&plan.problems, &plan.remember.jump), (&vec![], &None));
            assert_eq!(plan.groups[0].delete, []);
            assert_eq!(plan.groups[0].launch, 8);
        }
    }
}
