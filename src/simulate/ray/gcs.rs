//! The answers of the GCS.

use super::cluster::Ray;
use crate::simulate::moment::Moment;
use crate::simulate::ray::jobs::Need;
use crate::simulate::ray::node::{RayNode, RayNodeStage};
use crate::simulate::ray::resources::{Bundle, ResourceNames};
use crate::simulate::trace::PlacementStrategy;
use crate::snapshot::gcs::{
    BundleSelector, ClusterResourceConstraint, ClusterResourceState, GangResourceRequest, Label,
    LabelSelector, NodeState, NodeStatus, PlacementConstraint, ResourceRequest,
    ResourceRequestByCount,
};

impl Ray {
    /// The GCS collects how its nodes are, and what waits on them.
    pub fn pull(&mut self) {
        self.has_changed = false;
        self.version += 1;
        self.reported = self
            .living()
            .map(|(number, node)| (number, node.clone()))
            .collect();
        let count = |length: usize| i64::try_from(length).unwrap_or(i64::MAX);
        let queues = self.queues.iter();
        self.pulled = queues
            .map(|(shape, queue)| (*shape, count(queue.len())))
            .collect();
    }

    /// A driver calls `request_resources()`: the GCS knows it at once.
    pub fn request(&mut self, requested: Vec<(Bundle, i64)>) {
        self.touch();
        self.requested = requested;
    }

    /// The GCS has lost what it knew but for the nodes, which are free and have the amounts with which
    /// they registered: those that `registered` gives for a group, where it knows the group.
    pub fn forget(
        &mut self,
        now: Moment,
        registered: impl Fn(&str, &mut ResourceNames) -> Option<Bundle>,
    ) {
        self.touch();
        self.pulled.clear();
        // `request_resources()` is in the memory of the GCS alone.
        self.requested.clear();
        self.reported = self
            .living()
            .map(|(number, node)| (number, node.clone()))
            .collect();
        for node in self.reported.values_mut() {
            let total = registered(&node.group, &mut self.names);
            node.total = total.unwrap_or_else(|| node.total.clone());
            node.used = Bundle::default();
            node.running = 0;
            node.objects = 0;
            node.gangs.clear();
            node.idle_since = now;
            if node.stage == RayNodeStage::Draining {
                node.stage = RayNodeStage::Alive;
            }
        }
    }

    /// The answer to `GetClusterResourceState`.
    pub fn state(&self, now: Moment) -> ClusterResourceState {
        let request = |bundle: &Bundle| ResourceRequest {
            resources_bundle: self.names.amounts(bundle),
            // The GCS gives tasks and actors without a selector an empty one, and bundles none.
            label_selectors: vec![LabelSelector::default()],
            ..ResourceRequest::default()
        };
        let alive = self.living().map(|(number, node)| NodeState {
            // Not as of the last pull: agents publish it by themselves. A node that has joined
            // since then is known by what it registered with.
            memory_in_use: node.memory.map(|known| known.told),
            ..self.node_state(self.reported.get(&number).unwrap_or(node), now)
        });
        ClusterResourceState {
            node_states: alive.chain(self.dead.iter().cloned()).collect(),
            pending_resource_requests: self
                .pulled
                .iter()
                .map(|(shape, count)| ResourceRequestByCount {
                    request: request(&self.jobs.shapes[*shape]),
                    count: *count,
                })
                .collect(),
            // The GCS places groups itself, so it knows at once which of them wait; of tasks it
            // hears by raylets.
            pending_gang_resource_requests: self
                .gangs
                .iter()
                .filter_map(|job| match &self.jobs.all[*job].need {
                    Need::Gang { strategy, bundles } => Some((job, *strategy, bundles)),
                    Need::Shape(_) => None,
                })
                .map(|(job, strategy, bundles)| {
                    let bundle = |bundle| ResourceRequest {
                        placement_constraints: constraints(*job, strategy),
                        label_selectors: Vec::new(),
                        ..request(bundle)
                    };
                    let requests: Vec<ResourceRequest> = bundles.iter().map(bundle).collect();
                    GangResourceRequest {
                        // The GCS lists the bundles twice: here without their label selectors, and
                        // below with them.
                        requests: requests.clone(),
                        details: format!("{}:{}|PENDING", group_id(*job), strategy.name()),
                        bundle_selectors: vec![BundleSelector {
                            resource_requests: requests,
                        }],
                    }
                })
                .collect(),
            cluster_resource_constraints: self.constraints(&request),
            users: None,
        }
    }

    /// The constraint of `request_resources()`, of which the GCS has one at most.
    fn constraints(
        &self,
        request: &impl Fn(&Bundle) -> ResourceRequest,
    ) -> Vec<ClusterResourceConstraint> {
        let requested = self.requested.iter();
        let resource_requests: Vec<ResourceRequestByCount> = requested
            .map(|(bundle, count)| ResourceRequestByCount {
                request: request(bundle),
                count: *count,
            })
            .collect();
        let is_there = !resource_requests.is_empty();
        is_there
            .then_some(ClusterResourceConstraint { resource_requests })
            .into_iter()
            .collect()
    }

    /// The node as it last reported itself.
    fn node_state(&self, node: &RayNode, now: Moment) -> NodeState {
        let idle = node.is_idle();
        #[expect(clippy::cast_possible_truncation, reason = "milliseconds")]
        let idle_ms = (now.since(node.idle_since) * 1000.0) as i64;
        let labels = node.labels.iter().cloned();
        NodeState {
            node_id: node.id.to_string(),
            instance_id: node.pod_name.clone(),
            ray_node_type_name: node.group.clone(),
            available_resources: self.names.amounts(&node.free()),
            total_resources: self.names.amounts(&node.total),
            dynamic_labels: node
                .gangs
                .iter()
                .map(|gang| (label(*gang), String::new()))
                .collect(),
            status: match (node.stage, idle) {
                (RayNodeStage::Dead, _) => NodeStatus::Dead,
                (RayNodeStage::Draining, _) => NodeStatus::Draining,
                (RayNodeStage::Alive, true) => NodeStatus::Idle,
                (RayNodeStage::Alive, false) => NodeStatus::Running,
            },
            idle_duration_ms: if idle { idle_ms } else { 0 },
            labels: labels.collect(),
            memory_in_use: None,
        }
    }
}

fn group_id(job: usize) -> String {
    // Ray's ids of placement groups have 18 bytes.
    format!("{job:036x}")
}

/// The label of the nodes that have bundles of a placement group.
fn label(job: usize) -> String {
    format!("_PG_{}", group_id(job))
}

/// The placement constraints by which Ray keeps bundles together, or apart. `PACK` and `SPREAD` are only
/// wishes, of which the autoscaler is not told.
fn constraints(job: usize, strategy: PlacementStrategy) -> Vec<PlacementConstraint> {
    let label = Some(Label {
        label_name: label(job),
        label_value: String::new(),
    });
    match strategy {
        PlacementStrategy::Pack | PlacementStrategy::Spread => Vec::new(),
        PlacementStrategy::StrictPack => vec![PlacementConstraint {
            affinity: label,
            anti_affinity: None,
        }],
        PlacementStrategy::StrictSpread => vec![PlacementConstraint {
            affinity: None,
            anti_affinity: label,
        }],
    }
}
