//! One process of `rayfit serve`, from start to end.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use arc_swap::ArcSwap;
use rustls::server::danger::ClientCertVerifier;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch as flag;
use tokio::task::JoinHandle;

use super::health::{self, Health};
use super::listener::Listener;
use super::shutdown::{Phase, Shutdown};
use super::{Times, facts};
use crate::admission::{self, Admission, Engine, Limits, Policy};
use crate::audit;
use crate::certs;
use crate::controller;
use crate::controller::tuning::InForce;
use crate::policy::Settings;
use crate::telemetry::Metrics;
use crate::tls::directory::Poller;
use crate::tls::{CertificateDirectory, CertificateStore, clients, server_config_for};
use crate::watch;

/// What a process is started with.
#[derive(Debug, Clone)]
pub struct Options {
    /// Serve the webhooks.
    pub webhooks: bool,
    /// Scale clusters.
    pub controller: Option<controller::Options>,
    /// Where webhooks listen.
    pub address: SocketAddr,
    /// Where health and metrics listen.
    pub health_address: SocketAddr,
    /// Where certificates come from.
    pub certificates: CertificateSource,
    /// A file with the authorities of callers' certificates; without it, callers need none.
    pub client_authority: Option<PathBuf>,
    /// What objects are judged by.
    pub settings: Settings,
    /// Which cluster to ask for facts; without it, the one that the process runs in.
    pub kubeconfig: Option<PathBuf>,
    /// The background audit, if it is done.
    pub audit: Option<audit::Options>,
    /// Bounds of requests.
    pub limits: Limits,
    /// Time limits of connections.
    pub times: Times,
    /// Connections at once.
    pub connections: u32,
    /// From SIGTERM until the door closes.
    pub shutdown_delay: Duration,
    /// From then until connections that are left are cut.
    pub drain_timeout: Duration,
}

/// Where certificates come from.
#[derive(Debug, Clone)]
pub enum CertificateSource {
    /// A directory that somebody else fills.
    Directory {
        /// Which.
        directory: CertificateDirectory,
        /// How often it is looked at.
        interval: Duration,
    },
    /// Rayfit makes them itself.
    Own(certs::Options),
}

/// The webhook port's backlog is emptied, and connections that have not sent their request yet may,
/// for so long.
const LAST_CALLS: Duration = Duration::from_secs(1);

/// How long to wait for the account's token and the like.
const CLIENT_RETRY: Duration = Duration::from_secs(5);

/// Connections to the health port at once.
const HEALTH_CONNECTIONS: u32 = 256;

/// Idle ones are closed soon, so that nobody keeps kubelet out by holding them all.
const HEALTH_IDLE: Duration = Duration::from_secs(15);

