//! Validating a RayPolicy before it is stored: problems are refused, and what is unlikely to be
//! intended leads to a warning. A problem that the stored policy already has only leads to a
//! warning, so that the policy can still be changed.

use std::collections::BTreeSet;

use k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::facts::Facts;
use crate::policy::resource::{Defaults, ExemptObjects, RayPolicy};
use crate::policy::selector::is_any;
use crate::policy::settings::ReconcileSettings;
use crate::policy::{Mode, Policies, Policy};
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
    pub warnings: Vec<PolicyFault>,
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
    let mut stored = old.map(|old| examine(old, now).1).unwrap_or_default();
    let (refused, warnings) = faults
        .into_iter()
        .partition(|fault| fault.weight > Weight::Doubt && !is_old(fault, &mut stored));
    PolicyReview { refused, warnings }
}

impl PolicyReview {
    /// The result for a RayPolicy that cannot be read; `stored` is why the stored one cannot be, either.
    pub fn of_unreadable(fault: PolicyFault, stored: Option<&PolicyFault>) -> Self {
        let (mut refused, mut warnings) = (Vec::new(), Vec::new());
        let is_old = stored == Some(&fault);
        (if is_old { &mut warnings } else { &mut refused }).push(fault);
        Self { refused, warnings }
    }
}

/// Finds the problem in the stored policy; removes it from `stored`, so duplicates are matched one to one.
fn is_old(fault: &PolicyFault, stored: &mut Vec<PolicyFault>) -> bool {
    let is_same = |other: &PolicyFault| {
        other.problem == fault.problem
            // An entry that comes or goes moves those behind it in its list.
            && without_positions(&other.place) == without_positions(&fault.place)
    };
    let position = stored.iter().position(is_same);
    position.map(|at| stored.swap_remove(at)).is_some()
}

/// `spec.exemptions[1].rules[0]` as `spec.exemptions.rules`
fn without_positions(place: &str) -> String {
    let parts = place.split('[');
    parts
        .map(|part| part.split_once(']').map_or(part, |(_, after)| after))
        .collect()
}

/// The problems of a policy on its own.
fn examine(policy: &RayPolicy, now: Timestamp) -> (Option<Policy>, Vec<PolicyFault>) {
    let (compiled, mut faults) = compile(policy);
    for exemption in compiled.iter().flat_map(|compiled| &compiled.exemptions) {
        let mut report = |key: &str, problem: String| {
            faults.push(PolicyFault {
                place: format!("spec.exemptions[{}].{key}", exemption.index),
                problem,
                weight: Weight::Part,
            });
        };
        let expires = exemption.expires;
        if !exemption.is_in_force(now) {
            let problem =
                format!("{expires} is in the past: set a later time, or remove the exemption");
            report("expires", problem);
        } else if expires.duration_since(now) > LONGEST {
            let problem = format!(
                "{expires} is more than a year ahead: exempt for a shorter time, then again"
            );
            report("expires", problem);
        }
        let is_everything = |objects: &ExemptObjects| {
            let mut patterns = [&objects.namespace, &objects.name].into_iter().flatten();
            patterns.all(|pattern| is_any(pattern))
        };
        if exemption.rules.is_none() && exemption.objects.iter().any(is_everything) {
            let problem = "this exempts every object from every rule: set mode to Audit instead, or \
                           name some";
            report("objects", problem.to_owned());
        }
    }
    (compiled, faults)
}

/// Another policy of the same priority that disagrees about some of the same objects. Then the
/// names of the policies decide, which is rarely intended.
fn conflicts(policy: &Policy, others: &Policies, facts: &Facts) -> Vec<PolicyFault> {
    // Of unequal priorities the higher one decides, as its author meant.
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
        .or_else(|| other_values(one, other))
}

/// The values about which two policies disagree, if there are any: those that come out differently in another order.
fn other_values(one: &Policy, other: &Policy) -> Option<String> {
    fn differ<T: PartialEq>(one: Option<&T>, other: Option<&T>) -> bool {
        one.zip(other).is_some_and(|(one, other)| one != other)
    }
    let mut limits = one.limits.named();
    let limit = limits.find(|(name, most)| {
        let mut theirs = other.limits.named();
        theirs.any(|(their_name, theirs)| their_name == *name && theirs != *most)
    });
    if let Some((name, _)) = limit {
        return Some(format!("limit {name}"));
    }
    let defaults = |policy: &Policy, values: &mut Defaults| policy.defaults.write_over(values);
    let reconcile =
        |policy: &Policy, settings: &mut ReconcileSettings| policy.reconcile.write_over(settings);
    let modes = |policy: &Policy| policy.reconcile.written.allowed_modes.clone();
    let decides = [
        ("value in defaults", depends_on_order(one, other, defaults)),
        (
            "value in reconcile",
            depends_on_order(one, other, reconcile),
        ),
        (
            "allowedModes",
            differ(modes(one).as_ref(), modes(other).as_ref()),
        ),
        (
            "failClosed",
            differ(one.fail_closed.as_ref(), other.fail_closed.as_ref()),
        ),
    ];
    let decides = decides.into_iter().find(|(_, decides)| *decides);
    decides.map(|(what, _)| what.to_owned())
}

