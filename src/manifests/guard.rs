//! Limits on what the account that scales clusters may write in pods, which a role cannot express.
//!
//! An account that may patch pods can set another image in any of them, including the pods of the
//! webhooks, and so gain the permissions of their account. A role cannot be limited to annotations,
//! nor exclude a namespace; a ValidatingAdmissionPolicy can do both.

use serde_json::{Value, json};

use super::ManifestOptions;
use super::names::{Component, cluster_name};

/// The name of the policy and of its binding, by [`cluster_name()`].
pub const NAME: &str = "rayfit-pod-writes";

/// The policy and its binding.
pub fn of_pods(options: &ManifestOptions, component: Component) -> [Value; 2] {
    let object = |kind: &str, spec: Value| {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": component.cluster_metadata(NAME, &options.namespace),
            "spec": spec
        })
    };
    [
        object("ValidatingAdmissionPolicy", policy(options, component)),
        object(
            "ValidatingAdmissionPolicyBinding",
            json!({
                "policyName": cluster_name(NAME, &options.namespace),
                "validationActions": ["Deny"]
            }),
        ),
    ]
}

fn policy(options: &ManifestOptions, component: Component) -> Value {
    let user = component.user(&options.namespace);
    let of_ray = format!(
        "request.namespace != '{}' && has(oldObject.metadata.labels) \
         && 'ray.io/cluster' in oldObject.metadata.labels",
        options.namespace
    );
    json!({
        "failurePolicy": "Fail",
        "matchConstraints": {
            "matchPolicy": "Equivalent",
            "namespaceSelector": {},
            "objectSelector": {},
            "resourceRules": [{
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["UPDATE"],
                "resources": ["pods", "pods/resize"],
                "scope": "Namespaced"
            }]
        },
        "matchConditions": [{
            "name": "by-what-scales-clusters",
            "expression": format!("request.userInfo.username == '{user}'")
        }],
        "validations": [
            {
                "expression": of_ray,
                "message": "Rayfit only changes pods of Ray clusters, and none of its own"
            },
            {
                // The subresource `resize` can only change sizes.
                "expression": "has(request.subResource) && request.subResource == 'resize' \
                               || object.spec == oldObject.spec",
                "message": "Rayfit writes annotations of pods and resizes them, and changes nothing else"
            }
        ]
    })
}
