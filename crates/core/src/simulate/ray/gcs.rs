//! The answers of the GCS.

use super::cluster::Ray;
use crate::simulate::moment::Moment;
use crate::simulate::ray::jobs::JobNeed;
use crate::simulate::ray::node::{RayNode, RayNodeStage};
use crate::simulate::ray::resources::Bundle;
use crate::simulate::trace::PlacementStrategy;
use crate::snapshot::gcs::{
    BundleSelector, ClusterResourceState, GangResourceRequest, Label, LabelSelector, NodeState,
    NodeStatus, PlacementConstraint, ResourceRequest, ResourceRequestByCount,
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

    /// The answer to `GetClusterResourceState`.
    pub fn state(&self, now: Moment) -> ClusterResourceState {
        let alive = self.living().map(|(number, node)| NodeState {
            // Not as of the last pull: agents publish it by themselves. A node that has joined
            // since then is known by what it registered with.
            memory_in_use: node.memory.map(|known| known.in_use),
            ..self.node_state(self.reported.get(&number).unwrap_or(node), now)
        });
        ClusterResourceState {
            node_states: alive.chain(self.dead.iter().cloned()).collect(),
            pending_resource_requests: self
                .pulled
                .iter()
                .map(|(shape, count)| ResourceRequestByCount {
                    request: self.request(&self.jobs.shapes[*shape]),
                    count: *count,
                })
                .collect(),
            // The GCS places groups itself, so it knows at once which of them wait; of tasks it
            // hears by raylets.
            pending_gang_resource_requests: self.gang_requests(),
            // Traces have no calls of `request_resources()`. Without a number of users the cluster never ends
            // by itself.
            cluster_resource_constraints: Vec::new(),
            users: None,
        }
    }

    fn request(&self, bundle: &Bundle) -> ResourceRequest {
        ResourceRequest {
            resources_bundle: self.names.amounts(bundle),
            // The GCS gives tasks and actors without a selector an empty one, and bundles none.
            label_selectors: vec![LabelSelector::default()],
            ..ResourceRequest::default()
        }
    }

    /// The placement groups that wait.
    fn gang_requests(&self) -> Vec<GangResourceRequest> {
        let gangs = self.gangs.iter();
        let gangs = gangs.filter_map(|job| match &self.jobs.all[*job].need {
            JobNeed::Gang { strategy, bundles } => Some((job, *strategy, bundles)),
            JobNeed::Shape(_) => None,
        });
        let gangs = gangs.map(|(job, strategy, bundles)| {
            let mark = Some(Label {
                label_name: label(*job),
                label_value: String::new(),
            });
            let constraint = |together, apart| PlacementConstraint {
                affinity: together,
                anti_affinity: apart,
            };
            // `PACK` and `SPREAD` are only wishes, of which the autoscaler is not told.
            let constraints = match strategy {
                PlacementStrategy::Pack | PlacementStrategy::Spread => Vec::new(),
                PlacementStrategy::StrictPack => vec![constraint(mark, None)],
                PlacementStrategy::StrictSpread => vec![constraint(None, mark)],
            };
            let bundle = |bundle| ResourceRequest {
                placement_constraints: constraints.clone(),
                label_selectors: Vec::new(),
                ..self.request(bundle)
            };
            let requests: Vec<ResourceRequest> = bundles.iter().map(bundle).collect();
            GangResourceRequest {
                // The GCS lists the bundles twice: here without their label selectors, and
                // below with them.
                requests: requests.clone(),
                details: format!("{job:036x}:{strategy}|PENDING"),
                bundle_selectors: vec![BundleSelector {
                    resource_requests: requests,
                }],
            }
        });
        gangs.collect()
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

/// The label of the nodes that have bundles of a placement group. Ray's ids of those have 18 bytes.
fn label(job: usize) -> String {
    format!("_PG_{job:036x}")
}
