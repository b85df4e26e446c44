//! The state of a cluster as it comes in, and the report about its scaling as it goes out.

use std::collections::BTreeMap;

use rayfit_core::snapshot::{autoscaling_state as ours, gcs};
use rayfit_core::text::hex;

use super::ray::rpc::autoscaler as wire;

impl From<wire::ClusterResourceState> for gcs::ClusterResourceState {
    fn from(state: wire::ClusterResourceState) -> Self {
        let nodes = state.node_states.into_iter();
        Self {
            node_states: nodes.map(gcs::NodeState::from).collect(),
            pending_resource_requests: state.pending_resource_requests,
            pending_gang_resource_requests: state.pending_gang_resource_requests,
            cluster_resource_constraints: state.cluster_resource_constraints,
            users: None,
        }
    }
}

impl From<wire::NodeState> for gcs::NodeState {
    fn from(node: wire::NodeState) -> Self {
        Self {
            status: node.status(),
            node_id: hex(&node.node_id),
            instance_id: node.instance_id,
            ray_node_type_name: node.ray_node_type_name,
            available_resources: node.available_resources,
            total_resources: node.total_resources,
            dynamic_labels: node.dynamic_labels,
            idle_duration_ms: node.idle_duration_ms,
            labels: node.labels,
            memory_in_use: None,
        }
    }
}

impl From<ours::AutoscalingState> for wire::AutoscalingState {
    fn from(state: ours::AutoscalingState) -> Self {
        // Ray distinguishes instance type and node type; on Kubernetes both are the group.
        let requests = state.pending_requests.into_iter();
        let pending_instance_requests = requests.map(|request| wire::PendingInstanceRequest {
            instance_type_name: request.group.clone(),
            ray_node_type_name: request.group,
            count: request.count,
            request_ts: request.since,
        });
        let instances = state.pending_instances.into_iter();
        let pending_instances = instances.map(|instance| wire::PendingInstance {
            instance_type_name: instance.group.clone(),
            ray_node_type_name: instance.group,
            instance_id: instance.pod,
            ip_address: instance.address,
            details: instance.details,
        });
        let failed = state.failed_requests.into_iter();
        let failed_instance_requests = failed.map(|request| wire::FailedInstanceRequest {
            instance_type_name: request.group.clone(),
            ray_node_type_name: request.group,
            count: request.count,
            reason: request.reason,
            start_ts: request.started,
            failed_ts: request.failed,
        });
        Self {
            autoscaler_state_version: state.version,
            pending_instance_requests: pending_instance_requests.collect(),
            infeasible_resource_requests: state.infeasible_requests,
            infeasible_gang_resource_requests: state.infeasible_gangs,
            infeasible_cluster_resource_constraints: state.infeasible_constraints,
            pending_instances: pending_instances.collect(),
            failed_instance_requests: failed_instance_requests.collect(),
        }
    }
}

impl From<wire::AutoscalingState> for ours::LaunchCounts {
    fn from(state: wire::AutoscalingState) -> Self {
        let requests = state.pending_instance_requests.into_iter();
        let requests = requests.map(|request| (request.ray_node_type_name, request.count));
        let pods = state.pending_instances.into_iter();
        let pods = pods.map(|pod| (pod.ray_node_type_name, 1));
        let failed = state.failed_instance_requests.into_iter();
        let failed = failed.map(|request| (request.ray_node_type_name, request.count));
        Self {
            pending: by_group(requests.chain(pods)),
            failed: by_group(failed),
        }
    }
}

fn by_group(counts: impl Iterator<Item = (String, i32)>) -> BTreeMap<String, u64> {
    counts.fold(BTreeMap::new(), |mut sums, (group, count)| {
        // A negative number counts as none.
        *sums.entry(group).or_default() += u64::try_from(count).unwrap_or(0);
        sums
    })
}
