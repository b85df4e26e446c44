//! Compiling `reconcile.budget`.

use std::sync::Arc;

use crate::budget::amounts::BudgetAmounts;
use crate::budget::limit::Budget;
use crate::policy::resource::{Amount, Reconcile};
use crate::quantity::Quantity;
use crate::ray::ReconcileMode;
use crate::raypolicy::fault::{Faults, Weight, amount};
use crate::raypolicy::standby::without_effect;

/// The longest name of a policy with a budget, in bytes: the Lease with its record has a name that
/// begins with [`RECORD`].
const LONGEST_NAME: usize = 253 - RECORD.len();

/// How the name of the Lease begins that has the record of a budget; that of the policy follows.
pub const RECORD: &str = "rayfit-budget-";

/// The budget of a policy, if it has one. An amount that cannot be read bounds nothing.
pub(crate) fn budget(
    written: &Reconcile,
    policy: &Arc<str>,
    faults: &mut Faults,
) -> Option<Budget> {
    let place = "spec.reconcile.budget";
    let budget = written.budget.as_ref()?;
    if policy.len() > LONGEST_NAME {
        let problem = format!(
            "needs a policy with a shorter name: write {LONGEST_NAME} characters at the most"
        );
        faults.add(Weight::Part, place, problem);
        return None;
    }
    without_effect(written, place, faults);
    let others = |mode: &ReconcileMode| *mode != ReconcileMode::Central;
    let allowed = written.allowed_modes.as_deref();
    if allowed.is_none_or(|allowed| allowed.iter().any(others)) {
        let problem = "does not hold for clusters in the modes ray and sidecar, and users may choose \
                       them: write mode: central and allowedModes: [central] beside it";
        faults.add(Weight::Doubt, place, problem);
    }
    if written.standby == Some(true) {
        let problem = "is not known to sidecars, so those of clusters under it may not stand by (RF402): leave \
                       standby out, or write it in a policy that matches others";
        faults.add(Weight::Doubt, place, problem);
    }
    let mut parts = |written: Option<&Amount>, key: &str, unit: i128| {
        let read = amount(written, &format!("{place}.{key}"), faults);
        // Rounded down, so that no fraction of a unit exceeds the budget. More than the number can
        // hold is more than any cluster has.
        let parts = read.map(|read| u64::try_from(read.nanos() / unit).unwrap_or(u64::MAX));
        parts.unwrap_or(BudgetAmounts::UNBOUNDED)
    };
    let total = BudgetAmounts {
        cpu_milli: parts(budget.cpu.as_ref(), "cpu", Quantity::from_milli(1).nanos()),
        memory_bytes: parts(
            budget.memory.as_ref(),
            "memory",
            Quantity::from_units(1).nanos(),
        ),
        gpus: match budget.gpus {
            // A number below zero, which the schema refuses, allows no GPU rather than any number
            // of them.
            Some(gpus) => u64::try_from(gpus).unwrap_or(0),
            None => BudgetAmounts::UNBOUNDED,
        },
    };
    let is_bounded = total
        .list()
        .iter()
        .any(|one| *one != BudgetAmounts::UNBOUNDED);
    if !is_bounded {
        faults.add(
            Weight::Doubt,
            place,
            "bounds nothing: write cpu, memory or gpus",
        );
    }
    is_bounded.then(|| Budget {
        policy: Arc::clone(policy),
        total,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::raypolicy::compile;

    fn compiled(name: &str, reconcile: &Value) -> (Option<Budget>, Vec<String>) {
        let written = json!({"apiVersion": "rayfit.dev/v1alpha1", "kind": "RayPolicy",
            "metadata": {"name": name}, "spec": {"reconcile": reconcile}});
        let (policy, faults) = compile(&compile::read(&written).unwrap());
        let faults = faults.into_iter().map(|fault| fault.place).collect();
        (policy.unwrap().reconcile.budget, faults)
    }

    #[test]
    fn what_is_left_out_is_not_bounded() {
        let written = json!({"allowedModes": ["central"],
            "budget": {"cpu": "100500m", "gpus": 8}});
        let (budget, faults) = compiled("team", &written);
        assert_eq!(faults, [""; 0]);
        assert_eq!(
            budget.unwrap().total.list(),
            [100_500, BudgetAmounts::UNBOUNDED, 8]
        );
    }

    #[test]
    fn doubts_are_told() {
        let doubted = |written: Value| compiled("team", &written).1.len();
        let central = json!(["central"]);
        assert_eq!(doubted(json!({"budget": {"cpu": 1}})), 1);
        assert_eq!(
            doubted(json!({"budget": {"cpu": 1}, "allowedModes": ["central", "ray"]})),
            1
        );
        assert_eq!(
            doubted(json!({"budget": {"cpu": 1}, "allowedModes": central, "strategy": "ray"})),
            1
        );
        assert_eq!(doubted(json!({"budget": {}, "allowedModes": central})), 1);
        assert_eq!(
            doubted(json!({"budget": {"cpu": 1}, "allowedModes": central, "standby": true})),
            1
        );
        let (budget, faults) = compiled(
            "team",
            &json!({"budget": {"cpu": "many", "memory": "1Gi"}, "allowedModes": central}),
        );
        assert_eq!(faults, ["spec.reconcile.budget.cpu"]);
        let unbounded = BudgetAmounts::UNBOUNDED;
        assert_eq!(
            budget.unwrap().total.list(),
            [unbounded, 1 << 30, unbounded]
        );
        let long = "a".repeat(240);
        let (budget, faults) = compiled(&long, &json!({"budget": {"cpu": 1}}));
        assert_eq!((budget, faults.len()), (None, 1));
    }
}
