//! `rayfit serve`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use rayfit_core::manifests::names::CERTIFICATE_FOLDER;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::Outcome;
use super::shared::controller::ControllerArgs;
use super::shared::own_certificates::OwnCertificatesArgs;
use super::shared::settings::SettingsArgs;
use crate::admission::AdmissionLimits;
use crate::server::run::{CertificateSource, ServeOptions, run};
use crate::telemetry::logs::{self, LogFormat};

/// Serve the admission webhooks, and scale the clusters in mode central
///
/// POST /mutate fills in defaults, POST /validate checks objects. A second port serves /livez, /readyz
/// and /metrics without TLS. On SIGTERM the process becomes unready at once, continues to serve for
/// --shutdown-delay, then lets open calls end and exits with 0; a second signal stops it at once.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  \
    rayfit serve --cert-dir ./certs --bind 127.0.0.1 --log-format text\n  \
    rayfit serve --no-webhooks --kubeconfig ~/.kube/config --log-format text")]
pub(super) struct ServeCommand {
    /// Address for both ports
    #[arg(long, value_name = "IP", default_value = "::")]
    bind: IpAddr,

    /// Port of the webhooks
    ///
    /// The default is 10250 because the control plane of a private GKE cluster can reach nodes on
    /// ports 443 and 10250 only, unless a firewall rule is added. With host networking choose another
    /// port, because the kubelet uses 10250.
    #[arg(long, default_value_t = 10250)]
    port: u16,

    /// Port of /livez, /readyz and /metrics (plain HTTP)
    #[arg(long, default_value_t = 8080)]
    health_port: u16,

    /// Directory with the certificate (tls.crt) and its key (tls.key), in PEM; they may appear after the process has
    /// started
    ///
    /// Checked every ten seconds; new connections use a new pair.
    #[arg(
        long,
        value_name = "DIR",
        default_value = CERTIFICATE_FOLDER,
        conflicts_with = "self_managed_certs"
    )]
    cert_dir: PathBuf,

    /// File with the authorities (PEM) that issue the client certificates of callers
    ///
    /// With it, only callers with such a certificate can open a connection: API servers, if they are
    /// configured to present one (docs/security.md). It is read at the start.
    #[arg(long, value_name = "FILE", conflicts_with = "no_webhooks")]
    client_ca_file: Option<PathBuf>,

    /// The time between two checks of the directory, in seconds
    #[arg(long, hide = true, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    cert_interval: Duration,

    /// Kubeconfig of the cluster; without it, the cluster that the process runs in
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Seconds from SIGTERM until new connections are refused
    ///
    /// Kubernetes needs some of that time to remove the process from its Service. In the second half
    /// every answer asks the client to open a new connection, which leads to another replica.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    shutdown_delay: Duration,

    /// Seconds after that until open connections are closed
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    drain_timeout: Duration,

    /// Reviews in progress at once; further ones are refused with 429, which is a failed call
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = at_least_one())]
    max_reviews: u32,

    /// Connections to the webhook port at once
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = at_least_one())]
    max_connections: u32,

    /// Threads that serve reviews; without it, one per core and at most two
    #[arg(long, value_name = "N", value_parser = at_least_one())]
    threads: Option<u32>,

    /// Log lines as text or JSON
    #[arg(long, value_enum, default_value = "json")]
    log_format: LogFormat,

    /// Level of log lines (error, warn, info, debug), or directives like rayfit=debug,hyper=error
    ///
    /// Of libraries only warnings are logged, and nothing of those that quote objects, because objects
    /// can contain passwords.
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log: String,

    /// Only scale clusters, and do not serve the webhooks
    #[arg(long, conflicts_with_all = ["no_controller", "self_managed_certs"])]
    no_webhooks: bool,

    /// Only serve the webhooks, and do not scale clusters
    #[arg(long)]
    no_controller: bool,

    #[command(flatten)]
    controller: ControllerArgs,

    /// Do not audit stored objects, write the status of RayPolicies, or fail closed because of a policy
    #[arg(long)]
    no_audit: bool,

    #[command(flatten)]
    own_certificates: OwnCertificatesArgs,

    #[command(flatten)]
    settings: SettingsArgs,
}

impl ServeCommand {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        logs::start(self.log_format, &self.log)?;
        // Container runtimes may start processes with a soft limit of 1,024 open files, fewer than the accepted
        // connections, so the process raises the limit itself.
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        if current < maximum {
            let raised = Rlimit {
                current: maximum,
                maximum,
            };
            if let Err(error) = setrlimit(Resource::Nofile, raised) {
                tracing::debug!(%error, "the limit of open files cannot be raised");
            }
        }
        let runtime = runtime(self.threads)?;
        let options = self.options()?;
        let served = runtime.block_on(run(options));
        // Connections that did not end in time are closed here.
        runtime.shutdown_background();
        served.map(|()| Outcome::Clean)
    }

    fn options(self) -> anyhow::Result<ServeOptions> {
        let settings = self.settings.settings();
        // The audit has a Lease too, and with it the namespace and the name of the replica, even without the
        // controller.
        let audit = (!self.no_audit).then(|| self.controller.audit());
        let controller = (!self.no_controller).then(|| self.controller.options(settings.image()));
        let certificates = match self.own_certificates.options()? {
            Some(own) => CertificateSource::Own(own),
            None => CertificateSource::Directory {
                directory: self.cert_dir,
                interval: self.cert_interval,
            },
        };
        Ok(ServeOptions {
            webhooks: !self.no_webhooks,
            controller,
            audit,
            address: SocketAddr::new(self.bind, self.port),
            health_address: SocketAddr::new(self.bind, self.health_port),
            certificates,
            client_authority: self.client_ca_file,
            settings,
            kubeconfig: self.kubeconfig,
            limits: AdmissionLimits {
                reviews: self.max_reviews as usize,
                ..AdmissionLimits::default()
            },
            connections: self.max_connections,
            shutdown_delay: self.shutdown_delay,
            drain_timeout: self.drain_timeout,
        })
    }
}

/// The runtime of the process.
fn runtime(threads: Option<u32>) -> std::io::Result<tokio::runtime::Runtime> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // More than two threads would be idle even at request rates that no cluster has.
    let threads = threads.map_or(cores.min(2), |threads| threads as usize);
    // A runtime without queues between threads is faster.
    let mut builder = if threads == 1 {
        tokio::runtime::Builder::new_current_thread()
    } else {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(threads);
        builder
    };
    builder.enable_all().max_blocking_threads(4).build()
}

/// The upper limit is what semaphores and runtimes accept on every platform.
fn at_least_one() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=65_536)
}

fn seconds(text: &str) -> Result<Duration, String> {
    text.parse()
        .ok()
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .filter(|time| *time <= Duration::from_hours(1))
        .ok_or_else(|| "write seconds, at most 3600, like 10 or 0.5".to_owned())
}
