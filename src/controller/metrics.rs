//! The metrics about rounds, for `/metrics`.

use std::time::Instant;

use rayfit_core::plan::{CpuAndMemory, GroupSizes};
use rayfit_core::ray::group::HEAD_NAME;
use rayfit_core::reconcile::{Done, Effect, Failure, Meaning, Reply, Round};

use crate::controller::events::About;
use crate::gcs::GcsFault;
use crate::telemetry::clusters::ClusterFigures;
use crate::telemetry::controller::ScalingMetrics;

/// Records a call of the cluster's GCS that failed.
pub fn gcs_error(metrics: &ScalingMetrics, about: &About, fault: &GcsFault) {
    let kind = match fault {
        // The call that failed before was counted, and the GCS is not called again yet.
        GcsFault::BackingOff(_) => None,
        GcsFault::Unreachable(_) => Some("unreachable"),
        GcsFault::Deadline(_) => Some("deadline"),
        GcsFault::Tls(_) | GcsFault::Credentials(_) | GcsFault::Unauthenticated(_) => {
            Some("credentials")
        }
        GcsFault::Passive => Some("passive"),
        _ => Some("other"),
    };
    if let Some(kind) = kind {
        metrics.gcs_errors.get_or_create(&[("kind", kind)]).inc();
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
        let labels = [("action", effect.kind()), ("outcome", outcome)];
        metrics.effects.get_or_create(&labels).inc();
        if let Effect::ResizePod(_) = effect {
            metrics.by_cluster.resized(&about.key, &about.uid, outcome);
        }
        // Launches count once the API server has accepted the patch, not when they are planned.
        if let (Effect::PatchCluster(patch), Ok(_)) = (effect, result) {
            let launches = patch.changes.iter().map(|change| change.launches).sum();
            metrics.launches.inc_by(launches);
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::controller::observe::Key;

    #[test]
    fn a_call_that_was_not_made_has_not_failed() {
        let metrics = ScalingMetrics::default();
        let about = About {
            key: Key::new("ray", "demo").unwrap(),
            uid: "u".to_owned(),
        };
        let waits = GcsFault::BackingOff(Duration::from_secs(1));
        for fault in [waits, GcsFault::Passive] {
            gcs_error(&metrics, &about, &fault);
        }
        let kinds = ["unreachable", "deadline", "credentials", "passive", "other"];
        let count = |kind| metrics.gcs_errors.get_or_create(&[("kind", kind)]).get();
        assert_eq!(kinds.map(count), [0, 0, 0, 1, 0]);
    }
}
