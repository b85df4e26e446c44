//! A policy as it is read, in a form that is always valid; all policies of a cluster, and how they combine into the
//! settings for one object.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;

use super::resource::{Defaults, Limits, Match, Reconcile, ScopeSelector};
use super::settings::ReconcileSettings;
use super::{Exemption, Mode, Modes, Settings};
use crate::facts::Facts;
use crate::ray::RayObject;
use crate::rule_id::RuleId;

/// A RayPolicy after compilation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Policy {
    /// Its name.
    pub name: Arc<str>,
    /// The priority: of the policies that match an object, the one with the highest decides.
    pub priority: i32,
    /// The objects that it matches, by selectors that are valid and kinds that exist.
    pub scope: Match,
    /// The strictest mode that any rule can have.
    pub mode: Option<Mode>,
    /// Modes of single rules.
    pub rules: BTreeMap<RuleId, Mode>,
    /// Limits on what objects may request.
    pub limits: Limits,
    /// The values that defaults fill in; quantities are valid.
    pub defaults: Defaults,
    /// The scaler of the clusters, and its settings.
    pub reconcile: ReconcileSettings,
    /// The settings as they are written, reduced to those that a sidecar obeys.
    pub(crate) for_sidecar: Reconcile,
    /// Exemptions: findings that are only recorded until a given time.
    pub exemptions: Vec<Arc<Exemption>>,
    /// Refuse Ray objects while no webhook answers.
    pub fail_closed: Option<bool>,
}

/// All policies of a cluster, in the order in which they decide: the highest priority first, equal
/// ones by name.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Policies(Arc<[Policy]>);

impl Policies {
    /// Puts policies into their order.
    pub fn new(mut policies: Vec<Policy>) -> Self {
        // Names are unique, so the order does not depend on how the policies were read.
        policies.sort_by(|left, right| {
            (Reverse(left.priority), &left.name).cmp(&(Reverse(right.priority), &right.name))
        });
        Self(policies.into())
    }

    /// The keys of the labels by which policies select objects.
    pub fn label_keys(&self) -> BTreeSet<&str> {
        let selectors = self
            .iter()
            .filter_map(|policy| policy.scope.object_selector.as_ref());
        selectors.flat_map(ScopeSelector::keys).collect()
    }

