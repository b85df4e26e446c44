//! The events that are queued in a world.

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
    /// The memory monitor of a Ray node checks how much is in use.
    MemoryCheck(usize),
    /// Agents report the memory in use on their nodes.
    MemoryReport,
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
    /// Watchers hear what pods of other clusters take of the nodes.
    LoadsWatched,
    /// The scaler looks at the cluster, unless another look has been set since.
    Look {
        /// The number of the scaler.
        scaler: usize,
        /// The number of the look.
        token: u64,
    },
    /// Something is due that whoever plays the world has set, and gave this number.
    Outside(usize),
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
