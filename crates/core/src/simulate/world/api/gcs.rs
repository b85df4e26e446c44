//! The calls of a scaler to the GCS.

use std::rc::Rc;

use crate::reconcile::effects::effect::{Drain, DrainKind, RayletResize};
use crate::reconcile::effects::failure::GcsKind;
use crate::reconcile::{Failure, Reply};
use crate::simulate::ray::resources::{fixed, float};
use crate::simulate::world::World;
use crate::simulate::world::queue::WorldEvent;
use crate::snapshot::NodeId;
use crate::snapshot::gcs::ClusterResourceState;

impl World {
    /// The cluster state that the GCS reports; `None` if it does not answer.
    pub fn gcs_state(&self) -> Option<ClusterResourceState> {
        (!self.disturbance.is_gcs_away()).then(|| {
            let mut state = self.ray.state(self.now);
            let head = format!("{}-head", self.metadata("name"));
            self.disturbance.falsify(&mut state, &head);
            state
        })
    }

    /// The Ray node with that id, if it is alive.
    fn ray_node(&self, id: NodeId) -> Option<usize> {
        let mut living = self.ray.living();
        living
            .find(|(_, node)| node.id == id)
            .map(|(number, _)| number)
    }

    pub(super) fn resize_raylet(&mut self, resize: &RayletResize) -> Result<Reply, Failure> {
        self.ledger.gcs_calls += 1;
        let node = self.ray_node(resize.node_id).ok_or_else(|| Failure::Gcs {
            kind: GcsKind::NotFound,
            message: "NotFound: no such node".to_owned(),
        })?;
        let mut sizes = Vec::new();
        if let Some(milli) = resize.cpu_milli {
            // Ray counts in ten-thousandths, Kubernetes in thousandths.
            sizes.push(("CPU", milli.saturating_mul(10)));
        }
        if let Some(bytes) = resize.memory_bytes {
            sizes.push(("memory", fixed(bytes as f64)));
        }
        let (total, failed) = self.ray.resize(node, &sizes, self.now);
        self.ledger.harmed += failed.len() as u64;
        if !failed.is_empty() {
            Rc::clone(&self.disturbance).tasks_failed(self, &resize.pod, &failed);
        }
        let amount = |name: &str| Some(float(total.get(self.ray.names.find(name)?)));
        let reply = Reply::RayletTotals {
            cpu: amount("CPU"),
            memory: amount("memory"),
        };
        self.ray_changed();
        Ok(reply)
    }

    pub(super) fn drain(&mut self, drain: &Drain) -> Reply {
        self.ledger.gcs_calls += 1;
        // The GCS accepts a drain of a node that it does not know or that has died.
        let Some(node) = self.ray_node(drain.node_id) else {
            return Reply::DrainAccepted;
        };
        if drain.kind == DrainKind::Stop {
            if let Some(pod) = self.ray.stop(node) {
                self.after(self.settings.ray_stop_s, WorldEvent::RayEnds(pod));
            }
        } else if !self.ray.drain(node, drain.kind == DrainKind::Idle) {
            return Reply::DrainRefused;
        }
        self.ray_changed();
        Reply::DrainAccepted
    }
}
