//! Reading live clusters with the permissions of the person who runs the command. Nothing is
//! changed.
//!
//! In: the name of a cluster and a kubeconfig. Out: a snapshot, or why there is none. Invariant: what is read is what
//! the controller would read.

mod forward;
mod list;
mod look;
mod settings;
pub(super) mod worker_pods;

use std::path::{Path, PathBuf};

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value;

pub(super) use list::{list, policies};
pub(super) use look::{LiveState, clusters, ray_pods, worker_pods as ask_for_worker_pods};
use look::{cluster, connect, look, objects};
use rayfit_core::plan;
use rayfit_core::policy::Policies;
use rayfit_core::snapshot::allowed::retain_labels;

use crate::apiserver::error_chain::text;
use crate::cli::shared::outcome;
use crate::controller::observe::Key;
use crate::gcs::{self, Address};

/// Flags that select the Kubernetes cluster, shared by several commands.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Live clusters")]
pub(super) struct ClusterArgs {
    /// Kubeconfig of the cluster; without it, KUBECONFIG, ~/.kube/config or the pod's own cluster
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

/// Flags that locate Ray clusters, shared by several commands.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Live clusters")]
pub(super) struct LiveArgs {
    #[command(flatten)]
    pub(super) api: ClusterArgs,

    /// Address of the Ray cluster's GCS; without it, a port is forwarded to the head pod
    #[arg(long, value_name = "HOST:PORT")]
    gcs_address: Option<Address>,
}

impl ClusterArgs {
    /// A client of the API server.
    pub(super) async fn client(&self) -> anyhow::Result<Client> {
        let options = KubeConfigOptions {
            context: self.context.clone(),
            ..KubeConfigOptions::default()
        };
        let mut config = match &self.kubeconfig {
            Some(file) => {
                Config::from_custom_kubeconfig(Kubeconfig::read_from(file)?, &options).await?
            }
            // `infer` takes the current context, and knows no other.
            None if self.context.is_some() => Config::from_kubeconfig(&options).await?,
            None => Config::infer().await?,
        };
        // A person waits for the answer, so errors of the API server are shown rather than retried.
        config.default_retry = false;
        Ok(Client::try_from(config)?)
    }
}

impl LiveArgs {
    /// The RayCluster as it is.
    pub(super) fn cluster(&self, key: &Key) -> anyhow::Result<Value> {
        block_on(async {
            let client = self.api.client().await?;
            cluster(&client, key).await
        })
    }

    /// A client of the GCS of a cluster.
    pub(super) async fn gcs(&self, key: &Key) -> anyhow::Result<gcs::Client> {
        let client = self.api.client().await?;
        let (cluster, pods) = objects(&client, key).await?;
        connect(&client, key, &cluster, &pods, self.gcs_address.clone()).await
    }

    /// Observes a cluster, and reads how policies say that it is scaled.
    pub(super) fn look_to_plan(
        &self,
        key: &Key,
    ) -> anyhow::Result<(LiveState, plan::PlanSettings)> {
        block_on(async {
            let client = self.api.client().await?;
            let look = look(&client, key, self.gcs_address.clone()).await?;
            let settings = settings::settings(&client, look.snapshot.ray_cluster.object()).await;
            Ok((look, settings))
        })
    }

    /// Observes a cluster, for others to read: only with labels by which policies select.
    pub(super) fn look_to_record(&self, key: &Key) -> anyhow::Result<LiveState> {
        block_on(async {
            let client = self.api.client().await?;
            let mut look = look(&client, key, self.gcs_address.clone()).await?;
            let policies = list::policies(&client).await.unwrap_or_else(|error| {
                outcome::warn(format_args!(
                    "RayPolicies cannot be read, so labels by which they select are left out: {}",
                    text(&error)
                ));
                Policies::default()
            });
            // Recordings go to others, and labels may name people, teams and customers.
            let keys = policies.label_keys();
            let mut cluster = look.snapshot.ray_cluster.object().clone();
            retain_labels(&mut cluster, |key| keys.contains(key));
            look.snapshot.ray_cluster = cluster.into();
            Ok(look)
        })
    }
}

/// Runs a command's asynchronous part.
pub(super) fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let result = runtime.block_on(work);
    // A forwarded port may still be open.
    runtime.shutdown_background();
    result
}

/// The live cluster that an argument names: it looks like NAMESPACE/NAME, and is not a file or
/// folder.
pub(super) fn named(input: &Path) -> Option<Key> {
    // A file that exists is meant, even if its path looks like the name of a cluster.
    let name = input.to_str().filter(|_| !input.exists())?;
    cluster_name(name).ok()
}

/// Reads `NAMESPACE/NAME`.
pub(super) fn cluster_name(text: &str) -> Result<Key, String> {
    let wrong = || {
        format!(
            "{text:?} is not the name of a RayCluster: write NAMESPACE/NAME, for example \
                    ray/demo"
        )
    };
    // Neither name can have a dot, unlike those of files.
    let (namespace, name) = text.split_once('/').ok_or_else(wrong)?;
    let key = Key::new(namespace, name).map_err(|_| wrong())?;
    if text.contains('.') {
        Err(wrong())
    } else {
        Ok(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_is_named_by_namespace_and_name() {
        assert_eq!(cluster_name("ray/demo").unwrap().to_string(), "ray/demo");
        for wrong in [
            "demo",
            "a/b/c",
            "/demo",
            "ray/",
            "ray/demo.yaml",
            "../demo",
            "Ray/demo",
        ] {
            let error = cluster_name(wrong).unwrap_err();
            assert!(error.contains("NAMESPACE/NAME"), "{wrong}: {error}");
        }
    }
}
