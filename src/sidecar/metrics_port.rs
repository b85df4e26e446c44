//! The port at which Ray's autoscaler container serves its metrics, for whoever scrapes it in every head pod: a
//! `PodMonitor` such as KubeRay's, or Ray's own service discovery. It is served whichever process scales the cluster.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use k8s_openapi::api::core::v1::Pod;
use kube::api::Api;
use rayfit_core::dns_name::DnsName;
use tokio::sync::{Mutex, watch};
use tokio::time::sleep;

use super::figures::{ClusterGroups, StoppedPods, figures};
use crate::gcs::{Address, Client, Endpoint, GcsLimits};
use crate::server::Listener;

/// The port, unless the environment of the container has another. (Ray, `autoscaler/_private/constants.py`.)
const PORT: (&str, u16) = ("AUTOSCALER_METRIC_PORT", 44217);

/// The key of the GCS by which Ray's service discovery finds the port. (Ray, `_private/metrics_agent.py`.)
const ADDRESS_KEY: &str = "AutoscalerMetricsAddress";

/// The namespace and key of the session's name, which a head writes when it starts. (Ray, `KV_NAMESPACE_SESSION`.)
const SESSION_KEY: (&str, &str) = ("session", "session_name");

/// The shortest time between two questions to the GCS, and the time between two tries to listen or to register. Ray's
/// autoscaler renews its figures as often.
const BETWEEN: Duration = Duration::from_secs(5);

/// The most connections at once.
const CONNECTIONS: u32 = 32;

/// Serves the metrics of the cluster of `groups`, once that is known, until it is dropped. Nothing that
/// happens here ends the process. `variable` reads the environment.
pub(super) async fn serve(
    variable: fn(&str) -> Option<String>,
    head_pod: Option<DnsName>,
    pods: Api<Pod>,
    mut groups: watch::Receiver<Option<ClusterGroups>>,
) {
    let first = groups.wait_for(Option::is_some).await;
    let Ok(Some(gcs_port)) = first.map(|first| first.as_ref().map(|first| first.port)) else {
        return;
    };
    let beside = Address::new("127.0.0.1", gcs_port);
    let endpoint = match Endpoint::from_environment(beside, variable) {
        Ok(endpoint) => endpoint,
        Err(error) => {
            return tracing::warn!(%error, "Ray's autoscaler metrics are not served");
        }
    };
    let client = Client::new(endpoint, GcsLimits::default());
    let port = variable(PORT.0).and_then(|port| port.trim().parse().ok());
    let port = port.unwrap_or(PORT.1);
    let listener = listen(port).await;
    tracing::info!(port, "serves the metrics of Ray's autoscaler");
    let page = Arc::new(Mutex::new(MetricsPage {
        client: client.clone(),
        groups,
        last: None,
        stopped: StoppedPods::default(),
    }));
    // Ray serves them at every path.
    let router = Router::new().fallback(async move || page.lock().await.response().await);
    tokio::join!(
        listener.serve(router, Arc::default()),
        register(&client, &pods, head_pod, port)
    );
}

/// Listens, as soon as nobody else does.
async fn listen(port: u16) -> Listener {
    let address = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port);
    let mut is_logged = false;
    loop {
        match Listener::bind(address, CONNECTIONS).await {
            Ok(listener) => return listener,
            Err(error) if !is_logged => {
                tracing::warn!(%error, "Ray's autoscaler metrics are not served until the port is free; AUTOSCALER_METRIC_PORT names another");
                is_logged = true;
            }
            Err(_) => {}
        }
        sleep(BETWEEN).await;
    }
}

/// Tells the GCS of each session of the head where the port is.
async fn register(client: &Client, pods: &Api<Pod>, head_pod: Option<DnsName>, port: u16) {
    let mut registered = None;
    let mut address: Option<IpAddr> = None;
    loop {
        if address.is_none()
            && let Some(name) = &head_pod
            && let Ok(pod) = pods.get(name).await
        {
            let ip = pod.status.and_then(|status| status.pod_ip);
            address = ip.and_then(|ip| ip.parse().ok());
        }
        // A GCS that has started anew knows nothing of the port, unless it keeps its keys elsewhere.
        let session = session(client).await;
        if let (Some(ip), Ok(session)) = (address, session)
            && registered.as_ref() != Some(&session)
        {
            let value = SocketAddr::new(ip, port).to_string();
            match client.kv_put("", ADDRESS_KEY, value.as_bytes()).await {
                Ok(()) => registered = Some(session),
                Err(error) => tracing::debug!(%error, "the metrics' address was not registered"),
            }
        }
        sleep(BETWEEN).await;
    }
}

/// The name of the head's session.
async fn session(client: &Client) -> Result<String, String> {
    match client.kv_get(SESSION_KEY.0, SESSION_KEY.1).await {
        Ok(Some(name)) => Ok(String::from_utf8_lossy(&name).into_owned()),
        Ok(None) => Err("the GCS has no session yet".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// The last page, with the time at which it was begun. However many scrapes arrive, the GCS is asked once in [`BETWEEN`].
struct MetricsPage {
    client: Client,
    groups: watch::Receiver<Option<ClusterGroups>>,
    last: Option<(Instant, Result<Bytes, String>)>,
    stopped: StoppedPods,
}

impl MetricsPage {
    async fn response(&mut self) -> Response {
        let text = match &self.last {
            Some((begun, text)) if begun.elapsed() < BETWEEN => text.clone(),
            _ => {
                let begun = Instant::now();
                let text = self.text().await;
                self.last = Some((begun, text.clone()));
                text
            }
        };
        let media_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        match text {
            Ok(text) => ([(header::CONTENT_TYPE, media_type)], text).into_response(),
            // Figures of a GCS that does not answer would be of a cluster that may no longer exist.
            Err(error) => (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")).into_response(),
        }
    }

    async fn text(&mut self) -> Result<Bytes, String> {
        let session = session(&self.client).await?;
        let status = self.client.cluster_status().await;
        let (state, launches) = status.map_err(|error| error.to_string())?;
        let groups = self.groups.borrow().clone();
        let groups = groups.ok_or("the RayCluster is not known yet")?;
        let mut figures = figures(&groups, &state, &launches);
        figures.session = session;
        figures.stopped = self.stopped.count(&state);
        let text = figures.text().map_err(|error| error.to_string())?;
        Ok(Bytes::from(text))
    }
}
