//! Learning facts of the cluster from its API server. Everything works without.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use kube::Client;
use tokio::time::timeout;

use crate::facts::KubernetesVersion;
use crate::policy::EffectivePolicy;

/// How often the API server's version is asked for: it changes when the cluster is upgraded.
const AGAIN: Duration = Duration::from_mins(10);

/// How soon after a failure.
const RETRY: Duration = Duration::from_secs(30);

/// The longest that it may take.
const LONGEST: Duration = Duration::from_secs(30);

/// Keeps the API server's version in `policy`, for ever.
pub async fn learn(client: Client, policy: Arc<ArcSwap<EffectivePolicy>>) {
    loop {
        let pause = match timeout(LONGEST, client.apiserver_version()).await {
            Ok(Ok(info)) => {
                note(&policy, version(&info.major, &info.minor));
                AGAIN
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "the API server's version is unknown; rules go without");
                RETRY
            }
            Err(_) => {
                tracing::warn!("the API server does not tell its version; rules go without");
                RETRY
            }
        };
        tokio::time::sleep(pause).await;
    }
}

fn note(policy: &ArcSwap<EffectivePolicy>, version: Option<KubernetesVersion>) {
    if policy.load().facts.kubernetes == version {
        return;
    }
    tracing::info!(?version, "the API server's version");
    policy.rcu(|policy| {
        let mut next = EffectivePolicy::clone(policy);
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
