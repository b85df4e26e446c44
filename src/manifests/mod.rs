//! What has to be applied to install Rayfit: Kubernetes objects as plain data. Pure.
//!
//! One description, [`objects`], serves both ways to install: the YAML of `rayfit manifests`, and
//! the kustomize folder, whose components are the differences between two such descriptions
//! ([`kustomize`]). So `kubectl apply -k` and `rayfit manifests | kubectl apply -f -` agree.
//!
//! Webhooks and controller are two Deployments with two accounts: what reads the answers of tenants'
//! GCSs has no right to webhook configurations or to the authority's key, and what serves webhooks
//! has none to scale clusters or to read their Secrets.

pub mod access;
pub mod certificates;
pub mod chart;
pub mod guard;
pub mod kustomize;
pub mod names;
pub mod network;
pub mod options;
pub mod webhooks;
pub mod workload;
mod yaml;

use serde_json::Value;

use crate::policy::resource;

pub use options::{Certificates, FailurePolicy, ManifestOptions, ManifestOptionsError};
pub use yaml::to_yaml;

/// Everything to apply, in an order that works for `kubectl apply`: what others need comes first,
/// the webhook configurations last.
pub fn objects(options: &ManifestOptions) -> Vec<Value> {
    let mut objects = Vec::new();
    if options.definitions {
        objects.push(names::labelled(resource::definition()));
    }
    let components = options.components();
    objects.push(access::namespace(options));
    objects.extend(
        components
            .iter()
            .map(|each| access::service_account(options, *each)),
    );
    objects.extend(access::roles(options));
    if let Some(scaler) = options.scaler() {
        objects.extend(guard::of_pods(options, scaler));
    }
    objects.extend(match options.certificates {
        Some(Certificates::SelfManaged) => vec![certificates::empty_secret(options)],
        Some(Certificates::CertManager) => certificates::issued(options),
        None => Vec::new(),
    });
    objects.push(network::webhook_service(options));
    for component in &components {
        objects.push(network::metrics_service(options, *component));
        objects.push(network::policy(options, *component));
        objects.extend(workload::disruption_budget(options, *component));
    }
    objects.extend(
        components
            .iter()
            .map(|each| workload::deployment(options, *each)),
    );
    objects.extend([webhooks::mutating(options), webhooks::validating(options)]);
    objects
}
