//! Which requests a policy is about: the same as the webhooks.

use serde_json::{Value, json};

use super::VapOptions;
use crate::manifests::webhooks::{CHANGED, NOT_DELETING, NOT_ENDED};
use crate::manifests::{FailurePolicy, names};
use crate::ray::Kind;

/// The API of policies and bindings. (Validating: Kubernetes 1.30; mutating: 1.36.)
pub(super) const API_VERSION: &str = "admissionregistration.k8s.io/v1";

/// A policy or binding of ours. The component differs from the webhooks', so that neither is
/// deleted by the other's label.
pub(super) fn object(kind: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {
            "name": name,
            "labels": {
                "app.kubernetes.io/name": names::APP,
                "app.kubernetes.io/component": "policies"
            }
        },
        "spec": spec
    })
}

/// Which objects, in which namespaces.
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

/// What is never judged: updates that end an object, updates of nothing that is judged, and what
/// KubeRay's operator makes from a judged parent or writes to take its finalizer off.
pub(super) fn judged(options: &VapOptions) -> Value {
    conditions(options, "not-ended-by-it", NOT_ENDED)
}

/// What is never defaulted: the same, and all else that is being deleted.
pub(super) fn defaulted(options: &VapOptions) -> Value {
    conditions(options, "not-being-deleted", NOT_DELETING)
}

fn conditions(options: &VapOptions, name: &str, expression: &str) -> Value {
    let operator = Value::from(options.settings.operator_user.as_str());
    let by_operator = format!(
        "request.userInfo.username != {operator} || !object.metadata.?ownerReferences.orValue([])\
         .exists(owner, owner.apiVersion.startsWith('ray.io/') && owner.?controller.orValue(false))"
    );
    let for_its_finalizer = format!(
        "request.userInfo.username != {operator} || request.operation != 'UPDATE' \
         || !has(oldObject.metadata.deletionTimestamp)"
    );
    json!([
        { "name": name, "expression": expression },
        { "name": "judged-parts-changed", "expression": CHANGED },
        { "name": "not-made-from-a-judged-parent", "expression": by_operator },
        { "name": "not-for-kuberays-finalizer", "expression": for_its_finalizer }
    ])
}

/// What a failing expression leads to.
pub(super) const fn failure_policy(options: &VapOptions) -> &'static str {
    match options.failure_policy {
        FailurePolicy::Open => "Ignore",
        FailurePolicy::Closed => "Fail",
    }
}
