//! The metrics that Ray's autoscaler container serves, by Ray's names, texts and labels, for dashboards and alerts that
//! were made for it. (Ray, `autoscaler/_private/prom_metrics.py`.)

use std::collections::BTreeMap;
use std::fmt::Error;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

/// The figures of one Ray cluster, as its autoscaler counts them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AutoscalerFigures {
    /// The name of the head's session.
    pub session: String,
    /// The nodes by node type, which on Kubernetes is the group.
    pub nodes: BTreeMap<String, NodeCounts>,
    /// The amounts that running nodes have, by resource.
    pub cluster: BTreeMap<String, f64>,
    /// The amounts that pending nodes will have, by resource.
    pub pending: BTreeMap<String, f64>,
    /// The nodes that have stopped since the process began.
    pub stopped: u64,
}

/// The nodes of one type.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NodeCounts {
    /// Nodes in which Ray runs.
    pub active: u64,
    /// Nodes that were asked for and in which Ray does not run yet.
    pub pending: u64,
    /// Nodes that were asked for and will not come.
    pub failed: u64,
}

/// Upper bounds of the histograms of node launches and of updates, in seconds.
const LAUNCH: [f64; 19] = [
    5.0, 10.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0, 180.0, 240.0, 300.0, 360.0, 480.0, 600.0,
    720.0, 900.0, 1200.0, 1500.0, 1800.0,
];

/// Upper bounds of the histogram of rounds, in seconds.
const ROUND: [f64; 6] = [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0];

/// A metric's name, which its unit follows, and its help; both as Ray writes them.
type Title = (&'static str, &'static str, &'static str);

const NODES: &str = "nodes";
const UPDATES: &str = "updates";
const RECOVERIES: &str = "recoveries";
const EXCEPTIONS: &str = "exceptions";
const RESOURCES: &str = "resources";
const SECONDS: &str = "seconds";

// Ray's autoscaler v2 registers these histograms, counters and gauges, and only v1 fills them.
#[rustfmt::skip]
const HISTOGRAMS: [(Title, &[f64]); 3] = [
    (("worker_create_node_time", SECONDS, "Worker launch time. This is the time it takes for a call to a node provider's create_node method to return. Note that when nodes are launched in batches, the launch time for that batch will be observed once for *each* node in that batch. For example, if 8 nodes are launched in 3 minutes, a launch time of 3 minutes will be observed 8 times."), &LAUNCH),
    (("worker_update_time", SECONDS, "Worker update time. This is the time between when an updater thread begins executing and when it exits successfully. This metric only observes times for successful updates."), &LAUNCH),
    (("update_time", SECONDS, "Autoscaler update time. This is the time for an autoscaler update iteration to complete."), &ROUND),
];
#[rustfmt::skip]
const COUNTERS: [Title; 11] = [
    ("started", NODES, "Number of nodes started."),
    ("failed_create", NODES, "Number of nodes that failed to be created due to an exception in the node provider's create_node method."),
    ("failed", UPDATES, "Number of failed worker node updates."),
    ("successful", UPDATES, "Number of succesfful worker node updates."),
    ("failed", RECOVERIES, "Number of failed node recoveries."),
    ("successful", RECOVERIES, "Number of successful node recoveries."),
    ("update_loop", EXCEPTIONS, "Number of exceptions raised in the update loop of the autoscaler."),
    ("node_launch", EXCEPTIONS, "Number of exceptions raised while launching nodes."),
    ("reset", EXCEPTIONS, "Number of exceptions raised while resetting the autoscaler."),
    ("config_validation", EXCEPTIONS, "Number of exceptions raised while validating the config during a reset."),
    ("drain_node", EXCEPTIONS, "Number of exceptions raised when making a DrainNode rpcprior to node termination."),
];
#[rustfmt::skip]
const GAUGES: [Title; 3] = [
    ("updating", NODES, "Number of nodes in the process of updating."),
    ("recovering", NODES, "Number of nodes in the process of recovering."),
    ("running_workers", NODES, "Number of worker nodes running."),
];

const STOPPED: Title = ("stopped", NODES, "Number of nodes stopped.");

/// The figure of a node type that a gauge shows.
type NodeFigure = fn(&NodeCounts) -> u64;

#[rustfmt::skip]
const BY_TYPE: [(Title, NodeFigure); 3] = [
    (("pending", NODES, "Number of nodes pending to be started."), |counts| counts.pending),
    (("active", NODES, "Number of nodes in the cluster."), |counts| counts.active),
    (("recently_failed", NODES, "The number of recently failed nodes. This count could reset at undefined times."), |counts| counts.failed),
];

#[rustfmt::skip]
const CLUSTER: Title = ("cluster", RESOURCES, "Total logical resources in the cluster.");
#[rustfmt::skip]
const PENDING: Title = ("pending", RESOURCES, "Pending logical resources in the cluster.");

impl AutoscalerFigures {
    /// The page of metrics, as text.
    pub fn text(self) -> Result<String, Error> {
        let mut registry = Registry::with_prefix("autoscaler");
        registry.register_collector(Box::new(self));
        let mut text = String::new();
        encode(&mut text, &registry)?;
        Ok(text)
    }
}

impl Collector for AutoscalerFigures {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let session = ("SessionName", self.session.as_str());
        let single = || vec![session];
        for (title, bounds) in HISTOGRAMS {
            let empty = Histogram::new(bounds.iter().copied());
            let series = [(single(), empty)];
            put(&mut encoder, title, MetricType::Histogram, series)?;
        }
        for (title, figure) in BY_TYPE {
            let nodes = self.nodes.iter();
            let series = nodes.map(|(name, counts)| {
                let labels = vec![("NodeType", name.as_str()), session];
                (labels, ConstGauge::new(float(figure(counts))))
            });
            put(&mut encoder, title, MetricType::Gauge, series)?;
        }
        let stopped = [(single(), ConstCounter::new(float(self.stopped)))];
        put(&mut encoder, STOPPED, MetricType::Counter, stopped)?;
        for title in COUNTERS {
            let none = [(single(), ConstCounter::new(0.0))];
            put(&mut encoder, title, MetricType::Counter, none)?;
        }
        for title in GAUGES {
            let none = [(single(), ConstGauge::new(0.0))];
            put(&mut encoder, title, MetricType::Gauge, none)?;
        }
        for (title, amounts) in [(CLUSTER, &self.cluster), (PENDING, &self.pending)] {
            let series = amounts.iter().map(|(name, amount)| {
                let labels = vec![("resource", name.as_str()), session];
                (labels, ConstGauge::new(*amount))
            });
            put(&mut encoder, title, MetricType::Gauge, series)?;
        }
        Ok(())
    }
}

