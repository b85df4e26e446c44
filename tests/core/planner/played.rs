//! A RayCluster whose pods are made at once and then wait: for a queue that admits them, as Kueue's, or for places on
//! the Kubernetes nodes. What waiting pods mean to the planner takes many rounds to show, and no Ray.
#![allow(clippy::unwrap_used)]

use rayfit_core::plan::{GroupPlan, Plan, PlanSettings, check, decide};
use rayfit_core::snapshot::history::InstanceStatus;
use rayfit_core::snapshot::{History, Snapshot, moment};
use serde_json::{Value, json};

use super::sent::sent;

/// Seconds since 1970 of the first round.
pub(super) const START: u32 = 1_768_392_000;

/// A worker.
#[derive(Debug, Clone)]
pub(super) struct PlayedPod {
    pub(super) name: String,
    pub(super) group: &'static str,
    pub(super) replica: u64,
    /// The second in which it was made.
    pub(super) made: u32,
    /// The second from which it runs; none while it waits.
    pub(super) runs_since: Option<u32>,
}

/// A worker group, whose nodes have one CPU each.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlayedGroup {
    pub(super) name: &'static str,
    pub(super) hosts: u64,
    pub(super) min: u64,
    /// The number of tasks of one CPU that need its nodes, each a node of its own. Without any, its nodes are idle.
    pub(super) tasks: usize,
    /// The number of its pods that the quota has room for.
    pub(super) quota: usize,
}

/// The cluster, its last memory and what has been counted.
#[derive(Default)]
pub(super) struct PlayedCluster {
    pub(super) name: &'static str,
    pub(super) groups: Vec<PlayedGroup>,
    /// Whether its pods wait for a queue, and not for places.
    pub(super) is_queued: bool,
    /// The number of bundles of its placement group that waits, each as large as a node.
    pub(super) bundles: usize,
    pub(super) settings: PlanSettings,
    pub(super) pods: Vec<PlayedPod>,
    /// The number of pods that were ever made.
    pub(super) made: u64,
    pub(super) history: History,
    /// The number of times that pods were asked for or taken back.
    pub(super) changes: u32,
}

impl PlayedCluster {
    pub(super) fn running(&self, group: &str) -> usize {
        let runs = |pod: &&PlayedPod| pod.group == group && pod.runs_since.is_some();
        self.pods.iter().filter(runs).count()
    }

    pub(super) fn waiting(&self) -> usize {
        let waits = |pod: &&PlayedPod| pod.runs_since.is_none();
        self.pods.iter().filter(waits).count()
    }

