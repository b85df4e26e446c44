//! Blocked groups: groups whose new pods would not start now.
//!
//! Demand that fits another group goes there at once. Once the objects no longer say that a group
//! is blocked, it is tried again: at once if a pod that showed it has started or if its scale gate
//! is gone, and otherwise after a minute, then two, up to ten, so that demand does not go back and
//! forth between groups. Where pods start and then end, Ray must run in one.

use std::collections::BTreeMap;

use crate::hash::HashSet;
use crate::plan::decided::Decided;
use crate::plan::list::NodeIndex;
use crate::plan::nodes::node::PlannedNode;
use crate::plan::nodes::tables::StartProspect;
use crate::plan::outcome::problem::{Problem, ProblemPlace};
use crate::plan::packing::state::DecisionState;
use crate::plan::slices::blocked::early_ends::{is_made_since, started};
use crate::plan::slices::blocked::evidence::Evidence;
use crate::plan::slices::blocked::reason::BlockReason;
use crate::seconds::{Retry, is_recent, second_of};
use crate::snapshot::history::{BlockCause, BlockMemory};
use crate::snapshot::pod::Pod;

/// The times for which a group stays blocked after it was last seen so.
const HOLD: Retry = Retry::UP_TO_TEN_MINUTES;

/// Seconds after which the number of times that a group was blocked is forgotten.
const FORGOTTEN_AFTER_S: f64 = 3600.0;

/// The most pods that show it which are remembered of each group.
const PODS: usize = 3;

/// Marks the groups that are blocked, and their pending nodes that would not start. Returns what is
/// to be reported.
pub(crate) fn mark(decided: &mut Decided<'_>, evidence: &Evidence<'_>) -> Vec<Problem> {
    let (history, now) = (decided.situation.history(), decided.situation.now);
    let problem = |group: &str, reason: BlockReason, effect: &'static str| Problem {
        at: ProblemPlace::Group(group.to_owned()),
        reason: reason.into(),
        effect: effect.into(),
    };
    let mut problems = Vec::new();
    let started = started(!history.blocked.is_empty(), decided);
    let (state, own_pods) = (&mut decided.state, decided.situation.own_pods);
    for (group, evident) in state.groups.iter_mut().zip(evidence.groups.iter()) {
        let name = &group.config.name;
        let lately = || lasting_block(name, history.blocked.get(name)?, own_pods, &started, now);
        group.block = evident.clone().or_else(lately);
        let reason = group.block.clone();
        let elsewhere = "demand that fits another group goes there";
        problems.extend(reason.map(|reason| problem(name, reason, elsewhere)));
    }
    // Of pods that do not start in groups that are not blocked, the first one by name stands for all of its group.
    let mut groups: HashSet<&str> = HashSet::default();
    for (group, reason) in evidence.lone.values() {
        if groups.insert(group) {
            problems.push(problem(group, reason.clone(), "no demand counts on it"));
        }
    }
    state.has_blocked = !problems.is_empty();
    if !problems.is_empty() {
        mark_pending(state, evidence, own_pods);
    }
    problems
}

