//! Reading facts about the cluster from its API server. Everything works without them.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use kube::Client;
use tokio::time::timeout;

use crate::facts::KubernetesVersion;
use crate::policy::EffectivePolicy;

/// How often the API server's version is read. It changes when the cluster is upgraded.
const AGAIN: Duration = Duration::from_mins(10);

/// The delay after a failure.
const RETRY: Duration = Duration::from_secs(30);

/// The timeout of the request.
const LONGEST: Duration = Duration::from_secs(30);

/// Keeps the API server's version in `policy` up to date, until dropped.
pub async fn learn(client: Client, policy: Arc<ArcSwap<EffectivePolicy>>) {
    loop {
        let wait = match timeout(LONGEST, client.apiserver_version()).await {
            Ok(Ok(info)) => {
                note(&policy, version(&info.major, &info.minor));
                AGAIN
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "the API server's version is unknown; rules that need it \
                                        report nothing");
                RETRY
            }
            Err(_) => {
                tracing::warn!(
                    "the API server's version cannot be read; rules that need it report \
                                nothing"
                );
                RETRY
            }
        };
        tokio::time::sleep(wait).await;
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

/// Parses a version.
fn version(major: &str, minor: &str) -> Option<KubernetesVersion> {
    let number = |text: &str| {
        // Hosted clusters have minor versions like `33+`.
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
