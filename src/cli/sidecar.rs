//! `rayfit sidecar`.

use std::path::PathBuf;

use rayfit_core::dns_name::DnsName;

use super::Outcome;
use crate::controller::observe::Key;
use crate::sidecar;
use crate::telemetry::logs::LogFormat;

/// Scale one cluster from its head pod, in place of Ray's autoscaler
///
/// Scales while the RayCluster's annotation rayfit.dev/reconcile is sidecar, and waits otherwise; never
/// exits by itself. KubeRay starts the container with /bin/bash, so in Rayfit's image /bin/bash is this
/// command.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  \
    rayfit sidecar --cluster-name demo --cluster-namespace ray")]
pub(super) struct SidecarCommand {
    /// Name of the RayCluster
    #[arg(long, value_name = "NAME", env = "RAY_CLUSTER_NAME", value_parser = DnsName::parse)]
    cluster_name: DnsName,

    /// Its namespace
    #[arg(long, value_name = "NAME", env = "RAY_CLUSTER_NAMESPACE", value_parser = DnsName::parse)]
    cluster_namespace: DnsName,

    /// Kubeconfig of the API server; without it, that of the cluster that the process runs in
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Log lines as text or JSON
    #[arg(long, value_enum, default_value = "text")]
    log_format: LogFormat,

    /// Level of log lines (error, warn, info, debug), or directives like rayfit=debug,hyper=warn
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log: String,
}

impl SidecarCommand {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let (name, namespace) = (self.cluster_name, self.cluster_namespace);
        let key = Key { namespace, name };
        let options = sidecar::options(key, self.kubeconfig);
        sidecar::start(options, self.log_format, &self.log).map(|()| Outcome::Clean)
    }
}
