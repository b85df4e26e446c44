//! Validating a RayPolicy before it is stored: problems are refused, and what is unlikely to be
//! intended leads to a warning. A problem that the stored policy already has only leads to a
//! warning, so that the policy can still be changed.

use std::collections::BTreeSet;

use k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::facts::Facts;
use crate::policy::resource::RayPolicy;
use crate::policy::{Exemption, Mode, Policies, Policy};
use crate::raypolicy::vacuous::vacuous;
use crate::raypolicy::{PolicyFault, Weight, avoidable, compile};
use crate::rule_id::RuleId;

/// The longest duration of an exemption: a year and a day.
const LONGEST: SignedDuration = SignedDuration::from_hours(24 * 366);

/// The result for a RayPolicy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PolicyReview {
    /// The reasons for a refusal; empty if it is accepted.
    pub refused: Vec<PolicyFault>,
    /// The warnings for its author.
    pub doubted: Vec<PolicyFault>,
}

/// Validates `new`, which replaces `old`, together with the policies that are in force.
pub fn review(
    new: &RayPolicy,
    old: Option<&RayPolicy>,
    others: &Policies,
    facts: &Facts,
    now: Timestamp,
) -> PolicyReview {
    let (policy, mut faults) = examine(new, now);
    if let Some(policy) = &policy {
        faults.extend(conflicts(policy, others, facts));
        faults.extend(vacuous(policy, facts));
        faults.extend(avoidable(policy, others, facts));
    }
    let before = old.map(|old| examine(old, now).1).unwrap_or_default();
    let (refused, doubted) = faults
        .into_iter()
        .partition(|fault| fault.weight > Weight::Doubt && !before.contains(fault));
    PolicyReview { refused, doubted }
}

/// The problems of a policy on its own.
fn examine(policy: &RayPolicy, now: Timestamp) -> (Option<Policy>, Vec<PolicyFault>) {
    let (compiled, mut faults) = compile(policy);
    let exemptions = compiled.iter().flat_map(|compiled| &compiled.exemptions);
    for exemption in exemptions {
        let place = format!("spec.exemptions[{}]", exemption.index);
        faults.extend(unbounded(exemption, &place, now));
    }
    (compiled, faults)
}

fn unbounded(exemption: &Exemption, place: &str, now: Timestamp) -> Vec<PolicyFault> {
    let fault = |key: &str, problem: String| PolicyFault {
        place: format!("{place}.{key}"),
        problem,
        weight: Weight::Part,
    };
    let expires = exemption.expires;
    let mut faults = Vec::new();
    if !exemption.is_in_force(now) {
        faults.push(fault(
            "expires",
            format!("{expires} is in the past: set a later time, or remove the exemption"),
        ));
    } else if expires.duration_since(now) > LONGEST {
        faults.push(fault(
            "expires",
            format!("{expires} is more than a year ahead: exempt for a shorter time, then again"),
        ));
    }
    let everything = exemption
        .objects
        .iter()
        .any(crate::policy::exemption::ExemptionScope::is_everything);
    if everything && exemption.rules.is_none() {
        faults.push(fault(
            "objects",
            "this exempts every object from every rule: set mode to Audit instead, or name some"
                .to_owned(),
        ));
    }
    faults
}

/// Another policy of the same priority that disagrees about some of the same objects. Then the
/// names of the policies decide, which is rarely intended.
fn conflicts(policy: &Policy, others: &Policies, facts: &Facts) -> Vec<PolicyFault> {
    let equals = others
        .iter()
        .filter(|other| other.name != policy.name && other.priority == policy.priority);
    equals
        .filter(|other| policy.scope.may_overlap(&other.scope, facts))
        .filter_map(|other| {
            let matter = disagreement(policy, other)?;
            let first = (&policy.name).min(&other.name);
            Some(PolicyFault {
                place: "spec.priority".to_owned(),
                problem: format!(
                    "policy {} has the same priority and another {matter} for some of the same \
                     objects; {first} decides, because it is first by name: give one a higher \
                     priority",
                    other.name
                ),
                weight: Weight::Doubt,
            })
        })
        .collect()
}

