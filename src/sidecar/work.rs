//! Scales the cluster of this head pod while the cluster's mode is sidecar, and waits otherwise.
//!
//! The service account of a head pod may read its RayCluster but not watch it. So the RayCluster is
//! read every few seconds, and whenever its current state is needed; the cluster's pods are watched
//! while it is being scaled.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{Api, Patch, PatchParams};
use prometheus_client::metrics::gauge::Gauge;
use rayfit_core::dns_name::DnsName;
use rayfit_core::ray::reconcile::{ANNOTATION, ReconcileMode};
use rayfit_core::reconcile::ScalerRole;
use rayfit_core::reconcile::effects::failure::Failure;
use rayfit_core::reconcile::ownership::eligibility::SIGN_ANNOTATION;
use rayfit_core::reconcile::ownership::handover::RECORD;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::figures::ClusterGroups;
use super::metrics_port;
use crate::apiserver::{ApiServer, Gate, Informers, Watches};
use crate::controller::act::writer::{MANAGER, Requests, Writer};
use crate::controller::clock::Clock;
use crate::controller::driver_log::DriverLog;
use crate::controller::eligibility::EligibilityCheck;
use crate::controller::events::{About, Announcer};
use crate::controller::head::credentials::Credentials;
use crate::controller::observe::{Key, Observed, WatchScope};
use crate::controller::reconciler::{Reconciler, ReconcilerState};
use crate::controller::stop::asked_to_stop;
use crate::controller::tuning::Tuning;
use crate::controller::worker_pool::reconcile_until_stopped;
use crate::telemetry::metrics::CountedGauge;

/// The interval at which the RayCluster is read: while something goes on in it, and otherwise.
// Five seconds are enough for Ray's autoscaler too.
const READ: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(5));

/// The pause after an error.
const RETRY: Duration = Duration::from_secs(5);

/// The rate of requests to the API server in a second, and the burst.
const RATE: (u32, u32) = (20, 40);

/// The options of the sidecar.
#[derive(Debug, Clone)]
pub struct SidecarOptions {
    /// The RayCluster.
    pub key: Key,
    /// The name of the pod that the sidecar runs in.
    pub head_pod: Option<DnsName>,
    /// The kubeconfig; without it, the API server of the cluster that the pod runs in is used.
    pub kubeconfig: Option<PathBuf>,
    /// Reads a variable of the environment.
    pub variable: fn(&str) -> Option<String>,
    /// The folder of Ray's session.
    pub session: PathBuf,
}

/// Scales the cluster, or waits for its mode to be sidecar, until `stop` is true.
pub async fn work(options: SidecarOptions, mut stop: watch::Receiver<bool>) {
    let sidecar = tokio::select! {
        sidecar = Sidecar::prepare(options) => sidecar,
        () = asked_to_stop(&mut stop) => return,
    };
    // Whoever scales the cluster, its head pod is scraped.
    let metrics = tokio::spawn(metrics_port::serve(
        sidecar.options.variable,
        sidecar.options.head_pod.clone(),
        Api::namespaced(
            sidecar.informers.client.clone(),
            &sidecar.options.key.namespace,
        ),
        sidecar.groups.subscribe(),
    ));
    let mut scaling: Option<ScalingTasks> = None;
    loop {
        let requeue = sidecar.look(&mut scaling).await;
        tokio::select! {
            () = asked_to_stop(&mut stop) => break,
            () = sleep(requeue) => {}
        }
    }
    metrics.abort();
    sidecar.writer.requests.gate.close();
    if let Some(scaling) = scaling {
        scaling.end().await;
    }
}

struct Sidecar {
    options: SidecarOptions,
    groups: watch::Sender<Option<ClusterGroups>>,
    informers: Informers,
    role: ScalerRole,
    writer: Writer,
    clock: Clock,
}

impl Sidecar {
    /// Waits for the API server, and marks the pod as one in which Rayfit runs.
    async fn prepare(options: SidecarOptions) -> Self {
        let mut logged = String::new();
        loop {
            match ready(&options).await {
                Ok((api, head_uid)) => {
                    let client = api.client;
                    let gate = Gate::new(RATE.0, RATE.1, api.patience);
                    let requests = Requests {
                        client: client.clone(),
                        gate,
                    };
                    let writer = Writer::new(requests, options.key.clone(), None);
                    return Self {
                        options,
                        groups: watch::Sender::default(),
                        informers: Informers::new(client, Watches::default()),
                        role: ScalerRole::Sidecar { head_uid },
                        writer,
                        clock: Clock::of_server(api.time),
                    };
                }
                Err(error) => {
                    let text = format!("{error:#}");
                    if logged != text {
                        tracing::warn!(error = text, "not ready to scale, trying again");
                        logged = text;
                    }
                    sleep(RETRY).await;
                }
            }
        }
    }

