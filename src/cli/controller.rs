//! The controller's options, as flags of `rayfit serve`.

use crate::audit;
use crate::controller::ControllerOptions;
use crate::controller::lease::Terms;
use crate::controller::observe::Reach;
use crate::manifests::names;

/// Flags of the part that scales clusters.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Scaling")]
pub(super) struct ControllerArgs {
    /// Scale clusters in these namespaces only; can be repeated
    ///
    /// Then rights in these namespaces are enough. Without nodes being seen, a pod that does not
    /// find room on its node is only noticed when Kubernetes says so.
    #[arg(long = "namespaces", value_name = "NAME", value_delimiter = ',')]
    namespaces: Vec<String>,

    /// Namespace of the Leases by which replicas divide clusters among them
    #[arg(long, value_name = "NAME", env = "POD_NAMESPACE", default_value = names::NAMESPACE)]
    lease_namespace: String,

    /// Name of this replica, unlike that of any other; without it, one is made up
    #[arg(long, value_name = "NAME", env = "POD_NAME")]
    replica: Option<String>,

    /// Into how many parts clusters are divided; the same for all replicas
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=64))]
    shards: u32,

    /// Requests to the API server a second, at most
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    api_rate: u32,

    /// Requests to the API server at once after a quiet time
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = clap::value_parser!(u32).range(1..))]
    api_burst: u32,
}

impl ControllerArgs {
    /// What the background audit is started with.
    pub(super) fn audit(&self) -> audit::AuditOptions {
        audit::AuditOptions {
            namespace: self.lease_namespace.clone(),
            identity: self.replica.clone().unwrap_or_else(made_up),
        }
    }

    /// The options that the flags ask for; `image` is Rayfit's.
    pub(super) fn options(self, image: &str) -> ControllerOptions {
        ControllerOptions {
            reach: if self.namespaces.is_empty() {
                Reach::Everything
            } else {
                Reach::Namespaces(self.namespaces)
            },
            lease_namespace: self.lease_namespace,
            replica: self.replica.unwrap_or_else(made_up),
            shards: self.shards,
            terms: Terms::default(),
            rate: self.api_rate,
            burst: self.api_burst,
            image: image.to_owned(),
        }
    }
}

/// A name that no other process has.
fn made_up() -> String {
    use std::hash::{BuildHasher as _, Hasher as _};
    // The operating system's randomness: two pods of one name would hold each other's Leases.
    let random = std::hash::RandomState::new().build_hasher().finish();
    format!("{}-{random:016x}", std::process::id())
}
