//! The webhook configurations: what the API server asks us about, and when.

use serde_json::{Value, json};

use super::certificates::AUTHORITY;
use super::names::{self, APP, Component, MUTATING, VALIDATING};
use super::{Certificates, FailurePolicy, ManifestOptions};
use crate::ray::Kind;

/// The path of the mutating webhook.
pub const MUTATE_PATH: &str = "/mutate";
/// The path of the validating webhook.
pub const VALIDATE_PATH: &str = "/validate";

/// Nothing is filled in of what is being deleted. The stored object decides: a caller cannot forge
/// it. On a CREATE there is none; `||` in CEL takes the side that is true even if the other one is
/// an error, so this is total.
pub const NOT_DELETING: &str =
    "request.operation != 'UPDATE' || !has(oldObject.metadata.deletionTimestamp)";

/// Finalizers of invalid objects must be removable. An update that takes only finalizers away changes
/// nothing that is judged ([`CHANGED`]); one that takes the last away ends the object, so what else
/// it says is never stored. Any other update of an object that is being deleted is judged, because
/// KubeRay acts on its spec as long as a finalizer holds it.
pub const NOT_ENDED: &str = "request.operation != 'UPDATE' || !has(oldObject.metadata.deletionTimestamp) \
     || has(object.metadata.finalizers) && object.metadata.finalizers.size() > 0";

/// Only the spec, labels and annotations are judged; heartbeats of owners, finalizers and managed
/// fields change all the time.
///
/// That a scaler changed only `replicas` is not skipped here: to tell needs each group of the one
/// list compared with each of the other, whose cost is over the API server's limit for large
/// objects; under failure policy Ignore that error would let them pass unjudged.
pub const CHANGED: &str = "request.operation != 'UPDATE' \
     || (has(object.spec) && has(oldObject.spec) ? object.spec != oldObject.spec : has(object.spec) != has(oldObject.spec)) \
     || (has(object.metadata.labels) && has(oldObject.metadata.labels) ? object.metadata.labels != oldObject.metadata.labels : has(object.metadata.labels) != has(oldObject.metadata.labels)) \
     || (has(object.metadata.annotations) && has(oldObject.metadata.annotations) ? object.metadata.annotations != oldObject.metadata.annotations : has(object.metadata.annotations) != has(oldObject.metadata.annotations))";

/// The mutating configuration. It never refuses anything, so a missing answer never does either:
/// the validating webhook judges the object as it would be stored.
pub fn mutating(options: &ManifestOptions) -> Value {
    let mut configuration = configuration(options, "MutatingWebhookConfiguration", MUTATING);
    configuration["webhooks"] = Kind::ALL
        .iter()
        .map(|kind| {
            let mut webhook = webhook(options, *kind, "mutate", MUTATE_PATH);
            webhook["failurePolicy"] = json!("Ignore");
            // Others may add what our defaults depend on.
            webhook["reinvocationPolicy"] = json!("IfNeeded");
            webhook["matchConditions"] = conditions("not-being-deleted", NOT_DELETING);
            webhook
        })
        .collect();
    configuration
}

/// The validating configuration.
pub fn validating(options: &ManifestOptions) -> Value {
    let policy = match options.failure_policy {
        FailurePolicy::Open => "Ignore",
        FailurePolicy::Closed => "Fail",
    };
    let mut configuration = configuration(options, "ValidatingWebhookConfiguration", VALIDATING);
    configuration["webhooks"] = Kind::ALL
        .iter()
        .map(|kind| {
            let mut webhook = webhook(options, *kind, "validate", VALIDATE_PATH);
            webhook["failurePolicy"] = json!(policy);
            webhook["matchConditions"] = conditions("not-ended-by-it", NOT_ENDED);
            webhook
        })
        .chain([of_policies(options), of_resizes(options)])
        .collect();
    configuration
}

/// The webhook for RayPolicies. It fails open: a policy that cannot hold changes nothing, and one
/// that ends an outage must be storable during it.
fn of_policies(options: &ManifestOptions) -> Value {
    json!({
        "name": "validate.raypolicy.rayfit.dev",
        "clientConfig": service(options, VALIDATE_PATH),
        "rules": [{
            "apiGroups": ["rayfit.dev"],
            "apiVersions": ["v1alpha1"],
            "resources": ["raypolicies"],
            "operations": ["CREATE", "UPDATE"],
            "scope": "Cluster"
        }],
        "matchPolicy": "Equivalent",
        "matchConditions": [{ "name": "not-being-deleted", "expression": NOT_DELETING }],
        "namespaceSelector": {},
        "objectSelector": {},
        "failurePolicy": "Ignore",
        "sideEffects": "None",
        "timeoutSeconds": options.timeout_seconds,
        "admissionReviewVersions": ["v1"]
    })
}