    pub(super) fn snapshot(&self, later: u32) -> Snapshot {
        let at = |later: u32| moment(f64::from(START + later));
        let pod = |name: &str, kind: &str, group: &str, made: u32| {
            json!({ "metadata": { "name": name, "uid": name, "creationTimestamp": at(made), "labels": {
                "ray.io/cluster": self.name, "ray.io/node-type": kind, "ray.io/group": group } },
                "spec": { "nodeName": "n" }, "status": { "phase": "Running" } })
        };
        let node = |name: &str, group: &str, total: &Value, idle_s: Option<u32>| {
            let mut node = json!({ "nodeId": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==", "instanceId": name,
                "rayNodeTypeName": group, "status": "RUNNING", "labels": { "zone": group }, "totalResources": total });
            if let Some(seconds) = idle_s {
                node["status"] = "IDLE".into();
                node["idleDurationMs"] = (seconds * 1000).into();
                node["availableResources"] = total.clone();
            }
            node
        };
        let of = |name| self.groups.iter().find(|group| group.name == name).unwrap();
        let head_size = json!({ "node:__internal_head__": 1 });
        let mut pods = vec![pod("h", "head", "headgroup", 0)];
        let mut nodes = vec![node("h", "headgroup", &head_size, Some(0))];
        for one in &self.pods {
            let group = of(one.group);
            let mut played = pod(&one.name, "worker", one.group, one.made);
            if group.hosts > 1 {
                played["metadata"]["labels"]["ray.io/worker-group-replica-name"] =
                    json!(format!("{}-{}", one.group, one.replica));
            }
            match one.runs_since {
                Some(since) => {
                    let idle_s = (group.tasks == 0).then(|| later - since);
                    nodes.push(node(&one.name, one.group, &json!({ "CPU": 1 }), idle_s));
                }
                None if self.is_queued => {
                    played["spec"] =
                        json!({ "schedulingGates": [{ "name": "kueue.x-k8s.io/elastic-job" }] });
                    played["status"] = json!({ "phase": "Pending" });
                }
                None => {
                    played["spec"] = json!({});
                    played["status"] = json!({ "phase": "Pending", "conditions": [
                        { "type": "PodScheduled", "status": "False", "reason": "Unschedulable" }] });
                }
            }
            pods.push(played);
        }
        let size = json!({ "limits": { "cpu": "1", "memory": "1Gi" } });
        let template = json!({ "spec": { "containers": [{ "name": "ray", "resources": size }] } });
        let groups = self.groups.iter().map(|group| {
            let of = |pod: &&PlayedPod| pod.group == group.name;
            let of = self.pods.iter().filter(of).count() as u64;
            json!({ "groupName": group.name, "replicas": of / group.hosts, "minReplicas": group.min,
                "maxReplicas": 20, "numOfHosts": group.hosts, "labels": { "zone": group.name },
                "rayStartParams": {}, "template": template })
        });
        let tasks = self.groups.iter().map(|group| {
            let waiting = group.tasks.saturating_sub(self.running(group.name));
            let zone = json!({ "labelKey": "zone", "operator": "LABEL_OPERATOR_IN",
                "labelValues": [group.name] });
            json!({ "count": waiting, "request": { "resourcesBundle": { "CPU": 1 },
                "labelSelectors": [{ "labelConstraints": [zone] }] } })
        });
        let bundle = json!({ "resourcesBundle": { "CPU": 1 } });
        let gang = json!({ "requests": vec![bundle; self.bundles],
            "details": format!("{}:SPREAD|PENDING", self.name) });
        let gangs = vec![gang; usize::from(self.bundles > 0)];
        let mut snapshot: Snapshot = serde_json::from_value(json!({
            "apiVersion": "rayfit.dev/v1alpha1", "kind": "Snapshot", "time": at(later),
            "rayCluster": { "metadata": { "name": self.name, "namespace": "ray" }, "spec": {
                "headGroupSpec": { "rayStartParams": { "num-cpus": "0" }, "template": template },
                "workerGroupSpecs": groups.collect::<Vec<_>>(),
            } },
            "pods": pods,
            "gcs": { "nodeStates": nodes, "pendingResourceRequests": tasks.collect::<Vec<_>>(),
                "pendingGangResourceRequests": gangs },
        }))
        .unwrap();
        snapshot.history = self.history.clone();
        snapshot
    }

    /// Carries out a round. KubeRay makes and deletes pods at once; before it does, the planner asks for nothing more.
    pub(super) fn round(&mut self, later: u32) -> Plan {
        let snapshot = self.snapshot(later);
        let (plan, _) = decide(&snapshot, &self.settings);
        assert_eq!(check::check(&snapshot, &plan), []);
        let (again, _) = decide(&sent(&snapshot, &plan), &self.settings);
        assert!(again.is_quiet(), "{plan}\nand again:\n{again}");
        self.changes += u32::from(!plan.is_quiet());
        let deleted = plan.groups.iter().flat_map(GroupPlan::deletions);
        let deleted = deleted.map(|deletion| &deletion.pod);
        let drained = plan.drains.iter().map(|drain| &drain.pod);
        let gone: Vec<&String> = deleted.chain(drained).collect();
        self.pods.retain(|pod| !gone.contains(&&pod.name));
        for (group, planned) in self.groups.iter().zip(&plan.groups) {
            for _ in 0..planned.launch_now {
                self.made += 1;
                self.pods.push(PlayedPod {
                    name: format!("{}-{:03}", group.name, self.made),
                    group: group.name,
                    replica: self.made.div_ceil(group.hosts),
                    made: later,
                    runs_since: None,
                });
            }
        }
        self.history = plan.remember.clone();
        let instances = &mut self.history.instances;
        instances.retain(|one| one.status == InstanceStatus::Queued);
        plan
    }

    /// Admits all pods, if the quota has room for all of them.
    pub(super) fn admit(&mut self, later: u32) {
        let fits = |group: &PlayedGroup| {
            let of = self.pods.iter().filter(|pod| pod.group == group.name);
            of.count() <= group.quota
        };
        if self.groups.iter().all(fits) {
            for pod in &mut self.pods {
                pod.runs_since.get_or_insert(later);
            }
        }
    }

    /// Plays on for so many seconds, from a time on, with a round every few seconds.
    pub(super) fn play(&mut self, from: u32, seconds: u32) {
        let pace = if seconds > 900 { 30 } else { 3 };
        for later in (from..from + seconds).step_by(pace) {
            self.round(later);
            self.admit(later);
        }
    }
}
