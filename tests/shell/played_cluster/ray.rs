//! The GCS and the raylets.

use std::collections::BTreeMap;

use rayfit::snapshot::NodeId;
use rayfit::snapshot::gcs::{
    ClusterResourceState, NodeState, NodeStatus, ResourceRequest, ResourceRequestByCount,
};

use super::{Task, World};

const GIB: f64 = 1_073_741_824.0;

/// Seconds from the start of a pod's containers to its node in the GCS.
const JOIN_S: f64 = 2.0;

/// A Ray node.
#[derive(Debug, Clone)]
pub struct RayNode {
    pub id: NodeId,
    pub pod: String,
    pub group: String,
    pub cpu: f64,
    pub memory: f64,
    pub tasks: Vec<Task>,
    pub idle_since: f64,
    pub joins_at: f64,
    pub draining: bool,
    pub dead: bool,
}

impl RayNode {
    pub fn used(&self) -> f64 {
        self.tasks.iter().map(|task| task.cpu).sum()
    }

    fn state(&self, now: f64) -> NodeState {
        let mut state = NodeState {
            node_id: self.id.to_string(),
            instance_id: self.pod.clone(),
            ray_node_type_name: self.group.clone(),
            ..NodeState::default()
        };
        if self.dead {
            state.status = NodeStatus::Dead;
            return state;
        }
        let totals = [("CPU", self.cpu), ("memory", self.memory)];
        let mut total: BTreeMap<String, f64> = totals
            .iter()
            .map(|(name, total)| ((*name).to_owned(), *total))
            .collect();
        if self.group == "headgroup" {
            total.insert("node:__internal_head__".to_owned(), 1.0);
        }
        let mut free = total.clone();
        let left = self.cpu - self.used();
        if left > 0.0 {
            free.insert("CPU".to_owned(), left);
        } else {
            free.remove("CPU");
        }
        state.total_resources = total;
        state.available_resources = free;
        let idle = self.tasks.is_empty();
        state.status = match (self.draining, idle) {
            (true, _) => NodeStatus::Draining,
            (false, true) => NodeStatus::Idle,
            (false, false) => NodeStatus::Running,
        };
        #[expect(clippy::cast_possible_truncation, reason = "milliseconds")]
        if idle {
            state.idle_duration_ms = ((now - self.idle_since) * 1000.0) as i64;
        }
        state
    }
}

impl World {
    pub(super) fn start_ray(&mut self, pod: &str) {
        let group = self.pods[pod]["metadata"]["labels"]["ray.io/group"]
            .as_str()
            .unwrap()
            .to_owned();
        let (cpu, gib) = match self.setup.groups.iter().find(|of| of.name == group) {
            Some(group) => (group.cpu, 2 * group.cpu),
            None => (0, 2),
        };
        self.names += 1;
        let head = group == "headgroup";
        let joins_at = if head { self.now } else { self.now + JOIN_S };
        #[expect(clippy::cast_precision_loss, reason = "small")]
        self.rays.push(RayNode {
            id: format!("{:056x}", self.names).parse().unwrap(),
            pod: pod.to_owned(),
            group,
            cpu: cpu as f64,
            memory: gib as f64 * GIB,
            tasks: Vec::new(),
            idle_since: joins_at,
            joins_at,
            draining: false,
            dead: false,
        });
    }

    pub(super) fn end_ray(&mut self, pod: &str) {
        for ray in self.rays.iter_mut().filter(|ray| ray.pod == pod) {
            ray.dead = true;
        }
    }

    pub(super) fn raylets(&mut self, seconds: f64) {
        let now = self.now;
        let mut ended = Vec::new();
        for ray in self
            .rays
            .iter_mut()
            .filter(|ray| !ray.dead && ray.joins_at <= now)
        {
            let before = ray.tasks.len();
            for task in &mut ray.tasks {
                task.left = task.left.map(|left| left - seconds);
            }
            ray.tasks
                .retain(|task| task.left.is_none_or(|left| left > 0.0));
            if before > 0 && ray.tasks.is_empty() {
                ray.idle_since = now;
            }
            if ray.draining && ray.tasks.is_empty() {
                ray.dead = true;
                ended.push(ray.pod.clone());
            }
        }
        for pod in ended.iter().filter(|_| self.setup.pods_exit) {
            if let Some(pod) = self.pods.get_mut(pod) {
                pod["status"]["phase"] = serde_json::json!("Succeeded");
            }
        }
        self.assign();
    }

    /// Tasks go to the first node that has room.
    fn assign(&mut self) {
        let now = self.now;
        let rays = &mut self.rays;
        self.waiting.retain(|task| {
            let takes = |ray: &&mut RayNode| {
                !ray.dead
                    && !ray.draining
                    && ray.joins_at <= now
                    && ray.cpu - ray.used() >= task.cpu
            };
            match rays.iter_mut().find(takes) {
                Some(ray) => {
                    ray.tasks.push(task.clone());
                    false
                }
                None => true,
            }
        });
    }

    pub(super) fn gcs_state(&self) -> ClusterResourceState {
        let joined = self.rays.iter().filter(|ray| ray.joins_at <= self.now);
        let mut shapes: BTreeMap<u64, i64> = BTreeMap::new();
        for task in &self.waiting {
            *shapes.entry(task.cpu.to_bits()).or_default() += 1;
        }
        let request = |(cpu, count): (u64, i64)| ResourceRequestByCount {
            request: ResourceRequest {
                resources_bundle: BTreeMap::from([("CPU".to_owned(), f64::from_bits(cpu))]),
                label_selectors: vec![rayfit::snapshot::gcs::LabelSelector::default()],
                ..ResourceRequest::default()
            },
            count,
        };
        ClusterResourceState {
            node_states: joined.map(|ray| ray.state(self.now)).collect(),
            pending_resource_requests: shapes.into_iter().map(request).collect(),
            ..ClusterResourceState::default()
        }
    }
}
