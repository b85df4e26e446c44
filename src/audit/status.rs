//! The status of RayPolicies.

use std::collections::BTreeMap;

use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, ListParams, Object, Patch, PatchParams};
use kube::{Client, Error};
use serde_json::{Value, json};

use super::closing::Closing;
use crate::census::{Counts, Tally};
use crate::policy::resource::{Condition, Offender, RayPolicyStatus, RuleCount};
use crate::policy::{Weight, compile};
use crate::watch::kinds;

/// Writes what was found into the status of each policy, where it says something else.
pub(super) async fn write(
    client: &Client,
    by_policy: &BTreeMap<String, Tally>,
    closing: Option<&Closing>,
    now: Timestamp,
) {
    let resource = kinds::policies().resource;
    let api: Api<Object<Value, Value>> = Api::all_with(client.clone(), &resource);
    let listed = match api.list(&ListParams::default()).await {
        Ok(listed) => listed,
        Err(error) => return tracing::warn!(%error, "audit: cannot list RayPolicies"),
    };
    for policy in listed {
        let Some(name) = policy.metadata.name.clone() else {
            continue;
        };
        let stored: RayPolicyStatus = policy
            .status
            .as_ref()
            .and_then(|status| serde_json::from_value(status.clone()).ok())
            .unwrap_or_default();
        let tally = by_policy.get(&name).cloned().unwrap_or_default();
        let next = status(&policy, &tally, closing, &stored, now);
        if next == stored {
            continue;
        }
        let patch = Patch::Merge(json!({ "status": whole(&next) }));
        match api
            .patch_status(&name, &PatchParams::default(), &patch)
            .await
        {
            Ok(_) => {}
            // It went meanwhile.
            Err(Error::Api(status)) if status.code == 404 => {}
            Err(error) => tracing::warn!(%error, policy = name, "audit: cannot write a status"),
        }
    }
}

/// With what has become empty, so that a merge empties it.
fn whole(status: &RayPolicyStatus) -> Value {
    let mut value = json!({ "rules": [], "worstOffenders": [], "conditions": [] });
    if let (Value::Object(all), Ok(Value::Object(set))) = (&mut value, serde_json::to_value(status))
    {
        all.extend(set);
    }
    value
}

fn status(
    policy: &Object<Value, Value>,
    tally: &Tally,
    closing: Option<&Closing>,
    stored: &RayPolicyStatus,
    now: Timestamp,
) -> RayPolicyStatus {
    let generation = policy.metadata.generation;
    let mut conditions = vec![readiness(policy)];
    if policy
        .spec
        .get("failClosed")
        .is_some_and(|asked| asked == true)
    {
        conditions.extend(closing.map(Closing::condition));
    }
    for condition in &mut conditions {
        condition.observed_generation = generation;
        let before = stored
            .conditions
            .iter()
            .find(|c| c.type_ == condition.type_);
        condition.last_transition_time = match before {
            Some(before) if before.status == condition.status => {
                before.last_transition_time.clone()
            }
            _ => now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        };
    }
    RayPolicyStatus {
        observed_generation: generation,
        objects: tally.objects,
        denied: tally.denied,
        would_deny: tally.would_deny,
        rules: tally
            .rules
            .iter()
            .map(|(rule, counts)| rule_count(rule.to_string(), *counts))
            .collect(),
        worst_offenders: tally.offenders.iter().map(offender).collect(),
        conditions,
    }
}

fn rule_count(rule: String, counts: Counts) -> RuleCount {
    let Counts {
        denied,
        warned,
        audited,
        exempt,
        would_deny,
    } = counts;
    RuleCount {
        rule,
        denied,
        warned,
        audited,
        exempt,
        would_deny,
    }
}

fn offender(offender: &crate::census::Offender) -> Offender {
    Offender {
        kind: offender.object.kind.name().to_owned(),
        namespace: offender.object.namespace.clone().unwrap_or_default(),
        name: offender.object.name.clone(),
        denials: offender.denials,
        findings: offender.findings,
        rules: offender.rules.iter().map(ToString::to_string).collect(),
    }
}

/// Whether the policy can be read.
fn readiness(policy: &Object<Value, Value>) -> Condition {
    let object = Value::Object(kinds::fields(policy));
    let faults = match compile::read(&object) {
        Ok(written) => compile(&written).1,
        Err(fault) => vec![fault],
    };
    let worst = faults.iter().map(|fault| fault.weight).max();
    let (status, reason) = match worst {
        None | Some(Weight::Doubt) => ("True", "Read"),
        Some(Weight::Part) => ("False", "PartlyIgnored"),
        Some(Weight::Whole) => ("False", "Ignored"),
    };
    let texts: Vec<String> = faults.iter().map(ToString::to_string).collect();
    let message = match texts.as_slice() {
        [] => "the whole policy is in force".to_owned(),
        texts => texts.join("; ").chars().take(1024).collect(),
    };
    Condition {
        type_: "Ready".to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message,
        ..Condition::default()
    }
}
