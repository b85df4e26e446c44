//! The settings of a simulated world.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::facts::node::{Node, NodeTaint};
use crate::facts::scheduling::Demands;
use crate::ray::resource::Amounts;

/// Seconds from the end of a worker's raylet until its liveness probe ends the container: KubeRay's fails 120
/// times, five seconds apart. (KubeRay, `utils/constant.go`.)
pub const LIVENESS_S: f64 = 600.0;

/// The settings of the world. Times are in seconds.
#[derive(Debug, Clone, PartialEq)]
pub struct WorldSettings {
    /// The seed of everything that is random: names of pods, Ray's choice among equal nodes.
    pub seed: u64,
    /// The time from when a pod is bound to a node until its containers run: image, volumes, start.
    pub pod_start_s: f64,
    /// The time from when a worker's containers run until its Ray node takes work.
    pub ray_start_s: f64,
    /// The time from when a job is placed until it runs, if no worker process of its node waits for work. Ray
    /// keeps the processes of tasks, as many as its node has CPUs.
    pub worker_start_s: f64,
    /// The time from when a pod is deleted until it is gone.
    pub pod_stop_s: f64,
    /// The time from when a Ray node is drained and idle until its raylet has ended.
    pub ray_stop_s: f64,
    /// The time from the end of a raylet to that of its pod's containers, unless somebody deletes the pod:
    /// `ray start --block` ends only if a process ended with an error, and a raylet that was drained has none
    /// (`scripts.py`), so it is [`LIVENESS_S`].
    pub pod_end_s: f64,
    /// The time from when a kubelet admits a resize until the containers have the new size.
    pub resize_s: f64,
    /// The time from a change of an object until watchers have it.
    pub watch_lag_s: f64,
    /// The time from a change that concerns it until KubeRay's operator acts.
    pub operator_s: f64,
    /// The duration of a call of the API server or the GCS.
    pub call_s: f64,
    /// The interval at which the GCS collects from its nodes what waits on them, and how they are
    /// (`gcs_pull_resource_loads_period_milliseconds`, 1000). Placement groups wait in the GCS itself,
    /// which knows them at once.
    pub gcs_pull_s: f64,
    /// The least seconds for which the simulation goes on after the last job. Simulations that are
    /// compared with each other pay for what is kept for as long.
    pub tail_s: f64,
    /// True if the scaler is told at once what is asked of the GCS otherwise, and looks as often as anything changes.
    pub tells_at_once: bool,
    /// The most rounds that the scaler may make. Work that waits for years would never come to an end.
    pub most_rounds: u64,
    /// The Kubernetes nodes. Without any there is room for every pod, and no pod's growth is limited
    /// by its node.
    pub pools: Vec<NodePool>,
}

/// Kubernetes nodes of one kind, which a node autoscaler adds and removes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NodePool {
    /// The name.
    pub name: String,
    /// The CPU and memory that pods can request of a node.
    pub allocatable: Amounts,
    /// The GPUs of a node.
    pub gpus: i64,
    /// The labels of its nodes, by which pods select them.
    pub labels: BTreeMap<String, String>,
    /// The taints of its nodes, which keep off the pods that do not tolerate them.
    pub taints: Vec<NodeTaint>,
    /// The fewest nodes, which are there from the beginning.
    pub min: u32,
    /// The most nodes.
    pub max: u32,
    /// The time from the request for a node until pods can be bound to it, in seconds.
    pub start_s: f64,
    /// Seconds for which a node stays without a pod.
    pub idle_s: f64,
    /// Seconds in which a node pulls an image that it does not have yet.
    pub image_pull_s: f64,
    /// Seconds without a pod that came or went after which a node is emptied whose pods fit on other nodes;
    /// never without it.
    pub consolidate_after_s: Option<f64>,
}

impl NodePool {
    /// Checks whether pods with this `nodeSelector`, `affinity` and `tolerations` may be on its nodes.
    pub fn admits(&self, placement: &Map<String, Value>) -> bool {
        Demands::of(placement.into()).admit(&Node {
            labels: self.labels.clone().into_iter().collect(),
            taints: self.taints.clone(),
            ..Node::default()
        })
    }
}

impl WorldSettings {
    /// Sets how long a pod takes from its node to its Ray node, in seconds. The start of Ray itself is
    /// a part of it.
    pub fn set_pod_start(&mut self, seconds: f64) {
        self.ray_start_s = self.ray_start_s.min(seconds);
        self.pod_start_s = seconds - self.ray_start_s;
    }
}

impl Default for WorldSettings {
    fn default() -> Self {
        Self {
            seed: 1,
            pod_start_s: 3.0,
            ray_start_s: 4.0,
            worker_start_s: 0.0,
            pod_stop_s: 2.0,
            ray_stop_s: 1.0,
            pod_end_s: LIVENESS_S,
            resize_s: 1.0,
            watch_lag_s: 0.05,
            operator_s: 0.1,
            call_s: 0.02,
            gcs_pull_s: 1.0,
            tail_s: 0.0,
            tells_at_once: false,
            most_rounds: 10_000_000,
            pools: Vec::new(),
        }
    }
}
