//! Amounts that the worker pods of RayClusters have, and the part of them that could be saved. Pure.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt;

use serde::Serialize;
use serde_json::Value;

use rayfit_core::quantity::Quantity;
use rayfit_core::ray::pod_size::devices::gpus;
use rayfit_core::ray::resource::{cores, from_cores};
use rayfit_core::ray::{Cluster, Kind};
use rayfit_core::report::table::Table;
use rayfit_core::simulate::price::Price;
use rayfit_core::simulate::result::GIB;
use rayfit_core::snapshot::gcs::{ClusterResourceState, NodeStatus};
use rayfit_core::snapshot::pod::{Pod, PodRole};

/// The milliseconds without work after which a pod counts as idle. Gaps between tasks are shorter, and Ray's
/// autoscaler removes pods earlier unless something keeps them.
const IDLE_MS: i64 = 300_000;

/// The most RayClusters in a text.
const MOST_LINES: usize = 20;

/// Pods, the amounts that Kubernetes reserves for them, and their price.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PodAmounts {
    pods: u32,
    cpus: f64,
    gib: f64,
    gpus: f64,
    per_hour: f64,
}

impl PodAmounts {
    fn one(cpus: f64, gib: f64, devices: f64, price: Price) -> Self {
        Self {
            pods: 1,
            cpus,
            gib,
            gpus: devices,
            per_hour: price.of_hours(cpus, gib, devices),
        }
    }

    fn add(&mut self, other: Self) {
        self.pods = self.pods.saturating_add(other.pods);
        self.cpus += other.cpus;
        self.gib += other.gib;
        self.gpus += other.gpus;
        self.per_hour += other.per_hour;
    }

    /// GPUs matter more than CPUs.
    fn rank(self) -> [Quantity; 2] {
        [self.gpus, self.cpus].map(from_cores)
    }
}

impl fmt::Display for PodAmounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut comma = "";
        for (amount, unit) in [(self.cpus, "CPU"), (self.gib, "GiB"), (self.gpus, "GPU")] {
            let amount = (amount * 10.0).round() / 10.0;
            if amount > 0.0 {
                write!(f, "{comma}{amount} {unit}")?;
                comma = ", ";
            }
        }
        if self.per_hour > 0.0 {
            write!(f, " ({:.2})", self.per_hour)?;
        }
        Ok(())
    }
}

/// The worker pods of a RayCluster that have a Kubernetes node.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WorkerPods {
    /// The namespace and the name of the RayCluster.
    cluster: String,
    pub(crate) have: PodAmounts,
    /// The part of them on which nothing runs, if Ray says so.
    idle: Option<PodAmounts>,
    /// The CPUs and GPUs of those with work that no work has asked Ray for.
    not_asked_for: Option<PodAmounts>,
    /// The reason for which both are not known.
    not_known: Option<String>,
}

