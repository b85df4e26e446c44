//! Clients of clusters' GCSs, with the credentials that these require.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{GetParams, Request, ResourceExt as _};
use kube::{Client, Resource as _};
use parking_lot::Mutex;
use rayfit_core::dns_name::DnsName;
use rayfit_core::flow_control::Flow;
use rayfit_core::seconds::Retry;
use rayfit_core::text::Misread;
use tokio::time::{Instant, timeout};

use crate::apiserver::patience::RequestFlow;
use crate::apiserver::{Gate, error_chain};
use crate::controller::head::address::Head;
use crate::controller::observe::Key;
use crate::gcs::{self, Endpoint, GcsLimits, Material, Tls};

/// The longest time that reading a Secret may take.
const LONGEST: Duration = Duration::from_secs(4);

/// The waits after a cluster's Secrets could not be read.
const RETRY: Retry = Retry {
    first_s: 1.0,
    longest_s: 60.0,
};

/// A cluster that is not asked for again so long after its last wait is gone.
const FORGOTTEN: Duration = Duration::from_mins(10);

/// The source of the credentials.
#[derive(Clone)]
pub enum Credentials {
    /// The cluster's Secrets. They are read one by one when a client is made for a cluster that
    /// needs them.
    Secrets(SecretReader),
    /// The environment of the head pod, as its Ray containers have it; the GCS is in the same pod.
    Environment(fn(&str) -> Option<String>),
}

impl Credentials {
    /// The clusters' Secrets, read through the gate like every other request about a cluster.
    pub fn secrets(client: Client, gate: Gate) -> Self {
        Self::Secrets(SecretReader {
            client,
            gate,
            failed: Arc::default(),
        })
    }

    /// A client of the GCS of `head`, or the reason why there is none.
    pub async fn client(&self, key: &Key, head: &Head) -> Result<gcs::Client, Misread> {
        let endpoint = match self {
            Self::Environment(variable) => {
                // KubeRay's certificates of heads name this address, too.
                let local = gcs::Address::new("127.0.0.1", head.address.port);
                gcs::Endpoint::from_environment(local, variable)?
            }
            Self::Secrets(secrets) => secrets.endpoint_unless_failed(key, head).await?,
        };
        let client = gcs::Client::new(endpoint, GcsLimits::default());
        Ok(client.of_namespace(&key.namespace))
    }
}

/// Reads Secrets. After a failure, the Secrets of that cluster are not read again for a while.
#[derive(Clone)]
pub struct SecretReader {
    client: Client,
    gate: Gate,
    failed: Arc<Mutex<HashMap<Key, Failed>>>,
}

/// The times at which credentials that a GCS refuses are read again: they may have been replaced,
/// and if they have not, each read is a request to the API server for nothing.
#[derive(Debug, Default)]
pub struct Refusals {
    number: u32,
    next: Option<Instant>,
}

impl Refusals {
    /// Decides whether they are read again, now that they were refused.
    pub fn read_again(&mut self) -> bool {
        let now = Instant::now();
        if self.next.is_some_and(|next| now < next) {
            return false;
        }
        self.number = self.number.saturating_add(1);
        self.next = Some(now + RETRY.wait(self.number, fastrand::f64()));
        true
    }
}

struct Failed {
    /// The head for which it failed: another head, or another Secret, is another matter.
    head: Head,
    /// The number of failures in a row.
    failures: u32,
    until: Instant,
    error: Misread,
}

impl SecretReader {
    async fn endpoint_unless_failed(&self, key: &Key, head: &Head) -> Result<Endpoint, Misread> {
        let now = Instant::now();
        if let Some(failed) = self.failed.lock().get(key)
            && failed.until > now
            && failed.head == *head
        {
            return Err(failed.error.clone());
        }
        let result = self.endpoint(key, head).await;
        let mut failed = self.failed.lock();
        // Clusters that are gone are never asked for again, so their entries are dropped with age.
        failed.retain(|_, failed| failed.until.elapsed() < FORGOTTEN);
        let previous = failed.remove(key).filter(|previous| previous.head == *head);
        if let Err(error) = &result {
            let failures = previous
                .map_or(0, |previous| previous.failures)
                .saturating_add(1);
            let failure = Failed {
                head: head.clone(),
                until: Instant::now() + RETRY.wait(failures, fastrand::f64()),
                failures,
                error: error.clone(),
            };
            failed.insert(key.clone(), failure);
        }
        drop(failed);
        result
    }

