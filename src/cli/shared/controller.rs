//! The controller's options, as flags of `rayfit serve`.

use rayfit_core::manifests::names;
use rayfit_core::reconcile::ownership::lease::record::Terms;

use crate::audit;
use crate::controller::observe::WatchScope;
use crate::controller::{ControllerOptions, LeaseOptions};

/// Flags of the controller.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Scaling")]
pub(in crate::cli) struct ControllerArgs {
    /// Scale clusters in these namespaces only; can be repeated
    ///
    /// Then permissions in these namespaces are enough. Kubernetes nodes are not read, so a resize that
    /// does not fit on its node is noticed only when Kubernetes says so.
    #[arg(long = "namespaces", value_name = "NAME", value_delimiter = ',')]
    namespaces: Vec<String>,

    /// Namespace of the Lease by which one replica at a time scales the clusters
    #[arg(long, value_name = "NAME", env = "POD_NAMESPACE", default_value = names::NAMESPACE)]
    lease_namespace: String,

    /// Unique name of this replica; without it, a random one
    #[arg(long, value_name = "NAME", env = "POD_NAME")]
    replica: Option<String>,

    /// Maximum of requests to the API server per second
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    api_rate: u32,

    /// Maximum of requests to the API server at once, after a time without requests
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = clap::value_parser!(u32).range(1..))]
    api_burst: u32,

    /// Give RayClusters metrics of their own, at most N of them; 2000 if no number is given
    ///
    /// Clusters beyond the bound are counted by namespace, as all are without the flag.
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_value_t = 0, default_missing_value = "2000", value_parser = clap::value_parser!(u32).range(..=10_000))]
    cluster_metrics: u32,
}

impl ControllerArgs {
    /// The options of the background audit.
    pub(in crate::cli) fn audit(&self) -> audit::AuditOptions {
        audit::AuditOptions {
            namespace: self.lease_namespace.clone(),
            identity: self.replica.clone().unwrap_or_else(made_up),
        }
    }

    /// The options that the flags ask for; `image` is Rayfit's.
    pub(in crate::cli) fn options(self, image: &str) -> ControllerOptions {
        ControllerOptions {
            reach: if self.namespaces.is_empty() {
                WatchScope::Everything
            } else {
                WatchScope::Namespaces(self.namespaces)
            },
            lease: LeaseOptions {
                namespace: self.lease_namespace,
                replica: self.replica.unwrap_or_else(made_up),
                terms: Terms::default(),
            },
            rate: self.api_rate,
            burst: self.api_burst,
            image: image.to_owned(),
            cluster_metrics: self.cluster_metrics,
        }
    }
}

/// A name that is unique to this process.
fn made_up() -> String {
    use std::hash::{BuildHasher as _, Hasher as _};
    // Random bytes of the operating system, because two replicas with the same name would both take
    // themselves for the leader.
    let random = std::hash::RandomState::new().build_hasher().finish();
    format!("{}-{random:016x}", std::process::id())
}
