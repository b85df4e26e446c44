//! The worker pool: one light task for each cluster that this replica scales.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::metrics::gauge::Gauge;
use rayfit_core::ray::ReconcileMode;
use rayfit_core::reconcile::ScalerRole;
use rayfit_core::reconcile::look::LookState;
use rayfit_core::reconcile::observed::cadence::TOGETHER_MS;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, interval, sleep_until};

use crate::controller::act::writer::{Requests, Writer};
use crate::controller::clock::Clock;
use crate::controller::driver_log::DriverLog;
use crate::controller::eligibility::EligibilityCheck;
use crate::controller::events::{About, Announcer};
use crate::controller::head::credentials::Credentials;
use crate::controller::lease::Fence;
use crate::controller::observe::Key;
use crate::controller::observe::store::ClusterEntry;
use crate::controller::reconciler::{Reconciler, ReconcilerState};
use crate::controller::stop::asked_to_stop;
use crate::controller::tuning::{Basis, Tuning};
use crate::telemetry::controller::ScalingMetrics;
use crate::telemetry::metrics::CountedGauge;

/// The interval at which clusters are counted.
const COUNT: Duration = Duration::from_secs(10);

/// The interval at which policies are checked for changes.
// Clusters that have been quiet for long would notice a change only at their next look.
const TUNE: Duration = Duration::from_millis(500);

/// The parts that the reconcilers of all clusters share.
#[derive(Clone)]
pub struct WorkerPool {
    /// Judges whether this process may scale a cluster, by the objects as they were last observed.
    pub judge: EligibilityCheck,
    /// Requests to the API server.
    pub requests: Requests,
    /// The time until which this replica leads, and may write.
    pub fence: Fence,
    /// The credentials for GCSs.
    pub credentials: Credentials,
    /// The source of the clusters' settings.
    pub tuning: Tuning,
    /// Publishes Events.
    pub announcer: Announcer,
    /// The clock.
    pub clock: Clock,
    /// The metrics.
    pub metrics: Arc<ScalingMetrics>,
    /// The number of clusters that are busy.
    pub busy_count: Gauge,
}

/// The task of one cluster, and the means to wake and stop it.
struct Worker {
    uid: Arc<str>,
    changed: Arc<Notify>,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
    /// The task is to stop. It is kept until it has, so that no other one writes about the
    /// cluster meanwhile.
    is_stopping: bool,
}

impl WorkerPool {
    /// Scales clusters until `stop` is true; then lets the writes that are under way end.
    pub async fn run(self, mut changes: UnboundedReceiver<Key>, mut stop: watch::Receiver<bool>) {
        let mut leads = self.fence.leads();
        let mut workers: HashMap<Key, Worker> = HashMap::new();
        let (mut count, mut tune) = (interval(COUNT), interval(TUNE));
        let mut basis = Basis::default();
        loop {
            tokio::select! {
                _ = count.tick() => {
                    // The RayClusters by mode, for the metrics.
                    let mut counts = ReconcileMode::ALL.map(|mode| (mode, 0_i64));
                    for entry in self.judge.observed.read().clusters.values() {
                        let mut counts = counts.iter_mut();
                        if let Some((_, count)) = counts.find(|(mode, _)| *mode == entry.mode) {
                            *count += 1;
                        }
                    }
                    for (mode, count) in counts {
                        let clusters = &self.metrics.clusters;
                        let gauge = clusters.get_or_create(&[("mode", mode.name())]);
                        gauge.set(count);
                    }
                    self.revive(&mut workers);
                }
                _ = tune.tick() => if self.tuning.has_changed(&mut basis) {
                    for worker in workers.values() {
                        worker.changed.notify_one();
                    }
                },
                () = asked_to_stop(&mut stop) => break,
                key = changes.recv() => match key {
                    Some(key) => self.consider(&mut workers, &key),
                    None => break,
                },
                _ = leads.changed() => {
                    // Clusters that are gone may still have workers.
                    let mut keys: BTreeSet<Key> = workers.keys().cloned().collect();
                    keys.extend(self.judge.observed.read().clusters.keys().cloned());
                    for key in &keys {
                        self.consider(&mut workers, key);
                    }
                }
            }
        }
        for worker in workers.values() {
            worker.stop.send_replace(true);
        }
        // Requests that wait at the gate have not begun, and are turned away.
        self.requests.gate.close();
        for (_, worker) in workers {
            let _ = worker.task.await;
        }
    }

