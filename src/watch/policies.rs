//! The policies, and the labels of namespaces by which they match.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use kube::core::NotUsed;
use rayfit_core::policy::{EffectivePolicy, Policies, Policy};
use rayfit_core::raypolicy::{PolicyFault, compile};
use serde::Serialize;
use serde_json::Value;

use super::change::change;
use super::follow::{Known, follow};
use super::kinds::{ChangedPart, SOON, value};
use crate::apiserver::{Informers, Selection};

/// Keeps the policies and the labels of namespaces up to date; `known` becomes true once both are
/// known. Where the kind is not installed, there are no policies.
pub async fn keep(informers: &Informers, policy: &ArcSwap<EffectivePolicy>, known: &AtomicBool) {
    let (policies_known, namespaces_known) = (AtomicBool::new(false), AtomicBool::new(false));
    let both = || {
        if policies_known.load(Ordering::Acquire) && namespaces_known.load(Ordering::Acquire) {
            // Before this no object may be judged, because the limits of a policy that is not known
            // would not hold.
            known.store(true, Ordering::Release);
        }
    };
    tokio::join!(
        follow(
            informers,
            Selection::all("RayPolicies", "/apis/rayfit.dev/v1alpha1/raypolicies"),
            SOON,
            |object: ChangedPart<Value, NotUsed>| {
                let (policy, faults) = compiled(&object);
                let name = object.metadata.name;
                for fault in faults {
                    tracing::warn!(policy = name, %fault, "a RayPolicy has a fault");
                }
                Some(policy)
            },
            |policies| {
                match policies {
                    Known::All(policies) => {
                        let policies = policies.values().flatten().cloned().collect();
                        publish(policy, &Policies::new(policies));
                    }
                    Known::NotInstalled => {}
                    // The last known policies stay in force: an outage of the API server must not
                    // lift policies.
                    Known::Nothing => return,
                }
                policies_known.store(true, Ordering::Release);
                both();
            },
        ),
        follow(
            informers,
            Selection::all("namespaces", "/api/v1/namespaces"),
            SOON,
            |object: ChangedPart<NotUsed, NotUsed>| {
                let metadata = object.metadata;
                Some((metadata.name?, metadata.labels.unwrap_or_default()))
            },
            |namespaces| {
                // The last known labels stay in force, as policies do.
                let Known::All(namespaces) = namespaces else {
                    return;
                };
                let labels = Arc::new(namespaces.values().cloned().collect());
                change(policy, |next| next.facts.namespaces = Arc::clone(&labels));
                namespaces_known.store(true, Ordering::Release);
                both();
            },
        ),
    );
}

/// Publishes the policies if they say something new. A status that was written changes the object
/// of a policy, but not what it says.
fn publish(policy: &ArcSwap<EffectivePolicy>, policies: &Policies) {
    if policy.load().policies == *policies {
        return;
    }
    let names: Vec<&str> = policies.iter().map(|policy| &*policy.name).collect();
    tracing::info!(policies = names.join(","), "policies in force");
    change(policy, |next| next.policies = policies.clone());
}

/// The parts of a policy that are in force, and its faults. The API server validates policies, but an older or
/// newer definition may have accepted what this version cannot read.
pub(crate) fn compiled(object: &impl Serialize) -> (Option<Policy>, Vec<PolicyFault>) {
    match compile::read(&value(object)) {
        Ok(written) => compile(&written),
        Err(fault) => (None, vec![fault]),
    }
}
