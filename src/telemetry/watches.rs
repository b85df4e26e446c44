//! The watches of the process, read when metrics are requested.

use std::collections::BTreeMap;
use std::fmt::Error;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::apiserver::Watches;
use crate::apiserver::health::WatchCount;

impl Collector for Watches {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let counts = self.counts();
        gauge(
            &mut encoder,
            &counts,
            "watches",
            "Watches of the API server, by resource",
            |count| count.open,
        )?;
        gauge(
            &mut encoder,
            &counts,
            "watches_failing",
            "Watches on which nothing has arrived for too long, or nothing yet",
            |count| count.failing,
        )?;
        let mut family = encoder.encode_descriptor(
            "unreadable_objects",
            "Objects that could not be read and were skipped; the log names them",
            None,
            MetricType::Counter,
        )?;
        for (title, count) in counts {
            ConstCounter::new(count.skipped).encode(family.encode_family(&[("watch", title)])?)?;
        }
        Ok(())
    }
}

fn gauge(
    encoder: &mut DescriptorEncoder<'_>,
    counts: &BTreeMap<&'static str, WatchCount>,
    name: &str,
    help: &str,
    number: impl Fn(&WatchCount) -> u64,
) -> Result<(), Error> {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (title, count) in counts {
        let value = i64::try_from(number(count)).unwrap_or(i64::MAX);
        ConstGauge::new(value).encode(family.encode_family(&[("watch", *title)])?)?;
    }
    Ok(())
}
