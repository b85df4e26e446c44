//! Selectors of a policy that match nothing now. They lead to a warning and are never refused,
//! because the objects may be created later.

use crate::facts::{Facts, StoredObject};
use crate::policy::Policy;
use crate::policy::selector::matches;
use crate::raypolicy::PolicyFault;

/// Selectors and names that nothing matches now. Names and labels are only reported where a Ray
/// object is known that the policy could match.
pub(crate) fn vacuous(policy: &Policy, facts: &Facts) -> Vec<PolicyFault> {
    let scope = &policy.scope;
    let mut namespaces = facts.namespaces.keys().peekable();
    let nowhere = namespaces.peek().is_some()
        && !namespaces.any(|namespace| scope.has_namespace(namespace, facts));
    if nowhere {
        let problem = "no namespace has these labels now, so the policy matches nothing";
        return vec![PolicyFault::doubt("namespaceSelector", problem)];
    }
    let objects: Vec<&StoredObject> = facts
        .objects
        .iter()
        .filter(|(kind, _)| scope.has_kind(**kind))
        .flat_map(|(_, objects)| objects.iter())
        .map(AsRef::as_ref)
        .filter(|object| scope.has_namespace(&object.namespace, facts))
        .collect();
    // Before any such object is known, a name that nothing matches says nothing.
    if objects.is_empty() {
        return Vec::new();
    }
    // Names or labels that none of the objects has, or both if no object has them together.
    let is_selected = |object: &StoredObject| scope.has_labels(|key| object.label(key));
    let mut faults = Vec::new();
    for (index, pattern) in scope.names.iter().enumerate() {
        if !objects.iter().any(|object| matches(pattern, &object.name)) {
            let problem = "no Ray object that the policy could match has such a name now";
            faults.push(PolicyFault::doubt(&format!("names[{index}]"), problem));
        }
    }
    if !objects.iter().any(|object| is_selected(object)) {
        let problem = "no Ray object that the policy could match has these labels now";
        faults.push(PolicyFault::doubt("objectSelector", problem));
    }
    let is_about = |object: &StoredObject| is_selected(object) && scope.has_name(&object.name);
    if faults.is_empty() && !objects.iter().any(|object| is_about(object)) {
        let problem = "no Ray object has both such a name and these labels now";
        faults.push(PolicyFault::doubt("objectSelector", problem));
    }
    faults
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use crate::facts::Objects;
    use crate::ray::Kind;
    use crate::raypolicy::compile;
    use crate::raypolicy::vacuous::*;

    /// Two clusters, one of which has a label, in the namespace of team a; and an empty namespace.
    fn facts() -> Facts {
        let object = |name: &str, labels: &[(&str, &str)]| StoredObject {
            namespace: "team-a".into(),
            name: name.into(),
            labels: labels.iter().map(|&(k, v)| (k.into(), v.into())).collect(),
        };
        let stored = [object("exp-1", &[]), object("live", &[("tier", "prod")])];
        let mut objects = Objects::new();
        objects.insert(Kind::RayCluster, stored.map(Arc::new).into());
        let labelled = |team: &str| [("team".to_owned(), team.to_owned())].into();
        Facts {
            namespaces: Arc::new(
                [
                    ("team-a".to_owned(), labelled("a")),
                    ("team-b".to_owned(), labelled("b")),
                ]
                .into(),
            ),
            objects: Arc::new(objects),
            ..Facts::default()
        }
    }

    fn places(scope: &Value, facts: &Facts) -> Vec<String> {
        let policy = compile::read(&json!({"apiVersion": "rayfit.dev/v1alpha1",
            "kind": "RayPolicy", "metadata": {"name": "p"}, "spec": {"match": scope}}));
        let policy = compile(&policy.unwrap()).0.unwrap();
        let faults = vacuous(&policy, facts);
        faults.into_iter().map(|fault| fault.place).collect()
    }

    fn team(team: &str) -> Value {
        json!({"matchLabels": {"team": team}})
    }

    #[test]
    fn what_nothing_meets_is_pointed_out() {
        let prod = json!({"matchLabels": {"tier": "prod"}});
        let none = json!({"matchLabels": {"tier": "none"}});
        for (scope, expected) in [
            (
                json!({"namespaceSelector": team("c")}),
                &["spec.match.namespaceSelector"][..],
            ),
            (
                json!({"names": ["exp-*", "ex-*"]}),
                &["spec.match.names[1]"],
            ),
            (
                json!({"objectSelector": none}),
                &["spec.match.objectSelector"],
            ),
            (
                json!({"objectSelector": prod, "names": ["exp-*"]}),
                &["spec.match.objectSelector"],
            ),
            (json!({"objectSelector": prod, "names": ["l*"]}), &[]),
            (
                json!({"namespaceSelector": team("a"), "names": ["exp-*"]}),
                &[],
            ),
            (json!({"names": ["exp-*"]}), &[]),
        ] {
            assert_eq!(places(&scope, &facts()), expected, "{scope}");
        }
    }

    #[test]
    fn where_no_object_is_known_nothing_is_said_of_objects() {
        let nothing = Facts::default();
        let scope = json!({"namespaceSelector": team("c"), "names": ["x"]});
        assert!(places(&scope, &nothing).is_empty());
        let elsewhere = json!({"namespaceSelector": team("b"), "names": ["x"]});
        assert!(places(&elsewhere, &facts()).is_empty());
        let others = json!({"kinds": ["RayJob"], "names": ["x"]});
        assert!(places(&others, &facts()).is_empty());
    }
}
