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

use crate::policy::Mode;
use crate::rules::RULES;

/// Everything to apply: each policy, followed by its binding.
pub fn objects(options: &VapOptions) -> Vec<Value> {
    let defaults = options.defaults.then(|| defaults::objects(options));
    let mut objects: Vec<Value> = defaults.into_iter().flatten().collect();
    for rule in RULES {
        // One policy for each mode of the rule's expressions, in the mode under the settings.
        for (check_mode, checks) in rule.checks() {
            let mode = options.settings.modes.get(rule.id).unwrap_or(check_mode);
            if mode != Mode::Off {
                objects.extend(policy::objects(rule, (check_mode, checks), mode, options));
            }
        }
    }
    objects
}

#[cfg(test)]
mod tests;
