//! Hearing of the memory that is really in use in the pods of a cluster.
//!
//! Only nodes are asked about that have work and whose pods could grow. A task of its own waits for
//! their reports, so that no look waits for any. What it costs is bounded: by the nodes that all
//! clusters together hear of, by the size of an answer, and by the pause between two. A GCS that does
//! not answer, or answers nonsense, is asked ever more rarely; nothing else in its cluster changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::metrics::gauge::Gauge;
use rayfit_core::reconcile::observed::memory_report::KnownMemory;
use rayfit_core::seconds::Retry;
use rayfit_core::snapshot::NodeId;
use rayfit_core::snapshot::gcs::{ClusterResourceState, NodeState, NodeStatus};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::controller::clock::Clock;
use crate::gcs::{CallError, Client, MemoryReport, Subscription};
use crate::telemetry::metrics::CountedGauge;

/// The most nodes of a cluster that are heard of at a time.
const OF_A_CLUSTER: usize = 128;

/// The most nodes that a process hears of at a time, as long as each cluster has one.
// A report is thirty kilobytes and comes every five seconds.
const OF_A_PROCESS: usize = 2_000;

/// Seconds after which it is the turn of other nodes, if there are too many.
// A pod that has been heard of once is known for half a minute.
const TURN_S: f64 = 20.0;

/// The time for which idle nodes are still heard of, in milliseconds.
// Their pods may shrink.
const IDLE_MS: i64 = 60_000;

/// The longest wait for a report.
// Agents report every five seconds; where none does, the GCS may have been restarted, and is told anew which reports
// are wanted.
const SILENCE: Duration = Duration::from_secs(20);

/// The longest wait of somebody who looks only once for reports, which come every five seconds.
const ONCE: Duration = Duration::from_secs(6);

/// The pause after each answer.
const BETWEEN: Duration = Duration::from_millis(250);

/// The pauses after failed calls.
const RETRY: Retry = Retry {
    first_s: 2.0,
    longest_s: 300.0,
};

/// The number of clusters of this process that hear of memory now.
static HEARING: LazyLock<Gauge> = LazyLock::new(Gauge::default);

/// The known memory in use in a cluster. Nothing is heard any more once it is dropped.
#[derive(Debug, Default)]
pub struct MemoryWatch {
    heard: Arc<Heard>,
    task: Option<Hearing>,
}

#[derive(Debug, Default)]
struct Heard {
    reports: Mutex<BTreeMap<NodeId, KnownMemory>>,
    nearly_full: Notify,
}

/// The task, which ends when this is dropped.
#[derive(Debug)]
struct Hearing {
    selection: watch::Sender<BTreeSet<NodeId>>,
    _task: JoinSet<()>,
    _counted: CountedGauge,
}

impl MemoryWatch {
    /// Adds what is known to the state of a cluster, and subscribes to reports of the nodes that
    /// may grow: those of `groups`.
    pub fn fill(
        &mut self,
        client: &Client,
        groups: &BTreeSet<String>,
        state: &mut ClusterResourceState,
        clock: &Clock,
    ) {
        let all = active_nodes(groups, &state.node_states);
        if all.is_empty() {
            self.task = None;
            return;
        }
        let task = self.task.get_or_insert_with(|| {
            let (selection, receiver) = watch::channel(BTreeSet::new());
            let mut task = JoinSet::new();
            task.spawn(hear(
                client.clone(),
                receiver,
                Arc::clone(&self.heard),
                clock.clone(),
            ));
            Hearing {
                selection,
                _task: task,
                _counted: CountedGauge::of(&HEARING),
            }
        });
        let hearing = usize::try_from(HEARING.get()).unwrap_or(0);
        let share = OF_A_PROCESS / hearing.max(1);
        let now = turn(&all, share.clamp(1, OF_A_CLUSTER), clock.wall());
        // Every look comes here; only a change of the nodes is to make the task subscribe anew.
        task.selection.send_if_modified(|previous| {
            let is_new = *previous != now;
            *previous = now;
            is_new
        });
        self.heard
            .reports
            .lock()
            .retain(|node, _| all.contains(node));
        self.heard.fill(state);
    }

