//! The metrics about rounds, for `/metrics`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::gcs::GcsFault;
use crate::ray::ReconcileMode;
use crate::ray::group::HEAD_NAME;
use crate::reconcile::{Done, Effect, Meaning, Reply, Round};
use crate::telemetry::controller::{DemandCount, ScalingMetrics};

/// The metrics of one process; the default ones are exported nowhere. A cluster is known by its UID: one
/// that is made anew under its name is another, whose metrics the end of the first does not take away.
#[derive(Clone, Default)]
pub struct RoundMetrics {
    metrics: Arc<ScalingMetrics>,
}

impl RoundMetrics {
    /// Records into `metrics`.
    pub fn new(metrics: Arc<ScalingMetrics>) -> Self {
        Self { metrics }
    }

    /// Records how long a round took, from the request to the GCS to the last effect.
    pub fn round(&self, took: Duration) {
        self.metrics.round(took);
    }

    /// Records a call of the cluster's GCS that failed.
    pub fn gcs_error(&self, uid: &str, fault: &GcsFault) {
        if let Some(kind) = failed_call(fault) {
            self.metrics.gcs_error(kind);
        }
        match fault {
            // This GCS does answer; it only says that another one is the leader.
            GcsFault::Passive => self.gcs_is_well(uid),
            _ => self.metrics.gcs_is_silent(uid, Instant::now()),
        }
    }

    /// Records that the cluster's GCS has answered, or that there is no head pod in which it could
    /// run.
    pub fn gcs_is_well(&self, uid: &str) {
        self.metrics.gcs_is_well(uid, Instant::now());
    }

    /// Records the results of a round's effects.
    pub fn done(&self, done: &[Done]) {
        for Done { effect, result, .. } in done {
            let outcome = match result {
                Ok(Reply::DrainRefused) => "drain-refused",
                Ok(_) => "done",
                Err(failure) => outcome(&failure.meaning()),
            };
            self.metrics.effect(effect.kind(), outcome);
            // Launches count once the API server has accepted the patch, not when they are planned.
            if let (Effect::PatchCluster(patch), Ok(_)) = (effect, result) {
                let launches = patch.changes.iter().map(|change| change.launches).sum();
                self.metrics.launched(launches);
            }
        }
    }

    /// Records the cluster's pending and unmet demand, how large its workers are, and what its pods do
    /// not take of their resize limits.
    pub fn decided(&self, uid: &str, round: &Round) {
        let below = round.report.groups.iter();
        let below = below.filter_map(|group| group.below_limits);
        self.metrics.below_limits(uid, below, Instant::now());
        // A decision that was given up, or one about a cluster that cannot be observed, has no report:
        // what was last known holds until the next one.
        if !round.report.groups.is_empty() {
            let workers = (round.report.groups.iter()).filter(|group| group.name != HEAD_NAME);
            let sizes = workers.filter_map(|group| group.sizes);
            self.metrics.sizes(uid, sizes);
        }
        let pending = round.report.demands.iter().map(|demand| demand.count).sum();
        let unmet = round.report.demands.iter().map(|demand| demand.unmet).sum();
        self.metrics.demand(uid, DemandCount { pending, unmet });
    }

    /// Records the number of RayClusters of a mode.
    pub fn clusters(&self, mode: ReconcileMode, count: usize) {
        self.metrics.clusters(mode.name(), count);
    }

    /// Records whether this replica scales clusters.
    pub fn leads(&self, leads: bool) {
        self.metrics.leads(leads);
    }

    /// Records that an Event was published, or that publishing it failed.
    pub fn event(&self, published: bool) {
        let outcome = if published { "published" } else { "failed" };
        self.metrics.events(outcome, 1);
    }

    /// Records the number of Events that were left out because there were too many.
    pub fn events_left_out(&self, count: u64) {
        if count > 0 {
            self.metrics.events("left-out", count);
        }
    }

    /// Forgets a cluster that this process no longer scales.
    pub fn forget(&self, uid: &str) {
        self.metrics.forget(uid);
    }
}

/// A short name for the fault of a call; `None` if nothing was called.
fn failed_call(fault: &GcsFault) -> Option<&'static str> {
    Some(match fault {
        // The call that failed before was counted, and the GCS is not called again yet.
        GcsFault::BackingOff(_) => return None,
        GcsFault::Unreachable(_) => "unreachable",
        GcsFault::Deadline(_) => "deadline",
        GcsFault::Tls(_) | GcsFault::Credentials(_) | GcsFault::Unauthenticated(_) => "credentials",
        GcsFault::Passive => "passive",
        _ => "other",
    })
}

/// A short name for the meaning of a failure.
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

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    use super::*;
    use crate::plan::{DemandKind, DemandReport};

    #[test]
    fn the_end_of_a_cluster_takes_nothing_from_the_next_one_of_its_name() {
        let metrics = RoundMetrics::new(Arc::default());
        let mut registry = Registry::default();
        metrics.metrics.register(&mut registry);
        let mut round = Round::default();
        round.report.demands = vec![DemandReport {
            kind: DemandKind::Tasks,
            index: 0,
            demand: String::new(),
            count: 3,
            placed: Vec::new(),
            unmet: 1,
        }];
        metrics.decided("first", &round);
        metrics.decided("next", &round);
        metrics.forget("first");
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        assert!(
            text.lines().any(|line| line == "pending_demand 3"),
            "{text}"
        );
    }

    #[test]
    fn a_call_that_was_not_made_has_not_failed() {
        let waits = GcsFault::BackingOff(Duration::from_secs(1));
        assert_eq!(failed_call(&waits), None);
        assert_eq!(failed_call(&GcsFault::Passive), Some("passive"));
    }
}
