//! Whether effects on pods and Ray nodes may be sent: only on the strength of a fresh read of the
//! RayCluster that shows it as ours to scale.

use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::Mutex;

use crate::controller::act::writer;
use crate::controller::clock::Clock;
use crate::controller::eligibility::EligibilityCheck;
use crate::reconcile::effects::failure::Failure;
use crate::reconcile::ownership::handover::{Handover, HandoverStep, PERMIT_S};
use crate::snapshot::OwnPods;

/// What is left of a permit below which a new one is asked for.
const WORTHWHILE: Duration = Duration::from_secs(2);

/// Whose turn it is, and until when that is known.
#[derive(Debug, Default)]
pub struct WriteGrant {
    /// What is remembered of turns.
    pub tenure: Handover,
    /// Until when effects may be under way.
    until: Option<Instant>,
}

/// Asks for permits during one round.
pub struct WritePermission<'a> {
    /// Kept from round to round.
    pub grant: &'a Mutex<WriteGrant>,
    /// Says whose it is.
    pub judge: &'a EligibilityCheck,
    /// The cluster's pods, as seen at the beginning of the round.
    pub pods: &'a OwnPods,
    /// The clock.
    pub clock: Clock,
}

impl WritePermission<'_> {
    /// How long an effect that is sent now may take, if that is known without asking.
    pub async fn known(&self) -> Option<Duration> {
        worthwhile(self.grant.lock().await.until)
    }

    /// How long an effect that is sent now may take. Who holds a turn already does not wait for
    /// another one while time runs.
    pub async fn ensure(&self, turn: &writer::WriteTurn<'_>) -> Result<Duration, Failure> {
        let mut grant = self.grant.lock().await;
        if let Some(left) = worthwhile(grant.until) {
            return Ok(left);
        }
        let asked = Instant::now();
        let cluster = turn.get_cluster().await?;
        self.judge_read(&mut grant, &cluster, asked);
        self.judge.learn(&cluster);
        let lost = || Failure::NotSent("it is not this scaler's turn any more".to_owned());
        left(grant.until).ok_or_else(lost)
    }

    /// A patch of ours that was sent at `asked` was accepted, and this is the RayCluster now.
    pub async fn wrote(&self, cluster: &Value, asked: Instant) {
        self.judge_read(&mut *self.grant.lock().await, cluster, asked);
        self.judge.learn(cluster);
    }

    fn judge_read(&self, grant: &mut WriteGrant, cluster: &Value, asked: Instant) {
        let standing = self.judge.standing(cluster, self.pods);
        let turn = grant
            .tenure
            .turn(cluster, &standing, &self.judge.role, self.clock.steady());
        let ours = matches!(turn, HandoverStep::Act);
        grant.until = ours.then(|| asked + Duration::from_secs_f64(PERMIT_S));
    }
}

fn worthwhile(until: Option<Instant>) -> Option<Duration> {
    left(until).filter(|left| *left >= WORTHWHILE)
}

fn left(until: Option<Instant>) -> Option<Duration> {
    until?.checked_duration_since(Instant::now())
}