/// The webhook for resizes of Ray pods. Those that are meant (by kubelets, by Rayfit, by Ray's
/// autoscaler, which runs in the pod's namespace) are never asked about, and none waits long.
fn of_resizes(options: &ManifestOptions) -> Value {
    let scaler = options.scaler().unwrap_or(Component::Controller);
    let rayfit = scaler.user(&options.namespace);
    let stranger = format!(
        "request.userInfo.username != '{rayfit}' \
         && !request.userInfo.username.startsWith('system:node:') \
         && !request.userInfo.username.startsWith('system:serviceaccount:' + request.namespace + ':')"
    );
    json!({
        "name": "validate.resize.rayfit.dev",
        "clientConfig": service(options, VALIDATE_PATH),
        "rules": [{
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "resources": ["pods/resize"],
            "operations": ["UPDATE"],
            "scope": "Namespaced"
        }],
        "matchPolicy": "Equivalent",
        "matchConditions": [{ "name": "by-a-stranger", "expression": stranger }],
        "namespaceSelector": { "matchExpressions": namespaces(options) },
        "objectSelector": {
            "matchExpressions": [{ "key": "ray.io/cluster", "operator": "Exists" }]
        },
        "failurePolicy": "Ignore",
        "sideEffects": "None",
        "timeoutSeconds": 1,
        "admissionReviewVersions": ["v1"]
    })
}

fn service(options: &ManifestOptions, path: &str) -> Value {
    json!({
        "service": {
            "name": APP,
            "namespace": options.namespace,
            "path": path,
            "port": 443
        }
    })
}

fn configuration(options: &ManifestOptions, kind: &str, name: &str) -> Value {
    let mut metadata = names::cluster_metadata(name);
    // AKS would add selectors of its own.
    let mut annotations = json!({ "admissions.enforcer/disabled": "true" });
    if options.certificates == Some(Certificates::CertManager) {
        // From the authority, not the leaf: the leaf's Secret keeps the old authority's
        // certificate until the leaf is renewed.
        annotations["cert-manager.io/inject-ca-from"] =
            json!(format!("{}/{AUTHORITY}", options.namespace));
    }
    metadata["annotations"] = annotations;
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": metadata
    })
}

/// One webhook for each kind: the API server's metrics are labelled by its name.
fn webhook(options: &ManifestOptions, kind: Kind, verb: &str, path: &str) -> Value {
    json!({
        "name": format!("{verb}.{}.rayfit.dev", kind.name().to_lowercase()),
        "clientConfig": service(options, path),
        "rules": [{
            "apiGroups": ["ray.io"],
            "apiVersions": ["v1", "v1alpha1"],
            // Without subresources: status updates never come here.
            "resources": [kind.plural()],
            "operations": ["CREATE", "UPDATE"],
            "scope": "Namespaced"
        }],
        "matchPolicy": "Equivalent",
        "matchConditions": [],
        "namespaceSelector": { "matchExpressions": namespaces(options) },
        "objectSelector": {},
        "sideEffects": "None",
        "timeoutSeconds": options.timeout_seconds,
        "admissionReviewVersions": ["v1"]
    })
}

/// Of which updates the API server asks.
fn conditions(name: &str, expression: &str) -> Value {
    json!([
        { "name": name, "expression": expression },
        { "name": "judged-parts-changed", "expression": CHANGED }
    ])
}

/// Which namespaces we are asked about. That ours and kube-system are not is always written out:
/// it keeps a cluster startable, and tools check for it.
fn namespaces(options: &ManifestOptions) -> Value {
    let by_name = |operator: &str, names: Vec<&str>| json!({ "key": "kubernetes.io/metadata.name", "operator": operator, "values": names });
    let mut expressions = vec![by_name("NotIn", options.spared_namespaces())];
    if !options.only_namespaces.is_empty() {
        let only = options.only_namespaces.iter().map(String::as_str);
        expressions.push(by_name("In", only.collect()));
    }
    json!(expressions)
}
