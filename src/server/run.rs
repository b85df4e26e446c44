//! One process of `rayfit serve`, from start to end.

use std::future::pending;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use arc_swap::ArcSwap;
use kube::config::InClusterError;
use rayfit_core::policy::{EffectivePolicy, Settings};
use rustls::server::WebPkiClientVerifier;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{OnceCell, watch as flag};

use super::health::Health;
use super::home_cluster::HomeCluster;
use super::listener::Listener;
use super::shutdown::{Phase, Shutdown};
use super::{facts, probes};
use crate::admission::new_pods::OwnerReads;
use crate::admission::{Admission, AdmissionCapacity, AdmissionLimits};
use crate::apiserver::ApiServer;
use crate::controller;
use crate::controller::stop::asked_to_stop;
use crate::controller::tuning::InForce;
use crate::supervisor::{Supervisor, Task};
use crate::telemetry::Metrics;
use crate::tls::directory::Poller;
use crate::tls::{CertificateStore, clients, server_config_for};
use crate::{admission, audit, certs, watch};

/// The options of a process.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// Serve the webhooks.
    pub webhooks: bool,
    /// Scale clusters.
    pub controller: Option<controller::ControllerOptions>,
    /// The address at which webhooks listen.
    pub address: SocketAddr,
    /// The address at which health and metrics listen.
    pub health_address: SocketAddr,
    /// The source of certificates.
    pub certificates: CertificateSource,
    /// A file with the authorities of callers' certificates; without it, callers need none.
    pub client_authority: Option<PathBuf>,
    /// The settings with which objects are checked.
    pub settings: Settings,
    /// The cluster to read facts from; without it, the one that the process runs in.
    pub kubeconfig: Option<PathBuf>,
    /// The background audit, if it is done.
    pub audit: Option<audit::AuditOptions>,
    /// Bounds of requests.
    pub limits: AdmissionLimits,
    /// Connections at once.
    pub connections: u32,
    /// The time from SIGTERM until new connections are refused.
    pub shutdown_delay: Duration,
    /// The time from then until remaining connections are closed.
    pub drain_timeout: Duration,
}

/// The source of certificates.
#[derive(Debug, Clone)]
pub enum CertificateSource {
    /// A directory that somebody else fills.
    Directory {
        /// The directory.
        directory: PathBuf,
        /// The time between two checks.
        interval: Duration,
    },
    /// Rayfit issues them itself.
    Own(certs::CertificateOptions),
}

/// The time in which connections in the backlog of the webhook port are accepted, and connections
/// without a request may still send one.
const LAST_CALLS: Duration = Duration::from_secs(1);

/// Serves until told to stop, or until a background task fails.
pub async fn run(options: ServeOptions) -> anyhow::Result<()> {
    // Registered first, so that a signal during the start is not lost.
    let signals = [
        signal(SignalKind::terminate())?,
        signal(SignalKind::interrupt())?,
    ];
    let supervisor = Supervisor::default();
    supervisor.guard(serve(options, signals, &supervisor)).await
}

async fn serve(
    options: ServeOptions,
    mut signals: [Signal; 2],
    supervisor: &Supervisor,
) -> anyhow::Result<()> {
    let certificates = Arc::new(CertificateStore::default());
    let metrics = Arc::new(Metrics::new(certificates.clone()));
    let shutdown = Arc::new(Shutdown::default());
    let in_force = InForce {
        policy: Arc::new(ArcSwap::from_pointee(EffectivePolicy {
            settings: options.settings.clone(),
            ..EffectivePolicy::default()
        })),
        known: Arc::default(),
    };
    let health = Arc::new(Health {
        certificates: certificates.clone(),
        shutdown: shutdown.clone(),
        metrics: metrics.clone(),
        webhooks: options.webhooks,
        listening: AtomicBool::new(false),
        policies: in_force.known.clone(),
        watches: metrics.watches.clone(),
        pulse: Arc::default(),
    });
    let _beating = supervisor.spawn("pulse", health.pulse.clone().beat());
    probes::serve(options.health_address, health.clone(), supervisor.clone()).await?;
    let (stop_scaling, stopping) = flag::channel(false);
    let cluster = Arc::new(HomeCluster {
        kubeconfig: options.kubeconfig.clone(),
        watches: metrics.watches.clone(),
        reached: OnceCell::new(),
    });
    let scaling = scale(
        &options,
        &in_force,
        (&metrics, &cluster),
        stopping,
        supervisor,
    );
    // Until the process ends, also while it stops: until then it serves.
    let learning = learn(options.clone(), in_force.clone(), metrics, cluster.clone());
    let _learning = supervisor.spawn("policies, facts and audit", learning);
    let _certifying = certify(&options, &certificates, cluster.clone(), supervisor);
    let serving = if options.webhooks {
        let policy = in_force.policy.clone();
        Some(serve_webhooks(&options, certificates, policy, cluster, &health, supervisor).await?)
    } else {
        None
    };
    next_signal(&mut signals).await;
    supervisor.let_end();
    stop_scaling.send_replace(true);
    let stopped = async {
        let scaling_ends = async {
            if let Some(mut scaling) = scaling {
                scaling.join_next().await;
            }
        };
        if let Some(serving) = serving {
            tokio::join!(stop(&options, &shutdown, serving), scaling_ends);
        } else {
            shutdown.enter(Phase::Unready);
            scaling_ends.await;
        }
    };
    tokio::select! {
        () = stopped => {
            tracing::info!("stopped");
            Ok(())
        }
        () = next_signal(&mut signals) => anyhow::bail!("stopped at once by a second signal"),
    }
}

