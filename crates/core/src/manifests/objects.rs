//! All objects of an install.

use serde_json::Value;

use super::options::{Certificates, ManifestOptions};
use super::{access, certificates, guard, names, network, webhooks, workload};
use crate::policy::resource;
use crate::yaml;

/// Everything to apply, in an order that works for `kubectl apply`: what others need comes first,
/// the webhook configurations last.
pub fn objects(options: &ManifestOptions) -> Vec<Value> {
    let mut objects = Vec::new();
    if options.definitions {
        objects.push(names::labelled(resource::definition()));
    }
    let components = options.components();
    objects.push(access::namespace(options));
    objects.extend(workload::critical_pods(options));
    objects.extend(
        components
            .iter()
            .map(|each| access::service_account(options, *each)),
    );
    objects.extend(access::roles(options));
    objects.extend(guard::policies(options));
    if options.webhooks {
        objects.extend(match options.certificates {
            Some(Certificates::SelfManaged) => vec![certificates::empty_secret(options)],
            Some(Certificates::CertManager) => certificates::issued(options),
            None => Vec::new(),
        });
        objects.push(network::webhook_service(options));
    }
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
    if options.webhooks {
        objects.extend([webhooks::mutating(options), webhooks::validating(options)]);
    }
    objects
}

/// A stream of YAML documents, in the order of the objects.
pub fn to_yaml(objects: &[Value]) -> String {
    let documents: Vec<String> = objects.iter().map(yaml::write).collect();
    documents.join("---\n")
}