    /// Waits until a node is nearly full, as far as Ray's own count goes.
    pub async fn nearly_full(&self) {
        self.heard.nearly_full.notified().await;
    }
}

/// Adds to the state of a cluster how much memory is in use, for somebody who looks only once:
/// waits until each node has reported, at the most for a little longer than that takes.
pub async fn fill_once(
    client: &Client,
    groups: &BTreeSet<String>,
    state: &mut ClusterResourceState,
    clock: &Clock,
) {
    let all = active_nodes(groups, &state.node_states);
    let nodes = turn(&all, OF_A_CLUSTER, clock.wall());
    if nodes.is_empty() {
        return;
    }
    let heard = Heard::default();
    let mut subscription = Subscription::new(|| fastrand::u8(..));
    let reported = async {
        client.subscribe(&mut subscription, &nodes).await?;
        while heard.reports.lock().len() < nodes.len() {
            let Some(reports) = client.reports(&mut subscription, ONCE).await? else {
                break;
            };
            heard.take(&reports, &nodes, clock.wall());
        }
        Ok::<(), CallError>(())
    };
    // The memory of a node that has not reported by then is not known.
    let _ = timeout(ONCE, reported).await;
    // The GCS would otherwise gather reports for this subscription for five minutes more.
    let _ = client.subscribe(&mut subscription, &BTreeSet::new()).await;
    heard.fill(state);
}

/// The nodes of such groups that have work, or had it a moment ago.
fn active_nodes(groups: &BTreeSet<String>, nodes: &[NodeState]) -> BTreeSet<NodeId> {
    let has_work = |node: &&NodeState| match node.status {
        NodeStatus::Running => true,
        NodeStatus::Idle => node.idle_duration_ms < IDLE_MS,
        NodeStatus::Unspecified | NodeStatus::Dead | NodeStatus::Draining => false,
    };
    let nodes = nodes.iter().filter(has_work);
    let nodes = nodes.filter(|node| groups.contains(&node.ray_node_type_name));
    nodes.filter_map(|node| node.node_id.parse().ok()).collect()
}

/// The nodes whose turn it is, where not all can be heard of at a time.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "seconds since 1970"
)]
fn turn(all: &BTreeSet<NodeId>, most: usize, now: f64) -> BTreeSet<NodeId> {
    if all.len() <= most {
        return all.clone();
    }
    let turns = (now / TURN_S) as usize;
    let first = turns.wrapping_mul(most).checked_rem(all.len()).unwrap_or(0);
    let nodes = all.iter().cycle().skip(first);
    nodes.take(most).copied().collect()
}

/// Hears of the wanted nodes for as long as they are wanted.
async fn hear(
    client: Client,
    mut selection: watch::Receiver<BTreeSet<NodeId>>,
    heard: Arc<Heard>,
    clock: Clock,
) {
    let mut silences = 0_u32;
    loop {
        let mut has_heard = false;
        // Returns when nothing was heard for long.
        let subscribed = async {
            let mut subscription = Subscription::new(|| fastrand::u8(..));
            loop {
                let nodes = selection.borrow_and_update().clone();
                client.subscribe(&mut subscription, &nodes).await?;
                let reports = tokio::select! {
                    reports = client.reports(&mut subscription, SILENCE) => reports?,
                    _ = selection.changed() => continue,
                };
                // The GCS may have forgotten the subscription.
                let Some(reports) = reports else {
                    return Ok::<(), CallError>(());
                };
                has_heard |= !reports.is_empty();
                heard.take(&reports, &nodes, clock.wall());
                sleep(BETWEEN).await;
            }
        };
        let ended = subscribed.await;
        silences = if has_heard {
            1
        } else {
            silences.saturating_add(1)
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "not told how much memory is in use");
        }
        sleep(RETRY.wait(silences, 1.0)).await;
    }
}

