//! The metrics about rounds, for `/metrics`.

use std::time::Instant;

use crate::gcs::GcsFault;
use crate::ray::group::HEAD_NAME;
use crate::reconcile::{Done, Effect, Failure, Meaning, Reply, Round};
use crate::telemetry::controller::ScalingMetrics;

/// Records a call of the cluster's GCS that failed.
pub fn gcs_error(metrics: &ScalingMetrics, uid: &str, fault: &GcsFault) {
    if let Some(kind) = failed_call(fault) {
        metrics.gcs_error(kind);
    }
    match fault {
        // This GCS does answer; it only says that another one is the leader.
        GcsFault::Passive => metrics.gcs_is_well(uid, Instant::now()),
        _ => metrics.gcs_is_silent(uid, Instant::now()),
    }
}

/// Records the results of a round's effects.
pub fn done(metrics: &ScalingMetrics, done: &[Done]) {
    for Done { effect, result, .. } in done {
        let outcome = match result.as_ref().map_err(Failure::meaning) {
            Ok(Reply::DrainRefused) => "drain-refused",
            Ok(_) => "done",
            Err(Meaning::Stale) => "stale",
            Err(Meaning::Gone) => "gone",
            Err(Meaning::TooLarge(_)) => "too-large",
            Err(Meaning::Refused) => "refused",
            Err(Meaning::Forbidden) => "forbidden",
            Err(Meaning::Busy { .. }) => "busy",
            Err(Meaning::Transient) => "failed",
        };
        metrics.effect(effect.kind(), outcome);
        // Launches count once the API server has accepted the patch, not when they are planned.
        if let (Effect::PatchCluster(patch), Ok(_)) = (effect, result) {
            metrics.launched(patch.changes.iter().map(|change| change.launches).sum());
        }
    }
}

/// Records the pending and unmet demand of a cluster, known by its UID, how large its workers are, and what its pods do
/// not take of their resize limits.
pub fn decided(metrics: &ScalingMetrics, uid: &str, round: &Round) {
    let below = round.report.groups.iter();
    let below = below.filter_map(|group| group.below_limits);
    metrics.below_limits(uid, below, Instant::now());
    // A decision that was given up, or one about a cluster that cannot be observed, has no report:
    // what was last known holds until the next one.
    if !round.report.groups.is_empty() {
        let workers = (round.report.groups.iter()).filter(|group| group.name != HEAD_NAME);
        let sizes = workers.filter_map(|group| group.sizes);
        metrics.sizes(uid, sizes);
    }
    let pending = round.report.demands.iter().map(|demand| demand.count).sum();
    let unmet = round.report.demands.iter().map(|demand| demand.unmet).sum();
    metrics.demand(uid, pending, unmet);
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    use super::*;
    use crate::plan::{DemandKind, DemandReport};

    #[test]
    fn the_end_of_a_cluster_takes_nothing_from_the_next_one_of_its_name() {
        let metrics = ScalingMetrics::default();
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        let mut round = Round::default();
        round.report.demands = vec![DemandReport {
            kind: DemandKind::Tasks,
            index: 0,
            demand: String::new(),
            count: 3,
            placed: Vec::new(),
            unmet: 1,
        }];
        decided(&metrics, "first", &round);
        decided(&metrics, "next", &round);
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