/// Marks the pending nodes of blocked groups that would not start, and those that have not started in time.
fn mark_pending(state: &mut DecisionState, evidence: &Evidence<'_>, own_pods: &[Pod<'_>]) {
    let prospects = &mut state.tables.starts;
    let blocked = state.groups.map(|group| group.block.is_some());
    let ends = state.groups.map(|group| {
        let cause = group.block.as_ref().and_then(BlockReason::cause);
        cause.is_some_and(ends_again)
    });
    let expected = |pod: &&Pod<'_>| pod.node.is_some() || evidence.awaited.contains(pod.name);
    let expected: HashSet<&str> = (own_pods.iter().filter(expected))
        .map(|pod| pod.name)
        .collect();
    let pending = |(_, node): &(NodeIndex, &PlannedNode)| node.is_pending() && !node.head;
    for (number, node) in state.nodes.enumerate().filter(pending) {
        let (pod, group) = (node.pod(), node.group());
        let is_lone = pod.is_some_and(|pod| evidence.lone.contains_key(pod));
        // A pod that was scheduled, or whose Kubernetes node is on its way, and that reports no
        // trouble is about to start, whatever the other pods of its group do; but where they end again, it ends
        // like those before it.
        let starts = pod.is_some_and(|pod| {
            let is_well = expected.contains(pod) && !evidence.pods.contains_key(pod);
            is_well && !group.is_some_and(|group| ends.holds(group))
        });
        let is_of_blocked = group.is_some_and(|group| blocked.holds(group));
        let reason = pod.and_then(|pod| evidence.pods.get(pod));
        let cause = reason.and_then(BlockReason::cause);
        if is_lone || is_of_blocked && cause == Some(BlockCause::NotInTime) {
            prospects.insert(number, StartProspect::Overdue);
        } else if is_of_blocked && !starts {
            prospects.insert(number, StartProspect::Blocked);
        }
    }
}

