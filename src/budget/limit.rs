//! What RayPolicies say about budgets, and what one budget lets a cluster use.

use std::sync::Arc;

use crate::budget::amounts::BudgetAmounts;

/// How much all clusters together may use that a RayPolicy matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    /// The RayPolicy.
    pub policy: Arc<str>,
    /// How much; what it does not bound is unbounded.
    pub total: BudgetAmounts,
}

/// Which part of budgets a cluster gets while others want more too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetShare {
    /// Its weight among the clusters of its priority.
    pub weight: u32,
    /// Higher priorities are served first.
    pub priority: i32,
}

/// How much a cluster may use by one budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetLimit {
    /// The RayPolicy whose budget it is.
    pub policy: Arc<str>,
    /// How much the cluster may use, which is what it is granted or less.
    pub limit: BudgetAmounts,
    /// Whether nothing is granted because the record is new: then the cluster does not grow, and there
    /// is nothing that it has to give back.
    pub is_new: bool,
}

/// Whether limits allow more of anything than others do.
pub fn allow_more(limits: &[BudgetLimit], than: &[BudgetLimit]) -> bool {
    let before = |one: &BudgetLimit| than.iter().find(|other| other.policy == one.policy);
    let mut limits = limits.iter();
    limits.any(|one| before(one).is_some_and(|before| !one.limit.is_within(before.limit)))
}

impl Default for BudgetShare {
    fn default() -> Self {
        Self {
            weight: 1,
            priority: 0,
        }
    }
}
