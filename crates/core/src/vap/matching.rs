//! The requests that a policy matches: the same as those of the webhooks.

use serde_json::{Value, json};

use super::VapOptions;
use crate::manifests::names;
use crate::manifests::webhooks::{CHANGED, namespaces};
use crate::ray::Kind;

/// The API of policies and bindings. (Validating: Kubernetes 1.30; mutating: 1.36.)
pub(super) const API_VERSION: &str = "admissionregistration.k8s.io/v1";

/// Labels of a policy or binding of Rayfit.
pub(super) fn object(kind: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {
            "name": name,
            "labels": {
                "app.kubernetes.io/name": names::APP,
                // Another component than that of the webhooks, so that deleting one by label does
                // not delete the other.
                "app.kubernetes.io/component": "policies"
            }
        },
        "spec": spec
    })
}

/// The matched objects and namespaces.
pub(super) fn constraints(options: &VapOptions) -> Value {
    let resources: Vec<&str> = Kind::ALL.iter().map(|kind| kind.plural()).collect();
    let mut excluded = vec!["kube-system"];
    excluded.extend(options.excluded_namespaces.iter().map(String::as_str));
    json!({
        "matchPolicy": "Equivalent",
        "namespaceSelector": { "matchExpressions": namespaces(&excluded, &options.only_namespaces) },
        "resourceRules": [{
            "apiGroups": ["ray.io"],
            "apiVersions": ["v1", "v1alpha1"],
            "operations": ["CREATE", "UPDATE"],
            "resources": resources,
            "scope": "Namespaced"
        }]
    })
}

/// The requests that are checked or get defaults: `expression` leaves out those of objects that end, the others
/// updates that change nothing that is checked, objects that KubeRay's operator creates from a checked parent, and
/// updates by which it removes its finalizer.
pub(super) fn conditions(options: &VapOptions, name: &str, expression: &str) -> Value {
    let operators = json!(options.settings.operators);
    let by_operator = format!(
        "!(request.userInfo.username in {operators}) || !object.metadata.?ownerReferences.orValue([])\
         .exists(owner, owner.apiVersion.startsWith('ray.io/') && owner.?controller.orValue(false))"
    );
    let for_its_finalizer = format!(
        "!(request.userInfo.username in {operators}) || request.operation != 'UPDATE' \
         || !has(oldObject.metadata.deletionTimestamp)"
    );
    json!([
        { "name": name, "expression": expression },
        { "name": "judged-parts-changed", "expression": CHANGED },
        { "name": "not-made-from-a-judged-parent", "expression": by_operator },
        { "name": "not-for-kuberays-finalizer", "expression": for_its_finalizer }
    ])
}
