//! What is counted of rounds, for `/metrics`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::controller::observe::Key;
use crate::gcs::GcsFault;
use crate::ray::ReconcileMode;
use crate::reconcile::{Done, Effect, Meaning, Reply, Round};
use crate::telemetry::controller::{Demand, ScalingMetrics};

/// Counts for one process; by default where nobody reads them.
#[derive(Clone, Default)]
pub struct RoundMetrics {
    metrics: Arc<ScalingMetrics>,
}

impl RoundMetrics {
    /// Counts into `metrics`.
    pub fn new(metrics: Arc<ScalingMetrics>) -> Self {
        Self { metrics }
    }

    /// A round took so long, from the question to the GCS to the last effect.
    pub fn round(&self, took: Duration) {
        self.metrics.round(took);
    }

    /// A call of the cluster's GCS came to nothing.
    pub fn gcs_error(&self, key: &Key, fault: &GcsFault) {
        let kind = match fault {
            GcsFault::Unreachable(_) | GcsFault::BackingOff(_) => "unreachable",
            GcsFault::Deadline(_) => "deadline",
            GcsFault::Tls(_) | GcsFault::Credentials(_) | GcsFault::Unauthenticated(_) => {
                "credentials"
            }
            GcsFault::Passive => "passive",
            _ => "other",
        };
        self.metrics.gcs_error(kind);
        match fault {
            // It answers, and another one leads.
            GcsFault::Passive => self.gcs_is_well(key),
            _ => self.metrics.gcs_is_silent(&key.to_string(), Instant::now()),
        }
    }

    /// The cluster's GCS has answered, or has nowhere to run.
    pub fn gcs_is_well(&self, key: &Key) {
        self.metrics.gcs_is_well(&key.to_string(), Instant::now());
    }

    /// What came of the effects of a round.
    pub fn done(&self, done: &[Done]) {
        for Done { effect, result, .. } in done {
            let outcome = match result {
                Ok(Reply::DrainRefused) => "refused",
                Ok(_) => "done",
                Err(failure) => outcome(&failure.meaning()),
            };
            self.metrics.effect(effect.kind(), outcome);
            // Asked for is what the API server took, not what was planned.
            if let (Effect::PatchCluster(patch), Ok(_)) = (effect, result) {
                let launches = patch.changes.iter().map(|change| change.launches).sum();
                self.metrics.launched(launches);
            }
        }
    }

    /// What a cluster wants and does not have.
    pub fn demand(&self, key: &Key, round: &Round) {
        let pending = round.report.demands.iter().map(|demand| demand.count).sum();
        let unmet = round.report.demands.iter().map(|demand| demand.unmet).sum();
        self.metrics
            .demand(&key.to_string(), Demand { pending, unmet });
    }

    /// How many RayClusters there are of a mode.
    pub fn clusters(&self, mode: ReconcileMode, count: usize) {
        self.metrics.clusters(mode.name(), count);
    }

    /// Into how many parts clusters are divided.
    pub fn shards(&self, count: u32) {
        self.metrics.shards(count);
    }

    /// How many of them this replica looks after.
    pub fn shards_held(&self, count: usize) {
        self.metrics.shards_held(count);
    }

    /// An Event was published, or could not be.
    pub fn event(&self, published: bool) {
        let outcome = if published { "published" } else { "failed" };
        self.metrics.events(outcome, 1);
    }

    /// So many Events were left out, because there were too many.
    pub fn events_left_out(&self, count: u64) {
        if count > 0 {
            self.metrics.events("left-out", count);
        }
    }

    /// A cluster is not looked after any more.
    pub fn forget(&self, key: &Key) {
        self.metrics.forget(&key.to_string());
    }
}

/// A short name for what came of a failed effect.
fn outcome(meaning: &Meaning) -> &'static str {
    match meaning {
        Meaning::Stale => "stale",
        Meaning::Gone => "gone",
        Meaning::TooLarge(_) => "too-large",
        Meaning::Refused => "refused",
        Meaning::Forbidden => "forbidden",
        Meaning::Busy { .. } => "busy",
        Meaning::Transient => "failed",
    }
}
