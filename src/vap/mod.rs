//! The rules that CEL can express, as `ValidatingAdmissionPolicies` with bindings: for Kubernetes
//! clusters that do not allow webhooks. Pure.
//!
//! Each policy is one rule in one mode, so that a rule is turned on or off by its binding, and an
//! expression that fails affects no other rule. [`variables`] has the variables that the
//! expressions use; the expressions themselves are next to the rules ([`crate::rules::Cel`]).
//! [`defaults`] holds the two defaults that an API server can fill in by itself.
//!
//! Invariant: a policy finds nothing that the webhook does not find.

pub mod defaults;
mod matching;
mod options;
mod policy;
pub mod variables;

pub use options::VapOptions;

use serde_json::Value;

use crate::policy::{Mode, Settings};
use crate::rules::{RULES, Rule};

/// Everything to apply: each policy, followed by its binding.
pub fn objects(options: &VapOptions) -> Vec<Value> {
    let defaults = options.defaults.then(|| defaults::objects(options));
    let rules = RULES.iter().flat_map(|rule| rule_objects(rule, options));
    defaults.into_iter().flatten().chain(rules).collect()
}

fn rule_objects(rule: &Rule, options: &VapOptions) -> Vec<Value> {
    modes(rule, &options.settings)
        .into_iter()
        .flat_map(|(own, mode)| policy::objects(rule, own, mode, options))
        .collect()
}

/// The modes of the rule's expressions, each with the mode under the settings; none for a rule that
/// is off.
fn modes(rule: &Rule, settings: &Settings) -> Vec<(Mode, Mode)> {
    let set = settings.modes.get(rule.id);
    let mut own: Vec<Mode> = rule.cel.checks().iter().map(|check| check.mode).collect();
    own.sort_unstable_by(|left, right| right.cmp(left));
    own.dedup();
    own.into_iter()
        .map(|own| (own, set.unwrap_or(own)))
        .filter(|(_, mode)| *mode != Mode::Off)
        .collect()
}

#[cfg(test)]
mod tests;
