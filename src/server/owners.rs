//! Reading the RayCluster that owns a new pod.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use kube::Client;
use kube::api::GetParams;
use kube::core::Request;
use rayfit_core::dns_name::Key;
use rayfit_core::initial_size::OwnerCluster;
use serde::Deserialize;

use super::home_cluster::HomeCluster;
use crate::admission::new_pods::{OwnerReader, OwnerUnread};
use crate::apiserver::pages::{self, PageFault};

/// The largest answer: annotations have 256 KiB at the most, and fields that say who manages what seldom as much.
const LARGEST: usize = 1 << 20;

// Reads from the API server itself, and not from what the process watches: the sizes are written milliseconds before
// the pod is made. Nor through the gate, at which what scales clusters waits its turn: a pod waits for this, and
// `OwnerReads` bounds how many are read at a time.
impl OwnerReader for HomeCluster {
    fn read(&self, owner: Key) -> BoxFuture<'static, Result<Option<OwnerCluster>, OwnerUnread>> {
        let client = self.api().map(|api| api.client.clone());
        async move {
            let client = client.ok_or(OwnerUnread::NoApiServer)?;
            match ask(client, owner).await {
                Ok(cluster) => Ok(Some(cluster)),
                Err(fault) if fault.is_not_found() => Ok(None),
                Err(fault) => Err(OwnerUnread::Failed(fault.to_string())),
            }
        }
        .boxed()
    }

    fn now(&self) -> f64 {
        let time = self.api().map(|api| api.time.clone());
        time.unwrap_or_default().now()
    }
}

/// Asks the API server.
async fn ask(client: Client, owner: Key) -> Result<OwnerCluster, PageFault> {
    #[derive(Deserialize)]
    struct StoredCluster {
        metadata: OwnerCluster,
    }
    let Key { namespace, name } = &owner;
    let path = format!("/apis/ray.io/v1/namespaces/{namespace}/rayclusters");
    // Without a resource version the answer is what is stored now.
    let request = Request::new(path).get_metadata(name, &GetParams::default());
    // A call for patience of the API server makes this cluster wait first.
    let body = pages::ask(&client, request, Some(owner.to_string().into())).await?;
    let body = pages::whole(body, LARGEST).await?;
    let stored: StoredCluster =
        serde_json::from_slice(&body).map_err(|_| PageFault::Malformed("RayCluster"))?;
    Ok(stored.metadata)
}