    /// Starts a cluster's task again if it ended by a panic, which cost its cluster one round.
    fn revive(&self, workers: &mut HashMap<Key, Worker>) {
        workers.retain(|_, worker| !(worker.is_stopping && worker.task.is_finished()));
        let ended = workers
            .iter()
            .filter(|(_, worker)| !worker.is_stopping && worker.task.is_finished());
        let ended: Vec<Key> = ended.map(|(key, _)| key.clone()).collect();
        for key in ended {
            tracing::error!(cluster = %key, "looking after the cluster failed; it is begun again");
            self.consider(workers, &key);
        }
    }

    /// Starts, wakes or stops the task of a cluster.
    fn consider(&self, workers: &mut HashMap<Key, Worker>, key: &Key) {
        let entry = self.judge.observed.read().clusters.get(key).cloned();
        let candidate =
            entry.filter(|entry| is_cared_for(entry, &self.judge.role) && self.fence.is_leader());
        let is_at_work = |worker: &&Worker| !worker.is_stopping && !worker.task.is_finished();
        let running = workers.get(key).filter(is_at_work);
        match (candidate, running) {
            (Some(entry), Some(worker)) if worker.uid == entry.uid => worker.changed.notify_one(),
            (Some(entry), _) => {
                self.end(workers, key);
                let predecessor = workers.remove(key).filter(|one| one.uid == entry.uid);
                let worker =
                    self.start(key, &entry, predecessor.map(|predecessor| predecessor.task));
                workers.insert(key.clone(), worker);
            }
            (None, _) => self.end(workers, key),
        }
    }

    /// Tells the task of a cluster to stop; it ends by itself after the write that is under way.
    fn end(&self, workers: &mut HashMap<Key, Worker>, key: &Key) {
        if let Some(worker) = workers.get_mut(key).filter(|worker| !worker.is_stopping) {
            worker.is_stopping = true;
            worker.stop.send_replace(true);
            self.metrics.by_cluster.forget(&worker.uid);
        }
    }

    /// Starts the task of a cluster, which begins once the one `before` has ended.
    fn start(
        &self,
        key: &Key,
        entry: &ClusterEntry,
        predecessor: Option<JoinHandle<()>>,
    ) -> Worker {
        let about = About {
            key: key.clone(),
            uid: entry.uid.to_string(),
        };
        let reconciler = Reconciler {
            judge: self.judge.clone(),
            writer: Writer::new(self.requests.clone(), key.clone(), Some(self.fence.clone())),
            credentials: self.credentials.clone(),
            tuning: self.tuning.clone(),
            about,
            announcer: self.announcer.clone(),
            driver_log: DriverLog::of_gcs(self.clock.clone()),
            metrics: self.metrics.clone(),
            clock: self.clock.clone(),
            busy: Some(CountedGauge::of(&self.busy_count)),
            busy_count: self.busy_count.clone(),
            state: ReconcilerState::default(),
        };
        let changed = Arc::new(Notify::new());
        let (stop, stopped) = watch::channel(false);
        let wakes = changed.clone();
        let task = tokio::spawn(async move {
            // A look of the former task may still have writes under way if the Lease is lost and
            // won again at once.
            if let Some(predecessor) = predecessor {
                let _ = predecessor.await;
            }
            reconcile_until_stopped(reconciler, wakes, stopped).await;
        });
        Worker {
            uid: entry.uid.clone(),
            changed,
            stop,
            task,
            is_stopping: false,
        }
    }
}

