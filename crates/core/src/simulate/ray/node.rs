//! A Ray node.

use crate::reconcile::observed::memory_report::KnownMemory;
use crate::simulate::moment::Moment;
use crate::simulate::ray::resources::Bundle;
use crate::snapshot::NodeId;

/// A Ray node.
#[derive(Debug, Clone)]
pub struct RayNode {
    /// Its id in the GCS.
    pub id: NodeId,
    /// The number of its pod.
    pub pod: usize,
    /// The name of its pod.
    pub pod_name: String,
    /// The name of its group.
    pub group: String,
    /// The labels of its group.
    pub labels: Vec<(String, String)>,
    /// The resources that the node has.
    pub total: Bundle,
    /// The resources in use.
    pub used: Bundle,
    /// The number of jobs that run on it.
    pub running: usize,
    /// The number of objects in its store that others still need.
    pub objects: usize,
    /// The number of worker processes that wait for work.
    pub idle_processes: usize,
    /// The placement groups that have bundles on it, by the number of the job.
    pub gangs: Vec<usize>,
    /// The jobs on it that are known to use memory, by number.
    pub with_memory: Vec<usize>,
    /// The memory in use that its agent last reported.
    pub memory: Option<KnownMemory>,
    /// The most bytes in use with which its memory monitor kills nothing; `None` where that is off.
    pub monitor_bytes: Option<i64>,
    /// The time since which nothing runs on it.
    pub idle_since: Moment,
    /// Its stage.
    pub stage: RayNodeStage,
    /// True once it was drained and has no work left, so that its process ends.
    pub is_ending: bool,
}

/// The stages of a Ray node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RayNodeStage {
    /// The node takes work.
    Alive,
    /// The node takes no more work, and ends when it has none.
    Draining,
    /// The node is gone.
    Dead,
}

impl RayNode {
    /// A node that joins from a pod, of which its number, its name and its group are told. Nothing has run on it.
    pub fn joining(
        id: NodeId,
        (pod, pod_name, group): (usize, &str, &str),
        total: Bundle,
        now: Moment,
    ) -> Self {
        Self {
            id,
            pod,
            pod_name: pod_name.to_owned(),
            group: group.to_owned(),
            labels: Vec::new(),
            total,
            used: Bundle::default(),
            running: 0,
            objects: 0,
            idle_processes: 0,
            gangs: Vec::new(),
            with_memory: Vec::new(),
            memory: None,
            monitor_bytes: None,
            idle_since: now,
            stage: RayNodeStage::Alive,
            is_ending: false,
        }
    }

    /// Checks whether nothing runs on it, and nobody needs what it keeps. (`local_resource_manager.cc`: the memory
    /// of the object store is a resource in use.)
    pub fn is_idle(&self) -> bool {
        self.running == 0 && self.objects == 0
    }

    /// Checks whether so much memory in use is more than its memory monitor allows.
    pub fn is_above_monitor(&self, in_use: i64) -> bool {
        self.monitor_bytes.is_some_and(|most| in_use > most)
    }

    /// The resources that are free.
    pub fn free(&self) -> Bundle {
        let mut free = self.total.clone();
        free.subtract(&self.used);
        free
    }
}