impl WorkerPods {
    /// The worker pods of a cluster among its own pods, and what its GCS says of them.
    pub(crate) fn of<'a>(
        cluster: &Value,
        pods: impl Iterator<Item = Pod<'a>>,
        state: Result<&ClusterResourceState, String>,
        price: Price,
    ) -> Self {
        let live = state.map(ClusterResourceState::live);
        let spec = cluster["spec"].as_object();
        let spec = spec.map(|spec| Cluster::parse(Kind::RayCluster, spec));
        let groups = spec.iter().flat_map(|spec| {
            let groups = spec.groups();
            groups.filter_map(move |group| Some((group.name?, gpus(spec, group))))
        });
        let gpus_of: HashMap<&str, i128> = groups.collect();
        let [mut have, mut idle, mut not_asked_for] = [PodAmounts::default(); 3];
        let takes_room =
            |pod: &Pod<'_>| pod.role == PodRole::Worker && pod.node.is_some() && !pod.ended;
        for pod in pods.filter(takes_room) {
            let requests = pod.requests();
            // The same function makes numbers of cores and of bytes.
            let [cpus, bytes] =
                [requests.cpu, requests.memory].map(|amount| amount.map_or(0.0, cores));
            #[expect(clippy::cast_precision_loss, reason = "a pod has few GPUs")]
            let devices = gpus_of.get(pod.group).map_or(0.0, |count| *count as f64);
            let has = PodAmounts::one(cpus, bytes / GIB, devices, price);
            have.add(has);
            match live.as_ref().ok().and_then(|live| live.get(pod.name)) {
                // Ray does not run in it yet.
                None => {}
                Some(ray) if ray.status == NodeStatus::Idle && ray.idle_duration_ms < IDLE_MS => {}
                Some(ray) if ray.status == NodeStatus::Idle => idle.add(has),
                Some(ray) => {
                    let used = ray.used_amounts();
                    let left = |has: f64, name: &str| {
                        let used = used.get(name).copied().unwrap_or(0.0);
                        (has - used).max(0.0).min(has)
                    };
                    // Most work asks Ray for no memory, and uses some.
                    let spare = (left(cpus, "CPU"), left(devices, "GPU"));
                    not_asked_for.add(PodAmounts::one(spare.0, 0.0, spare.1, price));
                }
            }
        }
        let text = |key: &str| cluster["metadata"][key].as_str().unwrap_or_default();
        Self {
            cluster: format!("{}/{}", text("namespace"), text("name")),
            have,
            idle: live.is_ok().then_some(idle),
            not_asked_for: live.is_ok().then_some(not_asked_for),
            not_known: live.err(),
        }
    }

    /// The order of what matters, most first. Before anybody is asked nothing is known to be idle, and what pods have
    /// decides.
    pub(crate) fn rank(&self) -> impl Ord + use<> {
        let amounts = (self.idle.map(PodAmounts::rank), self.have.rank());
        (Reverse(amounts), self.cluster.clone())
    }
}

/// The clusters as a text: those of which most could be saved, and their sum.
pub(crate) fn text(all: &[WorkerPods]) -> String {
    let mut table = Table::new(&[
        "WORKER PODS OF",
        "PODS",
        "HAVE",
        "IDLE",
        "IDLE PODS HAVE",
        "NOT ASKED FOR",
        "NOT KNOWN, BECAUSE",
    ]);
    let [mut have, mut idle, mut not_asked_for] = [PodAmounts::default(); 3];
    for one in all {
        have.add(one.have);
        idle.add(one.idle.unwrap_or_default());
        not_asked_for.add(one.not_asked_for.unwrap_or_default());
    }
    let sum = WorkerPods {
        cluster: format!("all {}", all.len()),
        have,
        idle: Some(idle),
        not_asked_for: Some(not_asked_for),
        not_known: None,
    };
    let sum = (all.len() > 1).then_some(&sum);
    for one in all.iter().take(MOST_LINES).chain(sum) {
        let shown = |amounts: Option<PodAmounts>| {
            amounts.map_or_else(String::new, |amounts| amounts.to_string())
        };
        table.line([
            one.cluster.clone(),
            one.have.pods.to_string(),
            one.have.to_string(),
            one.idle
                .map_or_else(String::new, |idle| idle.pods.to_string()),
            shown(one.idle),
            shown(one.not_asked_for),
            one.not_known.clone().unwrap_or_default(),
        ]);
    }
    format!(
        "\n{table}IDLE: nothing has run on them for 5 minutes or more. NOT ASKED FOR: CPUs and GPUs of pods with work that no \
         work has asked Ray for.\nIn brackets: the price of an hour, by --price. rayfit recommend NAMESPACE/NAME records the \
         workload of a cluster, and finds settings that cost less.\n"
    )
}

#[cfg(test)]
mod tests {
    use rayfit_core::snapshot::pod_object::PodObject;
    use serde_json::json;

    use super::*;

