//! Consolidation, by the rules of Karpenter: a Kubernetes node whose pods fit on other nodes goes, and its pods
//! are evicted.
//!
//! A small pod leaves much of its node unused. So a scaler that makes pods smaller makes nodes look underused; were
//! its pods evicted for that, made anew, and grown there, nodes and pods would come and go in a loop.
//! (Karpenter's `designs/in-place-pod-vertical-scaling.md` is about that.)

use super::super::machines::{Machines, Notice};
use super::super::objects::{fits, left};
use crate::ray::resource::Amounts;
use crate::simulate::moment::Moment;
use crate::simulate::world::state::World;

/// Seconds from the choice of a node until it goes, if it then still may. (Karpenter's `consolidationTTL`.)
const VALIDATED_S: f64 = 15.0;

/// The share of a pool's nodes that may go at a time, in percent, rounded up. (Karpenter's default budget.)
const BUDGET_PERCENT: usize = 10;

impl World {
    /// Evicts the pods of a node that may go, if it was found so long ago that it is sure. Returns whether any
    /// node may go later.
    pub(super) fn consolidate(&mut self) -> bool {
        let machines = &mut self.machines;
        if !machines.consolidates() {
            return false;
        }
        if let Some((node, since)) = machines.candidate.take()
            && machines.is_movable(node)
            && machines.is_quiet(node, self.now)
        {
            if self.now.since(since) >= VALIDATED_S {
                self.disrupt(node);
                return true;
            }
            machines.candidate = Some((node, since));
            return true;
        }
        let mut movable: Vec<usize> = (0..machines.nodes.len())
            .filter(|node| machines.is_movable(*node))
            .collect();
        // The fewer pods have to move, the better.
        movable.sort_by_key(|node| (machines.pods_on(*node).count(), *node));
        let found = (movable.iter()).find(|node| machines.is_quiet(**node, self.now));
        machines.candidate = found.map(|node| (*node, self.now));
        !movable.is_empty()
    }

    /// A node is tainted, so that no more pods come, and its pods are evicted.
    fn disrupt(&mut self, node: usize) {
        self.machines.nodes[node].disrupted = Some(self.now);
        self.nodes_changed();
        for pod in self.machines.bound_to(node) {
            self.tell(self.machines.pods[pod].cluster, Notice::Disrupted(pod));
        }
    }

    /// One of the cluster's pods is evicted, because its node goes.
    pub(super) fn pod_disrupted(&mut self, pod: usize) {
        if self.machines.pods[pod].is_deleting() {
            return;
        }
        self.ledger.evicted += 1;
        let jobs = self.jobs_on(self.machines.pods[pod].name());
        self.ledger.evicted_jobs += jobs as u64;
        self.delete_pod(pod);
    }

    /// Something has changed by which a node may now go.
    pub(in crate::simulate::world) fn reconsider_nodes(&mut self, node: Option<usize>) {
        if let Some(node) = node.filter(|_| self.machines.consolidates()) {
            self.machines.nodes[node].changed = self.now;
        }
        self.reconsider_room();
    }

    /// The same, without a change of the pods on a node.
    pub(in crate::simulate::world) fn reconsider_room(&mut self) {
        if self.machines.consolidates() {
            // Karpenter's wait begins anew with pods that come and go, and not with their sizes.
            self.scan_after(super::scheduler::SCAN_S);
        }
    }
}

impl Machines {
    /// Whether any pool is consolidated.
    fn consolidates(&self) -> bool {
        let mut pools = self.pools.iter();
        pools.any(|pool| pool.consolidate_after_s.is_some())
    }

    /// Whether pods have neither come to a node nor left it for as long as its pool asks.
    fn is_quiet(&self, node: usize, now: Moment) -> bool {
        let node = &self.nodes[node];
        let after = self.pools[node.pool].consolidate_after_s;
        after.is_some_and(|after| now.since(node.changed) >= after)
    }

    /// Whether a node has pods that all may be moved, and fit on the others, and the pool can spare it.
    fn is_movable(&self, number: usize) -> bool {
        let node = &self.nodes[number];
        let pool = &self.pools[node.pool];
        if pool.consolidate_after_s.is_none() || !node.takes_pods() {
            return false;
        }
        let there = self.nodes_of(node.pool);
        let (budget, going) = (
            (there * BUDGET_PERCENT).div_ceil(100),
            self.going(node.pool),
        );
        if u32::try_from(there).is_ok_and(|there| there <= pool.min) || going >= budget {
            return false;
        }
        // Pods that wait for a node need the room.
        if self.has_waiting() {
            return false;
        }
        let pods: Vec<usize> = self.pods_on(number).collect();
        let may = |pod: &usize| {
            let pod = &self.pods[*pod];
            !pod.is_head && !pod.is_deleting() && !pod.is_held()
        };
        !pods.is_empty() && pods.iter().all(may) && self.fit_elsewhere(number, &pods)
    }

    /// The number of nodes of a pool that are going.
    fn going(&self, pool: usize) -> usize {
        let nodes = self.nodes.iter();
        let going = nodes
            .filter(|node| node.pool == pool && node.removed.is_none() && node.disrupted.is_some());
        going.count()
    }

    /// Whether all pods of a node fit on the others that are ready, at the size that they have.
    fn fit_elsewhere(&self, number: usize, pods: &[usize]) -> bool {
        let others = self.nodes.iter().enumerate();
        let others = others.filter(|(other, node)| *other != number && node.takes_pods());
        let mut rooms: Vec<(usize, (Amounts, i64))> = others
            .map(|(other, node)| (node.pool, self.room(other)))
            .collect();
        pods.iter().all(|pod| {
            let pod = &self.pods[*pod];
            let (needs, gpus) = (pod.requests(), pod.gpus);
            let holds = |(pool, room): &&mut (usize, (Amounts, i64))| {
                fits(needs, room.0) && gpus <= room.1 && pod.is_admitted(*pool)
            };
            let Some((_, room)) = rooms.iter_mut().find(holds) else {
                return false;
            };
            *room = (left(room.0, needs), room.1 - gpus);
            true
        })
    }
}
