//! The watches of the process, read when metrics are requested.

use std::fmt::Error;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::apiserver::Watches;
use crate::apiserver::health::WatchCount;

/// A metric: its name, its help, its type, and the number that it shows.
type WatchMetric = (
    &'static str,
    &'static str,
    MetricType,
    fn(&WatchCount) -> u64,
);

#[rustfmt::skip]
const METRICS: [WatchMetric; 3] = [
    ("watches", "Watches of the API server, by resource", MetricType::Gauge, |count| count.open),
    ("watches_failing", "Watches on which nothing has arrived for too long, or nothing yet", MetricType::Gauge, |count| count.failing),
    ("unreadable_objects", "Objects that could not be read and were skipped; the log names them", MetricType::Counter, |count| count.skipped),
];

impl Collector for Watches {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let counts = self.counts();
        for (name, help, kind, number) in METRICS {
            let mut family = encoder.encode_descriptor(name, help, None, kind)?;
            for (title, count) in &counts {
                let labels = [("watch", *title)];
                let encoder = family.encode_family(&labels)?;
                match kind {
                    MetricType::Counter => ConstCounter::new(number(count)).encode(encoder)?,
                    _ => ConstGauge::new(number(count)).encode(encoder)?,
                }
            }
        }
        Ok(())
    }
}
