//! The report to a cluster, in its wire format.

use super::cluster_state::all;
use super::ray::rpc;
use super::ray::rpc::autoscaler as wire;
use crate::snapshot::{autoscaling_state as ours, gcs};

impl From<ours::AutoscalingState> for wire::AutoscalingState {
    fn from(state: ours::AutoscalingState) -> Self {
        Self {
            autoscaler_state_version: state.version,
            pending_instance_requests: all(state.pending_requests),
            infeasible_resource_requests: all(state.infeasible_requests),
            infeasible_gang_resource_requests: all(state.infeasible_gangs),
            infeasible_cluster_resource_constraints: all(state.infeasible_constraints),
            pending_instances: all(state.pending_instances),
            failed_instance_requests: all(state.failed_requests),
        }
    }
}

// Ray distinguishes instance type and node type; on Kubernetes both are the group.

impl From<ours::PendingRequest> for wire::PendingInstanceRequest {
    fn from(request: ours::PendingRequest) -> Self {
        Self {
            instance_type_name: request.group.clone(),
            ray_node_type_name: request.group,
            count: request.count,
            request_ts: request.since,
        }
    }
}

impl From<ours::PendingInstance> for wire::PendingInstance {
    fn from(instance: ours::PendingInstance) -> Self {
        Self {
            instance_type_name: instance.group.clone(),
            ray_node_type_name: instance.group,
            instance_id: instance.pod,
            ip_address: instance.address,
            details: instance.details,
        }
    }
}

impl From<ours::FailedRequest> for wire::FailedInstanceRequest {
    fn from(request: ours::FailedRequest) -> Self {
        Self {
            instance_type_name: request.group.clone(),
            ray_node_type_name: request.group,
            count: request.count,
            reason: request.reason,
            start_ts: request.started,
            failed_ts: request.failed,
        }
    }
}

impl From<gcs::ResourceRequestByCount> for wire::ResourceRequestByCount {
    fn from(counted: gcs::ResourceRequestByCount) -> Self {
        Self {
            request: Some(counted.request.into()),
            count: counted.count,
        }
    }
}

impl From<gcs::ResourceRequest> for wire::ResourceRequest {
    fn from(request: gcs::ResourceRequest) -> Self {
        Self {
            resources_bundle: request.resources_bundle,
            placement_constraints: all(request.placement_constraints),
            label_selectors: all(request.label_selectors),
        }
    }
}

impl From<gcs::PlacementConstraint> for wire::PlacementConstraint {
    fn from(constraint: gcs::PlacementConstraint) -> Self {
        Self {
            anti_affinity: constraint
                .anti_affinity
                .map(|label| wire::AntiAffinityConstraint {
                    label_name: label.label_name,
                    label_value: label.label_value,
                }),
            affinity: constraint.affinity.map(|label| wire::AffinityConstraint {
                label_name: label.label_name,
                label_value: label.label_value,
            }),
        }
    }
}

impl From<gcs::LabelSelector> for rpc::LabelSelector {
    fn from(selector: gcs::LabelSelector) -> Self {
        Self {
            label_constraints: all(selector.label_constraints),
        }
    }
}

impl From<gcs::LabelConstraint> for rpc::LabelSelectorConstraint {
    fn from(constraint: gcs::LabelConstraint) -> Self {
        let operator = match constraint.operator {
            gcs::LabelOperator::Unspecified => rpc::LabelSelectorOperator::LabelOperatorUnspecified,
            gcs::LabelOperator::In => rpc::LabelSelectorOperator::LabelOperatorIn,
            gcs::LabelOperator::NotIn => rpc::LabelSelectorOperator::LabelOperatorNotIn,
        };
        Self {
            label_key: constraint.label_key,
            operator: operator.into(),
            label_values: constraint.label_values,
        }
    }
}

impl From<gcs::GangResourceRequest> for wire::GangResourceRequest {
    fn from(gang: gcs::GangResourceRequest) -> Self {
        Self {
            requests: all(gang.requests),
            details: gang.details,
            bundle_selectors: all(gang.bundle_selectors),
        }
    }
}

impl From<gcs::BundleSelector> for wire::BundleSelector {
    fn from(selector: gcs::BundleSelector) -> Self {
        Self {
            resource_requests: all(selector.resource_requests),
        }
    }
}

impl From<gcs::ClusterResourceConstraint> for wire::ClusterResourceConstraint {
    fn from(constraint: gcs::ClusterResourceConstraint) -> Self {
        Self {
            resource_requests: all(constraint.resource_requests),
        }
    }
}
