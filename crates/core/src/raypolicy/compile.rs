//! Compiling a RayPolicy into a [`Policy`]. Invalid parts are left out and reported; the rest
//! applies, and so do all other policies.

use std::sync::Arc;

use serde_json::Value;

use crate::policy::resource::{Amount, Match, RayPolicy, Reconcile, ScopeSelector};
use crate::policy::settings::ReconcileSettings;
use crate::policy::{Exemption, Limit, Limits, Policy, resource};
use crate::ray::Kind;
use crate::raypolicy::fault::{Faults, PolicyFault, Weight, amount};
use crate::raypolicy::standby;
use crate::rule_id::RuleId;
use crate::rules;

/// Reads a policy as it is stored or written in a file.
pub fn read(object: &Value) -> Result<RayPolicy, PolicyFault> {
    serde_path_to_error::deserialize(object).map_err(|error| {
        let place = error.path().to_string();
        let what = error.into_inner().to_string();
        let hint = match what.as_str() {
            // YAML reads a bare Off as false.
            what if what.contains("boolean `false`") => "; write \"Off\" in quotes",
            _ => "",
        };
        PolicyFault {
            place,
            problem: format!("{what}{hint}"),
            weight: Weight::Whole,
        }
    })
}

/// Compiles a policy. Returns the valid parts of it, if any, and the problems.
pub fn compile(policy: &RayPolicy) -> (Option<Policy>, Vec<PolicyFault>) {
    let mut faults = Faults::default();
    let name: Arc<str> = policy.metadata.name.clone().unwrap_or_default().into();
    let spec = &policy.spec;
    let scope = scope(spec.scope.as_ref(), &mut faults);
    let policy = scope.map(|scope| Policy {
        scope,
        priority: spec.priority,
        mode: spec.mode,
        rules: spec
            .rules
            .iter()
            .filter_map(|(text, mode)| {
                let id = faults.part(&format!("spec.rules.{text}"), rule(text))?;
                Some((id, *mode))
            })
            .collect(),
        limits: limits(spec.limits.as_ref(), &name, &mut faults),
        defaults: defaults(spec.defaults.as_ref(), &mut faults),
        reconcile: reconcile(spec.reconcile.as_ref(), &mut faults),
        for_sidecar: (spec.reconcile.as_ref())
            .map_or_else(Default::default, Reconcile::for_sidecar),
        exemptions: spec
            .exemptions
            .iter()
            .enumerate()
            .filter_map(|(index, written)| exempt(written, index, &mut faults).map(Arc::new))
            .collect(),
        // The failure policy of a webhook holds for all namespaces, so no part of them can be left out.
        fail_closed: if spec.fail_closed == Some(true) && spec.scope.is_some() {
            let problem = "applies to the whole cluster: set it in a policy without match";
            faults.add(Weight::Part, "spec.failClosed", problem);
            None
        } else {
            spec.fail_closed
        },
        name,
    });
    (policy, faults.0)
}

/// Checks the scope. With one that cannot be read, it is unknown which objects the policy should match, so all of it
/// is left out.
fn scope(written: Option<&Match>, faults: &mut Faults) -> Option<Match> {
    let Some(written) = written else {
        return Some(Match::default());
    };
    let count = faults.0.len();
    for (key, selector) in [
        ("namespaceSelector", &written.namespace_selector),
        ("objectSelector", &written.object_selector),
    ] {
        if let Some(Err(fault)) = selector.as_ref().map(ScopeSelector::check) {
            faults.add(Weight::Whole, format!("spec.match.{key}"), fault);
        }
    }
    for (index, name) in written.kinds.iter().enumerate() {
        if Kind::from_name(name).is_none() {
            let place = format!("spec.match.kinds[{index}]");
            faults.add(Weight::Whole, place, no_kind(name));
        }
    }
    (faults.0.len() == count).then(|| written.clone())
}

fn no_kind(name: &str) -> String {
    format!(
        "{name:?} is not a kind of Ray objects: write RayCluster, RayJob, RayService or \
             RayCronJob"
    )
}

fn rule(text: &str) -> Result<RuleId, String> {
    let id: RuleId = text.parse().map_err(|error| format!("{error}"))?;
    match rules::find(id) {
        Some(_) => Ok(id),
        None => Err(format!("there is no rule {id} (`rayfit rules` lists them)")),
    }
}

