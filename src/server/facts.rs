//! Reading facts about the cluster from its API server. Everything works without them.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use k8s_openapi::api::rbac::v1::{ClusterRoleBinding, Subject};
use kube::{Api, Client};
use rayfit_core::facts::KubernetesVersion;
use rayfit_core::policy::settings::KUBERAY_BINDING;
use rayfit_core::policy::{EffectivePolicy, Settings};
use tokio::time::timeout;

use crate::apiserver::error_chain;
use crate::watch::change;

/// The time between two reads of the facts, which change when Kubernetes or KubeRay is upgraded.
const AGAIN: Duration = Duration::from_mins(10);

/// The delay after a failure.
const RETRY: Duration = Duration::from_secs(30);

/// The timeout of a request.
const LONGEST: Duration = Duration::from_secs(30);

/// Keeps in `policy` up to date, until dropped: the API server's version, and the accounts of KubeRay's operator as
/// its `ClusterRoleBinding` has them, unless others were named.
pub async fn learn(client: Client, policy: Arc<ArcSwap<EffectivePolicy>>) {
    let is_named = policy.load().settings.operators != Settings::default().operators;
    let bindings: Api<ClusterRoleBinding> = Api::all(client.clone());
    let mut is_absence_told = false;
    loop {
        let info = answer("version", client.apiserver_version()).await;
        if let Some(info) = &info {
            let version = version(&info.major, &info.minor);
            if policy.load().facts.kubernetes != version {
                tracing::info!(?version, "the API server's version");
                change(&policy, |next| next.facts.kubernetes = version);
            }
        }
        let binding = if is_named {
            None
        } else {
            answer("KubeRay's binding", bindings.get_opt(KUBERAY_BINDING)).await
        };
        if matches!(binding, Some(None)) && !std::mem::replace(&mut is_absence_told, true) {
            let operators = &policy.load().settings.operators;
            tracing::info!(
                binding = KUBERAY_BINDING,
                ?operators,
                "KubeRay's binding is not there yet; name the accounts of its operator with --operator-user if they are \
                 others than these"
            );
        }
        // KubeRay may be installed later.
        let lacks_binding = !is_named && !matches!(binding, Some(Some(_)));
        if let Some(Some(binding)) = binding {
            let operators = accounts(binding.subjects.unwrap_or_default());
            if policy.load().settings.operators != operators {
                tracing::info!(?operators, "the accounts of KubeRay's operator");
                change(&policy, |next| {
                    next.settings.operators.clone_from(&operators);
                });
            }
        }
        let again = if info.is_none() || lacks_binding {
            RETRY
        } else {
            AGAIN
        };
        tokio::time::sleep(again).await;
    }
}

/// The API server's answer, if there is one.
async fn answer<T>(what: &str, request: impl Future<Output = kube::Result<T>>) -> Option<T> {
    let error = match timeout(LONGEST, request).await {
        Ok(Ok(answer)) => return Some(answer),
        Ok(Err(error)) => error_chain::text(&error),
        Err(_) => "no answer".to_owned(),
    };
    tracing::warn!(
        error,
        "what the API server has as {what} cannot be read, and counts as it was before"
    );
    None
}

/// The user names of the accounts among the subjects of a binding.
fn accounts(subjects: Vec<Subject>) -> Vec<String> {
    let user = |subject: Subject| {
        let (name, namespace) = (subject.name, subject.namespace?);
        let is_account = subject.kind == "ServiceAccount";
        is_account.then(|| format!("system:serviceaccount:{namespace}:{name}"))
    };
    subjects.into_iter().filter_map(user).collect()
}

/// Parses a version. Hosted clusters have minor versions like `33+`.
fn version(major: &str, minor: &str) -> Option<KubernetesVersion> {
    format!("{major}.{minor}").parse().ok()
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