/// The reason for a block that still holds though the objects no longer say so.
fn lasting_block(
    group: &str,
    memory: &BlockMemory,
    own_pods: &[Pod<'_>],
    started: &[&Pod<'_>],
    now: f64,
) -> Option<BlockReason> {
    let hold_s = HOLD.wait_s(memory.times);
    let is_held =
        is_recent(memory.seen_at, hold_s, now) && !is_over(group, memory, own_pods, started);
    is_held.then(|| BlockReason::Lately {
        cause: memory.cause,
        until: second_of((memory.seen_at + hold_s).ceil()),
    })
}

/// True once a group can be served again for sure.
fn is_over(group: &str, memory: &BlockMemory, own_pods: &[Pod<'_>], started: &[&Pod<'_>]) -> bool {
    let showed = |pod: &Pod<'_>| memory.pods.iter().any(|name| name == pod.name);
    if memory.is_over {
        return true;
    }
    if memory.cause.is_some_and(ends_again) {
        return started.iter().any(|pod| showed(pod))
            || is_made_since(started, group, memory.seen_at);
    }
    let begins = |pod: &Pod<'_>| pod.node.is_some() && !pod.deleting && !pod.ended;
    memory.by_gate || own_pods.iter().any(|pod| showed(pod) && begins(pod))
}

/// True where pods of such a group start, and end then, or never become Ray nodes.
fn ends_again(cause: BlockCause) -> bool {
    matches!(
        cause,
        BlockCause::Crashes | BlockCause::EndsAtStart | BlockCause::NotInTime
    )
}

/// Memory of blocked groups after a decision.
pub(crate) fn update(
    decided: &Decided<'_>,
    evidence: &Evidence<'_>,
) -> BTreeMap<String, BlockMemory> {
    let now = decided.situation.now;
    let mut memories = decided.situation.history().blocked.clone();
    let started = started(!memories.is_empty(), decided);
    memories.retain(|_, memory| is_recent(memory.seen_at, FORGOTTEN_AFTER_S, now));
    for (group, evident) in decided.config.groups.iter().zip(evidence.groups.iter()) {
        let memory = memories.get_mut(&group.name);
        let Some(reason) = evident else {
            if let Some(memory) = memory {
                memory.is_over = is_over(&group.name, memory, decided.situation.own_pods, &started);
            }
            continue;
        };
        let (times, goes_on) = memory.map_or((0, false), |memory| {
            let until = memory.seen_at + HOLD.wait_s(memory.times);
            (memory.times, !memory.is_over && now < until)
        });
        let mut pods: Vec<String> = (decided.situation.own_pods.iter())
            .filter(|pod| pod.group == group.name && evidence.pods.contains_key(pod.name))
            .map(|pod| pod.name.to_owned())
            .collect();
        // The order of pods in a snapshot is not to decide which of them are remembered.
        pods.sort_unstable();
        pods.truncate(PODS);
        let memory = BlockMemory {
            seen_at: now,
            times: times.saturating_add((!goes_on).into()),
            pods,
            is_over: false,
            by_gate: matches!(reason, BlockReason::ScaleGate(_)),
            cause: reason.cause(),
        };
        memories.insert(group.name.clone(), memory);
    }
    memories
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::plan::slices::blocked::reason::PodTrouble;
    use crate::plan::{BlockReason, Plan, PlanSettings, ProblemReason, Strategy, decide};
    use crate::snapshot::Snapshot;

    /// Seconds since 1970 of the first round.
    const START: i64 = 1_768_392_000;

    fn pod(name: &str, kind: &str, group: &str, spec: &Value, status: &Value) -> Value {
        json!({
            "metadata": { "name": name, "uid": name, "creationTimestamp": "2026-01-14T12:00:00Z",
                "labels": { "ray.io/cluster": "demo", "ray.io/node-type": kind, "ray.io/group": group } },
            "spec": spec, "status": status,
        })
    }

    /// A head and a task of one CPU, which fits both groups and the first one better.
    fn snapshot(later: i64, pods: &[Value]) -> Snapshot {
        let container =
            json!({ "name": "ray", "resources": { "limits": { "cpu": "1", "memory": "1Gi" } } });
        let template = json!({ "spec": { "containers": [container] } });
        let group = |name: &str, priority: i64, replicas: usize| {
            json!({ "groupName": name, "replicas": replicas, "minReplicas": 0, "maxReplicas": 3,
                "priority": priority, "rayStartParams": {}, "template": template })
        };
        let of = |name: &str| {
            let label = |pod: &&Value| pod["metadata"]["labels"]["ray.io/group"] == name;
            pods.iter().filter(label).count()
        };
        let head = pod(
            "h",
            "head",
            "headgroup",
            &json!({}),
            &json!({"phase": "Running"}),
        );
        let pods: Vec<&Value> = std::iter::once(&head).chain(pods).collect();
        serde_json::from_value(json!({
            "apiVersion": "rayfit.dev/v1alpha1", "kind": "Snapshot",
            "time": crate::snapshot::moment(seconds(later)),
            "rayCluster": { "metadata": { "name": "demo", "resourceVersion": "1" }, "spec": {
                "headGroupSpec": { "rayStartParams": { "num-cpus": "0" }, "template": template },
                "workerGroupSpecs": [group("first", 5, of("first")), group("second", 0, of("second"))],
            } },
            "pods": pods,
            "gcs": {
                "nodeStates": [{ "nodeId": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==",
                    "instanceId": "h", "rayNodeTypeName": "headgroup", "status": "IDLE",
                    "totalResources": { "node:__internal_head__": 1 } }],
                "pendingResourceRequests": [{ "request": { "resourcesBundle": { "CPU": 1 } }, "count": 1 }],
            },
        }))
        .unwrap()
    }

    #[expect(clippy::cast_precision_loss, reason = "small")]
    fn seconds(later: i64) -> f64 {
        (START + later) as f64
    }

    fn plan(snapshot: &Snapshot) -> Plan {
        decide(snapshot, &PlanSettings::default()).0
    }

    fn launches(plan: &Plan) -> [u64; 2] {
        [plan.groups[0].launch, plan.groups[1].launch]
    }

    fn blocks(plan: &Plan) -> Vec<&BlockReason> {
        let reasons = plan.problems.iter().map(|problem| &problem.reason);
        let blocked = reasons.filter_map(|reason| match reason {
            ProblemReason::Blocked(reason) => Some(reason),
            _ => None,
        });
        blocked.collect()
    }

    fn waits(reason: &str) -> Value {
        json!({ "phase": "Pending", "containerStatuses": [{ "name": "ray",
            "state": { "waiting": { "reason": reason } } }] })
    }

    fn gated() -> Value {
        let spec = json!({ "schedulingGates": [{ "name": "kueue.x-k8s.io/admission" }] });
        pod(
            "a",
            "worker",
            "first",
            &spec,
            &json!({ "phase": "Pending" }),
        )
    }

    #[test]
    fn demand_goes_to_the_next_group_once_the_first_cannot_be_served() {
        let bound = json!({ "nodeName": "n" });
        let unschedulable = |nominated: Option<&str>| {
            json!({ "phase": "Pending", "nominatedNodeName": nominated, "conditions": [
                { "type": "PodScheduled", "status": "False", "reason": "Unschedulable" }] })
        };
        let a = |spec: &Value, status: &Value| pod("a", "worker", "first", spec, status);
        for (pod, memories, last_before) in [
            (gated(), 2, Some(1)),
            (a(&json!({}), &unschedulable(None)), 180, Some(179)),
            (a(&bound, &waits("ImagePullBackOff")), 0, None),
            (a(&bound, &waits("ErrImagePull")), 0, None),
            (a(&bound, &waits("CrashLoopBackOff")), 0, None),
            (a(&bound, &waits("CreateContainerConfigError")), 0, None),
        ] {
            let plan_at = |later| plan(&snapshot(later, std::slice::from_ref(&pod)));
            let blocked = plan_at(memories);
            assert_eq!(launches(&blocked), [0, 1], "{pod}");
            assert_eq!(blocks(&blocked).len(), 1, "{pod}");
            if let Some(before) = last_before {
                assert_eq!(launches(&plan_at(before)), [0, 0], "{pod}");
            }
        }
        for starts in [
            a(&bound, &waits("ContainerCreating")),
            a(&json!({}), &unschedulable(Some("n"))),
            a(&json!({}), &json!({ "phase": "Pending" })),
        ] {
            let plan = plan(&snapshot(300, std::slice::from_ref(&starts)));
            assert_eq!(launches(&plan), [0, 0], "{starts}");
        }
    }

    /// A pod of the first group that the scheduler has no room for, and what is said of it.
    fn unscheduled(nominated: Option<&str>, prospects: &[Value]) -> Value {
        let status = json!({ "phase": "Pending", "nominatedNodeName": nominated, "conditions": [
            { "type": "PodScheduled", "status": "False", "reason": "Unschedulable" }] });
        let mut pod = pod("a", "worker", "first", &json!({}), &status);
        pod["nodeProspects"] = json!(prospects);
        pod
    }

    fn says(by: &str, node: &str, since: i64) -> Value {
        let since = crate::snapshot::moment(seconds(since));
        json!({ "by": by, "node": node, "since": since, "message": "so it is" })
    }

    #[test]
    fn a_node_is_waited_for_while_it_is_said_to_come_and_not_if_none_can() {
        let (stays, goes) = ([0, 0], [0, 1]);
        let (karpenter, other) = ("karpenter", "cluster-autoscaler");
        let comes = [says(karpenter, "coming", 2)];
        let none = [says(other, "none", 2)];
        let both = [says(karpenter, "coming", 2), says(other, "none", 99)];
        let by_neither = [says(karpenter, "none", 2), says(other, "none", 12)];
        let ahead = [says(karpenter, "coming", 4_000_000_000)];
        let mut unreadable = comes.clone();
        unreadable[0]["since"] = json!("soon");
        for (nominated, prospects, later, launched) in [
            (None, &none[..], 3, goes),
            (None, &by_neither, 13, goes),
            (None, &comes, 181, stays),
            (None, &comes, 901, stays),
            (None, &comes, 902, goes),
            (None, &both, 181, stays),
            (None, &both, 902, goes),
            (Some("n"), &none, 3, stays),
            (Some("n"), &[], 899, stays),
            (Some("n"), &[], 900, goes),
            (None, &ahead, 181, goes),
            (None, &unreadable, 181, goes),
        ] {
            let now = snapshot(later, &[unscheduled(nominated, prospects)]);
            let plan = plan(&now);
            assert_eq!(
                launches(&plan),
                launched,
                "{nominated:?} {prospects:?} {later}"
            );
            assert_eq!(blocks(&plan).is_empty(), launched == stays);
        }
        let mut unsaid = unscheduled(None, &[]);
        unsaid["metadata"]["name"] = json!("b");
        let with = |prospects| [unscheduled(None, prospects), unsaid.clone()];
        assert_eq!(
            launches(&plan(&snapshot(181, &with(&comes)))),
            stays,
            "it fares alike"
        );
        assert_eq!(launches(&plan(&snapshot(902, &with(&comes)))), goes);
        let mut starts = unscheduled(None, &none);
        starts["spec"]["nodeName"] = json!("n");
        assert_eq!(launches(&plan(&snapshot(3, &[starts]))), stays);
        // Nothing is known yet of a pod that the scheduler has not looked at.
        let mut unseen = unscheduled(None, &none);
        unseen["status"]["conditions"] = json!([]);
        assert_eq!(launches(&plan(&snapshot(3, &[unseen]))), stays);
        let settings = PlanSettings {
            strategy: Strategy::Ray,
            ..PlanSettings::default()
        };
        let (plan, _) = decide(&snapshot(3, &[unscheduled(None, &none)]), &settings);
        assert_eq!(launches(&plan), stays, "Ray's autoscaler hears nothing");
    }

    #[test]
    fn the_reason_says_who_said_what_and_stays_the_same_whatever_the_words() {
        let reason = |message: &str| {
            let mut said = says("karpenter", "none", 2);
            said["message"] = json!(message);
            let plan = plan(&snapshot(3, &[unscheduled(None, &[said])]));
            blocks(&plan)[0].clone()
        };
        assert_eq!(
            reason("no \"instance\"\nfits").to_string(),
            r#"no Kubernetes node takes pod a, and karpenter says that none comes: "no \"instance\"\nfits""#
        );
        assert_eq!(reason("one").identity(), reason("another").identity());
    }

    /// A pod of the first group that KubeRay deleted at a time because its container had ended.
    fn ended(name: &str, created: i64, code: i32, asked: i64) -> Value {
        let at = |later| crate::snapshot::moment(seconds(later));
        let status = json!({ "phase": "Running", "containerStatuses": [{ "name": "ray",
            "state": { "terminated": { "exitCode": code, "finishedAt": at(created + 2) } } }] });
        let mut pod = pod(name, "worker", "first", &container_on("n"), &status);
        pod["metadata"]["creationTimestamp"] = json!(at(created));
        pod["metadata"]["deletionTimestamp"] = json!(at(asked + 30));
        pod["metadata"]["deletionGracePeriodSeconds"] = json!(30);
        pod
    }

    fn container_on(node: &str) -> Value {
        json!({ "nodeName": node, "containers": [{ "name": "ray" }] })
    }

    /// The plans of three rounds: as the first pod has ended, as the second one that KubeRay made
    /// has ended, and as the third one is about to start.
    fn as_pods_end(first: Value, second: Value) -> [Plan; 3] {
        let third = pod(
            "c",
            "worker",
            "first",
            &container_on("n"),
            &json!({ "phase": "Pending" }),
        );
        let mut history = crate::snapshot::History::default();
        [(3, first), (9, second), (11, third)].map(|(later, pod)| {
            let mut now = snapshot(later, &[pod]);
            now.history = history.clone();
            let plan = plan(&now);
            history = plan.remember.clone();
            plan
        })
    }

    #[test]
    fn pods_that_end_before_ray_runs_in_them_are_not_waited_for() {
        let (a, b) = (ended("a", 1, 2, 3), ended("b", 6, 2, 8));
        let [first, second, third] = as_pods_end(a, b);
        assert_eq!(
            (launches(&first), blocks(&first).len()),
            ([0, 0], 0),
            "one is none"
        );
        assert_eq!(launches(&second), [0, 1]);
        let pod = "b".to_owned();
        assert_eq!(
            blocks(&second),
            [&BlockReason::Pod {
                pod,
                trouble: PodTrouble::EndsAtStart
            }]
        );
        // The third one is no hope, and is not asked for any more once nothing needs it.
        assert_eq!(blocks(&third).len(), 1);
        assert!(matches!(
            blocks(&third)[0],
            BlockReason::Lately { cause: Some(_), .. }
        ));
    }

    #[test]
    fn pods_that_were_ended_by_others_have_not_ended_at_their_start() {
        let a = || ended("a", 1, 2, 3);
        let mut before_the_head = ended("b", -6, 2, 8);
        before_the_head["status"]["containerStatuses"][0]["state"]["terminated"]["finishedAt"] =
            json!("2026-01-14T12:00:01Z");
        let mut evicted = ended("b", 6, 2, 8);
        evicted["status"]["conditions"] = json!([{ "type": "DisruptionTarget", "status": "True" }]);
        for (why, pod) in [
            ("it is older than the head", before_the_head),
            ("it was evicted", evicted),
            ("it ended after it was deleted", ended("b", 6, 1, 7)),
            ("it was asked to end", ended("b", 6, 143, 8)),
            ("it is the same pod", ended("a", 6, 2, 8)),
        ] {
            let [_, second, _] = as_pods_end(a(), pod);
            assert_eq!(blocks(&second), [] as [&BlockReason; 0], "{why}");
        }
    }

    /// Containers are started again here, as with version 1 of Ray's autoscaler.
    #[test]
    fn a_pod_that_crashed_is_no_hope_until_ray_runs_in_it() {
        let on = container_on("n");
        let crashes = pod("a", "worker", "first", &on, &waits("CrashLoopBackOff"));
        let again = pod("a", "worker", "first", &on, &json!({ "phase": "Running" }));
        let blocked = plan(&snapshot(5, &[crashes]));
        assert_eq!(launches(&blocked), [0, 1]);
        let mut restarted = snapshot(15, &[again]);
        restarted.history = blocked.remember;
        restarted.history.instances.clear();
        let waits = plan(&restarted);
        assert_eq!((launches(&waits), blocks(&waits).len()), ([0, 1], 1));
        let mut runs = serde_json::to_value(&restarted).unwrap();
        let nodes = runs["gcs"]["nodeStates"].as_array_mut().unwrap();
        nodes.push(
            json!({ "nodeId": "AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==", "instanceId": "a",
            "rayNodeTypeName": "first", "status": "IDLE",
            "totalResources": { "CPU": 1 }, "availableResources": { "CPU": 1 } }),
        );
        let runs = plan(&serde_json::from_value(runs).unwrap());
        assert_eq!((launches(&runs), blocks(&runs).len()), ([0, 0], 0));
    }

    #[test]
    fn what_the_spec_and_kuberay_say_of_a_group_counts() {
        let mut gate = snapshot(0, &[]);
        gate.ray_cluster.edit(|cluster| {
            cluster["spec"]["workerGroupSpecs"][0]["scaleStrategy"] =
                json!({ "scaleGate": [{ "name": "kueue.k8s.io/quota-exceeded" }] });
        });
        assert_eq!(launches(&plan(&gate)), [0, 1]);
        gate.history = plan(&gate).remember;
        gate.ray_cluster.edit(|cluster| {
            cluster["spec"]["workerGroupSpecs"][0]["scaleStrategy"] = json!({});
        });
        gate.history.instances.clear();
        assert_eq!(launches(&plan(&gate)), [1, 0], "the gate is gone");

        let mut only = snapshot(0, &[]);
        only.ray_cluster.edit(|cluster| {
            let groups = cluster["spec"]["workerGroupSpecs"].as_array_mut().unwrap();
            groups.truncate(1);
            groups[0]["scaleStrategy"] =
                json!({ "scaleGate": [{ "name": "kueue.k8s.io/quota-exceeded" }] });
        });
        let asked = plan(&only).groups[0].launch_now;
        assert_eq!(asked, 1, "the gate is removed once this is admitted");

        let mut refused = snapshot(0, &[]);
        refused.ray_cluster.edit(|cluster| {
            cluster["spec"]["workerGroupSpecs"][0]["replicas"] = json!(1);
            cluster["status"] = json!({ "conditions": [{ "type": "ReplicaFailure",
                "status": "True", "reason": "FailedCreateWorkerPod" }] });
        });
        let plan = plan(&refused);
        assert_eq!(launches(&plan), [0, 1]);
        assert_eq!(blocks(&plan), [&BlockReason::NotCreated]);
        // KubeRay makes no pod of the second group while it is refused one of the first.
        assert_eq!((plan.groups[0].cancel, plan.groups[0].replicas), (1, 0));
    }

    #[test]
    fn demand_that_fits_nowhere_else_waits_for_the_blocked_group() {
        let mut only = snapshot(5, &[gated()]);
        only.ray_cluster.edit(|cluster| {
            let groups = cluster["spec"]["workerGroupSpecs"].as_array_mut();
            groups.unwrap().truncate(1);
        });
        only.gcs.pending_resource_requests[0].count = 3;
        let plan = plan(&only);
        assert_eq!(plan.groups[0].launch, 2);
        assert_eq!(plan.groups[0].delete, []);
        assert_eq!(plan.unmet, []);
    }

    #[test]
    fn strategy_ray_waits_as_ray_does() {
        let settings = PlanSettings {
            strategy: Strategy::Ray,
            ..PlanSettings::default()
        };
        let (plan, _) = decide(&snapshot(300, &[gated()]), &settings);
        assert_eq!((launches(&plan), blocks(&plan)), ([0, 0], vec![]));
    }

    #[test]
    fn once_the_first_group_is_served_the_other_pod_is_withdrawn() {
        let pending = json!({ "phase": "Pending" });
        let second = pod(
            "b",
            "worker",
            "second",
            &json!({ "nodeName": "n" }),
            &pending,
        );
        let mut now = snapshot(5, &[gated(), second.clone()]);
        let before = plan(&now);
        assert_eq!(launches(&before), [0, 0], "the second is on its way");
        now = snapshot(
            10,
            &[
                pod(
                    "a",
                    "worker",
                    "first",
                    &json!({ "nodeName": "n" }),
                    &pending,
                ),
                second,
            ],
        );
        now.history = before.remember;
        let served = plan(&now);
        assert_eq!(blocks(&served), [] as [&BlockReason; 0], "it starts");
        let mut withdrawn = Vec::new();
        for later in [10, 40, 75] {
            now.time = crate::snapshot::moment(seconds(later));
            let plan = plan(&now);
            withdrawn = plan
                .groups
                .iter()
                .flat_map(|group| group.deletions().cloned())
                .collect();
            now.history = plan.remember;
        }
        let names: Vec<&str> = withdrawn.iter().map(|one| one.pod.as_str()).collect();
        assert_eq!(names, ["b"], "the first is the better one");
    }

    /// A pod of the first group as it is so many seconds after it was made; `None` where KubeRay is
    /// refused to make it.
    type PodThen = fn(&str, i64, i64) -> Option<Value>;

    /// Every pod that KubeRay makes of the first group fares in the same way, and a new task comes as
    /// soon as the one before is served by a pod of the second group. Returns how often the first
    /// group was tried within an hour, and for how many rounds a task waited for it.
    fn tries(then: PodThen) -> (u32, u32) {
        let (mut tries, mut waits, mut made) = (0, 0, 0);
        let mut history = crate::snapshot::History::default();
        let (mut replicas, mut created): (i64, Option<i64>) = (0, None);
        for later in (0..3600).step_by(4) {
            let name = format!("a{made}");
            let pod = created.and_then(|created| then(&name, created, later - created));
            // A pod that has ended is made again.
            let is_gone = |pod: &Value| pod["metadata"]["deletionTimestamp"].is_string();
            let is_made = pod.as_ref().is_some_and(|pod| !is_gone(pod));
            let pods: Vec<Value> = pod.into_iter().collect();
            let mut now = snapshot(later, &pods);
            let is_refused = replicas > 0 && pods.is_empty();
            now.ray_cluster.edit(|cluster| {
                cluster["spec"]["workerGroupSpecs"][0]["replicas"] = json!(replicas);
                if is_refused {
                    cluster["status"] = json!({ "conditions": [{ "type": "ReplicaFailure",
                        "status": "True", "reason": "FailedCreateWorkerPod" }] });
                }
            });
            now.history = history;
            let plan = plan(&now);
            tries += u32::from(plan.groups[0].launch_now > 0);
            waits += u32::from(launches(&plan)[1] == 0);
            replicas = plan.groups[0].replicas;
            let is_deleted = plan.groups[0].deletions().next().is_some();
            if replicas == 0 || is_deleted {
                created = None;
            } else if !is_made {
                (created, made) = (Some(later), made + 1);
            }
            history = plan.remember.clone();
            // A launch of the second group takes its task, and is forgotten here.
            let is_first = |one: &crate::snapshot::history::Instance| one.group == "first";
            history
                .instances
                .retain(|one| is_first(one) && created.is_none());
        }
        (tries, waits)
    }

    #[test]
    fn a_group_that_is_always_blocked_is_tried_a_few_times_an_hour() {
        fn made(name: &str, created: i64, spec: &Value, status: &Value) -> Value {
            let mut pod = pod(name, "worker", "first", spec, status);
            pod["metadata"]["creationTimestamp"] = json!(crate::snapshot::moment(seconds(created)));
            pod
        }
        let is_gated: PodThen = |name, created, _| {
            let spec = json!({ "schedulingGates": [{ "name": "kueue.x-k8s.io/admission" }] });
            Some(made(name, created, &spec, &json!({ "phase": "Pending" })))
        };
        let finds_no_node: PodThen = |name, created, _| {
            let status = json!({ "phase": "Pending", "conditions": [
                { "type": "PodScheduled", "status": "False", "reason": "Unschedulable" }] });
            Some(made(name, created, &json!({}), &status))
        };
        let has_no_image: PodThen = |name, created, age| {
            let why = if age < 4 {
                "ContainerCreating"
            } else {
                "ErrImagePull"
            };
            Some(made(
                name,
                created,
                &json!({ "nodeName": "n" }),
                &waits(why),
            ))
        };
        let crashes: PodThen = |name, created, age| {
            // It is started again and again, as with version 1 of Ray's autoscaler.
            let status = if age >= 4 && (age < 6 || age % 20 >= 6) {
                waits("CrashLoopBackOff")
            } else {
                json!({ "phase": "Running" })
            };
            Some(made(name, created, &container_on("n"), &status))
        };
        let ends: PodThen = |name, created, age| {
            let starts = json!({ "phase": "Pending" });
            Some(if age < 4 {
                made(name, created, &container_on("n"), &starts)
            } else {
                ended(name, created, 2, created + 3)
            })
        };
        let is_refused: PodThen = |_, _, _| None;
        for (what, then, longest) in [
            ("gated", is_gated, 100),
            ("no node", finds_no_node, 1000),
            ("no image", has_no_image, 100),
            ("crashes", crashes, 100),
            ("ends", ends, 100),
            ("refused", is_refused, 100),
        ] {
            let (tries, waits) = tries(then);
            assert!((2..=10).contains(&tries), "{what}: {tries} tries");
            assert!(waits <= longest, "{what}: a task waited for {waits} rounds");
        }
    }
}