fn limits(
    written: Option<&resource::LimitsSpec>,
    policy: &Arc<str>,
    faults: &mut Faults,
) -> Limits {
    let Some(written) = written else {
        return Limits::default();
    };
    // The schema refuses negative numbers, but a file is read without an API server.
    let count = |most: Option<i64>| {
        let policy = policy.clone();
        (most.filter(|most| *most >= 0)).map(|most| Limit { most, policy })
    };
    let mut amount = |written: &Option<Amount>, key: &str| {
        let most = amount(written.as_ref(), &format!("spec.limits.{key}"), faults)?;
        let policy = policy.clone();
        Some(Limit { most, policy })
    };
    Limits {
        max_workers_per_cluster: count(written.max_workers_per_cluster),
        max_workers_per_group: count(written.max_workers_per_group),
        max_cpu_per_pod: amount(&written.max_cpu_per_pod, "maxCpuPerPod"),
        max_memory_per_pod: amount(&written.max_memory_per_pod, "maxMemoryPerPod"),
        max_gpus_per_cluster: count(written.max_gpus_per_cluster),
        max_idle_timeout_seconds: count(written.max_idle_timeout_seconds),
        max_cpu_per_cluster: amount(&written.max_cpu_per_cluster, "maxCpuPerCluster"),
        max_memory_per_cluster: amount(&written.max_memory_per_cluster, "maxMemoryPerCluster"),
    }
}

/// The values of defaults, without quantities that are not valid.
fn defaults(written: Option<&resource::Defaults>, faults: &mut Faults) -> resource::Defaults {
    let mut values = written.cloned().unwrap_or_default();
    let mut check = |written: &mut Option<Amount>, place: &str| {
        let place = format!("spec.defaults.{place}");
        if amount(written.as_ref(), &place, faults).is_none() {
            *written = None;
        }
    };
    if let Some(ray) = &mut values.ray_container {
        check(&mut ray.cpu, "rayContainer.cpu");
        check(&mut ray.memory, "rayContainer.memory");
    }
    if let Some(rayfit) = &mut values.rayfit_container {
        check(&mut rayfit.cpu, "rayfitContainer.cpu");
        check(&mut rayfit.memory, "rayfitContainer.memory");
    }
    values
}

pub(super) fn reconcile(written: Option<&Reconcile>, faults: &mut Faults) -> ReconcileSettings {
    let Some(written) = written else {
        return ReconcileSettings::default();
    };
    ReconcileSettings {
        // No review clones the lists as they are written.
        written: Reconcile {
            headroom: None,
            schedules: None,
            ..written.clone()
        },
        headroom: standby::headroom(written, faults),
        schedules: standby::schedules(written, faults),
    }
}

fn exempt(
    written: &resource::ExemptionSpec,
    index: usize,
    faults: &mut Faults,
) -> Option<Exemption> {
    let place = format!("spec.exemptions[{index}]");
    // An exemption whose end cannot be read would never end, so it exempts nothing.
    let expires = written.expires.parse().map_err(|_| {
        format!(
            "{:?} is not a time: write one like 2027-01-31T00:00:00Z",
            written.expires
        )
    });
    let expires = faults.part(&format!("{place}.expires"), expires);
    let rules = match written.rules.as_slice() {
        [all] if all == "*" => None,
        rules => Some(
            rules
                .iter()
                .enumerate()
                .filter_map(|(index, text)| {
                    faults.part(&format!("{place}.rules[{index}]"), rule(text))
                })
                .collect(),
        ),
    };
    let objects = written.objects.iter().enumerate();
    let objects = objects.filter(|(index, written)| {
        let unknown = (written.kind.as_ref()).filter(|name| Kind::from_name(name).is_none());
        if let Some(name) = unknown {
            let place = format!("{place}.objects[{index}]");
            faults.add(Weight::Part, place, no_kind(name));
        }
        unknown.is_none()
    });
    let objects = objects.map(|(_, written)| written.clone()).collect();
    Some(Exemption {
        index,
        rules,
        objects,
        reason: written.reason.clone(),
        ticket: written.ticket.clone(),
        expires: expires?,
    })
}
