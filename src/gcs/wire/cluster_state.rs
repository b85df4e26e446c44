//! The state of a cluster, between the wire and the snapshot.

use super::ray::rpc;
use super::ray::rpc::autoscaler as wire;
use crate::snapshot::gcs;

impl From<wire::ClusterResourceState> for gcs::ClusterResourceState {
    fn from(state: wire::ClusterResourceState) -> Self {
        Self {
            node_states: all(state.node_states),
            pending_resource_requests: all(state.pending_resource_requests),
            pending_gang_resource_requests: all(state.pending_gang_resource_requests),
            cluster_resource_constraints: all(state.cluster_resource_constraints),
            users: None,
        }
    }
}

impl From<wire::NodeState> for gcs::NodeState {
    fn from(node: wire::NodeState) -> Self {
        let status = match node.status() {
            wire::NodeStatus::Unspecified => gcs::NodeStatus::Unspecified,
            wire::NodeStatus::Running => gcs::NodeStatus::Running,
            wire::NodeStatus::Dead => gcs::NodeStatus::Dead,
            wire::NodeStatus::Idle => gcs::NodeStatus::Idle,
            wire::NodeStatus::Draining => gcs::NodeStatus::Draining,
        };
        Self {
            node_id: hexadecimal(&node.node_id),
            instance_id: node.instance_id,
            ray_node_type_name: node.ray_node_type_name,
            available_resources: node.available_resources,
            total_resources: node.total_resources,
            dynamic_labels: node.dynamic_labels,
            status,
            idle_duration_ms: node.idle_duration_ms,
            labels: node.labels,
            memory_in_use: None,
        }
    }
}

impl From<wire::ResourceRequestByCount> for gcs::ResourceRequestByCount {
    fn from(counted: wire::ResourceRequestByCount) -> Self {
        Self {
            request: counted.request.unwrap_or_default().into(),
            count: counted.count,
        }
    }
}

impl From<wire::ResourceRequest> for gcs::ResourceRequest {
    fn from(request: wire::ResourceRequest) -> Self {
        Self {
            resources_bundle: request.resources_bundle,
            placement_constraints: all(request.placement_constraints),
            label_selectors: all(request.label_selectors),
        }
    }
}

impl From<wire::PlacementConstraint> for gcs::PlacementConstraint {
    fn from(constraint: wire::PlacementConstraint) -> Self {
        Self {
            anti_affinity: constraint.anti_affinity.map(|label| gcs::Label {
                label_name: label.label_name,
                label_value: label.label_value,
            }),
            affinity: constraint.affinity.map(|label| gcs::Label {
                label_name: label.label_name,
                label_value: label.label_value,
            }),
        }
    }
}

impl From<rpc::LabelSelector> for gcs::LabelSelector {
    fn from(selector: rpc::LabelSelector) -> Self {
        Self {
            label_constraints: all(selector.label_constraints),
        }
    }
}

impl From<rpc::LabelSelectorConstraint> for gcs::LabelConstraint {
    fn from(constraint: rpc::LabelSelectorConstraint) -> Self {
        let operator = match constraint.operator() {
            rpc::LabelSelectorOperator::LabelOperatorUnspecified => gcs::LabelOperator::Unspecified,
            rpc::LabelSelectorOperator::LabelOperatorIn => gcs::LabelOperator::In,
            rpc::LabelSelectorOperator::LabelOperatorNotIn => gcs::LabelOperator::NotIn,
        };
        Self {
            label_key: constraint.label_key,
            operator,
            label_values: constraint.label_values,
        }
    }
}

impl From<wire::GangResourceRequest> for gcs::GangResourceRequest {
    fn from(gang: wire::GangResourceRequest) -> Self {
        Self {
            requests: all(gang.requests),
            details: gang.details,
            bundle_selectors: all(gang.bundle_selectors),
        }
    }
}

impl From<wire::BundleSelector> for gcs::BundleSelector {
    fn from(selector: wire::BundleSelector) -> Self {
        Self {
            resource_requests: all(selector.resource_requests),
        }
    }
}

impl From<wire::ClusterResourceConstraint> for gcs::ClusterResourceConstraint {
    fn from(constraint: wire::ClusterResourceConstraint) -> Self {
        Self {
            resource_requests: all(constraint.resource_requests),
        }
    }
}

pub(super) fn all<A, B: From<A>>(list: Vec<A>) -> Vec<B> {
    list.into_iter().map(B::from).collect()
}

fn hexadecimal(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a text cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