    /// Has no policies, so that `base` applies to every object.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The policies, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &Policy> {
        self.0.iter()
    }

    /// The policies that match `object`, in their order.
    pub fn matching<'a>(
        &'a self,
        object: &RayObject<'_>,
        facts: &Facts,
    ) -> impl Iterator<Item = &'a Policy> {
        self.iter()
            .filter(|policy| policy.scope.contains(object, facts))
    }

    /// The settings for `object` at `now`. Each setting is taken from the first policy that matches
    /// the object and sets it, or from `base` if none does. In a namespace whose labels are not known yet,
    /// the strictest limits of all policies hold that can match.
    pub fn settings_for<'a>(
        &self,
        base: &'a Settings,
        object: &RayObject<'_>,
        facts: &Facts,
        now: Timestamp,
    ) -> Cow<'a, Settings> {
        let matching: Vec<&Policy> = self.matching(object, facts).collect();
        // A new namespace is no way around limits until the watch tells of it.
        let possible = self.iter().filter(|policy| {
            policy.limits != Limits::default() && policy.scope.may_contain(object, facts)
        });
        let possible: Vec<&Policy> = possible.collect();
        if matching.is_empty() && possible.is_empty() {
            return Cow::Borrowed(base);
        }
        let mut settings = base.clone();
        // Applied in reverse order, so that the first policy takes precedence.
        for policy in matching.iter().rev() {
            policy.defaults.write_over(&mut settings.defaults);
            policy.reconcile.write_over(&mut settings.reconcile);
            if let Some(allowed) = &policy.reconcile.written.allowed_modes {
                settings.allowed_modes.clone_from(allowed);
            }
        }
        // Flags come after all policies, so their modes are added at the end.
        settings.modes = Modes::default();
        for (rank, policy) in matching.iter().enumerate() {
            let rules = policy.rules.iter().map(|(rule, mode)| (*rule, *mode));
            let modes = &mut settings.modes;
            modes.take(rank, &policy.name, rules, policy.mode);
            modes.take(rank, &policy.name, enforced(&policy.limits), None);
            settings.limits.take(&policy.limits, false);
            let exemptions = policy.exemptions.iter();
            let exemptions = exemptions.filter(|e| e.is_in_force(now) && e.covers(object));
            let exemptions = exemptions.map(|e| (rank, policy.name.clone(), e.clone()));
            settings.modes.exemptions.extend(exemptions);
        }
        for policy in possible {
            let rules = enforced(&policy.limits);
            let rank = matching.len();
            settings.modes.take(rank, &policy.name, rules, None);
            settings.limits.take(&policy.limits, true);
        }
        settings.modes.complete(&base.modes);
        Cow::Owned(settings)
    }

    /// The settings by which `cluster` is scaled, with the values of `base` where no policy sets
    /// others. A RayCluster that KubeRay created for a RayJob or a RayService also follows the
    /// policies that match those.
    pub fn reconcile_for(
        &self,
        base: &ReconcileSettings,
        cluster: &RayObject<'_>,
        facts: &Facts,
    ) -> ReconcileSettings {
        let mut settings = base.clone();
        // Applied in reverse order, so that the first policy takes precedence.
        for policy in self.scaling(cluster, facts).rev() {
            policy.reconcile.write_over(&mut settings);
        }
        settings
    }

    /// The settings for the sidecar of a RayCluster, as they would be written in one policy: those
    /// that [`reconcile_for`](Self::reconcile_for) combines, without what is for the central Rayfit
    /// only.
    pub fn for_sidecar(&self, cluster: &RayObject<'_>, facts: &Facts) -> Reconcile {
        let mut settings = Reconcile::default();
        for policy in self.scaling(cluster, facts).rev() {
            policy.for_sidecar.write_over(&mut settings);
        }
        settings
    }

    /// The policies by which a RayCluster is scaled: those that match it, or the object that it was made
    /// for.
    fn scaling<'a>(
        &'a self,
        cluster: &'a RayObject<'_>,
        facts: &'a Facts,
    ) -> impl DoubleEndedIterator<Item = &'a Policy> {
        self.0.iter().filter(|policy| {
            let scope = &policy.scope;
            // A cluster that KubeRay created has the labels of the RayJob or RayService.
            let maker = cluster.ray_owner();
            scope.contains(cluster, facts)
                || maker.is_some_and(|(kind, name)| scope.contains_as(kind, name, cluster, facts))
        })
    }

    /// Shares its memory with `other`, which is a cheaper test than equality.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The first policy that sets `failClosed`, which decides for all, and its value.
    pub fn fail_closed(&self) -> Option<(&Policy, bool)> {
        self.iter()
            .find_map(|policy| Some((policy, policy.fail_closed?)))
    }
}

/// The rules of the limits that are set, each of which enforces its rule.
fn enforced(limits: &Limits) -> impl Iterator<Item = (RuleId, Mode)> {
    limits.rules().map(|rule| (RuleId(rule), Mode::Enforce))
}

/// The settings and facts of one moment, with which objects are checked and defaulted.
#[derive(Debug, Clone, Default)]
pub struct EffectivePolicy {
    /// Facts about the Kubernetes cluster.
    pub facts: Facts,
    /// The settings for every object.
    pub settings: Settings,
    /// The policies for some objects.
    pub policies: Policies,
}

