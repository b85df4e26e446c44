//! The loss of the head, and with it of Ray: until another one is there, and until drivers have submitted
//! again what was lost.

use crate::simulate::world::World;
use crate::simulate::world::queue::WorldEvent;
use crate::simulate::world::state::HeadLoss;

/// Seconds from when another head takes work until drivers have submitted again what was lost.
const DRIVER_S: f64 = 5.0;

impl World {
    /// Drivers will submit again what is lost with the head, if `returns` says so.
    pub fn expect_drivers(&mut self, returns: bool) {
        self.lost_head.returns |= returns;
        self.lost_head.is_awaited |= returns;
    }

    /// The head pod is gone. Workers end when they have looked for it in vain.
    pub(super) fn head_gone(&mut self) {
        self.lost_head.head = HeadLoss::Gone;
        self.lost_head.is_awaited = self.lost_head.returns;
        // A worker whose raylet has not joined yet waits for the new head, and joins that.
        let had_joined = |pod: &usize| {
            let phase = self.machines.pods[*pod].phase();
            phase == "Running" && self.ray.node_of(*pod).is_some()
        };
        let had_joined: Vec<usize> = self.own().filter(had_joined).collect();
        self.ray.end_head();
        for worker in had_joined {
            self.after(self.settings.reconnect_s, WorldEvent::PodEnds(worker));
        }
        self.ray_changed();
    }

    /// A pod is gone that Ray does not know: with it ends what has run there since before the head was lost.
    pub(super) fn headless_gone(&mut self, pod: usize) {
        if self.lost_head.head != HeadLoss::Never {
            self.ray.end_headless(pod);
        }
    }

    /// Another head takes work.
    pub(super) fn head_joins(&mut self) {
        if self.lost_head.head == HeadLoss::Gone {
            self.lost_head.head = HeadLoss::Replaced;
        }
        if self.lost_head.is_awaited {
            self.after(DRIVER_S, WorldEvent::DriversReturn);
        }
    }

    /// Drivers submit again what was lost with the head, unless that is gone again.
    pub(super) fn drivers_return(&mut self) {
        let mut own = self.own().map(|pod| &self.machines.pods[pod]);
        let is_there = own.any(|pod| pod.is_head && !pod.is_deleting());
        drop(own);
        let is_gone = self.lost_head.head == HeadLoss::Gone;
        if is_there && !is_gone && self.lost_head.is_awaited {
            self.lost_head.is_awaited = false;
            self.ray.submit_again(self.now);
            self.ray_changed();
        }
    }

    /// Whether drivers will submit again what was lost.
    pub(super) fn awaits_drivers(&self) -> bool {
        self.lost_head.is_awaited
    }

    /// Whether the GCS does not answer: it is away, or has ended with its head.
    pub(super) fn is_gcs_away(&self) -> bool {
        self.disturbance.is_gcs_away() || self.lost_head.head == HeadLoss::Gone
    }
}
