//! The write permission: effects on pods and Ray nodes are sent only shortly after a read of the
//! RayCluster that shows that this process owns it.

use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::Mutex;

use crate::controller::act::writer;
use crate::controller::clock::Clock;
use crate::controller::eligibility::EligibilityCheck;
use crate::reconcile::effects::failure::Failure;
use crate::reconcile::ownership::handover::{Handover, HandoverStep, PERMISSION_S};
use crate::snapshot::OwnPods;

/// A write permission with less time left than this is renewed before it is used.
const WORTHWHILE: Duration = Duration::from_secs(2);

/// The write permission that is remembered, and the ownership behind it.
#[derive(Debug, Default)]
pub struct PermissionState {
    /// The memory of the ownership hand-over.
    pub handover: Handover,
    /// The time until which effects may be under way.
    until: Option<Instant>,
}

/// Gives the write permission during one round.
pub struct WritePermission<'a> {
    /// The write permission, kept from round to round.
    pub state: &'a Mutex<PermissionState>,
    /// Judges whether this process may scale the cluster.
    pub judge: &'a EligibilityCheck,
    /// The cluster's pods, as observed at the beginning of the round.
    pub pods: &'a OwnPods,
    /// The clock.
    pub clock: &'a Clock,
}

impl WritePermission<'_> {
    /// The longest time for an effect that is sent now, if the last read still permits any.
    pub async fn known(&self) -> Option<Duration> {
        worthwhile(self.state.lock().await.until)
    }

    /// The longest time for an effect that is sent now, after another read if that is needed. The
    /// caller has passed the gate already, so that the permission does not run out in the queue.
    pub async fn ensure(&self, turn: &writer::WriteTurn<'_>) -> Result<Duration, Failure> {
        // Held while the read is under way: of a round's effects, which begin together, one reads
        // for all.
        let mut state = self.state.lock().await;
        if let Some(left) = worthwhile(state.until) {
            return Ok(left);
        }
        let asked = Instant::now();
        let cluster = turn.get_cluster().await?;
        self.judge_read(&mut state, &cluster, asked);
        self.judge.learn(&cluster);
        let lost = || Failure::NotSent("this process no longer owns the cluster".to_owned());
        left(state.until).ok_or_else(lost)
    }

    /// Takes in that our own patch, sent at `asked`, was accepted and left the RayCluster as
    /// `cluster`.
    pub async fn wrote(&self, cluster: &Value, asked: Instant) {
        self.judge_read(&mut *self.state.lock().await, cluster, asked);
        self.judge.learn(cluster);
    }

    fn judge_read(&self, state: &mut PermissionState, cluster: &Value, asked: Instant) {
        let eligibility = self.judge.eligibility(cluster, self.pods);
        let step =
            state
                .handover
                .step(cluster, &eligibility, &self.judge.role, self.clock.steady());
        let ours = matches!(step, HandoverStep::Act);
        // Counted from when the read was sent, because it may have been answered long after it was
        // true.
        state.until = ours.then(|| asked + Duration::from_secs_f64(PERMISSION_S));
    }
}

fn worthwhile(until: Option<Instant>) -> Option<Duration> {
    left(until).filter(|left| *left >= WORTHWHILE)
}

fn left(until: Option<Instant>) -> Option<Duration> {
    until?.checked_duration_since(Instant::now())
}
