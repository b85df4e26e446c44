//! A port of this machine that leads to one of a pod, as `kubectl port-forward` does it: pods are
//! seldom reachable from where people sit.

use std::net::Ipv4Addr;

use anyhow::anyhow;
use k8s_openapi::api::core::v1::Pod;
use kube::api::Api;
use tokio::io::copy_bidirectional;
use tokio::net::TcpListener;

use crate::apiserver::error_chain::text;
use crate::gcs::Address;

/// Leads to `port` of `pod` until the process ends; where.
pub(super) async fn forward(pods: Api<Pod>, pod: String, port: u16) -> anyhow::Result<Address> {
    // Once before anything is promised: a missing right is to be said in its own words.
    let tried = pods.portforward(&pod, &[port]).await;
    drop(tried.map_err(|error| {
        let why = text(&error);
        anyhow!(
            "no port can be forwarded to pod {pod}: {why}; it needs the right to create \
             pods/portforward (or use --gcs-address)"
        )
    })?);
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
                    // Its end, whichever way, ends the connection; the call says what is wrong.
                    let _ = copy_bidirectional(&mut near, &mut far).await;
                }
            });
        }
    });
    Ok(address)
}