/// Writes a metric with all of its series.
fn put<'a, M: EncodeMetric>(
    encoder: &mut DescriptorEncoder<'_>,
    (name, unit, help): Title,
    kind: MetricType,
    series: impl IntoIterator<Item = (Vec<(&'a str, &'a str)>, M)>,
) -> Result<(), Error> {
    let unit = Unit::Other(unit.to_owned());
    let mut family = encoder.encode_descriptor(name, help, Some(&unit), kind)?;
    for (labels, value) in series {
        value.encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "Ray's numbers are floats")]
fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_units_and_labels_are_those_of_ray() {
        let counts = NodeCounts {
            active: 2,
            pending: 1,
            failed: 3,
        };
        let figures = AutoscalerFigures {
            session: "session_1".to_owned(),
            nodes: [("cpu".to_owned(), counts)].into(),
            cluster: [("CPU".to_owned(), 2.0)].into(),
            pending: [("memory".to_owned(), 1e9)].into(),
            stopped: 4,
        };
        let text = figures.text().unwrap();
        for line in [
            "# TYPE autoscaler_active_nodes gauge",
            "# UNIT autoscaler_active_nodes nodes",
            "autoscaler_active_nodes{NodeType=\"cpu\",SessionName=\"session_1\"} 2.0",
            "autoscaler_pending_nodes{NodeType=\"cpu\",SessionName=\"session_1\"} 1.0",
            "autoscaler_recently_failed_nodes{NodeType=\"cpu\",SessionName=\"session_1\"} 3.0",
            "# TYPE autoscaler_stopped_nodes counter",
            "autoscaler_stopped_nodes_total{SessionName=\"session_1\"} 4.0",
            "autoscaler_failed_create_nodes_total{SessionName=\"session_1\"} 0.0",
            "autoscaler_running_workers_nodes{SessionName=\"session_1\"} 0.0",
            "autoscaler_cluster_resources{resource=\"CPU\",SessionName=\"session_1\"} 2.0",
            "autoscaler_pending_resources{resource=\"memory\",SessionName=\"session_1\"} 1000000000.0",
            "autoscaler_worker_update_time_seconds_bucket{le=\"1800.0\",SessionName=\"session_1\"} 0",
            "autoscaler_update_time_seconds_count{SessionName=\"session_1\"} 0",
        ] {
            assert!(
                text.lines().any(|written| written == line),
                "{line} is not in\n{text}"
            );
        }
    }

    #[test]
    fn names_of_strangers_begin_no_line_and_end_no_label() {
        let figures = AutoscalerFigures {
            cluster: [("a\"} 1\nup \\".to_owned(), 1.0)].into(),
            ..AutoscalerFigures::default()
        };
        let text = figures.text().unwrap();
        let line =
            "autoscaler_cluster_resources{resource=\"a\\\"} 1\\nup \\\\\",SessionName=\"\"} 1.0";
        assert!(text.lines().any(|written| written == line), "{text}");
    }
}
