//! The settings by which a live cluster is scaled, from the policies in force.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::api::Api;
use kube::{Client, Error};
use rayfit_core::facts::{DEFAULT_NAMESPACE, Facts};
use rayfit_core::plan;
use rayfit_core::policy::settings::ReconcileSettings;
use rayfit_core::ray::{Kind, RayObject};
use rayfit_core::reconcile::RoundSettings;
use serde_json::Value;

use super::list::policies;
use super::look::reads_cluster_scope;
use crate::apiserver::error_chain::text;
use crate::cli::shared::outcome;
use crate::controller::tuning::Tuning;

/// The settings for decisions about `cluster`. Without permission to read policies, prints a
/// warning and returns the settings without any policy.
pub(super) async fn settings(client: &Client, cluster: &Value) -> plan::PlanSettings {
    let Some(root) = cluster.as_object() else {
        return plan::PlanSettings::default();
    };
    if !reads_cluster_scope(cluster) {
        // A head's account reads no RayPolicies: the controller has written on the RayCluster what they say.
        return Tuning::Written.of(cluster).plan;
    }
    match folded(client, &RayObject::of_kind(Kind::RayCluster, root)).await {
        Ok(folded) => RoundSettings::of(&folded).plan,
        Err(error) => {
            let why = text(&error);
            outcome::warn(format_args!(
                "RayPolicies cannot be read, so this is what would be done without any: {why}"
            ));
            plan::PlanSettings::default()
        }
    }
}

async fn folded(client: &Client, cluster: &RayObject<'_>) -> Result<ReconcileSettings, Error> {
    let policies = policies(client).await?;
    let mut facts = Facts::default();
    // Without policies no selector is asked, and a person may not be allowed to read namespaces.
    if !policies.is_empty() {
        let namespace = cluster.namespace().unwrap_or(DEFAULT_NAMESPACE);
        let api = Api::<k8s_openapi::api::core::v1::Namespace>::all(client.clone());
        match api.get_metadata(namespace).await {
            Ok(object) => {
                let labels = object.metadata.labels.unwrap_or_default();
                facts.namespaces = Arc::new(BTreeMap::from([(namespace.to_owned(), labels)]));
            }
            Err(error) => outcome::warn(format_args!(
                "the labels of namespace {namespace} cannot be read, so RayPolicies that select \
                 namespaces by labels are left out: {}",
                text(&error)
            )),
        }
    }
    Ok(policies.reconcile_for(&ReconcileSettings::default(), cluster, &facts))
}
