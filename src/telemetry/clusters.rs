//! The figures of the RayClusters that this process scales: one map, of which the metrics are sums.
//!
//! A cluster is counted in the series of its namespace. With `--cluster-metrics` it has series of its own, as long
//! as no more clusters have than the bound says; those beyond it stay in the series of their namespace. So each
//! cluster is counted once, and the sum over all series is the one over all clusters.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use rayfit_core::dns_name::Key;
use rayfit_core::plan::{CpuAndMemory, GroupSizes};

use super::labels::{SeriesKey, group_label};

/// The silence after which a GCS counts as unreachable.
// A head that is being replaced is silent for less: Ray's images are large, and take minutes to be pulled.
const UNREACHABLE_AFTER: Duration = Duration::from_mins(5);

/// Upper bounds of the time from demand to capacity, in seconds.
const CAPACITY: [f64; 12] = [
    0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0,
];

/// The figures of a cluster that a decision finds, or their sums over several clusters.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClusterFigures {
    /// The units of demand that Ray reports.
    pub demand: u64,
    /// The units among them that no group can meet.
    pub unmet: u64,
    /// The number of problems of the cluster's objects.
    pub problems: u64,
    /// The running and the pending nodes of each worker group, by its name.
    pub workers: BTreeMap<String, [u64; 2]>,
    /// The sizes of worker pods.
    pub sizes: GroupSizes,
    /// The part of their resize limits that pods which have shrunk do not take now.
    pub below_limits: CpuAndMemory,
}

/// The metrics about clusters. Copies share their figures.
#[derive(Debug, Clone)]
pub struct ClusterMetrics {
    state: Arc<Mutex<ClusterTable>>,
    capacity: Histogram,
}

/// The figures of all clusters, by UID, and the counters of the series in which they are counted.
#[derive(Debug, Default)]
struct ClusterTable {
    /// The most clusters that have series of their own.
    own: usize,
    clusters: HashMap<String, CountedCluster>,
    counters: BTreeMap<SeriesKey, SeriesCounters>,
}

#[derive(Debug)]
struct CountedCluster {
    series: SeriesKey,
    figures: ClusterFigures,
    /// The time of the decision that found them.
    decided: Instant,
    /// The time since which there has been demand that can be met.
    wants_since: Option<Instant>,
    /// The time since which the GCS has not answered although its head runs.
    silent_since: Option<Instant>,
}

/// The counters of a series. They end with its last cluster, so that no counter ever gets less: Prometheus would count
/// all that is left of it anew.
#[derive(Debug, Clone)]
pub(super) struct SeriesCounters {
    pub(super) saved_cpu_seconds: f64,
    pub(super) saved_memory_byte_seconds: f64,
    pub(super) resizes: BTreeMap<&'static str, u64>,
}

/// The sums over the clusters of a series.
#[derive(Debug, Default)]
pub(super) struct SeriesSums {
    pub(super) clusters: u64,
    pub(super) unreachable: u64,
    pub(super) figures: ClusterFigures,
    pub(super) counters: SeriesCounters,
}

impl Default for ClusterMetrics {
    fn default() -> Self {
        Self {
            state: Arc::default(),
            capacity: Histogram::new(CAPACITY),
        }
    }
}

