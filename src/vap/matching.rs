//! The requests that a policy matches: the same as those of the webhooks.

use serde_json::{Value, json};

use super::VapOptions;
use crate::manifests::webhooks::{CHANGED, NOT_DELETING, NOT_ENDED};
use crate::manifests::{FailurePolicy, names};
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
    json!({
        "matchPolicy": "Equivalent",
        "namespaceSelector": { "matchExpressions": namespaces(options) },
        "resourceRules": [{
            "apiGroups": ["ray.io"],
            "apiVersions": ["v1", "v1alpha1"],
            "operations": ["CREATE", "UPDATE"],
            "resources": resources,
            "scope": "Namespaced"
        }]
    })
}

fn namespaces(options: &VapOptions) -> Vec<Value> {
    let by_name = |operator: &str, names: &[String]| json!({ "key": "kubernetes.io/metadata.name", "operator": operator, "values": names });
    let mut excluded = vec!["kube-system".to_owned()];
    excluded.extend_from_slice(&options.excluded_namespaces);
    let mut expressions = vec![by_name("NotIn", &excluded)];
    if !options.only_namespaces.is_empty() {
        expressions.push(by_name("In", &options.only_namespaces));
    }
    expressions
}

/// Requests that are never checked: updates that end an object, updates that change nothing that is
/// checked, objects that KubeRay's operator creates from a checked parent, and updates by which it
/// removes its finalizer.
pub(super) fn judged(options: &VapOptions) -> Value {
    conditions(options, "not-ended-by-it", NOT_ENDED)
}

/// Requests that never get defaults: the same, and all other objects that are being deleted.
pub(super) fn defaulted(options: &VapOptions) -> Value {
    conditions(options, "not-being-deleted", NOT_DELETING)
}

fn conditions(options: &VapOptions, name: &str, expression: &str) -> Value {
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

/// The consequence of a failing expression.
pub(super) const fn failure_policy(options: &VapOptions) -> &'static str {
    match options.failure_policy {
        FailurePolicy::Open => "Ignore",
        FailurePolicy::Closed => "Fail",
    }
}
