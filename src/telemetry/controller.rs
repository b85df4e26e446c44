//! Metrics of the controller. Those that tell clusters apart are in [`clusters`](super::clusters).

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use rayfit_core::reconcile::Effect;

use super::clusters::ClusterMetrics;
use super::labels::SeriesLabels;

/// Upper bounds of the round histogram, in seconds.
const ROUND: [f64; 12] = [
    0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0,
];

/// The metrics.
#[derive(Debug)]
pub struct ScalingMetrics {
    /// The durations of rounds, in seconds.
    pub round: Histogram,
    /// The effects, by `action` and `outcome`.
    pub effects: Family<SeriesLabels<2>, Counter>,
    /// The failed calls to GCSs, by `kind`.
    pub gcs_errors: Family<SeriesLabels<1>, Counter>,
    /// The Events, by `outcome`.
    pub events: Family<SeriesLabels<1>, Counter>,
    /// The launches that the API server accepted.
    pub launches: Counter,
    /// The RayClusters, by `mode`.
    pub clusters: Family<SeriesLabels<1>, Gauge>,
    /// 1 while this replica scales clusters.
    pub leader: Gauge,
    /// The metrics about clusters.
    pub by_cluster: ClusterMetrics,
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
            launches: Counter::default(),
            clusters: Family::default(),
            leader: Gauge::default(),
            by_cluster: ClusterMetrics::default(),
        };
        for &action in Effect::KINDS {
            for outcome in OUTCOMES {
                let labels = [("action", action), ("outcome", outcome)];
                drop(metrics.effects.get_or_create(&labels));
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
            "launches",
            "Pods that were requested",
            self.launches.clone(),
        );
        registry.register("clusters", "RayClusters by mode", self.clusters.clone());
        registry.register(
            "leader",
            "Whether this replica holds the Lease, and scales the clusters",
            self.leader.clone(),
        );
        self.by_cluster.register(registry);
    }
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
        for &action in Effect::KINDS {
            let series = format!("effects_total{{action=\"{action}\",outcome=\"forbidden\"}} 0");
            assert!(text.contains(&series), "{series} is not in {text}");
        }
    }
}
