//! DF01 and DF02 as `MutatingAdmissionPolicies`: requests and resize policy of groups that grow in
//! place. The API server has them switched on from Kubernetes 1.36 on.
//!
//! Like the webhook they change no present value, and on an update they fill in only what the
//! update itself makes necessary or has removed. The lists of groups and containers are atomic in
//! KubeRay's definitions, so the policies write JSON patches and no apply configurations.

use serde_json::{Value, json};

use super::matching::{self, constraints};
use super::{VapOptions, variables};
use crate::defaults::DefaultId;
use crate::manifests::webhooks::NOT_DELETING;

const POINTERS: &str = "s.object.kind == 'RayCluster' ? '/spec' : s.object.kind == 'RayJob' ? '/spec/rayClusterSpec' : '/spec/rayClusterConfig'";

/// An object without the annotation is skipped.
const GROWS: &str = "object.metadata.?annotations[?'ray.io/ippr'].orValue('') != ''";

/// The listed groups of the object that can be filled in, with the stored groups of their names
/// that were listed too. Groups that share a name are skipped (RF202 denies them).
const PAIRS: &str = "(variables.listed[0]
.filter(g, g.g.containers.size() > 0 && variables.listed[0].filter(h, h.g.name == g.g.name).size() == 1)
.map(g, {
  'g': dyn(g.g),
  'at': dyn(g.at + '/template/spec/containers/0'),
  'old': dyn((variables.listed.size() < 2 ? [] : variables.listed[1]).filter(o, o.g.name == g.g.name && o.g.containers.size() > 0).map(o, o.g))
}))";

const REQUESTS: &str = "variables.pairs
.map(p, {
  'g': p.g, 'at': p.at, 'old': p.old,
  'missing': dyn(['cpu', 'memory'].filter(r, !(r in p.g.requests) && r in p.g.limits && !string(p.g.limits[r]).matches('[eE][-+]?[0-9.]{3}') && isQuantity(string(p.g.limits[r]))
    && (p.old.size() == 0 || r in p.old[0].requests
      && !([p.old[0].requests[r]] + (r in p.old[0].limits ? [p.old[0].limits[r]] : [])).exists(a, string(a).matches('[eE][-+]?[0-9.]{3}')))))
})
.filter(p, p.missing.size() > 0)
.map(p, (has(p.g.containers[0].resources.requests) ? [] : [JSONPatch{op: 'add', path: p.at + '/resources/requests', value: {}}])
  + p.missing.map(r, JSONPatch{op: 'add', path: p.at + '/resources/requests/' + r, value:
    p.old.size() == 0
    || quantity(string(p.old[0].requests[r])).isGreaterThan(quantity(string(p.g.limits[r])))
    || r in p.old[0].limits && p.old[0].limits[r] != p.g.limits[r] && quantity(string(p.old[0].limits[r])).compareTo(quantity(string(p.old[0].requests[r]))) == 0
    ? p.g.limits[r] : p.old[0].requests[r]}))
.flatten()";

const RESIZE_POLICY: &str = "variables.pairs
.map(p, {
  'g': p.g, 'at': p.at,
  'missing': dyn(['cpu', 'memory'].filter(r, !p.g.containers[0].?resizePolicy.orValue([]).exists(e, e.resourceName == r)
    && (p.old.size() == 0 || p.old[0].containers[0].?resizePolicy.orValue([]).exists(e, e.resourceName == r))))
})
.filter(p, p.missing.size() > 0)
.map(p, has(p.g.containers[0].resizePolicy)
  ? p.missing.map(r, JSONPatch{op: 'add', path: p.at + '/resizePolicy/-', value: {'resourceName': dyn(r), 'restartPolicy': dyn('NotRequired')}})
  : [JSONPatch{op: 'add', path: p.at + '/resizePolicy', value: p.missing.map(r, {'resourceName': dyn(r), 'restartPolicy': dyn('NotRequired')})}])
.flatten()";

/// Has a policy for the default.
pub fn covers(default: DefaultId) -> bool {
    POLICIES.iter().any(|(id, ..)| *id == default)
}

/// Each default with the name of its policy and its patch.
const POLICIES: [(DefaultId, &str, &str); 2] = [
    (DefaultId(1), "df01-ippr-requests.rayfit.dev", REQUESTS),
    (
        DefaultId(2),
        "df02-ippr-resize-policy.rayfit.dev",
        RESIZE_POLICY,
    ),
];

/// The policies and their bindings.
pub fn objects(options: &VapOptions) -> Vec<Value> {
    POLICIES
        .into_iter()
        .flat_map(|(_, name, patch)| {
            [
                matching::object("MutatingAdmissionPolicy", name, &policy(patch, options)),
                matching::object(
                    "MutatingAdmissionPolicyBinding",
                    name,
                    &json!({ "policyName": name }),
                ),
            ]
        })
        .collect()
}

fn policy(patch: &str, options: &VapOptions) -> Value {
    let listed = format!(
        "variables.subjects.map(s, s.object.kind == 'RayCronJob' ? [] : {}.map(l, {{\n  \
           'g': l.g,\n  'at': dyn(({POINTERS}) + (l.g.head ? '/headGroupSpec' : '/workerGroupSpecs/' + \
           string(s.groups.filter(w, !w.head).map(w, w.name).indexOf(l.g.name))))\n}}))",
        variables::LISTED
    );
    // No object that is being deleted gets a default.
    let mut conditions = matching::conditions(options, "not-being-deleted", NOT_DELETING);
    if let Some(conditions) = conditions.as_array_mut() {
        conditions.push(json!({ "name": "grows-in-place", "expression": GROWS }));
    }
    json!({
        // A default never refuses anything.
        "failurePolicy": "Ignore",
        // A webhook may add fields on which the defaults depend.
        "reinvocationPolicy": "IfNeeded",
        "matchConstraints": constraints(options),
        "matchConditions": conditions,
        "variables": [
            { "name": "subjects", "expression": variables::SUBJECTS },
            { "name": "listed", "expression": listed },
            { "name": "pairs", "expression": PAIRS }
        ],
        // The variables are evaluated once, of the object as it arrived, so each policy has one
        // mutation.
        "mutations": [{ "patchType": "JSONPatch", "jsonPatch": { "expression": patch } }]
    })
}
