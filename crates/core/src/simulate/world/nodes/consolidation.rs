//! Consolidation, by the rules of Karpenter: a Kubernetes node whose pods fit on other nodes goes, and its pods
//! are evicted.
//!
//! A small pod leaves much of its node unused. So a scaler that makes pods smaller makes nodes look underused; were
//! its pods evicted for that, made anew, and grown there, nodes and pods would come and go in a loop.
//! (Karpenter's `designs/in-place-pod-vertical-scaling.md` is about that.)

use super::super::machines::{Machines, Notice};
use super::super::objects::Room;
use crate::simulate::world::state::World;

/// Seconds from the choice of a node until it goes, if it then still may. (Karpenter's `consolidationTTL`.)
const VALIDATED_S: f64 = 15.0;

/// The share of a pool's nodes that may go at a time, in percent, rounded up. (Karpenter's default budget.)
const BUDGET_PERCENT: usize = 10;

impl World {
    /// Evicts the pods of a node that may go, if it was found so long ago that it is sure. Returns whether any
    /// node may go later.
    pub(super) fn consolidate(&mut self) -> bool {
        let (now, machines) = (self.now, &mut self.machines);
        if !machines.consolidates() {
            return false;
        }
        // Karpenter's `consolidateAfter` runs since a pod last came to the node or left it.
        let is_quiet = |machines: &Machines, node: usize| {
            let node = &machines.nodes[node];
            let after = machines.pools[node.pool].consolidate_after_s;
            after.is_some_and(|after| now.since(node.changed) >= after)
        };
        if let Some((node, since)) = machines.candidate.take()
            && machines.is_movable(node)
            && is_quiet(machines, node)
        {
            if now.since(since) < VALIDATED_S {
                machines.candidate = Some((node, since));
                return true;
            }
            // The node is tainted, so that no more pods come, and its pods are evicted.
            machines.nodes[node].disrupted = Some(now);
            self.nodes_changed();
            for pod in self.machines.bound_to(node) {
                self.tell(self.machines.pods[pod].cluster, Notice::Disrupted(pod));
            }
            return true;
        }
        let mut movable: Vec<usize> = (0..machines.nodes.len())
            .filter(|node| machines.is_movable(*node))
            .collect();
        // The fewer pods have to move, the better.
        movable.sort_by_key(|node| (machines.pods_on(*node).count(), *node));
        let quiet = movable.iter().find(|node| is_quiet(machines, **node));
        machines.candidate = quiet.map(|node| (*node, now));
        !movable.is_empty()
    }

    /// Something has changed by which a node may now go.
    pub(in crate::simulate::world) fn reconsider_nodes(&mut self, node: Option<usize>) {
        if let Some(node) = node.filter(|_| self.machines.consolidates()) {
            self.machines.nodes[node].changed = self.now;
        }
        self.reconsider_room();
    }

    /// Looks at the nodes again because there may be more room, without a change of the pods on any.
    pub(in crate::simulate::world) fn reconsider_room(&mut self) {
        if self.machines.consolidates() {
            // Karpenter's wait begins anew with pods that come and go, and not with their sizes.
            self.scan_after(super::scheduler::SCAN_S);
        }
    }
}

impl Machines {
    /// Checks whether any pool is consolidated.
    fn consolidates(&self) -> bool {
        let mut pools = self.pools.iter();
        pools.any(|pool| pool.consolidate_after_s.is_some())
    }

    /// Checks whether a node has pods that all may be moved, and fit on the others, and the pool can spare it.
    fn is_movable(&self, number: usize) -> bool {
        let node = &self.nodes[number];
        let pool = &self.pools[node.pool];
        if pool.consolidate_after_s.is_none() || !node.is_ready || !node.is_open() {
            return false;
        }
        let count = self.nodes_of(node.pool);
        let budget = (count * BUDGET_PERCENT).div_ceil(100);
        let going = self.nodes.iter().filter(|going| {
            going.pool == node.pool && going.removed.is_none() && going.disrupted.is_some()
        });
        if u32::try_from(count).is_ok_and(|count| count <= pool.min) || going.count() >= budget {
            return false;
        }
        // Pods that wait for a node need the room.
        if self.has_waiting() {
            return false;
        }
        let pods: Vec<_> = self.pods_on(number).map(|pod| &self.pods[pod]).collect();
        let is_held = pods.iter().any(|pod| {
            let annotations = &pod.object.metadata.annotations;
            let is_marked = annotations.do_not_disrupt.as_deref() == Some("true");
            pod.is_head || pod.is_deleting() || is_marked
        });
        if pods.is_empty() || is_held {
            return false;
        }
        // The pods have to fit at the size that they have.
        let others = self.nodes.iter().enumerate();
        let others =
            others.filter(|(other, node)| *other != number && node.is_ready && node.is_open());
        let mut rooms: Vec<(usize, Room)> = others
            .map(|(other, node)| (node.pool, self.room(other)))
            .collect();
        pods.iter().all(|pod| pod.takes_room(&mut rooms))
    }
}
