//! Limits on what the accounts may write, which a role cannot express.
//!
//! An account that may patch pods can set another image in any of them, including the pods of the
//! webhooks, and so gain the permissions of their account; one that may patch RayClusters can set another
//! image in their templates. A role cannot be limited to fields, nor exclude a namespace, nor limit what
//! is created to a name; ValidatingAdmissionPolicies can.

use serde_json::{Value, json};

use super::ManifestOptions;
use super::names::{AUDIT_LEASE, Component, LEADER_LEASE, cluster_name};
use crate::plan::STATUS_ANNOTATION;
use crate::ray::initial_sizes;
use crate::ray::reconcile::{RECORD, SETTINGS};
use crate::reconcile::effects::end::CLEANUP_FINALIZER;
use crate::reconcile::effects::hold;

/// The annotations of pods that Rayfit writes.
const OF_PODS: &[&str] = &[
    STATUS_ANNOTATION,
    hold::HOLDS,
    hold::KARPENTER.0,
    hold::CLUSTER_AUTOSCALER.0,
];

/// The annotations of RayClusters that Rayfit writes.
const OF_CLUSTERS: &[&str] = &[RECORD, SETTINGS, initial_sizes::ANNOTATION];

/// The fields of a worker group that are compared at a cost that grows with the number of groups only.
/// Others are compared too, for each group that has them.
const OF_GROUPS: &str = "['groupName', 'template', 'rayStartParams', 'minReplicas', 'maxReplicas', \
     'numOfHosts', 'idleTimeoutSeconds', 'suspend', 'resources', 'labels', 'priority']";

/// No finalizer is changed.
const SAME_FINALIZERS: &str = "object.metadata.?finalizers == oldObject.metadata.?finalizers";

/// The policies with their bindings: for what an installation scales, and for its Leases.
pub fn policies(options: &ManifestOptions) -> Vec<Value> {
    let Some(scaler) = options.scaler() else {
        return Vec::new();
    };
    let with_binding = |name: &str, policy: Value| {
        let object = |kind: &str, spec: Value| {
            json!({
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": kind,
                "metadata": scaler.cluster_metadata(name, &options.namespace),
                "spec": spec
            })
        };
        let binding = json!({
            "policyName": cluster_name(name, &options.namespace),
            "validationActions": ["Deny"]
        });
        [
            object("ValidatingAdmissionPolicy", policy),
            object("ValidatingAdmissionPolicyBinding", binding),
        ]
    };
    let mut policies = vec![
        with_binding("rayfit-pod-writes", of_pods(options, scaler)),
        with_binding("rayfit-cluster-writes", of_clusters(options, scaler)),
    ];
    // In one process with the webhooks, one account needs both Leases.
    if scaler == Component::Controller {
        let policy = of_leases(options);
        policies.push(with_binding("rayfit-lease-writes", policy));
    }
    policies.concat()
}

fn of_pods(options: &ManifestOptions, scaler: Component) -> Value {
    let of_ray = format!(
        "request.namespace != '{}' && has(oldObject.metadata.labels) \
         && 'ray.io/cluster' in oldObject.metadata.labels",
        options.namespace
    );
    json!({
        "failurePolicy": "Fail",
        "matchConstraints": matched(["", "v1"], "UPDATE", &["pods", "pods/resize"]),
        "matchConditions": [scales(options, scaler)],
        "variables": annotations(),
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
            },
            metadata("pods", OF_PODS, SAME_FINALIZERS)
        ]
    })
}

