//! The cost of a simulation, and its curves.
//!
//! The world says when what is paid for changes ([`CostLedger::set`]), and once for each moment at which
//! anything changed what is wanted and used since (`settle.rs` of the world). [`curves`] keeps that over time. Invariant:
//! the memory that it takes is bounded, however long a simulation is.

pub mod curves;

use crate::simulate::moment::Moment;
use crate::simulate::world::ledger::curves::Curves;

/// Amounts that are there at one moment, or, times seconds, that were there over time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Capacity {
    /// Cores of worker pods, from when they are bound until they are gone.
    pub cpus: f64,
    /// Bytes of worker pods.
    pub memory: f64,
    /// GPUs of worker pods.
    pub gpus: f64,
    /// Kubernetes nodes.
    pub nodes: f64,
}

/// Adds up what a simulation costs.
#[derive(Debug, Clone, Default)]
pub struct CostLedger {
    /// Capacity over time that was paid for so far.
    pub integral: Capacity,
    /// The part of what was paid for that no job used.
    pub slack: Capacity,
    /// Worker pods that were made.
    pub pods_made: u64,
    /// Resizes that kubelets carried out.
    pub resizes: u64,
    /// Jobs that were running when their node was lost.
    pub harmed: u64,
    /// Processes of jobs that were killed because there was too little memory.
    pub out_of_memory: u64,
    /// Pods that the node autoscaler has evicted.
    pub evicted: u64,
    /// Calls of the API server that the scaler made.
    pub api_calls: u64,
    /// Calls of the GCS that changed something.
    pub gcs_calls: u64,
    /// The curves.
    pub curves: Curves,
    /// Capacity that is paid for now.
    pub rate: Capacity,
    since: Moment,
    /// Capacity that is paid for and not used, and since when.
    unused: (Capacity, Moment),
    /// True if something has changed since the last point of the curves.
    pub(super) is_due: bool,
}

impl CostLedger {
    /// From now on this much is paid for.
    pub fn set(&mut self, rate: Capacity, now: Moment) {
        self.integral.add(self.rate, now.since(self.since));
        self.rate = rate;
        self.since = now;
        self.is_due = true;
    }

    /// From now on no job uses this much of what is paid for.
    pub(super) fn set_unused(&mut self, unused: Capacity, now: Moment) {
        let (rate, since) = self.unused;
        self.slack.add(rate, now.since(since));
        self.unused = (unused, now);
    }
}

impl Capacity {
    fn add(&mut self, rate: Self, seconds: f64) {
        self.cpus += rate.cpus * seconds;
        self.memory += rate.memory * seconds;
        self.gpus += rate.gpus * seconds;
        self.nodes += rate.nodes * seconds;
    }
}
