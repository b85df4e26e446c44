//! Limits that users can avoid: a policy that selects objects by labels, names or kinds no longer
//! matches an object once its author chooses others. These lead to a warning and are never refused,
//! because an admin may intend it.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::facts::Facts;
use crate::policy::resource::Match;
use crate::policy::selector::is_any;
use crate::policy::{Policies, Policy};
use crate::quantity::Quantity;
use crate::ray::Kind;
use crate::raypolicy::PolicyFault;

/// The limits of `policy` that an object avoids with another label, name or kind if no policy in
/// `others` then sets the same limit; and the limits that allow an object with a certain label or
/// name more than other objects.
pub fn avoidable(policy: &Policy, others: &Policies, facts: &Facts) -> Vec<PolicyFault> {
    let others: Vec<&Policy> = others
        .iter()
        .filter(|other| other.name != policy.name)
        .collect();
    let limits: Vec<(&str, Quantity)> = policy.limits.named().collect();
    let mut faults = Vec::new();
    let place = chosen(&policy.scope);
    let open_to = |name: &str| unlimited(name, policy, &others, facts);
    let open = limits.iter().map(|(name, _)| *name);
    let open: Vec<&str> = open.filter(|name| !open_to(name).is_empty()).collect();
    if !open.is_empty() {
        let names = open.join(", ");
        faults.push(if let Some(place) = place {
            PolicyFault::doubt(
                place,
                format!(
                    "users choose this for their objects, and can so avoid {names}; also limit all \
                     objects of these namespaces in a policy without names and objectSelector"
                ),
            )
        } else {
            let kinds: BTreeSet<Kind> = open.into_iter().flat_map(open_to).collect();
            let kinds: Vec<&str> = kinds.into_iter().map(Kind::name).collect();
            PolicyFault::doubt(
                "kinds",
                format!(
                    "users who may write a {} avoid {names}; leave kinds out, or also limit that kind \
                     in a policy",
                    kinds.join(" or a ")
                ),
            )
        });
    }
    // Authors do not control the namespace, so only another kind avoids such a policy.
    let Some(place) = place else {
        return faults;
    };
    let rank = |policy: &Policy| (Reverse(policy.priority), policy.name.clone());
    for base in others.iter().filter(|base| is_base(base, policy, facts)) {
        let gained = limits.iter().filter(|(name, most)| {
            let mut theirs = base.limits.named();
            theirs.any(|(their_name, theirs)| their_name == *name && theirs < *most)
        });
        let gained: Vec<&str> = gained.map(|(name, _)| *name).collect();
        if !gained.is_empty() && rank(policy) < rank(base) {
            faults.push(PolicyFault::doubt(
                place,
                format!(
                    "users choose these for their objects, and can so get more than policy {} \
                     allows ({}); use namespaceSelector to select who gets more",
                    base.name,
                    gained.join(", ")
                ),
            ));
        }
    }
    faults
}

/// The kinds of objects in the namespaces of `policy` to which no such limit applies.
fn unlimited(limit: &str, policy: &Policy, others: &[&Policy], facts: &Facts) -> Vec<Kind> {
    let limited = |kind: Kind| {
        let is_limited = chosen(&policy.scope).is_none() && policy.scope.has_kind(kind);
        is_limited
            || others.iter().any(|other| {
                is_base(other, policy, facts)
                    && other.scope.has_kind(kind)
                    && other.limits.named().any(|(name, _)| name == limit)
            })
    };
    Kind::ALL
        .into_iter()
        .filter(|kind| !limited(*kind))
        .collect()
}

/// Checks that `base` matches all objects of its kinds in the namespaces of `policy`.
fn is_base(base: &Policy, policy: &Policy, facts: &Facts) -> bool {
    chosen(&base.scope).is_none() && policy.scope.is_within_namespaces_of(&base.scope, facts)
}

