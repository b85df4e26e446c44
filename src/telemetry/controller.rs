//! Metrics of the controller. No label contains a cluster's name: the metrics are sums over all
//! clusters, and `rayfit status` shows single ones.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use super::labels::SeriesLabels;
use super::saved::SavedInPlace;
use super::sizes::WorkerSizes;
use crate::plan::{CpuAndMemory, GroupSizes};
use crate::reconcile::Effect;

/// Upper bounds of the round histogram, in seconds.
const ROUND: [f64; 12] = [
    0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0,
];

/// Upper bounds of the time from demand to capacity, in seconds.
const CAPACITY: [f64; 12] = [
    0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0,
];

/// The silence after which a GCS counts as unreachable.
// A head that is being replaced is silent for less: Ray's images are large, and take minutes to be pulled.
const UNREACHABLE_AFTER: Duration = Duration::from_mins(5);

/// The metrics.
#[derive(Debug)]
pub struct ScalingMetrics {
    round: Histogram,
    effects: Family<SeriesLabels<2>, Counter>,
    gcs_errors: Family<SeriesLabels<1>, Counter>,
    events: Family<SeriesLabels<1>, Counter>,
    unreachable: Gauge,
    launches: Counter,
    pending: Gauge,
    unmet: Gauge,
    clusters: Family<SeriesLabels<1>, Gauge>,
    leader: Gauge,
    capacity: Histogram,
    saved: SavedInPlace,
    sizes: WorkerSizes,
    wants: Mutex<HashMap<String, Want>>,
    silent: Mutex<HashMap<String, Instant>>,
}

/// The demand of a cluster.
#[derive(Debug, Default)]
struct Want {
    /// The units of demand that Ray reports.
    pending: u64,
    /// The units of demand that cannot be met.
    unmet: u64,
    /// The time since which there has been demand that can be met.
    since: Option<Instant>,
}

/// The values of labels whose series begin at 0.
// Alerts use them, and Prometheus sees no increase in a new series.
const OUTCOMES: [&str; 4] = ["done", "failed", "forbidden", "refused"];
const EVENTS: [&str; 3] = ["published", "failed", "left-out"];
const GCS_ERRORS: [&str; 5] = ["unreachable", "deadline", "credentials", "passive", "other"];

impl Default for ScalingMetrics {
    fn default() -> Self {
        let metrics = Self {
            round: Histogram::new(ROUND),
            effects: Family::default(),
            gcs_errors: Family::default(),
            events: Family::default(),
            unreachable: Gauge::default(),
            launches: Counter::default(),
            pending: Gauge::default(),
            unmet: Gauge::default(),
            clusters: Family::default(),
            leader: Gauge::default(),
            capacity: Histogram::new(CAPACITY),
            saved: SavedInPlace::default(),
            sizes: WorkerSizes::default(),
            wants: Mutex::default(),
            silent: Mutex::default(),
        };
        for action in Effect::KINDS {
            for outcome in OUTCOMES {
                drop(
                    metrics
                        .effects
                        .get_or_create(&[("action", action), ("outcome", outcome)]),
                );
            }
        }
        for kind in GCS_ERRORS {
            drop(metrics.gcs_errors.get_or_create(&[("kind", kind)]));
        }
        for outcome in EVENTS {
            drop(metrics.events.get_or_create(&[("outcome", outcome)]));
        }
        metrics
    }
}

impl ScalingMetrics {
    /// Registers everything.
    pub fn register(&self, registry: &mut Registry) {
        registry.register_with_unit(
            "round_duration",
            "Duration of one round of a cluster, from the question to its GCS to the last effect",
            Unit::Seconds,
            self.round.clone(),
        );
        registry.register(
            "effects",
            "Requests that change something, by kind and outcome",
            self.effects.clone(),
        );
        registry.register(
            "gcs_errors",
            "Failed calls to GCSs, by kind",
            self.gcs_errors.clone(),
        );
        registry.register(
            "events",
            "Kubernetes Events, by outcome",
            self.events.clone(),
        );
        registry.register(
            "clusters_unreachable",
            "RayClusters whose GCS has not answered for five minutes although their head runs",
            self.unreachable.clone(),
        );
        registry.register(
            "launches",
            "Pods that were requested",
            self.launches.clone(),
        );
        registry.register("pending_demand", "Units of demand (tasks, actors, bundles) that Ray reports as pending, over all clusters", self.pending.clone());
        registry.register(
            "unmet_demand",
            "Units of demand that no group can meet, over all clusters",
            self.unmet.clone(),
        );
        registry.register("clusters", "RayClusters by mode", self.clusters.clone());
        registry.register(
            "leader",
            "Whether this replica holds the Lease, and scales the clusters",
            self.leader.clone(),
        );
        registry.register_with_unit(
            "demand_to_capacity",
            "Time from when a cluster first has demand that can be met until it has none left",
            Unit::Seconds,
            self.capacity.clone(),
        );
        self.saved.register(registry);
        self.sizes.register(registry);
    }

    /// Records the duration of a round.
    pub fn round(&self, took: Duration) {
        self.round.observe(took.as_secs_f64());
    }

    /// Records a failed call to a GCS.
    pub fn gcs_error(&self, kind: &'static str) {
        self.gcs_errors.get_or_create(&[("kind", kind)]).inc();
    }

    /// Records the outcome of some Events.
    pub fn events(&self, outcome: &'static str, count: u64) {
        self.events
            .get_or_create(&[("outcome", outcome)])
            .inc_by(count);
    }

