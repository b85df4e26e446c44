//! The record of a budget's grants, and which entry the owner of a cluster wants to have in it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::budget::amounts::BudgetAmounts;
use crate::budget::shares::{Claim, shares};

/// The grants of one budget, by the UID of the RayCluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Grants(pub BTreeMap<String, Grant>);

/// The entry of one cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Grant {
    /// How much the cluster may use.
    pub granted: BudgetAmounts,
    /// How much it wanted when the entry was written.
    pub wants: BudgetAmounts,
    /// Its weight among the clusters of its priority.
    pub weight: u32,
    /// Higher priorities are served first.
    pub priority: i32,
    /// How often the entry was written, so that no two writes store the same: the API server gives
    /// an object that is written unchanged no new version.
    pub serial: u64,
}

impl Grant {
    fn is_hungry(&self) -> bool {
        !self.wants.is_within(self.granted)
    }
}

/// A cluster, as its owner sees it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BudgetUse {
    /// How much it may be using now: no less than it does. What was asked for and is not seen yet
    /// is part of it.
    pub uses: BudgetAmounts,
    /// How much it would use without a budget.
    pub wants: BudgetAmounts,
    /// Its weight and priority, as in [`Grant`].
    pub weight: u32,
    /// Higher priorities are served first.
    pub priority: i32,
}

impl Grants {
    /// The sum of all grants.
    pub fn sum(&self) -> BudgetAmounts {
        let granted = self.0.values().map(|entry| entry.granted);
        granted.fold(BudgetAmounts::default(), BudgetAmounts::plus)
    }

    /// What a cluster should have of `total`: its fair share of what all want, and what nobody
    /// wants besides, as far as it is granted that already.
    pub fn target(&self, total: BudgetAmounts, cluster: &str, of: &BudgetUse) -> BudgetAmounts {
        let others = self.0.iter().filter(|(uid, _)| uid.as_str() != cluster);
        let others: Vec<&Grant> = others.map(|(_, entry)| entry).collect();
        let share = |at: usize| {
            let claim = |wants: [u64; 3], weight, priority| Claim {
                wants: wants.get(at).copied().unwrap_or(0),
                weight,
                priority,
            };
            let own = claim(of.wants.list(), of.weight, of.priority);
            let theirs = others.iter();
            let theirs =
                theirs.map(|entry| claim(entry.wants.list(), entry.weight, entry.priority));
            let claims: Vec<Claim> = std::iter::once(own).chain(theirs).collect();
            let total = total.list().get(at).copied().unwrap_or(0);
            shares(total, &claims).first().copied().unwrap_or(0)
        };
        BudgetAmounts::of([share(0), share(1), share(2)])
    }

    /// Whether a cluster other than this one waits for more, or more is granted than there is: then
    /// nobody may keep more than its share.
    pub fn is_contended(&self, total: BudgetAmounts, cluster: &str) -> bool {
        let mut others = self.0.iter().filter(|(uid, _)| uid.as_str() != cluster);
        others.any(|(_, entry)| entry.is_hungry()) || !self.sum().is_within(total)
    }

    /// The entry that the owner of a cluster wants to have, if it is to be written: the cluster
    /// needs more than it is granted, or others wait and it has more than its share, or they do not
    /// know what it wants.
    ///
    /// An entry is raised by no more than what is left of `total`. It is lowered to no less than the
    /// cluster uses.
    pub fn entry_to_write(
        &self,
        total: BudgetAmounts,
        cluster: &str,
        of: &BudgetUse,
    ) -> Option<Grant> {
        let known = self.0.get(cluster).copied();
        let before = known.unwrap_or_default();
        let needs_more = !of.wants.is_within(before.granted);
        let contended = self.is_contended(total, cluster);
        if known.is_some() && !needs_more && !contended {
            return None;
        }
        let target = self.target(total, cluster, of);
        let left = total.minus(self.sum());
        let raised = target.max(before.granted).min(before.granted.plus(left));
        let granted = if contended {
            raised.min(target.max(of.uses))
        } else {
            raised
        };
        let entry = Grant {
            granted,
            wants: coarse(of.wants),
            weight: of.weight,
            priority: of.priority,
            serial: before.serial,
        };
        (known != Some(entry)).then_some(Grant {
            serial: before.serial.wrapping_add(1),
            ..entry
        })
    }

    /// The entry of a cluster, as it is written again to be certain that it is stored.
    pub fn entry_again(&self, cluster: &str) -> Option<Grant> {
        let entry = self.0.get(cluster)?;
        Some(Grant {
            serial: entry.serial.wrapping_add(1),
            ..*entry
        })
    }

    /// Removes the entries of clusters that are gone, together with all that they used.
    pub fn forget(&mut self, is_gone: impl Fn(&str) -> bool) {
        self.0.retain(|uid, _| !is_gone(uid));
    }
}

/// Rounds up by at most an eighth, so that a record is not written for every task that comes or goes.
fn coarse(wants: BudgetAmounts) -> BudgetAmounts {
    let round = |amount: u64| {
        let step = (amount / 8).checked_next_power_of_two().unwrap_or(1).max(1) / 2;
        let step = step.max(1);
        amount.div_ceil(step).saturating_mul(step)
    };
    let [cpu, memory, gpus] = wants.list();
    BudgetAmounts::of([round(cpu), round(memory), gpus])
}
