//! A GCS that lies. Anybody with code in a Ray cluster can make its GCS say anything.

use serde::{Deserialize, Serialize};

use rayfit_core::snapshot::gcs::{
    ClusterResourceState, GangResourceRequest, NodeStatus, ResourceRequest, ResourceRequestByCount,
};

/// A lie of a GCS: what it says although it is not so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum GcsLie {
    /// Nodes have, and have free, a thousand times what they have.
    Totals,
    /// Nodes have nothing.
    NothingThere,
    /// All nodes have been idle for an hour.
    AllIdle,
    /// All nodes work.
    AllBusy,
    /// Workers are not there.
    NoWorkers,
    /// Workers are dead.
    WorkersDead,
    /// Far more waits than there can ever be room for.
    HugeDemand,
    /// Nodes are listed twice, by one id.
    TwiceListed,
    /// All workers have the id of the first one.
    OneId,
    /// Workers say that they are in other pods: each in that of the next one.
    OtherPods,
}

impl GcsLie {
    /// All lies.
    pub(crate) const ALL: [Self; 10] = [
        Self::Totals,
        Self::NothingThere,
        Self::AllIdle,
        Self::AllBusy,
        Self::NoWorkers,
        Self::WorkersDead,
        Self::HugeDemand,
        Self::TwiceListed,
        Self::OneId,
        Self::OtherPods,
    ];

    /// Changes what is so into what is said. `head` is the name of the head's pod.
    pub(crate) fn tell(self, state: &mut ClusterResourceState, head: &str) {
        let nodes = &mut state.node_states;
        match self {
            Self::Totals => {
                for node in nodes {
                    for amount in node.total_resources.values_mut() {
                        *amount *= 1000.0;
                    }
                    node.available_resources = node.total_resources.clone();
                }
            }
            Self::NothingThere => {
                for node in nodes {
                    node.total_resources.clear();
                    node.available_resources.clear();
                }
            }
            Self::AllIdle => {
                for node in nodes {
                    node.status = NodeStatus::Idle;
                    node.idle_duration_ms = 3_600_000;
                    node.available_resources = node.total_resources.clone();
                }
            }
            Self::AllBusy => {
                for node in nodes {
                    node.status = NodeStatus::Running;
                    node.idle_duration_ms = 0;
                    node.available_resources.clear();
                }
            }
            Self::NoWorkers => nodes.retain(|node| node.instance_id == head),
            Self::WorkersDead => {
                for node in nodes.iter_mut().filter(|node| node.instance_id != head) {
                    node.status = NodeStatus::Dead;
                }
            }
            Self::HugeDemand => huge(state),
            Self::TwiceListed => nodes.extend(nodes.clone()),
            Self::OneId => {
                let workers = || nodes.iter().filter(|node| node.instance_id != head);
                if let Some(first) = workers().next().map(|node| node.node_id.clone()) {
                    for node in nodes.iter_mut().filter(|node| node.instance_id != head) {
                        node.node_id.clone_from(&first);
                    }
                }
            }
            Self::OtherPods => {
                let workers = nodes.iter_mut().filter(|node| node.instance_id != head);
                let mut workers: Vec<_> = workers.collect();
                let names: Vec<String> = (workers.iter())
                    .map(|node| node.instance_id.clone())
                    .collect();
                let others = names.into_iter().cycle().skip(1);
                for (node, other) in workers.iter_mut().zip(others) {
                    node.instance_id = other;
                }
            }
        }
    }
}

fn huge(state: &mut ClusterResourceState) {
    let request = |cpus: f64| ResourceRequest {
        resources_bundle: [("CPU".to_owned(), cpus)].into(),
        ..ResourceRequest::default()
    };
    let many = |cpus| ResourceRequestByCount {
        request: request(cpus),
        count: 1_000_000_000,
    };
    state
        .pending_resource_requests
        .extend([many(1.0), many(2.0), many(1e6)]);
    let gang = GangResourceRequest {
        requests: vec![request(1.0); 100],
        ..GangResourceRequest::default()
    };
    state.pending_gang_resource_requests.extend(vec![gang; 20]);
}
