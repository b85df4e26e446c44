//! The webhook configurations: the requests that the API server sends to Rayfit.

use serde_json::{Value, json};

use super::certificates::AUTHORITY;
use super::names::{APP, Component, MUTATING, VALIDATING};
use super::{Certificates, ManifestOptions};
use crate::ray::Kind;

/// The path of the mutating webhook.
pub const MUTATE_PATH: &str = "/mutate";
/// The path of the validating webhook.
pub const VALIDATE_PATH: &str = "/validate";

/// Defaults are not filled into an object that is being deleted. The stored object decides that,
/// because a caller cannot forge it. On a CREATE there is no stored object; `||` in CEL is true if
/// either side is, even if the other side is an error, so this expression never fails.
pub const NOT_DELETING: &str =
    "request.operation != 'UPDATE' || !has(oldObject.metadata.deletionTimestamp)";

/// Finalizers of invalid objects must be removable. An update that only removes finalizers changes
/// nothing that is checked ([`CHANGED`]); one that removes the last finalizer ends the object, so
/// its other changes are never stored. Any other update of an object that is being deleted is
/// checked, because KubeRay acts on its spec as long as it has a finalizer.
pub const NOT_ENDED: &str = "request.operation != 'UPDATE' || !has(oldObject.metadata.deletionTimestamp) \
     || has(object.metadata.finalizers) && object.metadata.finalizers.size() > 0";

/// Only the spec, labels and annotations are checked; status heartbeats, finalizers and managed
/// fields change all the time.
///
/// An update in which a scaler changes only `replicas` is not skipped here. To recognize it, each
/// group of one list would have to be compared with each group of the other, which exceeds the API
/// server's cost limit for large objects; under failure policy Ignore that error would let such
/// objects through without validation.
pub const CHANGED: &str = "request.operation != 'UPDATE' \
     || (has(object.spec) && has(oldObject.spec) ? object.spec != oldObject.spec : has(object.spec) != has(oldObject.spec)) \
     || (has(object.metadata.labels) && has(oldObject.metadata.labels) ? object.metadata.labels != oldObject.metadata.labels : has(object.metadata.labels) != has(oldObject.metadata.labels)) \
     || (has(object.metadata.annotations) && has(oldObject.metadata.annotations) ? object.metadata.annotations != oldObject.metadata.annotations : has(object.metadata.annotations) != has(oldObject.metadata.annotations))";

/// Only pods that a RayCluster controls, as KubeRay makes them, are made larger.
pub const OF_A_RAY_CLUSTER: &str = "has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(owner, \
     has(owner.controller) && owner.controller && owner.kind == 'RayCluster' && owner.apiVersion.startsWith('ray.io/'))";

/// Kubelets, Rayfit's controllers, of which each installation has one, and Ray's autoscaler, which runs in the pod's
/// namespace, resize pods all the time.
pub const BY_A_STRANGER: &str = "!request.userInfo.username.matches('^system:serviceaccount:[^:]+:rayfit(-controller)?$') \
     && !request.userInfo.username.startsWith('system:node:') \
     && !request.userInfo.username.startsWith('system:serviceaccount:' + request.namespace + ':')";

/// The mutating configuration. It never refuses anything, not even when it does not answer.
pub fn mutating(options: &ManifestOptions) -> Value {
    let mut configuration = configuration(options, "MutatingWebhookConfiguration", MUTATING);
    configuration["webhooks"] = Kind::ALL
        .iter()
        .map(|kind| {
            // The validating webhook checks the object as it would be stored, defaults or not.
            let mut webhook = of_kind(options, *kind, "mutate", MUTATE_PATH);
            // Another webhook may add fields on which the defaults depend.
            webhook["reinvocationPolicy"] = json!("IfNeeded");
            webhook["matchConditions"] = conditions("not-being-deleted", NOT_DELETING);
            webhook
        })
        .chain(options.initial_sizes.then(|| of_new_pods(options)))
        .collect();
    configuration
}

/// The validating configuration.
pub fn validating(options: &ManifestOptions) -> Value {
    let mut configuration = configuration(options, "ValidatingWebhookConfiguration", VALIDATING);
    configuration["webhooks"] = Kind::ALL
        .iter()
        .map(|kind| {
            let mut webhook = of_kind(options, *kind, "validate", VALIDATE_PATH);
            webhook["failurePolicy"] = json!(options.failure_policy.name());
            webhook["matchConditions"] = conditions("not-ended-by-it", NOT_ENDED);
            webhook
        })
        .chain([of_policies(options), of_resizes(options)])
        .collect();
    configuration
}

