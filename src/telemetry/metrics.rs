//! Metrics in Prometheus' text format.

use std::fmt::Error;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use rayfit_core::ray::Kind;

use super::audit::AuditMetrics;
use super::controller::ScalingMetrics;
use super::labels::SeriesLabels;
use super::reviews::{ReviewCount, ReviewOutcome};
use crate::apiserver::Watches;
use crate::tls::CertificateStore;

/// The process's metrics. No label contains anything that a client chooses, except in those about clusters, which are
/// bounded.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    requests: Family<SeriesLabels<4>, Counter>,
    duration: Family<SeriesLabels<1>, Histogram>,
    findings: Family<SeriesLabels<2, String>, Counter>,
    overload: Counter,
    panics: Counter,
    /// The metrics of the controller.
    pub scaling: Arc<ScalingMetrics>,
    /// Reviews in progress.
    pub in_flight: Gauge,
    /// Connections to the webhook port.
    pub connections: Gauge,
    /// The metrics of the background audit.
    pub audit: AuditMetrics,
    /// The watches of the process.
    pub watches: Watches,
}

/// One of the things that a gauge counts, until this is dropped.
#[derive(Debug)]
pub struct CountedGauge(Gauge);

impl CountedGauge {
    /// Adds one to the gauge.
    #[must_use]
    pub fn of(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for CountedGauge {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Upper bounds of the duration histogram, in seconds.
// A review takes about 100 us.
const BUCKETS: [f64; 14] = [
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0,
];

impl Metrics {
    /// Metrics with all counters at zero. The certificate's metrics are read from `store` whenever
    /// metrics are requested.
    pub fn new(store: Arc<CertificateStore>) -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix("rayfit"),
            requests: Family::default(),
            duration: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            findings: Family::default(),
            overload: Counter::default(),
            panics: Counter::default(),
            scaling: Arc::default(),
            in_flight: Gauge::default(),
            connections: Gauge::default(),
            audit: AuditMetrics::default(),
            watches: Watches::default(),
        };
        metrics.register_admission();
        metrics.audit.register(&mut metrics.registry);
        metrics.scaling.register(&mut metrics.registry);
        // Read when somebody asks, so that the store of certificates need not know of metrics.
        let certificate = Certificate(store);
        metrics.registry.register_collector(Box::new(certificate));
        let watches = metrics.watches.clone();
        metrics.registry.register_collector(Box::new(watches));
        metrics
    }

    /// Registers the metrics of the webhooks, and which version runs.
    fn register_admission(&mut self) {
        let registry = &mut self.registry;
        registry.register(
            "admission_requests",
            "Admission requests by webhook, kind, operation and outcome",
            self.requests.clone(),
        );
        registry.register_with_unit(
            "admission_duration",
            "Time from the headers of an admission request to its answer",
            Unit::Seconds,
            self.duration.clone(),
        );
        registry.register(
            "findings",
            "Findings by rule and mode; dry runs are not counted",
            self.findings.clone(),
        );
        registry.register(
            "admission_overload",
            "Admission requests refused because too many were in progress",
            self.overload.clone(),
        );
        registry.register(
            "admission_panics",
            "Admission requests that failed because of a bug",
            self.panics.clone(),
        );
        registry.register(
            "admission_in_flight",
            "Admission requests in progress",
            self.in_flight.clone(),
        );
        registry.register(
            "connections_open",
            "Open connections to the webhook port",
            self.connections.clone(),
        );
        registry.register(
            "build",
            "The running version",
            Info::new([("version", env!("CARGO_PKG_VERSION"))]),
        );
    }

    /// Counts one review. A dry run counts as a request, but its findings do not.
    pub fn observe(&self, review: &ReviewCount, took: Duration) {
        let webhook = review.webhook;
        let labels = [
            ("webhook", webhook),
            ("kind", review.kind.map_or("other", Kind::name)),
            ("operation", review.operation),
            ("outcome", review.outcome.into()),
        ];
        self.requests.get_or_create(&labels).inc();
        self.duration
            .get_or_create(&[("webhook", webhook)])
            .observe(took.as_secs_f64());
        match review.outcome {
            ReviewOutcome::Overload => drop(self.overload.inc()),
            ReviewOutcome::Panic => drop(self.panics.inc()),
            _ => {}
        }
        // Nothing is stored by a dry run.
        if !review.dry_run {
            for (rule, mode) in &review.findings {
                let labels = [("rule", rule.to_string()), ("mode", mode.name().to_owned())];
                self.findings.get_or_create(&labels).inc();
            }
        }
    }

    /// Everything in Prometheus' text format.
    pub fn text(&self) -> Result<String, Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

/// The certificate's metrics, read on request.
#[derive(Debug)]
struct Certificate(Arc<CertificateStore>);

impl Collector for Certificate {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let end = self.0.not_after();
        let end = end.and_then(|end| end.duration_since(UNIX_EPOCH).ok());
        let end = ConstGauge::new(end.map_or(0.0, |end| end.as_secs_f64()));
        end.encode(encoder.encode_descriptor(
            "certificate_not_after_timestamp_seconds",
            "End of validity of the serving certificate; 0 without one",
            None,
            MetricType::Gauge,
        )?)?;
        ConstCounter::new(self.0.refused()).encode(encoder.encode_descriptor(
            "certificate_reload_errors",
            "Certificates that were refused or could not be read",
            None,
            MetricType::Counter,
        )?)?;
        ConstCounter::new(self.0.swapped()).encode(encoder.encode_descriptor(
            "certificate_reloads",
            "Certificates that came into use, including the first one",
            None,
            MetricType::Counter,
        )?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_gauge_counts_is_counted_once_each() {
        let gauge = Gauge::default();
        let count = |one: &mut Option<CountedGauge>, is_counted: bool| {
            *one = is_counted.then(|| CountedGauge::of(&gauge));
            gauge.get()
        };
        let (mut one, mut two) = (None, None);
        assert_eq!(count(&mut one, true), 1);
        assert_eq!(count(&mut two, true), 2);
        assert_eq!(count(&mut one, true), 2);
        assert_eq!(count(&mut one, false), 1);
        assert_eq!(count(&mut one, false), 1);
        drop(two);
        assert_eq!(gauge.get(), 0);
    }
}