/// Serves until told to stop.
pub async fn run(options: Options) -> anyhow::Result<()> {
    // First, so that a signal during the start is not lost.
    let mut signals = Signals::new()?;
    let certificates = Arc::new(CertificateStore::default());
    let metrics = Arc::new(Metrics::new(certificates.clone()));
    let shutdown = Arc::new(Shutdown::default());
    let in_force = InForce {
        policy: Arc::new(ArcSwap::from_pointee(Policy {
            settings: options.settings.clone(),
            ..Policy::default()
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
    });
    let _health = serve_health(&options, health.clone()).await?;
    let (stop_scaling, stopping) = flag::channel(false);
    let scaling = scale(&options, &in_force, &metrics, stopping);
    // Until the process ends, also while it stops: until then it serves.
    drop(tokio::spawn(learn(
        options.clone(),
        in_force.clone(),
        metrics,
    )));
    let serving = if options.webhooks {
        let serving = serve_webhooks(&options, certificates, &in_force, &health).await?;
        health.listening.store(true, Ordering::Release);
        Some(serving)
    } else {
        None
    };
    signals.next().await;
    stop_scaling.send_replace(true);
    let stopped = async {
        if let Some(serving) = serving {
            tokio::join!(stop(&options, &shutdown, serving), ended(scaling));
        } else {
            shutdown.enter(Phase::Leaving);
            ended(scaling).await;
        }
    };
    tokio::select! {
        () = stopped => {
            tracing::info!("stopped");
            Ok(())
        }
        () = signals.next() => anyhow::bail!("stopped at once by a second signal"),
    }
}

async fn serve_webhooks(
    options: &Options,
    certificates: Arc<CertificateStore>,
    in_force: &InForce,
    health: &Health,
) -> anyhow::Result<JoinHandle<()>> {
    // It too goes on until the process ends.
    drop(certify(options, &certificates));
    let listener = Listener::bind(options.address, options.connections)
        .await?
        .with_tls(server_config_for(certificates, callers(options)?)?)
        .with_times(options.times)
        .counted_in(health.metrics.connections.clone());
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        webhooks = %listener.address()?,
        "serving"
    );
    let admission = Admission::with(
        in_force.policy.clone(),
        health.metrics.clone(),
        Engine::default(),
        options.limits,
    );
    let router = admission::router(Arc::new(admission));
    Ok(tokio::spawn(
        listener.serve(router, health.shutdown.clone()),
    ))
}

/// Who may call the webhooks.
fn callers(options: &Options) -> anyhow::Result<Arc<dyn ClientCertVerifier>> {
    let Some(file) = &options.client_authority else {
        return Ok(clients::anybody());
    };
    let shown = || format!("--client-ca-file {}", file.display());
    let text = std::fs::read(file).with_context(shown)?;
    clients::issued_by(&text).with_context(shown)
}

fn scale(
    options: &Options,
    in_force: &InForce,
    metrics: &Arc<Metrics>,
    mut stop: flag::Receiver<bool>,
) -> Option<JoinHandle<()>> {
    let scaling = options.controller.clone()?;
    let (kubeconfig, metrics) = (options.kubeconfig.clone(), metrics.scaling.clone());
    let in_force = in_force.clone();
    Some(tokio::spawn(async move {
        let client = tokio::select! {
            client = client_at_last(kubeconfig, "to scale clusters of") => client,
            _ = stop.wait_for(|stop| *stop) => return,
        };
        controller::run(scaling, client, in_force, metrics, stop).await;
    }))
}

/// A panic in it is logged where it happens.
async fn ended(task: Option<JoinHandle<()>>) {
    if let Some(task) = task {
        let _ = task.await;
    }
}

fn certify(options: &Options, store: &Arc<CertificateStore>) -> JoinHandle<()> {
    match &options.certificates {
        CertificateSource::Directory {
            directory,
            interval,
        } => tokio::spawn(Poller::new(directory.clone(), store.clone()).run(*interval)),
        CertificateSource::Own(own) => {
            let kubeconfig = options.kubeconfig.clone();
            tokio::spawn(certify_ourselves(kubeconfig, own.clone(), store.clone()))
        }
    }
}

/// To the end, also while the process stops: until then it serves.
async fn certify_ourselves(
    kubeconfig: Option<PathBuf>,
    own: certs::Options,
    store: Arc<CertificateStore>,
) {
    let client = client_at_last(kubeconfig, "to keep certificates in").await;
    if let Err(error) = certs::run(own, client, store, std::future::pending()).await {
        tracing::error!(%error, "certificates are not managed");
    }
}

/// Waits for the account's token and the like.
async fn client_at_last(kubeconfig: Option<PathBuf>, purpose: &'static str) -> kube::Client {
    loop {
        match facts::client(kubeconfig.as_deref()).await {
            Ok(client) => return client,
            Err(error) => {
                tracing::warn!(%error, purpose, "no API server, trying again");
                tokio::time::sleep(CLIENT_RETRY).await;
            }
        }
    }
}

/// Keeps policies up to date; where webhooks are served, facts too, and audits.
async fn learn(options: Options, in_force: InForce, metrics: Arc<Metrics>) {
    let InForce { policy, known } = in_force;
    let kubeconfig = options.kubeconfig;
    if !options.webhooks {
        let client = client_at_last(kubeconfig, "to read policies of").await;
        watch::policies_only(client, policy, known).await;
        return;
    }
    match facts::client(kubeconfig.as_deref()).await {
        Ok(client) => {
            let audit = async {
                if let Some(options) = options.audit {
                    audit::run(client.clone(), options, policy.clone(), metrics).await;
                }
            };
            tokio::join!(
                facts::learn(client.clone(), policy.clone()),
                watch::run(client.clone(), policy.clone(), known),
                audit
            );
            return;
        }
        Err(error) if kubeconfig.is_some() => {
            tracing::error!(%error, "no facts of the cluster: the kubeconfig cannot be used");
        }
        Err(error) => {
            tracing::info!(%error, "no facts of the cluster: this is no pod, and no --kubeconfig");
        }
    }
    known.store(true, Ordering::Release);
    if options.controller.is_some() {
        let client = client_at_last(kubeconfig, "to read policies of").await;
        Box::pin(watch::run(client, policy, known)).await;
    }
}

/// The health port stays open to the end, so that it is seen why the process is not ready.
async fn serve_health(options: &Options, health: Arc<Health>) -> anyhow::Result<JoinHandle<()>> {
    let listener = Listener::bind(options.health_address, HEALTH_CONNECTIONS)
        .await?
        .with_times(Times {
            idle: HEALTH_IDLE,
            ..options.times
        });
    tracing::info!(address = %listener.address()?, "health and metrics");
    let never = Arc::new(Shutdown::default());
    Ok(tokio::spawn(listener.serve(health::router(health), never)))
}

/// Goes through the phases of stopping.
async fn stop(options: &Options, shutdown: &Shutdown, mut serving: JoinHandle<()>) {
    let half = options.shutdown_delay / 2;
    for (phase, pause) in [(Phase::Leaving, half), (Phase::Shedding, half)] {
        tracing::info!(?phase, "stopping");
        shutdown.enter(phase);
        tokio::time::sleep(pause).await;
    }
    shutdown.enter(Phase::Closing);
    tracing::info!(phase = ?Phase::Closing, "stopping");
    if tokio::time::timeout(LAST_CALLS, &mut serving).await.is_ok() {
        return;
    }
    shutdown.enter(Phase::Draining);
    tracing::info!(phase = ?Phase::Draining, "stopping");
    let drained = tokio::time::timeout(options.drain_timeout, &mut serving).await;
    if drained.is_err() {
        tracing::warn!("some connections did not end in time and are cut");
    }
}

/// SIGTERM (from kubelet) and SIGINT (from a keyboard).
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