    /// Records that the GCS of a cluster with a running head did not answer.
    pub fn gcs_is_silent(&self, cluster: &str, now: Instant) {
        let mut silent = lock(&self.silent);
        silent.entry(cluster.to_owned()).or_insert(now);
        self.count(&silent, now);
    }

    /// Records that the GCS of a cluster has answered, or that there is none.
    pub fn gcs_is_well(&self, cluster: &str, now: Instant) {
        let mut silent = lock(&self.silent);
        if silent.remove(cluster).is_some() {
            self.count(&silent, now);
        }
    }

    fn count(&self, silent: &HashMap<String, Instant>, now: Instant) {
        let is_long = |since: &&Instant| now.duration_since(**since) >= UNREACHABLE_AFTER;
        let count = silent.values().filter(is_long).count();
        self.unreachable
            .set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Records the outcome of an effect.
    pub fn effect(&self, action: &'static str, outcome: &'static str) {
        self.effects
            .get_or_create(&[("action", action), ("outcome", outcome)])
            .inc();
    }

    /// Records the number of RayClusters of a mode.
    pub fn clusters(&self, mode: &'static str, count: usize) {
        self.clusters
            .get_or_create(&[("mode", mode)])
            .set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Records whether this replica scales clusters.
    pub fn leads(&self, leads: bool) {
        self.leader.set(leads.into());
    }

    /// Records launches that the API server accepted.
    pub fn launched(&self, count: u64) {
        self.launches.inc_by(count);
    }

    /// Records the units of demand that Ray reports of a cluster, and those among them that cannot be met.
    pub fn demand(&self, cluster: &str, pending: u64, unmet: u64) {
        let mut wants = lock(&self.wants);
        let want = wants.entry(cluster.to_owned()).or_default();
        (want.pending, want.unmet) = (pending, unmet);
        match want.since {
            None if pending > unmet => want.since = Some(Instant::now()),
            Some(since) if pending <= unmet => {
                self.capacity.observe(since.elapsed().as_secs_f64());
                want.since = None;
            }
            _ => {}
        }
        self.sum(&wants);
    }

    /// Records what the pods of each group of a cluster do not take of their resize limits from now
    /// on.
    pub fn below_limits(
        &self,
        cluster: &str,
        groups: impl Iterator<Item = CpuAndMemory>,
        now: Instant,
    ) {
        self.saved.note(cluster, groups, now);
    }

    /// Records how large the worker groups of a cluster are now.
    pub fn sizes(&self, cluster: &str, groups: impl Iterator<Item = GroupSizes>) {
        self.sizes.note(cluster, groups);
    }

    /// Records that a cluster is no longer scaled here.
    pub fn forget(&self, cluster: &str) {
        self.gcs_is_well(cluster, Instant::now());
        self.saved.note(cluster, std::iter::empty(), Instant::now());
        self.sizes.note(cluster, std::iter::empty());
        let mut wants = lock(&self.wants);
        wants.remove(cluster);
        self.sum(&wants);
    }

    fn sum(&self, wants: &HashMap<String, Want>) {
        let total = |part: fn(&Want) -> u64| {
            let each = wants.values().map(part);
            // Numbers that GCSs report must not end a sum over all clusters in a panic.
            let total = each.fold(0, u64::saturating_add);
            i64::try_from(total).unwrap_or(i64::MAX)
        };
        self.pending.set(total(|want| want.pending));
        self.unmet.set(total(|want| want.unmet));
    }
}

fn lock<T>(of_clusters: &Mutex<HashMap<String, T>>) -> MutexGuard<'_, HashMap<String, T>> {
    of_clusters.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_effect_is_counted_from_the_start() {
        let mut registry = Registry::default();
        ScalingMetrics::default().register(&mut registry);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        assert!(Effect::KINDS.contains(&"delete-cluster"));
        for action in Effect::KINDS {
            let series = format!("effects_total{{action=\"{action}\",outcome=\"forbidden\"}} 0");
            assert!(text.contains(&series), "{series} is not in {text}");
        }
    }

    #[test]
    fn what_one_cluster_is_said_to_want_ends_no_sum_over_all() {
        let metrics = ScalingMetrics::default();
        for (cluster, pending) in [("liar", u64::MAX), ("neighbour", 3)] {
            metrics.demand(cluster, pending, 0);
        }
        assert_eq!(metrics.pending.get(), i64::MAX);
        metrics.forget("liar");
        assert_eq!(metrics.pending.get(), 3);
    }

    #[test]
    fn a_gcs_is_unreachable_once_it_has_long_been_silent() {
        let metrics = ScalingMetrics::default();
        let begin = Instant::now();
        let after = |seconds: u64| begin + Duration::from_secs(seconds);
        for cluster in ["a", "b"] {
            metrics.gcs_is_silent(cluster, begin);
        }
        assert_eq!(metrics.unreachable.get(), 0, "a head may be restarting");
        metrics.gcs_is_well("b", after(10));
        metrics.gcs_is_silent("b", after(20));
        metrics.gcs_is_silent("a", after(300));
        assert_eq!(metrics.unreachable.get(), 1, "b answered meanwhile");
        metrics.gcs_is_silent("b", after(320));
        assert_eq!(metrics.unreachable.get(), 2);
        metrics.gcs_is_well("a", after(321));
        assert_eq!(metrics.unreachable.get(), 1);
        metrics.forget("b");
        assert_eq!(metrics.unreachable.get(), 0);
    }
}