    fn pod(name: &str, node: &Value) -> PodObject {
        let requests = json!({"cpu": "4", "memory": "8Gi"});
        let labels =
            json!({"ray.io/cluster": "demo", "ray.io/node-type": "worker", "ray.io/group": "gpu"});
        serde_json::from_value(json!({
            "metadata": {"name": name, "labels": labels},
            "spec": {"nodeName": node, "containers": [{"name": "ray", "resources": {"requests": requests}}]},
            "status": {"phase": "Running"},
        }))
        .unwrap()
    }

    /// Worker pods of a cluster, of which the GCS knows these: the status, the seconds without work, and what is free.
    fn workers(states: Result<&[(&str, &str, i64, Value)], String>, price: &str) -> WorkerPods {
        let limits = json!({"nvidia.com/gpu": 2});
        let container = json!({"name": "ray", "resources": {"limits": limits}});
        let cluster = json!({"metadata": {"namespace": "ray", "name": "demo"}, "spec": {"workerGroupSpecs": [
            {"groupName": "gpu", "template": {"spec": {"containers": [container]}}}]}});
        let node = |(pod, status, seconds, free): &(&str, &str, i64, Value)| {
            json!({"instanceId": pod, "status": status, "idleDurationMs": seconds * 1000,
                "totalResources": {"CPU": 4, "GPU": 2, "memory": 1e10}, "availableResources": free})
        };
        let state = states.map(|states| {
            let nodes: Vec<Value> = states.iter().map(node).collect();
            serde_json::from_value::<ClusterResourceState>(json!({"nodeStates": nodes})).unwrap()
        });
        let mut pods: Vec<PodObject> = ["a", "b", "c", "starts"]
            .map(|name| pod(name, &json!("n")))
            .into();
        pods.push(pod("waits", &Value::Null));
        let state = state.as_ref().map_err(Clone::clone);
        WorkerPods::of(
            &cluster,
            pods.iter().map(Pod::of),
            state,
            price.parse().unwrap_or_default(),
        )
    }

    #[test]
    fn idle_pods_and_what_no_work_has_asked_for_can_be_saved() {
        let states = [
            ("a", "IDLE", 300, json!({"CPU": 4, "GPU": 2})),
            ("b", "IDLE", 299, json!({"CPU": 4, "GPU": 2})),
            ("c", "RUNNING", 0, json!({"CPU": 1.5, "GPU": 1e9})),
        ];
        let found = workers(Ok(&states), "cpu-hour=0.5,gpu-hour=2");
        let told = json!({"cluster": "ray/demo", "notKnown": null,
            "have": {"pods": 4, "cpus": 16.0, "gib": 32.0, "gpus": 8.0, "perHour": 24.0},
            "idle": {"pods": 1, "cpus": 4.0, "gib": 8.0, "gpus": 2.0, "perHour": 6.0},
            "notAskedFor": {"pods": 1, "cpus": 1.5, "gib": 0.0, "gpus": 2.0, "perHour": 4.75}});
        assert_eq!(json!(found), told);
    }

    #[test]
    fn what_is_not_known_has_its_reason_and_what_could_be_saved_comes_first() {
        let why = Err("no port\u{1b}[2J".to_owned());
        let mut all = [
            workers(why, ""),
            workers(Ok(&[]), ""),
            workers(Ok(&[("a", "IDLE", 900, json!({}))]), "cpu-hour=0.5"),
        ];
        all.sort_by_cached_key(WorkerPods::rank);
        let text = text(&all);
        let lines = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        let lines: Vec<String> = lines.skip(2).take(4).collect();
        assert_eq!(
            lines,
            [
                "ray/demo 4 16 CPU, 32 GiB, 8 GPU (8.00) 1 4 CPU, 8 GiB, 2 GPU (2.00) - -",
                "ray/demo 4 16 CPU, 32 GiB, 8 GPU 0 - - -",
                "ray/demo 4 16 CPU, 32 GiB, 8 GPU - - - no port\\u{1b}[2J",
                "all 3 12 48 CPU, 96 GiB, 24 GPU (8.00) 1 4 CPU, 8 GiB, 2 GPU (2.00) - -",
            ]
        );
    }
}