/// The condition of a scope that authors of objects control, if there is one. They do not control
/// the namespace.
fn chosen(scope: &Match) -> Option<&'static str> {
    let selector = scope.object_selector.as_ref();
    if selector.is_some_and(|selector| !selector.is_empty()) {
        return Some("objectSelector");
    }
    let any = scope.names.is_empty() || scope.names.iter().any(|pattern| is_any(pattern));
    (!any).then_some("names")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::raypolicy::avoidable::*;
    use crate::raypolicy::compile;

    fn policy(name: &str, spec: &Value) -> Policy {
        let written = compile::read(&json!({"apiVersion": "rayfit.dev/v1alpha1",
            "kind": "RayPolicy", "metadata": {"name": name}, "spec": spec}));
        compile(&written.unwrap()).0.unwrap()
    }

    fn warnings(spec: &Value, others: &[(&str, Value)]) -> Vec<String> {
        let others = others.iter().map(|(name, spec)| policy(name, spec));
        let others = Policies::new(others.collect());
        let faults = avoidable(&policy("mine", spec), &others, &Facts::default());
        faults.iter().map(ToString::to_string).collect()
    }

    fn limited(scope: &Value) -> Value {
        json!({"match": scope, "limits": {"maxGpusPerCluster": 4, "maxCpuPerPod": 8}})
    }

    #[test]
    fn a_limit_that_a_label_a_name_or_a_kind_escapes_is_pointed_out() {
        let label = json!({"objectSelector": {"matchLabels": {"tier": "dev"}}});
        let team = json!({"namespaceSelector": {"matchLabels": {"team": "a"}}});
        for (scope, place) in [
            (&label, Some("spec.match.objectSelector: ")),
            (&json!({"names": ["exp-*"]}), Some("spec.match.names: ")),
            (
                &json!({"kinds": ["RayCluster"]}),
                Some("spec.match.kinds: "),
            ),
            (&json!({"names": ["exp-*", "*"]}), None),
            (&json!({"objectSelector": {}}), None),
            (&team, None),
        ] {
            let warnings = warnings(&limited(scope), &[]);
            match place {
                None => assert!(warnings.is_empty(), "{scope}: {warnings:?}"),
                Some(place) => {
                    assert!(
                        warnings.len() == 1 && warnings[0].starts_with(place),
                        "{warnings:?}"
                    );
                    assert!(
                        warnings[0].contains("maxCpuPerPod, maxGpusPerCluster"),
                        "{warnings:?}"
                    );
                }
            }
        }
        // Without a limit there is nothing to escape.
        assert!(warnings(&json!({"match": label, "mode": "Warn"}), &[]).is_empty());
    }

    #[test]
    fn a_limit_for_the_rest_of_the_namespaces_closes_it() {
        let label = json!({"objectSelector": {"matchLabels": {"tier": "dev"}}});
        let rest = json!({"limits": {"maxGpusPerCluster": 9, "maxCpuPerPod": 9}});
        assert!(warnings(&limited(&label), &[("rest", rest.clone())]).is_empty());
        let mut one = rest.clone();
        one["limits"]
            .as_object_mut()
            .unwrap()
            .remove("maxCpuPerPod");
        let said_of_one = warnings(&limited(&label), &[("rest", one)]);
        assert!(
            said_of_one[0].contains("avoid maxCpuPerPod;"),
            "{said_of_one:?}"
        );
        let mut elsewhere = rest.clone();
        elsewhere["match"] = json!({"namespaceSelector": {"matchLabels": {"team": "a"}}});
        assert_eq!(warnings(&limited(&label), &[("rest", elsewhere)]).len(), 1);
        let jobs = json!({"match": {"kinds": ["RayJob", "RayService", "RayCronJob"]},
            "limits": rest["limits"]});
        let clusters = json!({"kinds": ["RayCluster"]});
        assert!(warnings(&limited(&clusters), &[("jobs", jobs)]).is_empty());
    }

    #[test]
    fn a_label_that_gains_more_is_pointed_out_where_it_decides() {
        let label = json!({"objectSelector": {"matchLabels": {"tier": "prod"}}});
        let rest = json!({"limits": {"maxGpusPerCluster": 2, "maxCpuPerPod": 9}});
        let mut mine = limited(&label);
        let others = [("rest", rest)];
        let said_first = warnings(&mine, &others);
        assert_eq!(said_first.len(), 1);
        assert!(
            said_first[0].contains("policy rest allows (maxGpusPerCluster)"),
            "{said_first:?}"
        );
        mine["priority"] = json!(-1);
        assert!(warnings(&mine, &others).is_empty());
    }
}
