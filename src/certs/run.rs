//! The loop that keeps certificates: read the cluster, take a step, read again.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::future::join_all;
use serde::de::IgnoredAny;
use tokio::sync::Notify;
use tokio::time::sleep;

use super::CertificateOptions;
use super::cluster::{CertificateError, ClusterClient};
use super::contents::Contents;
use super::issue::{self, IssueError};
use super::next::{CertificateStep, next};
use crate::apiserver::{Informers, Reading, Selection, WatchEvent};
use crate::tls::CertificateStore;

/// The time until the next look when everything is settled and no watch reports a change.
const REST: Duration = Duration::from_mins(5);
/// The pause after an error.
const RETRY: Duration = Duration::from_secs(5);
/// The pause when another replica was first.
// Its step shows in the objects by then, and is not taken again.
const YIELD: Duration = Duration::from_millis(200);

/// The clock by which validity is judged. Waits are in real time.
pub type WallClock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// Creates and rotates certificates by options that were [checked](CertificateOptions::check), and installs the current
/// one into `store`, for ever. Errors of the cluster are logged, and the step is tried again.
pub async fn run(
    options: CertificateOptions,
    informers: Informers,
    store: Arc<CertificateStore>,
    clock: WallClock,
) {
    let mut keeper = Keeper {
        cluster: ClusterClient::new(&informers.client, options),
        store,
        serving: None,
        clock,
    };
    let changed = Arc::new(Notify::new());
    let watches = keeper.watches(&informers, &changed);
    let watching = join_all(watches.iter().map(Reading::forever));
    tokio::select! {
        () = keeper.keep(&changed) => {}
        _ = watching => {}
    }
}

struct Keeper {
    cluster: ClusterClient,
    store: Arc<CertificateStore>,
    /// The leaf that this replica serves.
    serving: Option<String>,
    clock: WallClock,
}

impl Keeper {
    async fn keep(&mut self, changed: &Notify) {
        loop {
            let wait = match self.round().await {
                Ok(wait) => wait,
                Err(error @ CertificateError::Conflict(_)) => {
                    tracing::debug!(%error, "certificates: another replica was faster");
                    YIELD
                }
                Err(error) => {
                    tracing::warn!(%error, "certificates: trying again");
                    RETRY
                }
            };
            tokio::select! {
                () = changed.notified() => {}
                () = sleep(wait) => {}
            }
        }
    }

    /// Looks once and takes at most one step; returns how long to wait until the next look.
    async fn round(&mut self) -> Result<Duration, CertificateError> {
        let objects = self.cluster.look().await?;
        let now = (self.clock)();
        let stored = objects.view.contents.clone();
        let (contents, done) = match next(
            &objects.view,
            self.serving.as_deref(),
            &self.cluster.options,
            now,
        ) {
            CertificateStep::Wait => {
                return Ok((self.cluster.options.propagation / 6).min(Duration::from_secs(10)));
            }
            // A leaf is renewed in the last quarter of its lifetime, into which several looks have
            // to fall.
            CertificateStep::Rest => return Ok(REST.min(self.cluster.options.leaf_lifetime / 16)),
            CertificateStep::Serve => {
                if let Some(leaf) = &stored.leaf {
                    let (chain, key) = (leaf.chain.as_bytes(), leaf.key.0.as_bytes());
                    self.store.install(chain, key)?;
                    self.serving = Some(leaf.id.clone());
                    tracing::info!(certificate = %leaf.id, "certificates: serving");
                }
                return Ok(Duration::ZERO);
            }
            CertificateStep::Publish {
                configuration,
                anchors,
            } => {
                (self.cluster)
                    .publish(&objects, &configuration, &anchors)
                    .await?;
                tracing::info!(%configuration, authorities = anchors.len(), "certificates: wrote caBundle");
                return Ok(Duration::ZERO);
            }
            CertificateStep::Introduce(former) => {
                let contents = Contents {
                    authority: Some(issue::authority(now)?),
                    former,
                    ..stored
                };
                (
                    contents,
                    "made a new authority; it signs once API servers trust it",
                )
            }
            CertificateStep::Sign(former) => {
                let authority = stored.authority.as_ref().ok_or(IssueError::NoKey)?;
                let lifetime = self.cluster.options.leaf_lifetime;
                let leaf = issue::leaf(authority, &self.cluster.options.hosts(), lifetime, now)?;
                let contents = Contents {
                    leaf: Some(leaf),
                    former,
                    ..stored
                };
                (contents, "signed a new certificate")
            }
        };
        self.cluster.store(&objects, &contents).await?;
        tracing::info!(step = done, "certificates");
        // The next step is decided on what the cluster has after this one: other replicas take steps too.
        Ok(Duration::ZERO)
    }

    /// Watches each object by its name.
    fn watches(&self, informers: &Informers, changed: &Arc<Notify>) -> Vec<Reading> {
        let secret = self.cluster.secrets.resource_url();
        let secret = (
            "the Secret of certificates",
            secret,
            &*self.cluster.options.secret,
        );
        let configurations = self.cluster.configurations.iter();
        let configurations = configurations
            .map(|(name, api)| ("webhook configurations", api.resource_url(), name.as_str()));
        std::iter::once(secret)
            .chain(configurations)
            .map(|(title, path, name)| {
                let changed = Arc::clone(changed);
                let selection = Selection {
                    // RBAC can limit a right to names.
                    name: Some(name.to_owned()),
                    ..Selection::all(title, path.to_owned())
                };
                informers.read(selection, Some::<IgnoredAny>, move |event| {
                    if matches!(event, WatchEvent::Applied(..) | WatchEvent::Deleted(..)) {
                        // This keeps a permit where nobody waits, so that a change during a round
                        // leads to another look.
                        changed.notify_one();
                    }
                })
            })
            .collect()
    }
}
