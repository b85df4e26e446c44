//! RayPolicies from files, as flags that several commands share.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use k8s_openapi::jiff::Timestamp;
use rayfit_core::facts::Facts;
use rayfit_core::policy::{Policies, Policy};
use rayfit_core::raypolicy::{self, PolicyFault, Weight, compile};
use serde_json::Value;

use super::documents::objects;
use super::outcome;
use crate::apiserver::server_time::own_timestamp;

/// Flags that name policies.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Policies")]
pub(in crate::cli) struct PolicyArgs {
    /// File with RayPolicies to apply as admission would; other objects in it are skipped; can be
    /// repeated
    ///
    /// Policies that select namespaces by labels take the labels from --facts.
    #[arg(long = "policy", value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Time at which exemptions must be valid, RFC 3339 [default: now]
    #[arg(long, value_name = "TIME")]
    at: Option<Timestamp>,
}

impl PolicyArgs {
    /// The policies of the files.
    pub(in crate::cli) fn policies(&self) -> anyhow::Result<Policies> {
        let mut policies = Vec::new();
        let is_policy = |object: &Value| {
            let version = object.get("apiVersion").and_then(Value::as_str);
            object.get("kind").and_then(Value::as_str) == Some("RayPolicy")
                && version.is_some_and(|version| version.starts_with("rayfit.dev/"))
        };
        for path in &self.files {
            for object in objects(path)?.iter().filter(|object| is_policy(object)) {
                // A problem in a policy is an error, because that part of it would not apply.
                let policy = read(object)
                    .with_context(|| format!("{}: this RayPolicy is invalid", path.display()))?;
                policies.push(policy);
            }
        }
        if policies.is_empty() && !self.files.is_empty() {
            bail!("there is no RayPolicy of rayfit.dev/v1alpha1 in the files of --policy");
        }
        let policies = Policies::new(policies);
        for policy in policies.iter() {
            for fault in raypolicy::avoidable(policy, &policies, &Facts::default()) {
                outcome::warn(format!("RayPolicy {}: {fault}", policy.name));
            }
        }
        Ok(policies)
    }

    /// The time at which exemptions must be valid.
    pub(in crate::cli) fn now(&self) -> Timestamp {
        self.at.unwrap_or_else(own_timestamp)
    }
}

fn read(object: &Value) -> anyhow::Result<Policy> {
    let written = compile::read(object).map_err(|fault| anyhow::anyhow!("{fault}"))?;
    let (policy, mut faults) = compile(&written);
    faults.extend(raypolicy::unknown(object, &written));
    // The worst comes first: below, the first alone decides whether the policy is refused.
    faults.sort_by_key(|fault| std::cmp::Reverse(fault.weight));
    match (policy, faults.first()) {
        (Some(policy), None) => Ok(policy),
        (Some(policy), Some(fault)) if fault.weight == Weight::Doubt => {
            faults.iter().for_each(outcome::warn);
            Ok(policy)
        }
        _ => {
            let texts: Vec<String> = faults.iter().map(PolicyFault::to_string).collect();
            bail!("{}", texts.join("\n"))
        }
    }
}