impl Heard {
    /// Adds what is known to the state of a cluster.
    fn fill(&self, state: &mut ClusterResourceState) {
        let latest = self.reports.lock();
        for node in &mut state.node_states {
            let id: Option<NodeId> = node.node_id.parse().ok();
            node.memory_in_use = id.and_then(|id| Some(latest.get(&id)?.in_use));
        }
    }

    /// Keeps the reports about the nodes that were asked about.
    fn take(&self, reports: &[MemoryReport], nodes: &BTreeSet<NodeId>, now: f64) {
        let mut latest = self.reports.lock();
        for report in reports.iter().filter(|report| nodes.contains(&report.node)) {
            let previous = latest.get(&report.node);
            let heard = KnownMemory::of(report.used, report.at, previous, now);
            if heard.is_worth_a_look(report.total) {
                self.nearly_full.notify_one();
            }
            latest.insert(report.node, heard);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u8) -> NodeId {
        NodeId::from([number; 28])
    }

    fn node(number: u8, group: &str, status: NodeStatus, idle_duration_ms: i64) -> NodeState {
        NodeState {
            node_id: id(number).to_string(),
            ray_node_type_name: group.to_owned(),
            status,
            idle_duration_ms,
            ..NodeState::default()
        }
    }

    fn report(number: u8, used: i64, at: f64) -> MemoryReport {
        MemoryReport {
            node: id(number),
            used,
            total: 1000,
            at,
        }
    }

    #[test]
    fn only_nodes_with_work_that_may_grow_are_asked_about() {
        let nodes = [
            node(1, "cpu", NodeStatus::Running, 0),
            node(2, "other", NodeStatus::Running, 0),
            node(3, "cpu", NodeStatus::Idle, 5_000),
            node(4, "cpu", NodeStatus::Idle, 90_000),
            node(5, "cpu", NodeStatus::Dead, 0),
            node(6, "cpu", NodeStatus::Draining, 0),
        ];
        let groups = ["cpu".to_owned()].into();
        assert_eq!(active_nodes(&groups, &nodes), [id(1), id(3)].into());
        assert_eq!(active_nodes(&BTreeSet::new(), &nodes), BTreeSet::new());
    }

    #[test]
    fn where_there_are_too_many_each_has_its_turn() {
        let all: BTreeSet<NodeId> = (0..10).map(id).collect();
        assert_eq!(turn(&all, 10, 0.0), all);
        let mut seen = BTreeSet::new();
        for second in [0.0, TURN_S, 2.0 * TURN_S, 3.0 * TURN_S] {
            let now = turn(&all, 3, second);
            assert_eq!(now.len(), 3);
            seen.extend(now);
        }
        assert_eq!(seen, all);
    }

    #[tokio::test]
    async fn a_look_is_asked_for_when_a_node_is_nearly_full_or_soon_will_be() {
        let heard = Heard::default();
        let nodes = [id(1)].into();
        let is_asked = || {
            let asked = heard.nearly_full.notified();
            tokio::time::timeout(Duration::ZERO, asked)
        };
        heard.take(&[report(1, 500, 10.0), report(2, 999, 10.0)], &nodes, 100.0);
        assert!(
            is_asked().await.is_err(),
            "nobody asked about the other one"
        );
        assert_eq!(heard.reports.lock().len(), 1);
        heard.take(&[report(1, 600, 15.0)], &nodes, 105.0);
        assert!(is_asked().await.is_ok(), "800 in ten seconds");
        let in_use = heard.reports.lock()[&id(1)].in_use;
        assert_eq!((in_use.bytes, in_use.rise_per_s), (600, 20));
        for (number, node_time) in [(550, 20.0), (5_000, 20.0), (9_000, 9e9), (1, f64::MIN)] {
            heard.take(&[report(1, number, node_time)], &nodes, 110.0);
            let in_use = heard.reports.lock()[&id(1)].in_use;
            assert_eq!(
                (in_use.bytes, in_use.rise_per_s),
                (number, 0),
                "no pace to believe"
            );
        }
    }
}
