//! The source of clusters' settings: RayPolicies, or what is written on the cluster.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use serde_json::Value;

use rayfit_core::policy::{EffectivePolicy, Policies};
use rayfit_core::ray::reconcile::SETTINGS;
use rayfit_core::ray::{Kind, RayObject};
use rayfit_core::raypolicy::sidecar_settings;
use rayfit_core::reconcile::RoundSettings;

/// The source of clusters' settings.
#[derive(Clone)]
pub enum Tuning {
    /// The settings that the central Rayfit has written on the RayCluster, which are all that a
    /// sidecar can read.
    Written,
    /// The settings that the matching RayPolicies fold to, in the same way as admission folds them.
    Policies(InForce),
}

/// The policies in force, kept up to date by a watch.
#[derive(Clone, Default)]
pub struct InForce {
    /// The policies, and the labels of namespaces by which they match.
    pub policy: Arc<ArcSwap<EffectivePolicy>>,
    /// True once the policies are known, or it is known that they cannot be read.
    pub known: Arc<AtomicBool>,
}

/// The sources of settings, to find out whether they may have changed.
#[derive(Clone, Default)]
pub struct Basis {
    policies: Policies,
    namespaces: Arc<BTreeMap<String, BTreeMap<String, String>>>,
}

impl Tuning {
    /// Returns whether settings can be given yet.
    pub fn is_known(&self) -> bool {
        match self {
            Self::Written => true,
            Self::Policies(in_force) => in_force.known.load(Ordering::Acquire),
        }
    }

    /// The settings of a RayCluster.
    pub fn of(&self, cluster: &Value) -> RoundSettings {
        match self {
            Self::Written => written(cluster),
            Self::Policies(in_force) => {
                let policy = in_force.policy.load();
                let base = &policy.settings.reconcile;
                match cluster.as_object().filter(|_| !policy.policies.is_empty()) {
                    Some(root) => {
                        let cluster = RayObject::of_kind(Kind::RayCluster, root);
                        let folded = policy.policies.reconcile_for(base, &cluster, &policy.facts);
                        RoundSettings::of(&folded)
                    }
                    None => RoundSettings::of(base),
                }
            }
        }
    }

    /// The settings to write on a RayCluster for its sidecar; nothing if that is not for this
    /// process to say.
    pub fn for_sidecar(&self, cluster: &Value) -> Option<String> {
        let Self::Policies(in_force) = self else {
            return None;
        };
        let policy = in_force.policy.load();
        let object = RayObject::of_kind(Kind::RayCluster, cluster.as_object()?);
        let settings = policy.policies.for_sidecar(&object, &policy.facts);
        match sidecar_settings::write(&settings) {
            Ok(text) => Some(text),
            Err(fault) => {
                let name = object.name();
                tracing::warn!(%fault, name, "what RayPolicies say cannot be told to the sidecar");
                None
            }
        }
    }

    /// Returns whether settings may differ from those that were made from `basis`; if so, `basis` is
    /// updated.
    pub fn has_changed(&self, basis: &mut Basis) -> bool {
        let Self::Policies(in_force) = self else {
            return false;
        };
        let policy = in_force.policy.load();
        let same =
            policy.policies.is_same(&basis.policies) && policy.facts.namespaces == basis.namespaces;
        if same {
            return false;
        }
        *basis = Basis {
            policies: policy.policies.clone(),
            namespaces: policy.facts.namespaces.clone(),
        };
        true
    }
}

/// The settings that are written on a RayCluster; Rayfit's own if nothing that can be read is.
fn written(cluster: &Value) -> RoundSettings {
    let root = cluster.as_object();
    let object = root.map(|root| RayObject::of_kind(Kind::RayCluster, root));
    let text = object.and_then(|object| object.annotation(SETTINGS));
    let read = text.map(sidecar_settings::read).transpose();
    match read {
        Ok(settings) => RoundSettings::of(&settings.unwrap_or_default()),
        Err(fault) => {
            tracing::warn!(%fault, "the annotation {SETTINGS} cannot be read, so it does not count");
            RoundSettings::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use rayfit_core::plan::Strategy;
    use rayfit_core::raypolicy::compile;
    use serde_json::json;

    use super::*;

    fn policies(namespace_label: &str) -> Policies {
        let written = json!({"apiVersion": "rayfit.dev/v1alpha1", "kind": "RayPolicy",
            "metadata": {"name": "as-ray"}, "spec": {
                "match": {"namespaceSelector": {"matchLabels": {"tier": namespace_label}}},
                "reconcile": {"strategy": "ray", "pendingIdleTimeoutSeconds": 5}}});
        let (policy, _) = compile::compile(&compile::read(&written).unwrap());
        Policies::new(policy.into_iter().collect())
    }

    fn change(in_force: &InForce, change: impl Fn(&mut EffectivePolicy)) {
        in_force.policy.rcu(|policy| {
            let mut next = EffectivePolicy::clone(policy);
            change(&mut next);
            next
        });
    }

    #[test]
    fn a_cluster_is_scaled_as_the_policies_in_force_say() {
        let in_force = InForce::default();
        let tuning = Tuning::Policies(in_force.clone());
        assert!(!tuning.is_known());
        in_force.known.store(true, Ordering::Release);
        assert!(tuning.is_known());
        let cluster = |namespace: &str| json!({"metadata": {"name": "a", "namespace": namespace}});
        let mut basis = Basis::default();
        assert_eq!(tuning.of(&cluster("team-a")), RoundSettings::default());

        change(&in_force, |policy| {
            policy.policies = policies("gold");
            let gold = BTreeMap::from([("tier".to_owned(), "gold".to_owned())]);
            policy.facts.namespaces = Arc::new([("team-a".to_owned(), gold)].into());
        });
        assert!(tuning.has_changed(&mut basis));
        assert!(!tuning.has_changed(&mut basis), "told once");
        let settings = tuning.of(&cluster("team-a"));
        assert_eq!(settings.plan.strategy, Strategy::Ray);
        assert_eq!(settings.plan.pending_idle_timeout_s, Some(5.0));
        assert_eq!(tuning.of(&cluster("team-b")), RoundSettings::default());

        change(&in_force, |policy| policy.facts.namespaces = Arc::default());
        assert!(tuning.has_changed(&mut basis), "a label went away");
        assert_eq!(tuning.of(&cluster("team-a")), RoundSettings::default());
        change(&in_force, |policy| policy.facts.pods = Arc::default());
        assert!(!tuning.has_changed(&mut basis), "other facts do not matter");
    }
}
