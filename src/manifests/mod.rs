//! What has to be applied to install Rayfit: Kubernetes objects as plain data. Pure.
//!
//! One description, [`objects`], serves both ways to install: the YAML of `rayfit manifests`, and
//! the kustomize folder, whose components are the differences between two such descriptions
//! ([`kustomize`]). So `kubectl apply -k` and `rayfit manifests | kubectl apply -f -` agree.

pub mod access;
pub mod certificates;
pub mod chart;
pub mod kustomize;
pub mod names;
pub mod network;
pub mod options;
pub mod webhooks;
pub mod workload;
mod yaml;

use serde_json::Value;

use crate::policy::resource;

pub use options::{Certificates, FailurePolicy, Options, OptionsError};
pub use yaml::to_yaml;

/// Everything to apply, in an order that works for `kubectl apply`: what others need comes first,
/// the webhook configurations last.
pub fn objects(options: &Options) -> Vec<Value> {
    let mut objects = Vec::new();
    if options.definitions {
        objects.push(names::labelled(resource::definition()));
    }
    objects.extend([access::namespace(options), access::service_account(options)]);
    objects.extend(access::roles(options));
    objects.extend(match options.certificates {
        Some(Certificates::SelfManaged) => vec![certificates::empty_secret(options)],
        Some(Certificates::CertManager) => certificates::issued(options),
        None => Vec::new(),
    });
    objects.extend([
        network::webhook_service(options),
        network::metrics_service(options),
    ]);
    objects.push(network::policy(options));
    objects.extend(workload::disruption_budget(options));
    objects.push(workload::deployment(options));
    objects.extend([webhooks::mutating(options), webhooks::validating(options)]);
    objects
}
