//! Port forwarding from this machine to a pod, as `kubectl port-forward` does it, because pods are
//! seldom reachable from a workstation.

use std::net::Ipv4Addr;

use anyhow::anyhow;
use k8s_openapi::api::core::v1::Pod;
use kube::api::Api;
use tokio::io::copy_bidirectional;
use tokio::net::TcpListener;

use crate::apiserver::error_chain::text;
use crate::gcs::Address;

/// Forwards a local port to `port` of `pod` until the process ends, and returns the local address.
pub(super) async fn forward(pods: Api<Pod>, pod: String, port: u16) -> anyhow::Result<Address> {
    // The first connection is made here, so that a missing permission leads to an error that says
    // so.
    let tried = pods.portforward(&pod, &[port]).await;
    drop(tried.map_err(|error| {
        let why = text(&error);
        anyhow!(
            "no port can be forwarded to pod {pod}: {why}; this needs permission to create \
             pods/portforward (or use --gcs-address)"
        )
    })?);
    // For this machine alone, as of kubectl: without Ray's tokens a GCS asks nobody who they are.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = Address::new("127.0.0.1", listener.local_addr()?.port());
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let (pods, pod) = (pods.clone(), pod.clone());
            tokio::spawn(async move {
                let Ok(mut forwarder) = pods.portforward(&pod, &[port]).await else {
                    return;
                };
                if let Some(mut far) = forwarder.take_stream(port) {
                    // The connection ends with the copying, and the caller gets the error.
                    let _ = copy_bidirectional(&mut near, &mut far).await;
                }
            });
        }
    });
    Ok(address)
}
