//! The status of RayPolicies, as the audit writes it.

use std::collections::BTreeMap;

use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch, PatchParams};
use kube::{Client, Error};
use rayfit_core::facts::Facts;
use rayfit_core::object_audit::AuditTally;
use rayfit_core::policy::resource::{Condition, RayPolicy, RayPolicyStatus};
use rayfit_core::policy::{Exemption, Policies, Policy};
use rayfit_core::raypolicy;
use rayfit_core::raypolicy::{PolicyFault, Weight};
use serde_json::{Value, json};

use super::closing::Closing;
use crate::watch::policies::compiled;

/// Writes the results into the status of each policy where they differ from it.
///
/// Returns `false` if something could not be read or written, so that it has to be tried again.
pub(super) async fn write(
    client: &Client,
    by_policy: &BTreeMap<String, AuditTally>,
    closing: Option<&Closing>,
    now: Timestamp,
) -> bool {
    let resource = ApiResource::erase::<RayPolicy>(&());
    // The objects are read without a type: a policy that an older or newer definition accepted must
    // not keep the others from being read.
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let listed = match api.list(&ListParams::default()).await {
        Ok(listed) => listed,
        Err(error) => {
            tracing::warn!(%error, "audit: cannot list RayPolicies, trying again");
            return false;
        }
    };
    let mut is_done = true;
    let in_force = listed.iter().filter_map(|policy| compiled(policy).0);
    let all = Policies::new(in_force.collect());
    for policy in listed {
        let Some(name) = policy.metadata.name.clone() else {
            continue;
        };
        let stored: RayPolicyStatus = policy
            .data
            .get("status")
            .and_then(|status| serde_json::from_value(status.clone()).ok())
            .unwrap_or_default();
        let tally = by_policy.get(&name).cloned().unwrap_or_default();
        let next = status((&policy, &all), &tally, closing, &stored, now);
        if next == stored {
            continue;
        }
        // A merge patch would leave a list that is absent as it is.
        let mut whole = json!({ "rules": [], "worstOffenders": [], "conditions": [] });
        if let (Value::Object(all), Ok(Value::Object(set))) =
            (&mut whole, serde_json::to_value(&next))
        {
            all.extend(set);
        }
        let patch = Patch::Merge(json!({ "status": whole }));
        match api
            .patch_status(&name, &PatchParams::default(), &patch)
            .await
        {
            Ok(_) => {}
            // The policy was deleted meanwhile.
            Err(Error::Api(status)) if status.code == 404 => {}
            Err(error) => {
                tracing::warn!(%error, policy = name, "audit: cannot write a status, trying again");
                is_done = false;
            }
        }
    }
    is_done
}

fn status(
    (policy, all): (&DynamicObject, &Policies),
    tally: &AuditTally,
    closing: Option<&Closing>,
    stored: &RayPolicyStatus,
    now: Timestamp,
) -> RayPolicyStatus {
    let generation = policy.metadata.generation;
    let (in_force, mut faults) = compiled(policy);
    if let Some(in_force) = &in_force {
        // The labels of namespaces are not known here, so a selector covers another one only if
        // both are equal.
        faults.extend(raypolicy::avoidable(in_force, all, &Facts::default()));
    }
    let mut conditions = conditions(&faults, in_force.as_ref(), now);
    if policy.data["spec"]["failClosed"] == true {
        conditions.extend(closing.map(Closing::condition));
    }
    for condition in &mut conditions {
        condition.observed_generation = generation;
        let earlier = stored
            .conditions
            .iter()
            .find(|c| c.type_ == condition.type_);
        // By the conventions of Kubernetes' API, the time changes with the status and not with the
        // message.
        condition.last_transition_time = match earlier {
            Some(earlier) if earlier.status == condition.status => {
                earlier.last_transition_time.clone()
            }
            _ => now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        };
    }
    let offenders = tally.offenders.iter();
    RayPolicyStatus {
        observed_generation: generation,
        objects: tally.objects,
        denied: tally.denied,
        would_deny: tally.would_deny,
        rules: tally.rules.values().cloned().collect(),
        worst_offenders: offenders.map(|(_, offender)| offender.clone()).collect(),
        conditions,
    }
}

/// The longest message of a condition, in characters.
const MESSAGE_CHARS: usize = 1024;

/// The conditions that say whether the policy can be read, and that exemptions have ended, if any have: objects
/// that relied on them are denied from then on.
fn conditions(faults: &[PolicyFault], policy: Option<&Policy>, now: Timestamp) -> Vec<Condition> {
    let condition = |type_: &str, status: &str, reason: &str, texts: &[String]| Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: texts.join("; ").chars().take(MESSAGE_CHARS).collect(),
        ..Condition::default()
    };
    let worst = faults.iter().map(|fault| fault.weight).max();
    let (status, reason) = match worst {
        None | Some(Weight::Doubt) => ("True", "Read"),
        Some(Weight::Part) => ("False", "PartlyIgnored"),
        Some(Weight::Whole) => ("False", "Ignored"),
    };
    let mut texts: Vec<String> = faults.iter().map(ToString::to_string).collect();
    if texts.is_empty() {
        texts.push("the whole policy is in force".to_owned());
    }
    let mut conditions = vec![condition("Ready", status, reason, &texts)];
    let exemptions = policy.into_iter().flat_map(|policy| &policy.exemptions);
    let expired = exemptions.filter(|exemption| !exemption.is_in_force(now));
    let texts = expired.map(|exemption| {
        let Exemption {
            index,
            ticket,
            expires,
            ..
        } = exemption.as_ref();
        let ticket = ticket.as_deref().unwrap_or("no ticket");
        format!("spec.exemptions[{index}] ({ticket}) ended at {expires}: renew or remove it")
    });
    let texts: Vec<String> = texts.collect();
    if !texts.is_empty() {
        conditions.push(condition("ExemptionsEnded", "True", "Ended", &texts));
    }
    conditions
}