impl EffectivePolicy {
    /// The settings for `object` at `now`.
    pub fn settings_for(&self, object: &RayObject<'_>, now: Timestamp) -> Cow<'_, Settings> {
        self.policies
            .settings_for(&self.settings, object, &self.facts, now)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::policy::resource::Amount;
    use crate::policy::{Mode, Ruling};
    use crate::raypolicy::compile;

    fn policy(name: &str, spec: &Value) -> Policy {
        let written = json!({"apiVersion": "rayfit.dev/v1alpha1", "kind": "RayPolicy",
            "metadata": {"name": name}, "spec": spec});
        let written = compile::read(&written).unwrap();
        assert_eq!(
            crate::raypolicy::unknown(&json!({"spec": spec}), &written),
            []
        );
        let (policy, faults) = compile(&written);
        assert_eq!(faults, []);
        policy.unwrap()
    }

    const NOW: &str = "2027-01-01T00:00:00Z";

    fn settings(policies: &[(&str, Value)]) -> Settings {
        settings_at(policies, &Facts::default(), NOW)
    }

    fn settings_at(policies: &[(&str, Value)], facts: &Facts, now: &str) -> Settings {
        let policies = policies.iter().map(|(name, spec)| policy(name, spec));
        let policies = Policies::new(policies.collect());
        let object = json!({"apiVersion": "ray.io/v1", "kind": "RayCluster",
            "metadata": {"name": "exp-1", "namespace": "team-a", "labels": {"app": "x"}}});
        let object = RayObject::parse(&object).unwrap();
        let mut base = Settings::default();
        base.modes.set(RuleId(214), Mode::Warn);
        let now = now.parse().unwrap();
        policies
            .settings_for(&base, &object, facts, now)
            .into_owned()
    }

    /// The mode and the policy that decided it; no name if none did.
    fn came_to(settings: &Settings, rule: u16, own: Mode) -> (Mode, String) {
        let Ruling { mode, decided, .. } = settings.modes.rule_on(RuleId(rule), own);
        let policy = decided.map(|decided| decided.policy.to_string());
        (mode, policy.unwrap_or_default())
    }

    fn by(policy: &str) -> String {
        policy.to_owned()
    }

    #[test]
    fn without_policies_flags_and_own_modes_hold() {
        let settings = settings(&[]);
        assert_eq!(
            came_to(&settings, 101, Mode::Enforce),
            (Mode::Enforce, by(""))
        );
        assert_eq!(came_to(&settings, 214, Mode::Audit), (Mode::Warn, by("")));
    }

    #[test]
    fn mode_is_a_ceiling_and_a_rules_own_entry_is_exact() {
        let settings = settings(&[("a", json!({"mode": "Warn", "rules": {"RF213": "Enforce"}}))]);
        assert_eq!(
            came_to(&settings, 101, Mode::Enforce),
            (Mode::Warn, by("a"))
        );
        assert_eq!(came_to(&settings, 216, Mode::Audit), (Mode::Audit, by("a")));
        assert_eq!(
            came_to(&settings, 213, Mode::Warn),
            (Mode::Enforce, by("a"))
        );
        // A policy with a mode has spoken of every rule, so the flag says nothing more.
        assert_eq!(came_to(&settings, 214, Mode::Audit), (Mode::Audit, by("a")));
    }

    #[test]
    fn the_higher_priority_decides_then_the_name() {
        let settings = settings(&[
            ("z", json!({"priority": 10, "rules": {"RF105": "Audit"}})),
            ("b", json!({"mode": "Audit", "rules": {"RF105": "Enforce"}})),
            ("a", json!({"mode": "Warn"})),
        ]);
        assert_eq!(
            came_to(&settings, 105, Mode::Enforce),
            (Mode::Audit, by("z"))
        );
        assert_eq!(
            came_to(&settings, 101, Mode::Enforce),
            (Mode::Warn, by("a"))
        );
    }

    #[test]
    fn a_rule_is_off_only_if_the_deciding_policy_says_so() {
        let settings = settings(&[
            ("a", json!({"priority": 1, "rules": {"RF105": "Warn"}})),
            ("b", json!({"mode": "Off"})),
        ]);
        assert!(!settings.modes.is_off(RuleId(105)));
        assert!(settings.modes.is_off(RuleId(101)));
    }

    #[test]
    fn limits_are_enforced_unless_the_mode_of_their_policy_or_one_before_it_says_otherwise() {
        let limit = json!({"maxWorkersPerCluster": 3});
        let alone = settings(&[
            ("a", json!({"limits": limit})),
            ("b", json!({"mode": "Audit"})),
        ]);
        assert_eq!(
            came_to(&alone, 501, Mode::Enforce),
            (Mode::Enforce, by("a"))
        );
        assert_eq!(
            alone.limits.max_workers_per_cluster.as_ref().unwrap().most,
            3
        );
        let own = settings(&[("a", json!({"limits": limit, "mode": "Warn"}))]);
        assert_eq!(came_to(&own, 501, Mode::Enforce), (Mode::Warn, by("a")));
        let before = settings(&[
            ("a", json!({"limits": limit})),
            ("b", json!({"priority": 1, "mode": "Audit"})),
        ]);
        assert_eq!(came_to(&before, 501, Mode::Enforce), (Mode::Audit, by("b")));
    }

    fn exemption(expires: &str) -> Value {
        json!([{"rules": ["RF105"], "objects": [{"namespace": "team-*", "name": "exp-1"}],
            "reason": "moving to the new template", "ticket": "RAY-12", "expires": expires}])
    }

    #[test]
    fn an_exemption_records_only_until_it_ends() {
        let policies = [(
            "a",
            json!({"exemptions": exemption("2027-02-01T00:00:00Z")}),
        )];
        let at = |now| settings_at(&policies, &Facts::default(), now);
        let during = at("2027-01-31T23:59:59Z");
        assert_eq!(came_to(&during, 105, Mode::Enforce), (Mode::Audit, by("a")));
        assert_eq!(
            came_to(&during, 101, Mode::Enforce),
            (Mode::Enforce, by(""))
        );
        let ruling = during.modes.rule_on(RuleId(105), Mode::Enforce);
        assert_eq!(
            ruling.decided.unwrap().to_string(),
            "exempt until 2027-02-01T00:00:00Z by policy a: \"moving to the new template\" (\"RAY-12\")"
        );
        let after = at("2027-02-01T00:00:00Z");
        assert_eq!(came_to(&after, 105, Mode::Enforce), (Mode::Enforce, by("")));
    }

    #[test]
    fn an_exemption_does_not_soften_what_a_policy_before_it_decides() {
        let exempting = json!({"exemptions": exemption("2027-02-01T00:00:00Z")});
        let settings = settings(&[
            ("a", json!({"priority": 1, "rules": {"RF105": "Enforce"}})),
            ("b", exempting),
        ]);
        assert_eq!(
            came_to(&settings, 105, Mode::Enforce),
            (Mode::Enforce, by("a"))
        );
    }

    #[test]
    fn defaults_and_reconciliation_are_taken_value_by_value() {
        let settings = settings(&[
            (
                "a",
                json!({"priority": 1, "defaults": {"idleTimeoutSeconds": 30},
                "reconcile": {"mode": "central", "backOff": {"maxSeconds": 10}}}),
            ),
            (
                "b",
                json!({"defaults": {"idleTimeoutSeconds": 90, "headTakesNoWork": true,
                "rayContainer": {"cpu": 1, "memory": "1Gi"}},
                "reconcile": {"mode": "ray", "strategy": "ray"}}),
            ),
        ]);
        let (defaults, reconcile) = (&settings.defaults, &settings.reconcile.written);
        assert_eq!(defaults.idle_timeout_seconds, Some(30));
        assert_eq!(defaults.head_takes_no_work, Some(true));
        let container = defaults.ray_container.clone().unwrap();
        assert_eq!(container.cpu, Some(Amount(json!(1))));
        assert_eq!(reconcile.mode, Some(crate::ray::ReconcileMode::Central));
        assert_eq!(reconcile.strategy, Some(crate::plan::Strategy::Ray));
        let back_off = reconcile.back_off.clone().unwrap();
        assert_eq!(
            (back_off.max_seconds, back_off.initial_seconds),
            (Some(10), None)
        );
    }

    #[test]
    fn a_cluster_follows_policies_about_what_it_was_made_for() {
        let strategy = |scope: Value| {
            let spec = json!({"match": scope, "reconcile": {"strategy": "ray"}});
            let policies = Policies::new(vec![policy("a", &spec)]);
            let cluster = json!({"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {
                "name": "nightly-x7k2p", "namespace": "team-a", "labels": {"app": "x"},
                "ownerReferences": [{"apiVersion": "ray.io/v1", "kind": "RayJob",
                    "name": "nightly", "controller": true}]}});
            let cluster = RayObject::parse(&cluster).unwrap();
            let base = ReconcileSettings::default();
            let settings = policies.reconcile_for(&base, &cluster, &Facts::default());
            settings.written.strategy.unwrap_or_default()
        };
        let label = |value: &str| json!({"matchLabels": {"app": value}});
        let team = json!({"matchLabels": {"kubernetes.io/metadata.name": "team-b"}});
        for (scope, follows) in [
            (json!({"kinds": ["RayJob"], "names": ["nightly"]}), true),
            (json!({"kinds": ["RayCluster"]}), true),
            (json!({"names": ["nightly-*"]}), true),
            (
                json!({"kinds": ["RayJob"], "objectSelector": label("x")}),
                true,
            ),
            (
                json!({"kinds": ["RayJob"], "objectSelector": label("y")}),
                false,
            ),
            (json!({"kinds": ["RayService"]}), false),
            (
                json!({"kinds": ["RayCluster"], "names": ["nightly"]}),
                false,
            ),
            (
                json!({"kinds": ["RayJob"], "namespaceSelector": team}),
                false,
            ),
        ] {
            let ray = strategy(scope.clone()) == crate::plan::Strategy::Ray;
            assert_eq!(ray, follows, "{scope}");
        }
    }

    #[test]
    fn a_namespace_that_is_not_known_yet_has_the_strictest_limits() {
        let labelled =
            |labels: serde_json::Value| json!({"namespaceSelector": {"matchLabels": labels}});
        let tiers = [
            (
                "gold",
                json!({"match": labelled(json!({"tier": "gold"})), "limits": {"maxWorkersPerCluster": 100}}),
            ),
            (
                "tin",
                json!({"match": labelled(json!({"tier": "tin"})), "limits": {"maxWorkersPerCluster": 5}}),
            ),
            (
                "named",
                json!({"match": labelled(json!({"kubernetes.io/metadata.name": "b"})), "limits": {"maxWorkersPerCluster": 1}}),
            ),
        ];
        let most = |namespaces: &[(&str, &str)]| {
            let labels = |tier: &str| [("tier".to_owned(), tier.to_owned())].into();
            let namespaces = namespaces.iter();
            let namespaces = namespaces.map(|(name, tier)| ((*name).to_owned(), labels(tier)));
            let facts = Facts {
                namespaces: Arc::new(namespaces.collect()),
                ..Facts::default()
            };
            let settings = settings_at(&tiers, &facts, NOW);
            let (mode, _) = came_to(&settings, 501, Mode::Enforce);
            let limit = settings.limits.max_workers_per_cluster;
            limit.map(|limit| (limit.most, limit.policy.to_string(), mode))
        };
        let tin = Some((5, by("tin"), Mode::Enforce));
        assert_eq!(most(&[("default", "none")]), tin);
        assert_eq!(most(&[("team-a", "gold")]).unwrap().0, 100);
        assert_eq!(most(&[("team-a", "none")]), None);
        assert_eq!(most(&[]), None, "nothing is known of any namespace");
    }

    #[test]
    fn only_matching_policies_count() {
        let facts = Facts {
            namespaces: std::sync::Arc::new(
                [("team-a".into(), [("tier".into(), "gold".into())].into())].into(),
            ),
            ..Facts::default()
        };
        let label = |key: &str, value: &str| json!({"matchLabels": {key: value}});
        for (scope, matches) in [
            (json!({}), true),
            (json!({"kinds": ["RayCluster"]}), true),
            (json!({"kinds": ["RayJob", "RayService"]}), false),
            (json!({"names": ["exp-*"]}), true),
            (json!({"names": ["prod-*"]}), false),
            (json!({"objectSelector": label("app", "x")}), true),
            (json!({"objectSelector": label("app", "y")}), false),
            (json!({"namespaceSelector": label("tier", "gold")}), true),
            (json!({"namespaceSelector": label("tier", "tin")}), false),
            (
                json!({"namespaceSelector": label("kubernetes.io/metadata.name", "team-a")}),
                true,
            ),
            (
                json!({"namespaceSelector": label("tier", "gold"), "names": ["x"]}),
                false,
            ),
        ] {
            let policies = [("a", json!({"match": scope, "mode": "Audit"}))];
            let settings = settings_at(&policies, &facts, NOW);
            let (mode, _) = came_to(&settings, 101, Mode::Enforce);
            assert_eq!(mode == Mode::Audit, matches, "{scope}");
        }
    }

    #[test]
    fn the_first_policy_that_says_anything_decides_on_failing_closed() {
        let closed = |policies: &[(&str, Value)]| {
            let policies = policies.iter().map(|(name, spec)| policy(name, spec));
            let policies = Policies::new(policies.collect());
            policies
                .fail_closed()
                .map(|(policy, closed)| (policy.name.to_string(), closed))
        };
        assert_eq!(closed(&[("a", json!({}))]), None);
        let yes = ("a", json!({"failClosed": true}));
        let no = ("b", json!({"failClosed": false, "priority": 1}));
        assert_eq!(
            closed(std::slice::from_ref(&yes)),
            Some(("a".to_owned(), true))
        );
        assert_eq!(closed(&[yes, no]), Some(("b".to_owned(), false)));
    }

    proptest! {
        /// Turning a policy's mode down never makes any finding go further.
        #[test]
        fn stricter_modes_give_stricter_rulings(
            own in prop::sample::select(vec![Mode::Audit, Mode::Warn, Mode::Enforce]),
            exact in prop::option::of(prop::sample::select(vec!["Off", "Audit", "Warn", "Enforce"])),
        ) {
            let mut last = Mode::Off;
            for step in ["Off", "Audit", "Warn", "Enforce"] {
                let mut spec = json!({"mode": step});
                if let Some(exact) = exact {
                    spec["rules"] = json!({"RF105": exact});
                }
                let (mode, _) = came_to(&settings(&[("a", spec)]), 105, own);
                prop_assert!(mode >= last);
                last = mode;
            }
        }
    }
}