/// The setting about which two policies disagree, if there is one.
fn disagreement(one: &Policy, other: &Policy) -> Option<String> {
    if one.mode.is_some() && other.mode.is_some() && one.mode != other.mode {
        return Some("mode".to_owned());
    }
    let rules: BTreeSet<RuleId> = one
        .rules
        .keys()
        .chain(other.rules.keys())
        .copied()
        .collect();
    let says = |policy: &Policy, rule: &RuleId| -> Option<Mode> {
        policy.rules.get(rule).copied().or(policy.mode)
    };
    rules
        .into_iter()
        .find(|rule| matches!((says(one, rule), says(other, rule)), (Some(a), Some(b)) if a != b))
        .map(|rule| format!("mode of {rule}"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::raypolicy::review::*;

    fn written(name: &str, spec: &Value) -> RayPolicy {
        compile::read(
            &json!({"apiVersion": "rayfit.dev/v1alpha1", "kind": "RayPolicy",
            "metadata": {"name": name}, "spec": spec}),
        )
        .unwrap()
    }

    fn reviewed(spec: &Value, old: Option<&Value>, others: &[(&str, Value)]) -> PolicyReview {
        let others = others
            .iter()
            .filter_map(|(name, spec)| compile(&written(name, spec)).0);
        let old = old.map(|old| written("new", old));
        review(
            &written("new", spec),
            old.as_ref(),
            &Policies::new(others.collect()),
            &Facts::default(),
            "2027-01-01T00:00:00Z".parse().unwrap(),
        )
    }

    fn places(faults: &[PolicyFault]) -> Vec<&str> {
        faults.iter().map(|fault| fault.place.as_str()).collect()
    }

    #[test]
    fn what_cannot_hold_is_refused_once() {
        let spec = json!({"rules": {"RF999": "Warn"}, "limits": {"maxCpuPerPod": "x"},
            "exemptions": [{"rules": ["RF998"], "objects": [{"name": "a"}], "reason": "r",
                "expires": "2027-02-01T00:00:00Z"}]});
        let found = reviewed(&spec, None, &[]);
        assert_eq!(
            places(&found.refused),
            [
                "spec.rules.RF999",
                "spec.limits.maxCpuPerPod",
                "spec.exemptions[0].rules[0]"
            ]
        );
        let again = reviewed(&spec, Some(&spec), &[]);
        assert_eq!((again.refused.len(), again.doubted.len()), (0, 3));
    }

    #[test]
    fn exemptions_end_and_are_about_something() {
        let exemption = |expires: &str, rules: &str, name: &str| {
            json!({"exemptions": [{"rules": [rules], "objects": [{"name": name}], "reason": "r",
                "expires": expires}]})
        };
        let places_of = |spec: &Value| -> Vec<String> {
            let refused = reviewed(spec, None, &[]).refused;
            refused.iter().map(|fault| fault.place.clone()).collect()
        };
        assert!(places_of(&exemption("2027-12-01T00:00:00Z", "RF105", "*")).is_empty());
        assert!(places_of(&exemption("2027-12-01T00:00:00Z", "*", "a")).is_empty());
        for (spec, place) in [
            (
                exemption("2026-12-31T00:00:00Z", "RF105", "a"),
                "spec.exemptions[0].expires",
            ),
            (
                exemption("2030-01-01T00:00:00Z", "RF105", "a"),
                "spec.exemptions[0].expires",
            ),
            (
                exemption("2027-02-01T00:00:00Z", "*", "*"),
                "spec.exemptions[0].objects",
            ),
        ] {
            assert_eq!(places_of(&spec), [place], "{spec}");
        }
    }

    #[test]
    fn equal_priorities_that_disagree_are_pointed_out_where_they_can_meet() {
        let mine = json!({"mode": "Warn", "match": {"kinds": ["RayCluster"]}});
        let doubted = |other: Value| reviewed(&mine, None, &[("other", other)]).doubted.len();
        assert_eq!(doubted(json!({"mode": "Audit"})), 1);
        assert_eq!(doubted(json!({"rules": {"RF105": "Enforce"}})), 1);
        assert_eq!(doubted(json!({"mode": "Warn"})), 0);
        assert_eq!(doubted(json!({"mode": "Audit", "priority": 1})), 0);
        assert_eq!(
            doubted(json!({"mode": "Audit", "match": {"kinds": ["RayJob"]}})),
            0
        );
    }
}