fn of_clusters(options: &ManifestOptions, scaler: Component) -> Value {
    // The API server checks the types of expressions by the schema, in which a spec is no map.
    let variable = |name: &str, expression: &str| json!({"name": name, "expression": expression});
    let groups = |object: &str| {
        format!(
            "'workerGroupSpecs' in variables.{object} ? variables.{object}.workerGroupSpecs : []"
        )
    };
    let mut variables = annotations();
    variables.extend([
        variable("spec", "dyn(object).spec"),
        variable("oldSpec", "dyn(oldObject).spec"),
        variable("groups", &groups("spec")),
        variable("oldGroups", &groups("oldSpec")),
        variable("fields", OF_GROUPS),
    ]);
    // A cluster that nobody uses is suspended, or is deleted once it has KubeRay's finalizer for that.
    let finalizers = format!(
        "({SAME_FINALIZERS} || object.metadata.?finalizers.orValue([]) \
         == oldObject.metadata.?finalizers.orValue([]) + ['{CLEANUP_FINALIZER}'])"
    );
    let same = "variables.groups.map(g, k in g ? g[k] : null) == variables.oldGroups.map(g, k in g ? g[k] : null)";
    let message = "Rayfit writes replicas and scaleStrategy of worker groups, and idleSuspend, and changes nothing else";
    json!({
        "failurePolicy": "Fail",
        "matchConstraints": matched(["ray.io", "v1"], "UPDATE", &["rayclusters"]),
        "matchConditions": [scales(options, scaler)],
        "variables": variables,
        "validations": [
            {
                "expression": "variables.spec.all(k, k == 'workerGroupSpecs' \
                               || k == 'idleSuspend' && variables.spec[k] == true \
                               || k in variables.oldSpec && variables.spec[k] == variables.oldSpec[k]) \
                               && variables.oldSpec.all(k, k in variables.spec)",
                "message": message
            },
            {
                "expression": format!("variables.fields.all(k, {same})"),
                "message": message
            },
            {
                "expression": format!(
                    "(variables.groups + variables.oldGroups).all(group, group.all(k, \
                     k == 'replicas' || k == 'scaleStrategy' || k in variables.fields || {same}))"
                ),
                "message": message
            },
            metadata("RayClusters", OF_CLUSTERS, &finalizers)
        ]
    })
}

/// Guards Leases: their holder scales or audits, so neither account may make the other one's.
fn of_leases(options: &ManifestOptions) -> Value {
    let [admission, controller] =
        [Component::Admission, Component::Controller].map(|each| each.user(&options.namespace));
    let mut constraints = matched(["coordination.k8s.io", "v1"], "CREATE", &["leases"]);
    constraints["namespaceSelector"] =
        json!({ "matchLabels": { "kubernetes.io/metadata.name": options.namespace } });
    json!({
        "failurePolicy": "Fail",
        "matchConstraints": constraints,
        "matchConditions": [{
            "name": "by-an-account-of-rayfit",
            "expression": format!("request.userInfo.username in ['{admission}', '{controller}']")
        }],
        "validations": [{
            "expression": format!(
                "object.metadata.name == (request.userInfo.username == '{controller}' \
                 ? '{LEADER_LEASE}' : '{AUDIT_LEASE}')"
            ),
            "message": "what scales clusters makes the Lease for that, what serves webhooks the one for the audit"
        }]
    })
}

fn matched([group, version]: [&str; 2], operation: &str, resources: &[&str]) -> Value {
    json!({
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
        "resourceRules": [{
            "apiGroups": [group],
            "apiVersions": [version],
            "operations": [operation],
            "resources": resources,
            "scope": "Namespaced"
        }]
    })
}

fn scales(options: &ManifestOptions, scaler: Component) -> Value {
    let user = scaler.user(&options.namespace);
    json!({
        "name": "by-what-scales-clusters",
        "expression": format!("request.userInfo.username == '{user}'")
    })
}

/// The annotations of an object as it is written and as it was, for [`metadata`].
fn annotations() -> Vec<Value> {
    let variable = |name: &str, object: &str| {
        let expression =
            format!("has({object}.metadata.annotations) ? {object}.metadata.annotations : {{}}");
        json!({"name": name, "expression": expression})
    };
    vec![
        variable("annotations", "object"),
        variable("oldAnnotations", "oldObject"),
    ]
}

/// Allows changes of only these annotations in the metadata, and of finalizers as that expression says.
fn metadata(of: &str, ours: &[&str], finalizers: &str) -> Value {
    let unchanged = ["labels", "ownerReferences"]
        .map(|field| format!("object.metadata.?{field} == oldObject.metadata.?{field}"));
    let ours = ours.iter().map(|name| format!("k == '{name}'"));
    let ours = ours.collect::<Vec<_>>().join(" || ");
    json!({
        "expression": format!(
            "{} && {finalizers} && variables.annotations.all(k, {ours} || k in variables.oldAnnotations \
             && variables.annotations[k] == variables.oldAnnotations[k]) \
             && variables.oldAnnotations.all(k, {ours} || k in variables.annotations)",
            unchanged.join(" && ")
        ),
        "message": format!(
            "Rayfit writes annotations of its own on {of}, and no labels, owners, finalizers of others or other annotations"
        )
    })
}