/// The webhook for RayPolicies. It fails open: an invalid policy has no effect, and a policy that ends an outage must
/// be storable during the outage.
fn of_policies(options: &ManifestOptions) -> Value {
    let rule = json!({
        "apiGroups": ["rayfit.dev"],
        "apiVersions": ["v1alpha1"],
        "resources": ["raypolicies"],
        "operations": ["CREATE", "UPDATE"],
        "scope": "Cluster"
    });
    let name = "validate.raypolicy.rayfit.dev";
    let mut webhook = webhook(options, name, VALIDATE_PATH, &rule);
    webhook["matchConditions"] =
        json!([{ "name": "not-being-deleted", "expression": NOT_DELETING }]);
    webhook["namespaceSelector"] = json!({});
    webhook
}

/// The webhook for resizes of Ray pods. Regular resizes are never sent to it, and the timeout is
/// short.
fn of_resizes(options: &ManifestOptions) -> Value {
    let rule = json!({
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "resources": ["pods/resize"],
        "operations": ["UPDATE"],
        "scope": "Namespaced"
    });
    let name = "validate.resize.rayfit.dev";
    let mut webhook = webhook(options, name, VALIDATE_PATH, &rule);
    webhook["matchConditions"] = json!([{ "name": "by-a-stranger", "expression": BY_A_STRANGER }]);
    webhook["objectSelector"] = json!({
        "matchExpressions": [{ "key": "ray.io/cluster", "operator": "Exists" }]
    });
    webhook["timeoutSeconds"] = json!(1);
    webhook
}

/// The webhook for new worker pods. It fails open: such a pod is made as its template says.
fn of_new_pods(options: &ManifestOptions) -> Value {
    let rule = json!({
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "resources": ["pods"],
        "operations": ["CREATE"],
        "scope": "Namespaced"
    });
    let mut webhook = webhook(options, "mutate.pod.rayfit.dev", MUTATE_PATH, &rule);
    webhook["matchConditions"] =
        json!([{ "name": "of-a-raycluster", "expression": OF_A_RAY_CLUSTER }]);
    webhook["objectSelector"] = json!({
        "matchLabels": { "ray.io/node-type": "worker" },
        "matchExpressions": [{ "key": "ray.io/cluster", "operator": "Exists" }]
    });
    // Nothing that another webhook adds makes a difference.
    webhook["reinvocationPolicy"] = json!("Never");
    // KubeRay makes one pod after the other, and waits for each.
    webhook["timeoutSeconds"] = json!(2);
    webhook
}

fn configuration(options: &ManifestOptions, kind: &str, name: &str) -> Value {
    let mut metadata = Component::Admission.cluster_metadata(name, &options.namespace);
    // Without this label AKS would add selectors of its own.
    let mut annotations = json!({ "admissions.enforcer/disabled": "true" });
    if options.certificates == Some(Certificates::CertManager) {
        // The CA bundle is injected from the authority's Secret, because the Secret of the serving
        // certificate keeps the old authority until that certificate is renewed.
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

/// The webhook of one kind.
fn of_kind(options: &ManifestOptions, kind: Kind, verb: &str, path: &str) -> Value {
    // The API server's metrics are labelled by this name, and so tell the kinds apart.
    let name = format!("{verb}.{}.rayfit.dev", kind.name().to_lowercase());
    let rule = json!({
        "apiGroups": ["ray.io"],
        "apiVersions": ["v1", "v1alpha1"],
        // Without subresources, so updates of the status are never sent.
        "resources": [kind.plural()],
        "operations": ["CREATE", "UPDATE"],
        "scope": "Namespaced"
    });
    webhook(options, &name, path, &rule)
}

/// A webhook for the requests that a rule is about. It fails open.
fn webhook(options: &ManifestOptions, name: &str, path: &str, rule: &Value) -> Value {
    json!({
        "name": name,
        "clientConfig": {
            "service": {
                "name": APP,
                "namespace": options.namespace,
                "path": path,
                "port": 443
            }
        },
        "rules": [rule],
        // A request in another version of the API is converted and sent too, and not let through.
        "matchPolicy": "Equivalent",
        "matchConditions": [],
        "namespaceSelector": { "matchExpressions": namespaces(&options.spared_namespaces(), &options.only_namespaces) },
        "objectSelector": {},
        "sideEffects": "None",
        "timeoutSeconds": options.timeout_seconds,
        "admissionReviewVersions": ["v1"],
        "failurePolicy": "Ignore"
    })
}

/// The updates that the API server sends.
fn conditions(name: &str, expression: &str) -> Value {
    json!([
        { "name": name, "expression": expression },
        { "name": "judged-parts-changed", "expression": CHANGED }
    ])
}

/// The namespaces whose objects are sent: all but the excluded ones, or of these only some.
pub fn namespaces(excluded: &[&str], only: &[String]) -> Value {
    let by_name = |operator: &str, names: Value| json!({ "key": "kubernetes.io/metadata.name", "operator": operator, "values": names });
    // Without these a cluster can always start, and tools check for it.
    let mut expressions = vec![by_name("NotIn", json!(excluded))];
    if !only.is_empty() {
        expressions.push(by_name("In", json!(only)));
    }
    json!(expressions)
}
