//! The controller as a part of a process, from its options to its end.

use std::sync::Arc;

use prometheus_client::metrics::gauge::Gauge;
use rayfit_core::reconcile::ScalerRole;
use tokio::sync::{mpsc, watch};

use super::lease::{Fence, LeaseOptions, keeper};
use super::observe::{Observed, WatchScope, pod_events};
use super::tuning::{InForce, Tuning};
use crate::apiserver::{ApiServer, Gate, Informers};
use crate::controller::act::writer::Requests;
use crate::controller::clock::Clock;
use crate::controller::eligibility::EligibilityCheck;
use crate::controller::events::Announcer;
use crate::controller::head::credentials::Credentials;
use crate::controller::worker_pool::WorkerPool;
use crate::supervisor::Supervisor;
use crate::telemetry::controller::ScalingMetrics;

/// Events may use at most one part in this many of the request rate.
const EVENTS_SHARE: u32 = 10;

/// The options of the controller.
#[derive(Debug, Clone)]
pub struct ControllerOptions {
    /// The scope of the watches.
    pub reach: WatchScope,
    /// The options of the Lease, whose holder scales.
    pub lease: LeaseOptions,
    /// The most requests to the API server in a second.
    pub rate: u32,
    /// The most requests at once after a quiet time.
    pub burst: u32,
    /// Rayfit's image.
    pub image: String,
    /// The most clusters that have series of their own among the metrics.
    pub cluster_metrics: u32,
}

/// Scales clusters as the policies in force say until `stop` is true; then lets the writes that are
/// under way end, and gives the Lease back.
pub async fn run(
    options: ControllerOptions,
    api: ApiServer,
    in_force: InForce,
    metrics: Arc<ScalingMetrics>,
    informers: Informers,
    supervisor: Supervisor,
    stop: watch::Receiver<bool>,
) {
    metrics
        .by_cluster
        .show_each(options.cluster_metrics as usize);
    let client = api.client;
    let (tell, changes) = mpsc::unbounded_channel();
    let observed = Observed::new(tell);
    let fence = Fence::default();
    let gate = Gate::new(options.rate, options.burst, api.patience);
    let requests = Requests {
        client: client.clone(),
        gate: gate.clone(),
    };
    let (announcer, publishing) = Announcer::publishing(
        requests.clone(),
        options.rate / EVENTS_SHARE,
        options.lease.replica.clone(),
        metrics.clone(),
    );
    let tuning = Tuning::Policies(in_force);
    let pool = WorkerPool {
        judge: EligibilityCheck {
            // Hand-over records name the installation by this namespace.
            role: ScalerRole::central(&options.lease.namespace),
            image: options.image.as_str().into(),
            observed: observed.clone(),
        },
        requests,
        fence: fence.clone(),
        credentials: Credentials::secrets(client.clone(), gate.clone()),
        tuning: tuning.clone(),
        announcer,
        clock: Clock::of_server(api.time),
        metrics: metrics.clone(),
        busy_count: Gauge::default(),
    };
    tracing::info!(replica = options.lease.replica, reach = ?options.reach, "taking part in scaling clusters in mode central");
    let _publishing = supervisor.spawn("Events", publishing);
    let watching = observed.clone().watch(informers.clone(), options.reach);
    let pod_events = pod_events::follow(observed, client, gate, fence.clone());
    let _reading = supervisor.spawn("Events about pods", pod_events);
    let _watching = supervisor.spawn("watches of RayClusters, pods and nodes", watching);
    let (release, released) = watch::channel(false);
    let keeping = keeper::keep(options.lease, informers, fence, metrics, released);
    let mut keeping = supervisor.spawn("the Lease", keeping);
    pool.run(changes, stop).await;
    // The Lease is given back only now, because the writes that have just ended relied on it.
    release.send_replace(true);
    keeping.join_next().await;
    tracing::info!("scaling stopped, Lease given back");
}