    /// Reads the RayCluster, and starts or ends the scaling; returns how long to wait until the
    /// next read.
    async fn look(&self, scaling: &mut Option<ScalingTasks>) -> Duration {
        let cluster = match self.writer.get_cluster().await {
            Ok(cluster) => Some(cluster),
            Err(Failure::Api(status)) if status.code == 404 => None,
            Err(failure) => {
                tracing::debug!(?failure, "the RayCluster could not be read");
                return RETRY;
            }
        };
        if let Some(cluster) = &cluster {
            self.groups.send_replace(Some(ClusterGroups::of(cluster)));
        }
        // The sidecar has to scale the cluster, or hand it over.
        let is_wanted = |cluster: &Value| {
            let annotation = |name: &str| cluster["metadata"]["annotations"][name].as_str();
            let ScalerRole::Sidecar { head_uid } = &self.role else {
                return false;
            };
            // The record ends with the role that owns the cluster or is taking it over.
            annotation(ANNOTATION) == Some(ReconcileMode::Sidecar.name())
                || annotation(RECORD).is_some_and(|record| record.ends_with(head_uid.as_str()))
        };
        let cluster = cluster.filter(is_wanted);
        if let Some(ended) = scaling.take_if(|scaling| {
            // One that has ended by a panic is started anew with the others.
            let tasks = [&scaling.task, &scaling.watching, &scaling.waking];
            cluster.is_none() || tasks.iter().any(|task| task.is_finished())
        }) {
            tracing::info!("the cluster is not scaled from here any more");
            ended.end().await;
        }
        let Some(cluster) = cluster else {
            return READ.1;
        };
        let scaling = scaling.get_or_insert_with(|| {
            tracing::info!("the cluster is scaled from here");
            self.begin(&cluster)
        });
        scaling.observed.learn(&cluster);
        // A change of the RayCluster itself is noticed by reading alone: while something goes on, more often.
        match scaling.busy_count.get() {
            0 => READ.1,
            _ => READ.0,
        }
    }

    fn begin(&self, cluster: &Value) -> ScalingTasks {
        let (tell, mut changes) = mpsc::unbounded_channel();
        let observed = Observed::new(tell);
        let (clock, key) = (self.clock.clone(), &self.options.key);
        let busy_count = Gauge::default();
        let reconciler = Reconciler {
            judge: EligibilityCheck {
                role: self.role.clone(),
                image: Arc::default(),
                observed: observed.clone(),
            },
            writer: self.writer.clone(),
            credentials: Credentials::Environment(self.options.variable),
            tuning: Tuning::Written,
            about: About {
                key: key.clone(),
                uid: cluster["metadata"]["uid"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned(),
            },
            // The service account of a head pod may not write Events; drivers print the lines
            // instead.
            announcer: Announcer::default(),
            driver_log: DriverLog::of_session(
                self.options.session.clone(),
                (self.options.head_pod.as_ref()).map_or_else(String::new, ToString::to_string),
                clock.clone(),
            ),
            metrics: Arc::default(),
            clock,
            busy: Some(CountedGauge::of(&busy_count)),
            busy_count: busy_count.clone(),
            state: ReconcilerState::default(),
        };
        let notify = Arc::new(Notify::new());
        let woken = notify.clone();
        let waking = async move {
            while changes.recv().await.is_some() {
                woken.notify_one();
            }
        };
        let (stop, stopped) = watch::channel(false);
        let watching = observed
            .clone()
            .watch(self.informers.clone(), WatchScope::PodsOf(key.clone()));
        ScalingTasks {
            observed,
            busy_count,
            watching: tokio::spawn(watching),
            waking: tokio::spawn(waking),
            task: tokio::spawn(reconcile_until_stopped(reconciler, notify, stopped)),
            stop,
        }
    }
}

/// The tasks that scale the cluster, while its mode says so.
struct ScalingTasks {
    observed: Observed,
    busy_count: Gauge,
    watching: JoinHandle<()>,
    waking: JoinHandle<()>,
    task: JoinHandle<()>,
    stop: watch::Sender<bool>,
}

impl ScalingTasks {
    /// Ends the tasks after the write that is under way.
    async fn end(self) {
        self.stop.send_replace(true);
        let _ = self.task.await;
        self.watching.abort();
        self.waking.abort();
    }
}

/// A client, and the UID of the pod that this process runs in, which is marked as one with Rayfit
/// in it.
async fn ready(options: &SidecarOptions) -> anyhow::Result<(ApiServer, String)> {
    let api = ApiServer::connect(options.kubeconfig.as_deref()).await?;
    let name = options.head_pod.as_ref();
    let name = name
        .ok_or_else(|| anyhow::anyhow!("neither RAY_HEAD_POD_NAME nor HOSTNAME names this pod"))?;
    let pods: Api<Pod> = Api::namespaced(api.client.clone(), &options.key.namespace);
    let pod = pods.get(name).await?;
    let sign = env!("CARGO_PKG_VERSION");
    if pod.annotations().get(SIGN_ANNOTATION).map(String::as_str) != Some(sign) {
        // With another uid the API server refuses the patch, so a new pod of that name is not
        // marked.
        let patch =
            json!({ "metadata": { "uid": pod.uid(), "annotations": { SIGN_ANNOTATION: sign } } });
        let params = PatchParams::apply(MANAGER);
        pods.patch_metadata(name, &params, &Patch::Merge(&patch))
            .await?;
    }
    Ok((api, pod.uid().unwrap_or_default()))
}
