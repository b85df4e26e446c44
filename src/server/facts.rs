//! Learning facts of the cluster from its API server. Everything works without.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use hyper::header::{HeaderValue, USER_AGENT};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::admission::Policy;
use crate::facts::KubernetesVersion;

/// How often the API server's version is asked for: it changes when the cluster is upgraded.
const AGAIN: Duration = Duration::from_mins(10);

/// How soon after a failure.
const RETRY: Duration = Duration::from_secs(30);

/// What audit logs call us.
const NAME: &str = concat!("rayfit/", env!("CARGO_PKG_VERSION"));

/// A client for `kubeconfig`, or else for the cluster that the process runs in.
pub async fn client(kubeconfig: Option<&Path>) -> anyhow::Result<Client> {
    let mut config = match kubeconfig {
        None => Config::incluster()?,
        Some(file) => {
            let kubeconfig = Kubeconfig::read_from(file)?;
            Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?
        }
    };
    config
        .headers
        .push((USER_AGENT, HeaderValue::from_static(NAME)));
    Ok(Client::try_from(config)?)
}

/// Keeps the API server's version in `policy`, for ever.
pub async fn learn(client: Client, policy: Arc<ArcSwap<Policy>>) {
    loop {
        let pause = match client.apiserver_version().await {
            Ok(info) => {
                note(&policy, version(&info.major, &info.minor));
                AGAIN
            }
            Err(error) => {
                tracing::warn!(%error, "the API server's version is unknown; rules go without");
                RETRY
            }
        };
        tokio::time::sleep(pause).await;
    }
}

fn note(policy: &ArcSwap<Policy>, version: Option<KubernetesVersion>) {
    if policy.load().facts.kubernetes == version {
        return;
    }
    tracing::info!(?version, "the API server's version");
    policy.rcu(|policy| {
        let mut next = Policy::clone(policy);
        next.facts.kubernetes = version;
        next
    });
}

/// Reads a version; hosted clusters write minors like `33+`.
fn version(major: &str, minor: &str) -> Option<KubernetesVersion> {
    let number = |text: &str| {
        let end = text
            .find(|char: char| !char.is_ascii_digit())
            .unwrap_or(text.len());
        text.get(..end)?.parse().ok()
    };
    Some(KubernetesVersion {
        major: number(major)?,
        minor: number(minor)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosted_versions_are_read() {
        let v1_33 = Some(KubernetesVersion {
            major: 1,
            minor: 33,
        });
        assert_eq!(version("1", "33"), v1_33);
        assert_eq!(version("1", "33+"), v1_33);
        assert_eq!(version("", ""), None);
        assert_eq!(version("1", "+"), None);
    }
}