async fn serve_webhooks(
    options: &ServeOptions,
    certificates: Arc<CertificateStore>,
    policy: Arc<ArcSwap<EffectivePolicy>>,
    cluster: Arc<HomeCluster>,
    health: &Health,
    supervisor: &Supervisor,
) -> anyhow::Result<Task> {
    let callers = match &options.client_authority {
        None => WebPkiClientVerifier::no_client_auth(),
        Some(file) => std::fs::read(file)
            .map_err(anyhow::Error::from)
            .and_then(|text| clients::issued_by(&text))
            .with_context(|| format!("--client-ca-file {}", file.display()))?,
    };
    let mut listener = Listener::bind(options.address, options.connections).await?;
    listener.tls = Some(server_config_for(certificates, callers)?);
    listener.open = health.metrics.connections.clone();
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        webhooks = %listener.address()?,
        "serving"
    );
    let admission = Admission {
        policy,
        capacity: AdmissionCapacity::new(options.limits),
        metrics: health.metrics.clone(),
        owners: OwnerReads::new(cluster),
    };
    let router = admission::router(Arc::new(admission));
    let serving = listener.serve(router, health.shutdown.clone());
    let serving = supervisor.spawn("webhooks", serving);
    health.listening.store(true, Ordering::Release);
    Ok(serving)
}

fn scale(
    options: &ServeOptions,
    in_force: &InForce,
    (metrics, cluster): (&Arc<Metrics>, &Arc<HomeCluster>),
    mut stop: flag::Receiver<bool>,
    supervisor: &Supervisor,
) -> Option<Task> {
    let scaling = options.controller.clone()?;
    let (metrics, cluster) = (metrics.clone(), cluster.clone());
    let (in_force, supervisor_of) = (in_force.clone(), supervisor.clone());
    Some(supervisor.spawn("scaling", async move {
        let (api, informers) = tokio::select! {
            reached = cluster.at_last() => reached.clone(),
            () = asked_to_stop(&mut stop) => return,
        };
        let metrics = metrics.scaling.clone();
        let supervisor = supervisor_of;
        controller::run(scaling, api, in_force, metrics, informers, supervisor, stop).await;
    }))
}

fn certify(
    options: &ServeOptions,
    store: &Arc<CertificateStore>,
    cluster: Arc<HomeCluster>,
    supervisor: &Supervisor,
) -> Option<Task> {
    const NAME: &str = "certificates";
    if !options.webhooks {
        return None;
    }
    Some(match &options.certificates {
        CertificateSource::Directory {
            directory,
            interval,
        } => {
            let poller = Poller::new(directory.clone(), store.clone());
            supervisor.spawn(NAME, poller.run(*interval))
        }
        CertificateSource::Own(issuing) => {
            let (issuing, store) = (issuing.clone(), store.clone());
            supervisor.spawn(NAME, async move {
                let (_, informers) = cluster.at_last().await.clone();
                #[expect(
                    clippy::disallowed_methods,
                    reason = "the shell reads the clock for the core"
                )]
                let clock = Arc::new(std::time::SystemTime::now);
                // To the end, because the process serves while it stops.
                certs::run(issuing, informers, store, clock).await;
            })
        }
    })
}

/// Keeps policies up to date, and where webhooks are served also facts, and audits. Never ends,
/// even where nothing can be read.
async fn learn(
    options: ServeOptions,
    in_force: InForce,
    metrics: Arc<Metrics>,
    cluster: Arc<HomeCluster>,
) {
    let InForce { policy, known } = in_force;
    if !options.webhooks {
        let (_, informers) = cluster.at_last().await.clone();
        return watch::policies::keep(&informers, &policy, &known).await;
    }
    if let Err(error) = ApiServer::connect(options.kubeconfig.as_deref()).await
        && let Some(InClusterError::ReadEnvironmentVariable(_)) = error.downcast_ref()
    {
        tracing::info!(%error, "no facts about the cluster: this process does not run in a pod, \
                                and there is no --kubeconfig");
        // Without an API server there are no policies.
        known.store(true, Ordering::Release);
        if options.controller.is_none() {
            return pending().await;
        }
    }
    // Any other failure to reach the API server may end. Until then no object is checked, because
    // it is not known what policies forbid.
    let (_, informers) = cluster.at_last().await.clone();
    let audit = async {
        if let Some(options) = options.audit {
            let (policy, known) = (policy.clone(), known.clone());
            audit::run(informers.clone(), options, policy, known, metrics.clone()).await;
        }
    };
    tokio::join!(
        facts::learn(informers.client.clone(), policy.clone()),
        watch::run(informers.clone(), policy.clone(), known.clone()),
        audit
    );
}

/// Goes through the phases of stopping.
async fn stop(options: &ServeOptions, shutdown: &Shutdown, mut serving: Task) {
    let half = options.shutdown_delay / 2;
    for (phase, wait) in [(Phase::Unready, half), (Phase::Shedding, half)] {
        tracing::info!(?phase, "stopping");
        shutdown.enter(phase);
        tokio::time::sleep(wait).await;
    }
    for (phase, longest) in [
        (Phase::Closing, LAST_CALLS),
        (Phase::Draining, options.drain_timeout),
    ] {
        tracing::info!(?phase, "stopping");
        shutdown.enter(phase);
        let ended = tokio::time::timeout(longest, serving.join_next()).await;
        if ended.is_ok() {
            return;
        }
    }
    tracing::warn!("some connections did not end in time and are closed");
}

/// Waits for SIGTERM (from kubelet) or SIGINT (from a keyboard).
async fn next_signal([terminate, interrupt]: &mut [Signal; 2]) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}
