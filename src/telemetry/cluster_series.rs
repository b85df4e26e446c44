//! The series about clusters, made when somebody asks.

use std::fmt::Error;
use std::time::Instant;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use rayfit_core::plan::CpuAndMemory;

use super::clusters::{ClusterMetrics, SeriesSums};

/// Series of one metric: labels beside those of the cluster, and the value.
type LabelledValues<'a> = Vec<(Vec<(&'static str, &'a str)>, f64)>;

/// A metric: its name, its help, its type, and the series of it that sums lead to.
type ClusterMetric = (
    &'static str,
    &'static str,
    MetricType,
    fn(&SeriesSums) -> LabelledValues<'_>,
);

#[rustfmt::skip]
const METRICS: [ClusterMetric; 12] = [
    ("scaled_clusters", "RayClusters that this process scales: those that the series with these labels are about", MetricType::Gauge, |sums| one(number(sums.clusters))),
    ("clusters_unreachable", "RayClusters whose GCS has not answered for five minutes although their head runs", MetricType::Gauge, |sums| one(number(sums.unreachable))),
    ("pending_demand", "Units of demand (tasks, actors, bundles) that Ray reports as pending", MetricType::Gauge, |sums| one(number(sums.figures.demand))),
    ("unmet_demand", "Units of demand that no group can meet", MetricType::Gauge, |sums| one(number(sums.figures.unmet))),
    ("problems", "Problems of RayClusters and of their groups, because of which something is not done; rayfit status names them", MetricType::Gauge, |sums| one(number(sums.figures.problems))),
    ("workers", "Nodes of worker groups: those in which Ray runs, and those that are pending; by group where a cluster has series of its own", MetricType::Gauge, workers),
    ("worker_size", "Limits of the worker pods that have a Kubernetes node: CPUs, bytes of memory", MetricType::Gauge, |sums| amounts(sums.figures.sizes.has)),
    ("worker_in_use", "What of it is in use: what work has asked Ray for, or the memory that Ray says is really in use, where that is more", MetricType::Gauge, |sums| amounts(sums.figures.sizes.in_use)),
    ("worker_resize_limits", "What these pods would have at their resize limits; their size, if they cannot grow", MetricType::Gauge, |sums| amounts(sums.figures.sizes.up_to)),
    ("resizes", "Requests to resize a pod in place, by outcome", MetricType::Counter, resizes),
    ("saved_in_place_cpu_seconds", "CPU that pods did not take of their resize limits after they had shrunk, times seconds; counted when a cluster is next decided on", MetricType::Counter, |sums| one(sums.counters.saved_cpu_seconds)),
    ("saved_in_place_memory_byte_seconds", "The same of memory, in bytes times seconds", MetricType::Counter, |sums| one(sums.counters.saved_memory_byte_seconds)),
];

impl Collector for ClusterMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let sums = self.sums(Instant::now());
        for (name, help, kind, values) in METRICS {
            let mut family = encoder.encode_descriptor(name, help, None, kind)?;
            for (series, sums) in &sums {
                for (more, value) in values(sums) {
                    let mut labels = series.labels();
                    labels.extend(more);
                    let encoder = family.encode_family(&labels)?;
                    match kind {
                        MetricType::Counter => ConstCounter::new(value).encode(encoder)?,
                        _ => ConstGauge::new(value).encode(encoder)?,
                    }
                }
            }
        }
        Ok(())
    }
}

#[expect(clippy::cast_precision_loss, reason = "a number for people")]
fn number(count: u64) -> f64 {
    count as f64
}

fn one(value: f64) -> LabelledValues<'static> {
    vec![(Vec::new(), value)]
}

#[expect(clippy::cast_precision_loss, reason = "a number for people")]
fn amounts(of: CpuAndMemory) -> LabelledValues<'static> {
    let cpus = (vec![("resource", "cpu")], of.cpu_milli as f64 / 1000.0);
    let bytes = (vec![("resource", "memory")], of.memory_bytes as f64);
    vec![cpus, bytes]
}

fn workers(sums: &SeriesSums) -> LabelledValues<'_> {
    let groups = sums.figures.workers.iter();
    let each = groups.flat_map(|(group, counts)| {
        let states = ["running", "pending"].into_iter().zip(counts);
        states.map(move |(state, count)| {
            let group = (!group.is_empty()).then_some(("group", group.as_str()));
            let labels = group.into_iter().chain([("state", state)]);
            (labels.collect(), number(*count))
        })
    });
    each.collect()
}

fn resizes(sums: &SeriesSums) -> LabelledValues<'_> {
    let outcomes = sums.counters.resizes.iter();
    let each = outcomes.map(|(outcome, count)| (vec![("outcome", *outcome)], number(*count)));
    each.collect()
}
