//! What a cluster uses of budgets, and would use without them.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::budget::amounts::BudgetAmounts;

/// What a cluster uses of budgets, and would use without them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BudgetUse {
    /// What the cluster is charged now.
    pub charge: BudgetAmounts,
    /// What it is charged once the plan has been carried out.
    pub planned: BudgetAmounts,
    /// What it would be charged if there were no budgets.
    pub wants: BudgetAmounts,
}

impl fmt::Display for BudgetUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "uses {}", self.charge)?;
        if self.planned != self.charge {
            write!(f, ", then {}", self.planned)?;
        }
        if self.wants != self.planned {
            write!(f, "; without budgets {}", self.wants)?;
        }
        Ok(())
    }
}
