//! Policies that cannot be read: nothing is judged without limits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;
use rayfit::apiserver::Informers;
use rayfit::server::facts;
use rayfit::server::health::{Health, NotReady};
use rayfit::telemetry::Metrics;
use rayfit::watch;
use rayfit_core::policy::EffectivePolicy;
use rayfit_core::policy::settings::KUBERAY_OPERATOR;
use serde_json::json;

use super::clusters::{Cluster, Controller, soon};
use crate::played_api::{Fault, PlayedApi};

pub(super) const POLICIES: &str = "/apis/rayfit.dev/v1alpha1/raypolicies";
const NAMESPACES: &str = "/api/v1/namespaces";

fn health(metrics: &Arc<Metrics>, known: &Arc<AtomicBool>, webhooks: bool) -> Health {
    Health {
        certificates: Arc::default(),
        shutdown: Arc::default(),
        metrics: metrics.clone(),
        webhooks,
        listening: AtomicBool::new(true),
        policies: known.clone(),
        watches: metrics.watches.clone(),
        pulse: Arc::default(),
    }
}

#[expect(clippy::disallowed_methods, reason = "the shell's clock")]
fn ready(health: &Health) -> Result<(), NotReady> {
    health.ready_at(SystemTime::now())
}

#[tokio::test]
async fn a_first_list_of_policies_that_fails_keeps_the_replica_unready() {
    let api = PlayedApi::default();
    api.store(NAMESPACES, json!({ "metadata": { "name": "team-a" } }));
    api.store(
        POLICIES,
        json!({
            "apiVersion": "rayfit.dev/v1alpha1", "kind": "RayPolicy",
            "metadata": { "name": "limits" },
            "spec": { "limits": { "maxWorkersPerCluster": 3 } }
        }),
    );
    // One that no version of the definition lets pass.
    api.store(
        POLICIES,
        json!({ "metadata": { "name": "odd" }, "spec": 5 }),
    );
    let failures = Arc::new(std::sync::atomic::AtomicI32::new(2));
    let left = failures.clone();
    api.faults(move |call| {
        let hit = call.resource == "raypolicies" && left.fetch_sub(1, Ordering::Relaxed) > 0;
        hit.then_some(Fault::Status(500, None))
    });
    let metrics = Arc::new(Metrics::new(Arc::default()));
    let (policy, known) = (
        Arc::new(ArcSwap::from_pointee(EffectivePolicy::default())),
        Arc::default(),
    );
    let health = health(&metrics, &known, true);
    let informers = Informers::new(api.server().client, metrics.watches.clone());
    let (kept, heard) = (policy.clone(), known.clone());
    let keeping =
        tokio::spawn(async move { watch::policies::keep(&informers, &kept, &heard).await });
    soon("the first list has failed", || {
        failures.load(Ordering::Relaxed) <= 1
    })
    .await;
    soon("namespaces are known", || {
        !policy.load().facts.namespaces.is_empty()
    })
    .await;
    if policy.load().policies.is_empty() {
        assert_eq!(ready(&health), Err(NotReady::NoPolicies));
    }
    soon("policies are known", || known.load(Ordering::Acquire)).await;
    let limits = policy
        .load()
        .policies
        .iter()
        .any(|policy| &*policy.name == "limits");
    assert!(limits, "never ready without the limits");
    assert_eq!(ready(&health), Err(NotReady::NoCertificate));
    keeping.abort();
}

#[tokio::test]
async fn where_policies_are_not_installed_there_are_none() {
    let api = PlayedApi::default();
    api.faults(|call| (call.resource == "raypolicies").then_some(Fault::Status(404, None)));
    let metrics = Arc::new(Metrics::new(Arc::default()));
    let policy = ArcSwap::from_pointee(EffectivePolicy::default());
    let known = Arc::new(AtomicBool::default());
    let informers = Informers::new(api.server().client, metrics.watches.clone());
    let heard = Arc::clone(&known);
    let keeping =
        tokio::spawn(async move { watch::policies::keep(&informers, &policy, &heard).await });
    soon("that is known", || known.load(Ordering::Acquire)).await;
    keeping.abort();
}

#[tokio::test]
async fn a_process_that_only_scales_is_unready_while_it_is_blind() {
    let api = PlayedApi::default();
    api.faults(|call| (call.resource == "pods").then_some(Fault::Status(403, None)));
    let neighbour = Cluster::new(&api, "team-b").await;
    let controller = Controller::start(&api);
    let known = Arc::new(AtomicBool::new(true));
    let health = health(&controller.metrics, &known, false);
    soon("it says what it does not see", || {
        matches!(ready(&health), Err(NotReady::Blind(trouble)) if trouble.to_string().contains("pods") && trouble.why.contains("HTTP 403"))
    })
    .await;
    api.no_faults();
    neighbour.is_scaled().await;
    soon("it is ready", || ready(&health).is_ok()).await;
    controller.stop().await;
}

/// Whom KubeRay's `ClusterRoleBinding` names is its operator, wherever it runs; what a tenant may write in his
/// own namespace makes nobody that, and whom the flag names stays it.
#[tokio::test(start_paused = true)]
async fn the_account_of_kuberay_is_that_of_its_cluster_role_binding() {
    const BINDING: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/kuberay-operator";
    const TENANTS: &str =
        "/apis/rbac.authorization.k8s.io/v1/namespaces/tenant/rolebindings/kuberay-operator";
    let user = |namespace: &str| format!("system:serviceaccount:{namespace}:kuberay");
    let of = |namespace: &str| {
        json!({
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "kuberay-operator" },
            "subjects": [
                { "kind": "Group", "name": user("tenant") },
                { "kind": "ServiceAccount", "name": "kuberay", "namespace": namespace }
            ]
        })
    };
    let api = PlayedApi::default();
    api.put(TENANTS, of("tenant"));
    let mut named = EffectivePolicy::default();
    named.settings.operators = vec![user("named")];
    let policies = [EffectivePolicy::default(), named].map(|policy| {
        let policy = Arc::new(ArcSwap::from_pointee(policy));
        let learning = facts::learn(api.client(), policy.clone());
        (tokio::spawn(learning), policy)
    });
    let who = |policy: &ArcSwap<EffectivePolicy>| policy.load().settings.operators.clone();
    let later = || tokio::time::sleep(Duration::from_mins(11));
    later().await;
    assert_eq!(who(&policies[0].1), [KUBERAY_OPERATOR]);
    for namespace in ["default", "ray"] {
        api.put(BINDING, of(namespace));
        later().await;
        assert_eq!(who(&policies[0].1), [user(namespace)]);
    }
    // What cannot be read any more stays as it was.
    api.faults(|call| (call.resource == "clusterrolebindings").then_some(Fault::Status(403, None)));
    later().await;
    assert_eq!(who(&policies[0].1), [user("ray")]);
    assert_eq!(who(&policies[1].1), [user("named")]);
    for (learning, _) in &policies {
        learning.abort();
    }
}