impl ClusterMetrics {
    /// Registers everything.
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register_with_unit(
            "demand_to_capacity",
            "Time from when a cluster first has demand that can be met until it has none left",
            Unit::Seconds,
            self.capacity.clone(),
        );
        registry.register_collector(Box::new(self.clone()));
    }

    /// Gives so many clusters at most series of their own. Clusters that are known already keep theirs.
    pub fn show_each(&self, own: usize) {
        self.state.lock().own = own;
    }

    /// Records the figures that a decision about a cluster found.
    #[expect(clippy::cast_precision_loss, reason = "a sum for people")]
    pub fn decided(&self, key: &Key, uid: &str, figures: ClusterFigures, now: Instant) {
        let mut state = self.state.lock();
        let (cluster, counters) = state.of(key, uid, now);
        // The savings of the cluster since its last decision.
        let seconds = now.saturating_duration_since(cluster.decided).as_secs_f64();
        let below = cluster.figures.below_limits;
        counters.saved_cpu_seconds += below.cpu_milli as f64 / 1000.0 * seconds;
        counters.saved_memory_byte_seconds += below.memory_bytes as f64 * seconds;
        let wants = figures.demand > figures.unmet;
        (cluster.figures, cluster.decided) = (figures, now);
        if wants {
            cluster.wants_since.get_or_insert(now);
        } else if let Some(since) = cluster.wants_since.take() {
            let took = now.saturating_duration_since(since);
            self.capacity.observe(took.as_secs_f64());
        }
    }

    /// Records the outcome of a request to resize a pod of a cluster.
    pub fn resized(&self, key: &Key, uid: &str, outcome: &'static str) {
        let mut state = self.state.lock();
        let (_, counters) = state.of(key, uid, Instant::now());
        *counters.resizes.entry(outcome).or_default() += 1;
    }

    /// Records that the GCS of a cluster with a running head did not answer.
    pub fn gcs_is_silent(&self, key: &Key, uid: &str, now: Instant) {
        let mut state = self.state.lock();
        let (cluster, _) = state.of(key, uid, now);
        cluster.silent_since.get_or_insert(now);
    }

    /// Records that the GCS of a cluster has answered, or that there is none.
    pub fn gcs_is_well(&self, uid: &str) {
        if let Some(cluster) = self.state.lock().clusters.get_mut(uid) {
            cluster.silent_since = None;
        }
    }

    /// Records that a cluster is no longer scaled here. Series that are about no other one end.
    pub fn forget(&self, uid: &str) {
        let mut state = self.state.lock();
        if let Some(gone) = state.clusters.remove(uid)
            && !(state.clusters.values()).any(|other| other.series == gone.series)
        {
            state.counters.remove(&gone.series);
        }
    }

    /// The sums of each series.
    pub(super) fn sums(&self, now: Instant) -> BTreeMap<SeriesKey, SeriesSums> {
        let state = self.state.lock();
        let mut sums: BTreeMap<SeriesKey, SeriesSums> = BTreeMap::new();
        for (series, counters) in &state.counters {
            sums.entry(series.clone()).or_default().counters = counters.clone();
        }
        for cluster in state.clusters.values() {
            let sum = sums.entry(cluster.series.clone()).or_default();
            let silence = cluster
                .silent_since
                .map(|since| now.saturating_duration_since(since));
            sum.clusters += 1;
            sum.unreachable += u64::from(silence.is_some_and(|time| time >= UNREACHABLE_AFTER));
            // Only a series of one cluster tells its worker groups apart.
            sum.figures
                .add(&cluster.figures, cluster.series.cluster.is_some());
        }
        sums
    }
}

impl ClusterTable {
    /// A cluster, with the counters of its series. From its first figure on it is counted in the same series.
    fn of(
        &mut self,
        key: &Key,
        uid: &str,
        now: Instant,
    ) -> (&mut CountedCluster, &mut SeriesCounters) {
        let (own, counters) = (self.own, &mut self.counters);
        let new = || CountedCluster {
            series: SeriesKey::of(key, own, counters),
            figures: ClusterFigures::default(),
            decided: now,
            wants_since: None,
            silent_since: None,
        };
        let cluster = self.clusters.entry(uid.to_owned()).or_insert_with(new);
        let counters = counters.entry(cluster.series.clone()).or_default();
        (cluster, counters)
    }
}