fn depends_on_order<S: Default + PartialEq>(
    one: &Policy,
    other: &Policy,
    write: impl Fn(&Policy, &mut S),
) -> bool {
    let folded = |order: [&Policy; 2]| {
        let mut settings = S::default();
        for policy in order {
            write(policy, &mut settings);
        }
        settings
    };
    folded([one, other]) != folded([other, one])
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
        let review = reviewed(&spec, None, &[]);
        assert_eq!(
            places(&review.refused),
            [
                "spec.rules.RF999",
                "spec.limits.maxCpuPerPod",
                "spec.exemptions[0].rules[0]"
            ]
        );
        let again = reviewed(&spec, Some(&spec), &[]);
        assert_eq!((again.refused.len(), again.warnings.len()), (0, 3));
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
        let warnings = |other: Value| reviewed(&mine, None, &[("other", other)]).warnings.len();
        assert_eq!(warnings(json!({"mode": "Audit"})), 1);
        assert_eq!(warnings(json!({"rules": {"RF105": "Enforce"}})), 1);
        assert_eq!(warnings(json!({"mode": "Warn"})), 0);
        assert_eq!(warnings(json!({"mode": "Audit", "priority": 1})), 0);
        let mine = json!({"limits": {"maxCpuPerPod": 8}, "defaults": {"idleTimeoutSeconds": 60},
            "reconcile": {"mode": "central", "allowedModes": ["central"]},
            "failClosed": true});
        let warnings = |other: Value| {
            let review = reviewed(&mine, None, &[("other", other)]).warnings;
            let texts = review.iter().map(ToString::to_string);
            texts.filter(|text| text.contains("another ")).count()
        };
        for (other, disagrees) in [
            (json!({"limits": {"maxCpuPerPod": 9}}), 1),
            (
                json!({"limits": {"maxCpuPerPod": 8, "maxMemoryPerPod": 9}}),
                0,
            ),
            (json!({"defaults": {"idleTimeoutSeconds": 90}}), 1),
            (json!({"defaults": {"headTakesNoWork": true}}), 0),
            (json!({"reconcile": {"mode": "ray"}}), 1),
            (
                json!({"reconcile": {"allowedModes": ["ray", "central"]}}),
                1,
            ),
            (json!({"failClosed": false}), 1),
            (mine.clone(), 0),
        ] {
            assert_eq!(warnings(other.clone()), disagrees, "{other}");
        }
        let mine = json!({"mode": "Warn", "match": {"kinds": ["RayCluster"]}});
        let warnings = |other: Value| reviewed(&mine, None, &[("other", other)]).warnings.len();
        assert_eq!(
            warnings(json!({"mode": "Audit", "match": {"kinds": ["RayJob"]}})),
            0
        );
    }

    #[test]
    fn what_was_wrong_before_is_not_refused_because_another_entry_has_gone_or_come() {
        let entry = |name: &str, expires: &str| {
            json!({"rules": ["RF105"], "objects": [{"name": name}], "reason": "r",
                "expires": expires})
        };
        let (first, second) = (
            entry("a", "2026-01-01T00:00:00Z"),
            entry("b", "2026-02-01T00:00:00Z"),
        );
        let stored = json!({"exemptions": [first, second]});
        let refused = |entries: Value| {
            let review = reviewed(&json!({ "exemptions": entries }), Some(&stored), &[]);
            places(&review.refused).join(" ")
        };
        assert_eq!(refused(json!([second])), "");
        let fresh = entry("c", "2027-02-01T00:00:00Z");
        assert_eq!(refused(json!([fresh, first, second])), "");
        // One more that is wrong in the same way is one more.
        let again = entry("c", "2026-02-01T00:00:00Z");
        assert_eq!(
            refused(json!([first, second, again])),
            "spec.exemptions[2].expires"
        );
    }

    #[test]
    fn a_policy_that_could_not_be_read_before_can_be_changed() {
        let fault = |problem: &str| PolicyFault {
            place: "spec.mode".to_owned(),
            problem: problem.to_owned(),
            weight: Weight::Whole,
        };
        let refused = |stored: Option<&PolicyFault>| {
            PolicyReview::of_unreadable(fault("unknown variant"), stored)
                .refused
                .len()
        };
        assert_eq!(refused(None), 1);
        assert_eq!(refused(Some(&fault("another"))), 1);
        assert_eq!(refused(Some(&fault("unknown variant"))), 0);
    }
}
