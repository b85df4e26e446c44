//! The events to come, in the order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::simulate::moment::Moment;

/// The kinds of events that happen by themselves. Numbers of pods and nodes are positions in the
/// world's lists; a pod or a node that has gone keeps its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorldEvent {
    /// A job of the trace is submitted.
    Submitted(usize),
    /// A job ends, if this is still the same attempt.
    JobEnds {
        /// The number of the job.
        job: usize,
        /// The number of the attempt, from 1.
        attempt: u32,
    },
    /// A running job uses another amount of memory, if this is still the same attempt.
    MemoryStep {
        /// The number of the job.
        job: usize,
        /// The number of the attempt, from 1.
        attempt: u32,
        /// The number of the amount, from 0.
        step: u32,
    },
    /// Agents report the memory in use on their nodes.
    MemoryReport,
    /// Drivers submit again what was lost with the head.
    DriversReturn,
    /// A job is tried again whose process was killed.
    Retried(usize),
    /// KubeRay's operator looks at the RayCluster.
    Operator,
    /// The scheduler looks at the pods that are not bound.
    Scheduler,
    /// The containers of a pod run.
    PodRuns(usize),
    /// The Ray node of a pod takes work.
    RayJoins(usize),
    /// The raylet of a pod has ended.
    RayEnds(usize),
    /// The containers of a pod have ended.
    PodEnds(usize),
    /// A deleted pod is gone.
    PodGone(usize),
    /// The kubelet looks at the size that a pod should have.
    Kubelet(usize),
    /// A pod has got its new size, if its spec has not been changed again.
    Resized {
        /// The number of the pod.
        pod: usize,
        /// The generation of the spec that has the size.
        generation: i64,
    },
    /// A Kubernetes node is ready.
    NodeReady(usize),
    /// The node autoscaler looks at the nodes.
    NodeAutoscaler,
    /// The GCS collects what is pending.
    Pull,
    /// Watchers get the changes of objects.
    Watched,
    /// Watchers get the changes of objects of which they hear later than of others.
    WatchedLate,
    /// Watchers hear what pods of other clusters take of the nodes.
    LoadsWatched,
    /// The scaler looks at the cluster, unless another look has been set since.
    Look {
        /// The number of the scaler.
        scaler: usize,
        /// The number of the look.
        token: u64,
    },
    /// Something about the Leases of a replica is due.
    Lease(usize),
    /// The next call of a chain of the scaler's round is answered.
    Answered {
        /// The number of the scaler.
        scaler: usize,
        /// The number of the look that led to the round.
        look: u64,
        /// The number of the chain.
        chain: usize,
    },
}

/// The events to come, in the order of time; those of one moment in the order in which they were
/// set.
#[derive(Debug, Clone, Default)]
pub struct EventQueue {
    heap: BinaryHeap<Reverse<(Moment, u64, WorldEvent)>>,
    count: u64,
}

impl EventQueue {
    /// Adds an event.
    pub fn add(&mut self, at: Moment, event: WorldEvent) {
        self.count += 1;
        self.heap.push(Reverse((at, self.count, event)));
    }

    /// The next event, and when it happens.
    pub fn peek(&self) -> Option<(Moment, WorldEvent)> {
        let Reverse((at, _, event)) = self.heap.peek()?;
        Some((*at, *event))
    }

    /// Takes the next event.
    pub fn take(&mut self) -> Option<(Moment, WorldEvent)> {
        let Reverse((at, _, event)) = self.heap.pop()?;
        Some((at, event))
    }
}
