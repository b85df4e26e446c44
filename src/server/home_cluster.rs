//! The way of one process to its cluster.

use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::OnceCell;

use crate::apiserver::{ApiServer, Informers, Watches};

/// The time to wait for the files of the service account.
const CLIENT_RETRY: Duration = Duration::from_secs(5);

/// The cluster that the process belongs to, with one client and the same informers for all of its
/// parts.
pub struct HomeCluster {
    /// Its kubeconfig; without one, it is the cluster in which the process runs.
    pub kubeconfig: Option<PathBuf>,
    /// The watches in which the informers report how they are.
    pub watches: Watches,
    /// The client and the informers, once there are some.
    pub reached: OnceCell<(ApiServer, Informers)>,
}

impl HomeCluster {
    /// The API server, if there is a client of it already.
    pub fn api(&self) -> Option<&ApiServer> {
        self.reached.get().map(|(api, _)| api)
    }

    /// Waits for the files of the service account.
    pub async fn at_last(&self) -> &(ApiServer, Informers) {
        let reach = async || loop {
            match ApiServer::connect(self.kubeconfig.as_deref()).await {
                Ok(api) => {
                    let informers = Informers::new(api.client.clone(), self.watches.clone());
                    return (api, informers);
                }
                Err(error) => {
                    tracing::warn!(%error, "the API server cannot be reached, trying again");
                    tokio::time::sleep(CLIENT_RETRY).await;
                }
            }
        };
        self.reached.get_or_init(reach).await
    }
}