impl ClusterFigures {
    /// Adds those of a cluster; its workers by group, or all of them under the empty name.
    // The numbers that GCSs report must not end a sum over clusters in a panic.
    fn add(&mut self, other: &Self, by_group: bool) {
        self.demand = self.demand.saturating_add(other.demand);
        self.unmet = self.unmet.saturating_add(other.unmet);
        self.problems = self.problems.saturating_add(other.problems);
        self.sizes = self.sizes.plus(other.sizes);
        for (group, counts) in &other.workers {
            let name = group_label(group, by_group, &self.workers);
            let sums = self.workers.entry(name).or_default();
            for (sum, count) in sums.iter_mut().zip(counts) {
                *sum = sum.saturating_add(*count);
            }
        }
    }
}

impl Default for SeriesCounters {
    fn default() -> Self {
        Self {
            saved_cpu_seconds: 0.0,
            saved_memory_byte_seconds: 0.0,
            // Alerts use these, and Prometheus sees no increase in a new series.
            resizes: ["done", "failed", "forbidden", "refused"]
                .map(|outcome| (outcome, 0))
                .into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    /// Metrics of which so many clusters have series of their own, and the time of the first figures.
    fn new(own: usize) -> (ClusterMetrics, Instant) {
        let metrics = ClusterMetrics::default();
        metrics.show_each(own);
        (metrics, Instant::now())
    }

    fn wants(demand: u64) -> ClusterFigures {
        ClusterFigures {
            demand,
            ..ClusterFigures::default()
        }
    }

    /// Records figures of a cluster, whose UID is its namespace and name.
    fn decide(metrics: &ClusterMetrics, name: &str, figures: ClusterFigures, now: Instant) {
        let (namespace, cluster) = name.split_once('/').unwrap();
        let key = Key::new(namespace, cluster).unwrap();
        metrics.decided(&key, name, figures, now);
    }

    /// The series of a metric on the page, in its order.
    fn series(metrics: &ClusterMetrics, name: &str) -> Vec<String> {
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        let lines = text.lines().filter_map(|line| line.strip_prefix(name));
        let lines = lines.filter(|rest| rest.starts_with('{') || rest.starts_with(' '));
        lines.map(str::to_owned).collect()
    }

    fn core(count: i64) -> CpuAndMemory {
        CpuAndMemory {
            cpu_milli: count * 1000,
            memory_bytes: count << 30,
        }
    }

    #[test]
    fn clusters_are_counted_by_namespace() {
        let (metrics, now) = new(0);
        for (name, demand) in [("a/one", 2), ("b/one", 4), ("a/two", 3)] {
            let figures = ClusterFigures {
                workers: [("cpu".to_owned(), [demand, 1])].into(),
                sizes: GroupSizes {
                    has: core(2),
                    ..GroupSizes::default()
                },
                ..wants(demand)
            };
            decide(&metrics, name, figures, now);
        }
        let namespaces = [r#"{namespace="a"} 5.0"#, r#"{namespace="b"} 4.0"#];
        assert_eq!(series(&metrics, "pending_demand"), namespaces);
        let workers = [
            r#"{namespace="a",state="running"} 5.0"#,
            r#"{namespace="a",state="pending"} 2.0"#,
            r#"{namespace="b",state="running"} 4.0"#,
            r#"{namespace="b",state="pending"} 1.0"#,
        ];
        assert_eq!(series(&metrics, "workers"), workers);
        let sizes = [
            r#"{namespace="a",resource="cpu"} 4.0"#,
            r#"{namespace="a",resource="memory"} 4294967296.0"#,
            r#"{namespace="b",resource="cpu"} 2.0"#,
            r#"{namespace="b",resource="memory"} 2147483648.0"#,
        ];
        assert_eq!(series(&metrics, "worker_size"), sizes);
        metrics.forget("b/one");
        assert_eq!(series(&metrics, "pending_demand"), namespaces[..1]);
    }

    #[test]
    fn a_cluster_beyond_the_bound_is_counted_in_its_namespace() {
        let (metrics, now) = new(2);
        for name in ["a/one", "a/two", "a/three", "b/four"] {
            decide(&metrics, name, wants(1), now);
        }
        let all = [
            r#"{namespace="a"} 1.0"#,
            r#"{namespace="a",ray_io_cluster="one"} 1.0"#,
            r#"{namespace="a",ray_io_cluster="two"} 1.0"#,
            r#"{namespace="b"} 1.0"#,
        ];
        assert_eq!(series(&metrics, "pending_demand"), all);
        assert_eq!(series(&metrics, "scaled_clusters"), all);
        metrics.forget("a/one");
        decide(&metrics, "c/five", wants(1), now);
        let five = r#"{namespace="c",ray_io_cluster="five"} 1.0"#;
        let left = [all[0], all[2], all[3], five];
        assert_eq!(series(&metrics, "pending_demand"), left);
    }

    #[test]
    fn namespaces_and_groups_beyond_their_bounds_share_a_series() {
        let (metrics, now) = new(1);
        let workers = (0..30)
            .map(|at| (format!("group-{at:02}"), [1, 0]))
            .collect();
        let figures = ClusterFigures {
            workers,
            ..wants(1)
        };
        decide(&metrics, "a/one", figures, now);
        let groups = series(&metrics, "workers");
        assert_eq!(groups.len(), 2 * 21, "{groups:?}");
        let rest = r#"{namespace="a",ray_io_cluster="one",state="running"} 10.0"#;
        assert!(groups.iter().any(|line| line == rest), "{groups:?}");
        for at in 0..1003 {
            decide(&metrics, &format!("team-{at}/ray"), wants(2), now);
        }
        let all = series(&metrics, "pending_demand");
        assert_eq!(all.len(), 1 + 1000 + 1);
        assert_eq!(all[0], "{} 6.0", "of three namespaces");
    }

    #[test]
    fn the_name_of_a_group_breaks_no_line_of_the_page() {
        let (metrics, now) = new(1);
        let name = "a\"} 1\nleader 7\r\u{202e}\\".to_owned() + &"x".repeat(100_000);
        let figures = ClusterFigures {
            workers: [(name, [3, 0])].into(),
            ..ClusterFigures::default()
        };
        decide(&metrics, "a/one", figures, now);
        let escaped = r#"a\"} 1\\nleader 7\\r\\u{202e}\\"#.to_owned() + &"x".repeat(46);
        let labels = r#"namespace="a",ray_io_cluster="one""#;
        let running = format!("{{{labels},group=\"{escaped}\",state=\"running\"}} 3.0");
        assert_eq!(series(&metrics, "workers")[0], running);
        assert!(series(&metrics, "leader").is_empty());
    }

    #[test]
    fn what_pods_are_below_their_limits_counts_for_as_long_as_it_is_so() {
        let (metrics, begin) = new(1);
        let note = |name: &str, cores: i64, seconds| {
            let figures = ClusterFigures {
                below_limits: core(cores),
                ..ClusterFigures::default()
            };
            decide(
                &metrics,
                name,
                figures,
                begin + Duration::from_secs(seconds),
            );
        };
        let cpu_seconds = || series(&metrics, "saved_in_place_cpu_seconds_total");
        let own = |amount: &str| format!("{{namespace=\"a\",ray_io_cluster=\"one\"}} {amount}");
        let shared = |amount: &str| format!("{{namespace=\"a\"}} {amount}");
        note("a/one", 6, 0);
        note("a/two", 1, 0);
        note("a/three", 2, 5);
        assert_eq!(cpu_seconds(), [shared("0.0"), own("0.0")], "not yet");
        note("a/one", 2, 10);
        note("a/one", 0, 20);
        note("a/one", 0, 90);
        assert_eq!(cpu_seconds()[1], own("80.0"), "it has grown");
        note("a/three", 0, 15);
        metrics.forget("a/three");
        note("a/two", 0, 20);
        assert_eq!(
            cpu_seconds()[0],
            shared("40.0"),
            "the one that is gone counts"
        );
        let bytes = series(&metrics, "saved_in_place_memory_byte_seconds_total");
        assert_eq!(
            bytes[0],
            shared(&format!("{:?}", 40.0 * f64::from(1 << 30)))
        );
        metrics.forget("a/one");
        assert_eq!(cpu_seconds(), [shared("40.0")]);
    }

    #[test]
    fn resizes_are_counted_by_outcome() {
        let (metrics, now) = new(0);
        decide(&metrics, "a/one", wants(0), now);
        let key = Key::new("a", "one").unwrap();
        for outcome in ["done", "refused", "done", "too-large"] {
            metrics.resized(&key, "a/one", outcome);
        }
        let counts = ["done", "failed", "forbidden", "refused", "too-large"].into_iter();
        let counts = counts.zip(["2.0", "0.0", "0.0", "1.0", "1.0"]);
        let lines = counts
            .map(|(outcome, count)| format!("{{namespace=\"a\",outcome=\"{outcome}\"}} {count}"));
        assert_eq!(series(&metrics, "resizes_total"), lines.collect::<Vec<_>>());
    }

    #[test]
    fn the_end_of_a_cluster_takes_nothing_from_the_next_one_of_its_name() {
        let (metrics, now) = new(1);
        let key = Key::new("a", "one").unwrap();
        for (uid, demand) in [("first", 5), ("next", 3)] {
            metrics.decided(&key, uid, wants(demand), now);
            metrics.resized(&key, uid, "done");
        }
        metrics.forget("first");
        let one = |value| {
            [format!(
                "{{namespace=\"a\",ray_io_cluster=\"one\"}} {value}"
            )]
        };
        assert_eq!(series(&metrics, "pending_demand"), one("3.0"));
        metrics.forget("next");
        assert!(series(&metrics, "resizes_total").is_empty());
    }

    #[test]
    fn what_one_cluster_is_said_to_want_ends_no_sum_over_all() {
        let (metrics, now) = new(0);
        for (name, demand) in [("a/liar", u64::MAX), ("a/neighbour", 3)] {
            decide(&metrics, name, wants(demand), now);
        }
        let sums = metrics.sums(now);
        assert!(sums.values().all(|sums| sums.figures.demand == u64::MAX));
        metrics.forget("a/liar");
        assert_eq!(
            series(&metrics, "pending_demand"),
            [r#"{namespace="a"} 3.0"#]
        );
    }

    #[test]
    fn the_time_from_demand_to_capacity_ends_when_none_is_left_that_can_be_met() {
        let (metrics, begin) = new(0);
        for (demand, seconds) in [(2, 0), (3, 4), (0, 7), (0, 9)] {
            let now = begin + Duration::from_secs(seconds);
            decide(&metrics, "a/one", wants(demand), now);
        }
        assert_eq!(series(&metrics, "demand_to_capacity_seconds_sum"), [" 7.0"]);
        assert_eq!(series(&metrics, "demand_to_capacity_seconds_count"), [" 1"]);
    }

    #[test]
    fn a_gcs_is_unreachable_once_it_has_long_been_silent() {
        let (metrics, begin) = new(0);
        let after = |seconds: u64| begin + Duration::from_secs(seconds);
        let silent = |name: &str, now| {
            metrics.gcs_is_silent(&Key::new("a", name).unwrap(), name, now);
        };
        let unreachable = |now| -> u64 {
            let sums = metrics.sums(now);
            sums.values().map(|sums| sums.unreachable).sum()
        };
        silent("one", begin);
        silent("two", begin);
        assert_eq!(unreachable(begin), 0, "a head may be restarting");
        metrics.gcs_is_well("two");
        silent("two", after(20));
        silent("one", after(200));
        assert_eq!(
            unreachable(after(300)),
            1,
            "the other one answered meanwhile"
        );
        assert_eq!(unreachable(after(320)), 2);
        metrics.gcs_is_well("one");
        assert_eq!(unreachable(after(320)), 1);
        metrics.forget("two");
        assert_eq!(unreachable(after(320)), 0);
    }
}
