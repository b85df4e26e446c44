//! Pods in which Ray runs, which is the only proof that pods of their group come up.

use crate::hash::HashSet;
use crate::plan::nodes::life::Stage;
use crate::plan::nodes::node::PlannedNode;
use crate::plan::packing::state::DecisionState;
use crate::snapshot::pod::Pod;

/// Seconds by which a pod may seem older than it is: Kubernetes writes whole seconds.
const ROUNDED_S: f64 = 1.0;

/// The worker pods in which Ray runs.
#[derive(Default)]
pub(crate) struct Started<'a> {
    pods: Vec<&'a Pod<'a>>,
}

impl<'a> Started<'a> {
    /// The worker pods of a decision in which Ray runs; none if nothing is `remembered` that they
    /// could prove wrong.
    pub(crate) fn of(remembered: bool, state: &DecisionState, own: &'a [Pod<'a>]) -> Self {
        // Most clusters have no such group, and to find these pods all pods are gone through.
        if !remembered {
            return Self::default();
        }
        let nodes = state.nodes.iter();
        let running = nodes.filter(|node| node.stage() == Stage::Running && !node.head);
        let running: HashSet<&str> = running.filter_map(PlannedNode::pod).collect();
        let pods = own.iter().filter(|pod| running.contains(pod.name));
        Self {
            pods: pods.collect(),
        }
    }

    /// Whether Ray runs in a pod of a group that was made since then.
    pub(crate) fn since(&self, group: &str, since: f64) -> bool {
        let is_new = |pod: &Pod<'_>| {
            let created = pod.created();
            created.is_some_and(|created| created + ROUNDED_S >= since)
        };
        let mut of_group = self.pods.iter().filter(|pod| pod.group == group);
        of_group.any(|pod| is_new(pod))
    }

    /// Whether Ray runs in one of these pods.
    pub(crate) fn in_one_of(&self, names: &[String]) -> bool {
        let mut pods = self.pods.iter();
        pods.any(|pod| names.iter().any(|name| name == pod.name))
    }
}