/// Looks at a cluster again and again until told to stop.
pub async fn reconcile_until_stopped(
    mut reconciler: Reconciler,
    changed: Arc<Notify>,
    mut stop: watch::Receiver<bool>,
) {
    let mut state = LookState::default();
    while !*stop.borrow() {
        let began = Instant::now();
        // The look's future is on the heap only while it runs, so that a thousand waiting tasks
        // stay small.
        let (requeue, worked) = Box::pin(reconciler.look(&mut state)).await;
        let due = requeue.and_then(|time| Instant::now().checked_add(time));
        // After a change, at least half of the time is left to other clusters. Time in which a look waited for
        // others, such as at the gate, was theirs already.
        let earliest = began + Duration::from_millis(TOGETHER_MS).max(worked * 2);
        let soon = due.map_or(earliest, |due| due.min(earliest));
        let rest = async {
            let until_due = async {
                match due {
                    Some(due) => sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = until_due => {}
                () = changed.notified() => sleep_until(soon).await,
                () = reconciler.state.memory_watch.nearly_full() => sleep_until(soon).await,
            }
        };
        // However long the wait is, a stop ends it at once.
        tokio::select! {
            () = asked_to_stop(&mut stop) => break,
            () = rest => {}
        }
    }
    // Also forgets the metrics of the last look, which may have come after the worker pool forgot
    // them.
    reconciler.metrics.by_cluster.forget(&reconciler.about.uid);
}

/// Returns whether the central controller has to scale this cluster, hand it over, or tell its sidecar by which
/// settings to scale it.
fn is_cared_for(entry: &ClusterEntry, central: &ScalerRole) -> bool {
    let central = central.recorded();
    // The record ends with the role that owns the cluster or is taking it over.
    entry.mode.is_ours()
        || entry
            .scaled_by
            .as_deref()
            .is_some_and(|record| record.ends_with(&central))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::pending;
    use std::sync::{Mutex, MutexGuard};

    use hyper::{Request, Response};
    use kube::Client;
    use kube::client::Body;
    use serde_json::json;
    use tokio::sync::mpsc;
    use tokio::task::yield_now;

    use tokio::time::sleep;

    use super::*;
    use crate::apiserver::{Gate, Patience};
    use crate::controller::observe::Observed;
    use crate::controller::observe::kept::StoredKind;

    /// As if all pods had been listed.
    fn has_listed_pods(observed: &Observed) {
        observed.change(|store| {
            store.listed(StoredKind::Pods, None);
            BTreeSet::new()
        });
    }

    /// The requests that an API server has got, those that it has not answered, and the most of these.
    #[derive(Clone, Default)]
    struct Unanswered(Arc<Mutex<(usize, usize, usize)>>);

    struct UnderWay(Unanswered);

    impl Unanswered {
        fn counts(&self) -> MutexGuard<'_, (usize, usize, usize)> {
            self.0.lock().unwrap()
        }

        fn begin(&self) -> UnderWay {
            let mut counts = self.counts();
            *counts = (counts.0 + 1, counts.1 + 1, counts.2.max(counts.1 + 1));
            UnderWay(self.clone())
        }
    }

    impl Drop for UnderWay {
        fn drop(&mut self) {
            self.0.counts().1 -= 1;
        }
    }

    fn pool(requests: Requests, observed: &Observed, fence: &Fence) -> WorkerPool {
        let metrics = Arc::default();
        WorkerPool {
            judge: EligibilityCheck {
                role: ScalerRole::central("rayfit-system"),
                image: "rayfit".into(),
                observed: observed.clone(),
            },
            requests,
            fence: fence.clone(),
            credentials: Credentials::Environment(|_| None),
            tuning: Tuning::Written,
            announcer: Announcer::default(),
            clock: Clock::default(),
            metrics,
            busy_count: Gauge::default(),
        }
    }

    /// The API server answers nothing, and the shard is lost and won again while the first write is under
    /// way.
    #[tokio::test(start_paused = true)]
    async fn a_cluster_that_comes_back_has_no_second_writer() {
        let seen = Unanswered::default();
        let server = seen.clone();
        let mute = tower::service_fn(move |_: Request<Body>| {
            let server = server.clone();
            async move {
                let _under_way = server.begin();
                pending::<()>().await;
                Ok::<_, Infallible>(Response::new(Body::from(Vec::new())))
            }
        });
        let gate = Gate::new(1000, 1000, Patience::default());
        let (tell, changes) = mpsc::unbounded_channel();
        let (observed, fence) = (Observed::new(tell), Fence::default());
        observed.learn(&json!({
            "metadata": { "namespace": "ray", "name": "demo", "uid": "u", "resourceVersion": "1",
                "annotations": { "rayfit.dev/reconcile": "central", "rayfit.dev/scaled-by": "nobody" } },
            "spec": { "enableInTreeAutoscaling": true }
        }));
        has_listed_pods(&observed);
        let client = Client::new(mute, "ray");
        let requests = Requests { client, gate };
        let (_stop, stopped) = watch::channel(false);
        let running = tokio::spawn(pool(requests, &observed, &fence).run(changes, stopped));
        let later = std::time::Instant::now() + Duration::from_hours(1);
        fence.set(Some(later));
        while seen.counts().0 == 0 {
            yield_now().await;
        }
        fence.set(None);
        for _ in 0..100 {
            yield_now().await;
        }
        fence.set(Some(later));
        while seen.counts().0 < 2 {
            sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(seen.counts().2, 1, "at the same time");
        running.abort();
    }

    #[test]
    fn what_this_installation_has_is_cared_for_until_it_is_handed_over() {
        let cares = |mode: &str, record: &str| {
            let (tell, _changes) = mpsc::unbounded_channel();
            let observed = Observed::new(tell);
            observed.learn(&json!({ "metadata": { "namespace": "ray", "name": "demo", "uid": "u",
                "annotations": { "rayfit.dev/reconcile": mode, "rayfit.dev/scaled-by": record } } }));
            let entry = observed
                .read()
                .clusters
                .get(&Key::new("ray", "demo").unwrap())
                .cloned();
            is_cared_for(&entry.unwrap(), &ScalerRole::central("rayfit-system"))
        };
        assert!(cares("central", "nobody") && cares("sidecar", "nobody"));
        assert!(cares("ray", "central/rayfit-system"));
        assert!(cares("ray", "taking/7/central/rayfit-system"));
        for record in ["nobody", "central/another", "sidecar/u"] {
            assert!(!cares("ray", record), "{record}");
        }
    }

    /// After a wait at the gate, the next look follows as if there had been none: that time was others', and clusters
    /// that rest for it leave the gate idle.
    #[tokio::test(start_paused = true)]
    async fn a_cluster_does_not_rest_for_having_waited_at_the_gate() {
        const WAIT: Duration = Duration::from_secs(8);
        let stored = Arc::new(Mutex::new(json!({
            "metadata": { "namespace": "ray", "name": "demo", "uid": "u", "resourceVersion": "1", "generation": 1,
                "annotations": { "rayfit.dev/reconcile": "central", "rayfit.dev/scaled-by": "nobody" } },
            "spec": { "enableInTreeAutoscaling": true }
        })));
        let server = stored.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move {
                let body = request.into_body().collect_bytes().await.unwrap();
                let mut object = server.lock().unwrap();
                if let Ok(patch) = serde_json::from_slice::<json_patch::Patch>(&body) {
                    json_patch::patch(&mut object, &patch).unwrap();
                    let version = object["metadata"]["resourceVersion"].as_str().unwrap();
                    let next = version.parse::<u64>().unwrap() + 1;
                    object["metadata"]["resourceVersion"] = json!(next.to_string());
                }
                Ok::<_, Infallible>(Response::new(Body::from(object.to_string().into_bytes())))
            }
        });
        let gate = Gate::new(1000, 1000, Patience::default());
        gate.patience.ask(Some(&"ray/demo".into()), Some(WAIT));
        let (tell, changes) = mpsc::unbounded_channel();
        let (observed, fence) = (Observed::new(tell), Fence::default());
        observed.learn(&stored.lock().unwrap());
        has_listed_pods(&observed);
        let client = Client::new(service, "ray");
        let requests = Requests { client, gate };
        let (_stop, stopped) = watch::channel(false);
        let running = tokio::spawn(pool(requests, &observed, &fence).run(changes, stopped));
        let began = Instant::now();
        fence.set(Some(std::time::Instant::now() + Duration::from_hours(1)));
        let record =
            || stored.lock().unwrap()["metadata"]["annotations"]["rayfit.dev/scaled-by"].clone();
        let is_ours = || {
            record()
                .as_str()
                .is_some_and(|record| record.starts_with("central"))
        };
        while !is_ours() && began.elapsed() < WAIT * 10 {
            sleep(Duration::from_millis(10)).await;
        }
        let took = began.elapsed();
        assert!(took >= WAIT, "the first write waited: {took:?}");
        assert!(
            took < WAIT + Duration::from_secs(3),
            "{took:?}, and {}",
            record()
        );
        running.abort();
    }
}
