//! Failing closed: reads webhooks and policies, and writes the webhook configuration.

use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams, Patch, PatchParams};
use kube::{Client, Error};
use rayfit_core::manifests::names::{Component, VALIDATING, cluster_name};
use rayfit_core::policy::Policies;
use serde_json::Value;

use super::AuditOptions;
use super::closing::{Closing, decide, is_by_us, is_closed, patch};

/// The time between two checks of the state.
pub(super) const LOOK: Duration = Duration::from_secs(2);

/// Makes the webhooks fail closed or open, as the policies ask; returns the new state, and `last`
/// where it cannot be known now.
pub(super) async fn see_to(
    client: &Client,
    options: &AuditOptions,
    policies: &Policies,
    last: Option<&Closing>,
) -> Option<Closing> {
    let step = async {
        let api: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
        let name = cluster_name(VALIDATING, &options.namespace);
        let stored = serde_json::to_value(api.get(&name).await?).unwrap_or_default();
        let request = policies.fail_closed();
        let request = request.map(|(policy, closed)| (&*policy.name, closed));
        let is_closed = is_closed(&stored);
        let ready = match request {
            Some((_, true)) if !is_closed => ready(client, &options.namespace).await?,
            _ => 0,
        };
        let (action, closing) = decide(request, ready, is_closed, is_by_us(&stored));
        match action {
            Some(true) => write(&api, &name, &stored, request.map(|(policy, _)| policy)).await?,
            Some(false) => write(&api, &name, &stored, None).await?,
            None => {}
        }
        Ok::<_, Error>(closing)
    };
    match step.await {
        Ok(closing) => Some(closing),
        // The install has no such configuration.
        Err(Error::Api(status)) if status.code == 404 => None,
        // Another client changed it meanwhile.
        Err(Error::Api(status)) if matches!(status.code, 409 | 422) => last.cloned(),
        // A request that fails does not mean that they are open.
        Err(error) => {
            tracing::warn!(%error, "cannot check or change the failure policy of the webhooks, \
                                    trying again");
            last.cloned()
        }
    }
}

async fn write(
    api: &Api<ValidatingWebhookConfiguration>,
    name: &str,
    stored: &Value,
    policy: Option<&str>,
) -> Result<(), Error> {
    let change = serde_json::from_value(patch(stored, policy)).unwrap_or_default();
    api.patch(name, &PatchParams::default(), &Patch::Json::<()>(change))
        .await?;
    if let Some(policy) = policy {
        tracing::info!(policy, "Ray objects are refused while no webhook answers");
    } else {
        tracing::info!("Ray objects are stored without validation while no webhook answers");
    }
    Ok(())
}

/// Makes the webhooks fail open, whatever the policies say. This is for people in an emergency; the
/// audit makes them fail closed again while a policy asks for it.
pub async fn release(client: &Client, namespace: &str) -> Result<bool, Error> {
    let api: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    let name = cluster_name(VALIDATING, namespace);
    let stored = serde_json::to_value(api.get(&name).await?).unwrap_or_default();
    if !is_closed(&stored) {
        return Ok(false);
    }
    write(&api, &name, &stored, None).await.map(|()| true)
}

async fn ready(client: &Client, namespace: &str) -> Result<usize, Error> {
    let labels = Component::Admission.labels();
    let labels = labels.as_object().into_iter().flatten();
    let labels = labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())));
    let own = ListParams::default().labels_from(&labels.collect());
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let pods = pods.list(&own).await?;
    let is_ready = |pod: &&Pod| {
        let status = pod.status.as_ref();
        let conditions = status.and_then(|status| status.conditions.as_ref());
        let mut conditions = conditions.into_iter().flatten();
        // A pod stays Ready while it ends, though it takes no new connections then.
        pod.metadata.deletion_timestamp.is_none()
            && conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
    };
    Ok(pods.iter().filter(is_ready).count())
}
