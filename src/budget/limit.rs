//! What one budget lets a cluster use.

use std::sync::Arc;

use crate::budget::amounts::BudgetAmounts;

/// How much a cluster may use by one budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetLimit {
    /// The RayPolicy whose budget it is.
    pub policy: Arc<str>,
    /// How much the cluster may use, which is what it is granted or less.
    pub limit: BudgetAmounts,
}