    async fn endpoint(&self, key: &Key, head: &Head) -> Result<Endpoint, Misread> {
        let mut endpoint = Endpoint::plain(head.address.clone());
        if let Some((name, content)) = &head.token {
            let secret = self.read(key, name).await?;
            endpoint.token = Some(part(&secret, content)?);
        }
        if let Some(name) = &head.tls {
            let secret = self.read(key, name).await?;
            endpoint.tls = Some(Tls {
                certificate: part(&secret, "tls.crt")?,
                key: part(&secret, "tls.key")?,
                authority: part(&secret, "ca.crt")?,
                // The certificate of a head names the address of its pod, by which the GCS is
                // called here.
                server_name: None,
            });
        }
        Ok(endpoint)
    }

    async fn read(&self, key: &Key, name: &DnsName) -> Result<Secret, Misread> {
        let failed = |reason: String| {
            Misread(format!(
                "Secret {name}, which its GCS's clients need, cannot be read: {reason}; is Rayfit installed with --ray-auth?"
            ))
        };
        let flow: Flow = key.to_string().into();
        let passed = self.gate.pass(&flow).await;
        let _pass = passed.map_err(|not| failed(not.to_string()))?;
        let secrets = Secret::url_path(&(), Some(&key.namespace));
        let request = Request::new(secrets).get(name, &GetParams::default());
        let mut request = request.map_err(|error| failed(error_chain::text(&error)))?;
        request.extensions_mut().insert(RequestFlow(flow));
        match timeout(LONGEST, self.client.request::<Secret>(request)).await {
            Ok(Ok(secret)) => Ok(secret),
            Ok(Err(error)) => Err(failed(error_chain::text(&error))),
            Err(_) => Err(failed(format!("no answer within {LONGEST:?}"))),
        }
    }
}

fn part(secret: &Secret, key: &str) -> Result<Material, Misread> {
    let content = secret.data.as_ref().and_then(|data| data.get(key));
    let lacks = || Misread(format!("Secret {} has no {key}", secret.name_any()));
    let content = content.ok_or_else(lacks)?;
    Ok(Material::Memory(content.0.as_slice().into()))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use hyper::{Request, Response};
    use kube::client::Body;
    use serde_json::json;
    use tokio::time::sleep;

    use crate::apiserver::Patience;
    use crate::controller::head::credentials::*;
    use crate::gcs::Address;

    #[tokio::test(start_paused = true)]
    async fn secrets_that_cannot_be_read_are_left_alone_and_others_are_not() {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let service = tower::service_fn(move |_: Request<Body>| {
            count.fetch_add(1, Ordering::Relaxed);
            let status = json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "code": 404, "reason": "NotFound", "message": "no such Secret"
            });
            let body = Body::from(status.to_string().into_bytes());
            async move { Ok::<_, Infallible>(Response::builder().status(404).body(body).unwrap()) }
        });
        let gate = Gate::new(1000, 1000, Patience::default());
        let credentials = Credentials::secrets(Client::new(service, "ray"), gate);
        let head = Head {
            pod: "h".to_owned(),
            uid: "u".to_owned(),
            address: Address::new("10.0.0.1", 6379),
            token: Some((DnsName::parse("s").unwrap(), "auth_token")),
            tls: None,
        };
        let key = |name: &str| Key::new("ray", name).unwrap();
        for _ in 0..600 {
            let failed = credentials.client(&key("a"), &head).await.err().unwrap();
            assert!(failed.to_string().contains("no such Secret"), "{failed}");
            sleep(Duration::from_millis(100)).await;
        }
        let times = asked.load(Ordering::Relaxed);
        assert!((4..=10).contains(&times), "{times} times in a minute");
        let _ = credentials.client(&key("neighbour"), &head).await;
        assert_eq!(asked.load(Ordering::Relaxed), times + 1, "at once");
        let another = Head {
            uid: "of the next cluster of that name".to_owned(),
            ..head
        };
        let _ = credentials.client(&key("a"), &another).await;
        assert_eq!(asked.load(Ordering::Relaxed), times + 2, "at once");
    }

    /// A GCS that refuses what is in the Secret is asked every second.
    #[tokio::test(start_paused = true)]
    async fn credentials_that_are_refused_are_read_ever_more_rarely() {
        let mut refusals = Refusals::default();
        assert!(refusals.read_again(), "they may have been replaced");
        let mut times = 0;
        for _ in 0..600 {
            sleep(Duration::from_secs(1)).await;
            times += usize::from(refusals.read_again());
        }
        assert!((10..=30).contains(&times), "{times} times in ten minutes");
    }
}
