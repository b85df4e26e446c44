//! The metrics about rounds, for `/metrics`.

use std::time::Instant;

use crate::controller::events::About;
use crate::gcs::GcsFault;
use crate::plan::{CpuAndMemory, GroupSizes};
use crate::ray::group::HEAD_NAME;
use crate::reconcile::{Done, Effect, Failure, Meaning, Reply, Round};
use crate::telemetry::clusters::ClusterFigures;
use crate::telemetry::controller::ScalingMetrics;

/// Records a call of the cluster's GCS that failed.
pub fn gcs_error(metrics: &ScalingMetrics, about: &About, fault: &GcsFault) {
    if let Some(kind) = failed_call(fault) {
        metrics.gcs_error(kind);
    }
    let (clusters, key, uid) = (&metrics.by_cluster, &about.key, &about.uid);
    match fault {
        // This GCS does answer; it only says that another one is the leader.
        GcsFault::Passive => clusters.gcs_is_well(uid),
        _ => clusters.gcs_is_silent(key, uid, Instant::now()),
    }
}

/// Records the results of a round's effects.
pub fn done(metrics: &ScalingMetrics, about: &About, done: &[Done]) {
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
        if let Effect::ResizePod(_) = effect {
            metrics.by_cluster.resized(&about.key, &about.uid, outcome);
        }
        // Launches count once the API server has accepted the patch, not when they are planned.
        if let (Effect::PatchCluster(patch), Ok(_)) = (effect, result) {
            metrics.launched(patch.changes.iter().map(|change| change.launches).sum());
        }
    }
}

/// Records the figures of a cluster that a round found.
pub fn decided(metrics: &ScalingMetrics, about: &About, round: &Round) {
    let (groups, demands) = (&round.report.groups, &round.report.demands);
    // A decision that was given up, or one about a cluster that cannot be observed, has no report:
    // the figures of the last one hold until the next one.
    if groups.is_empty() {
        return;
    }
    let workers = groups.iter().filter(|group| group.name != HEAD_NAME);
    let sizes = workers.clone().filter_map(|group| group.sizes);
    let below = groups.iter().filter_map(|group| group.below_limits);
    let figures = ClusterFigures {
        demand: demands.iter().map(|demand| demand.count).sum(),
        unmet: demands.iter().map(|demand| demand.unmet).sum(),
        problems: round.plan.problems.len() as u64,
        workers: workers
            .map(|group| (group.name.clone(), [group.running, group.pending]))
            .collect(),
        sizes: sizes.fold(GroupSizes::default(), GroupSizes::plus),
        below_limits: below.fold(CpuAndMemory::default(), |sum, one| {
            sum.join(one, i64::saturating_add)
        }),
    };
    let clusters = &metrics.by_cluster;
    clusters.decided(&about.key, &about.uid, figures, Instant::now());
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

    use super::*;

    #[test]
    fn a_call_that_was_not_made_has_not_failed() {
        let waits = GcsFault::BackingOff(Duration::from_secs(1));
        assert_eq!(failed_call(&waits), None);
        assert_eq!(failed_call(&GcsFault::Passive), Some("passive"));
    }
}
