//! The record of a budget's grants, and which entry the owner of a cluster wants to have in it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::budget::amounts::BudgetAmounts;
use crate::budget::shares::{Claim, shares};
use crate::seconds::milliseconds;

/// The most clusters that a record has, which keeps it within what an annotation may hold.
pub const MOST_CLUSTERS: usize = 1000;

/// The grants of one budget.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Grants {
    /// How often the record was written. No two writes store the same, because the API server gives
    /// an object that is written unchanged no new version; and of two records the later one is
    /// known.
    pub revision: u64,
    /// The first revision, which no other record of the budget has: somebody may delete the record, and
    /// then it is made anew.
    pub made: u64,
    /// Whether not every cluster may have said yet what it uses. Until it has had the time to, nobody
    /// is granted anything.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_new: bool,
    /// The entries, by the UID of the RayCluster.
    pub clusters: BTreeMap<String, Grant>,
}

/// The entry of one cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Grant {
    /// How much the cluster may use.
    #[serde(with = "as_list")]
    pub granted: BudgetAmounts,
    /// What it uses besides, because that comes without being asked for and nothing was left: others
    /// make room for it, and it may not use it for anything else.
    #[serde(with = "as_list", skip_serializing_if = "is_none")]
    pub excess: BudgetAmounts,
    /// How much it wanted when the entry was written.
    #[serde(with = "as_list")]
    pub wants: BudgetAmounts,
    /// Its weight among the clusters of its priority.
    pub weight: u32,
    /// Higher priorities are served first.
    pub priority: i32,
}

/// Amounts as a short list, because a record has many.
mod as_list {
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    use crate::budget::amounts::BudgetAmounts;

    pub(super) fn serialize<S: Serializer>(
        amounts: &BudgetAmounts,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        amounts.list().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BudgetAmounts, D::Error> {
        <[u64; 3]>::deserialize(deserializer).map(BudgetAmounts::of)
    }
}

fn is_none(amounts: &BudgetAmounts) -> bool {
    *amounts == BudgetAmounts::default()
}

impl Grant {
    fn is_hungry(&self) -> bool {
        !self.wants.is_within(self.granted)
    }
}

/// A cluster, as its owner sees it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClusterUse {
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
        let granted = self.clusters.values().map(|entry| entry.granted);
        granted.fold(BudgetAmounts::default(), BudgetAmounts::plus)
    }

    /// The sum of all grants, and of what is used besides.
    pub fn used(&self) -> BudgetAmounts {
        let excess = self.clusters.values().map(|entry| entry.excess);
        excess.fold(self.sum(), BudgetAmounts::plus)
    }

    /// The sum of what all want.
    pub fn wanted(&self) -> BudgetAmounts {
        let wanted = self.clusters.values().map(|entry| entry.wants);
        wanted.fold(BudgetAmounts::default(), BudgetAmounts::plus)
    }

    /// What a cluster should have of `total`: its fair share of what all want, and what nobody
    /// wants besides, as far as it is granted that already.
    pub fn target(&self, total: BudgetAmounts, cluster: &str, of: &ClusterUse) -> BudgetAmounts {
        let others = self
            .clusters
            .iter()
            .filter(|(uid, _)| uid.as_str() != cluster);
        let others: Vec<&Grant> = others.map(|(_, entry)| entry).collect();
        let share = |at: usize| {
            let claim = |wants: [u64; 3], weight, priority| Claim {
                wants: wants.get(at).copied().unwrap_or(0),
                weight,
                priority,
            };
            // Whole blocks are granted, so that not every task that comes needs a write.
            let own = claim(coarse(of.wants).list(), of.weight, of.priority);
            let theirs = others.iter();
            let theirs =
                theirs.map(|entry| claim(entry.wants.list(), entry.weight, entry.priority));
            let claims: Vec<Claim> = std::iter::once(own).chain(theirs).collect();
            let total = total.list().get(at).copied().unwrap_or(0);
            shares(total, &claims).first().copied().unwrap_or(0)
        };
        BudgetAmounts::of([share(0), share(1), share(2)])
    }

    /// Whether a cluster other than this one waits for more, or more is used than there is: then nobody
    /// may keep more than its share.
    pub fn is_contended(&self, total: BudgetAmounts, cluster: &str) -> bool {
        let mut others = self
            .clusters
            .iter()
            .filter(|(uid, _)| uid.as_str() != cluster);
        others.any(|(_, entry)| entry.is_hungry()) || !self.used().is_within(total)
    }

    /// The entry that the owner of a cluster wants to have, if it is to be written: the cluster
    /// needs more than it is granted, or others wait and it has more than its share, or they do not
    /// know what it wants.
    ///
    /// An entry is raised by no more than what is left of `total`. What the cluster uses beyond
    /// that is its excess. An entry is lowered to no less than the cluster uses. In a new record nothing is
    /// granted, because others may use what seems to be left.
    pub fn entry_to_write(
        &self,
        total: BudgetAmounts,
        cluster: &str,
        of: &ClusterUse,
    ) -> Option<Grant> {
        let known = self.clusters.get(cluster).copied();
        let before = known.unwrap_or_default();
        let needs_more = !of.wants.max(of.uses).is_within(before.granted);
        let contended = self.is_contended(total, cluster);
        if known.is_some() && !needs_more && !contended {
            return None;
        }
        let target = self.target(total, cluster, of);
        let left = total.minus(self.used().minus(before.excess));
        let most = before.granted.plus(left);
        let raised = target.max(before.granted).min(most);
        let granted = if contended {
            raised.min(target.max(of.uses))
        } else {
            raised
        };
        let granted = if self.is_new {
            BudgetAmounts::default()
        } else {
            granted.max(of.uses.min(most))
        };
        let entry = Grant {
            granted,
            // Pods for minima come without being asked for, and others are there before the budget
            // is.
            excess: of.uses.minus(granted),
            wants: coarse(of.wants),
            weight: of.weight,
            priority: of.priority,
        };
        let has_room = known.is_some() || self.clusters.len() < MOST_CLUSTERS;
        (known != Some(entry) && has_room).then_some(entry)
    }

    /// Whether there is no record, or somebody has taken all of its content away.
    pub fn is_lost(&self) -> bool {
        self.revision == 0
    }

    /// Whether nobody has written it since it was made.
    pub fn is_made(&self) -> bool {
        self.is_new && self.revision == self.made
    }

    /// A new record. It is later than any that somebody has deleted, since none is written a thousand
    /// times in a second. `now` is in seconds since 1970.
    #[must_use]
    pub fn made_at(now: f64) -> Self {
        let made = milliseconds(now).max(1);
        Self {
            revision: made,
            made,
            is_new: true,
            clusters: BTreeMap::new(),
        }
    }

    /// Removes the entries of clusters that are gone, together with all that they used.
    pub fn forget(&mut self, is_gone: impl Fn(&str) -> bool) {
        self.clusters.retain(|uid, _| !is_gone(uid));
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The API server takes 256 KiB of annotations.
    #[test]
    fn a_full_record_fits_into_an_annotation() {
        let large = BudgetAmounts::of([1 << 50; 3]);
        let entry = Grant {
            granted: large,
            excess: large,
            wants: large,
            weight: 1000,
            priority: -1_000_000,
        };
        let uid = |number| format!("0b5a1b2c-1234-4321-8888-{number:012}");
        let mut grants = Grants {
            revision: u64::MAX,
            made: u64::MAX,
            is_new: false,
            clusters: (0..MOST_CLUSTERS).map(|at| (uid(at), entry)).collect(),
        };
        let text = serde_json::to_string(&grants).unwrap();
        assert!(text.len() < 256 << 10, "{}", text.len());
        assert_eq!(serde_json::from_str::<Grants>(&text).unwrap(), grants);
        let wants = ClusterUse {
            wants: large,
            ..ClusterUse::default()
        };
        let unbounded = BudgetAmounts::of([BudgetAmounts::UNBOUNDED; 3]);
        let another = uid(MOST_CLUSTERS);
        assert_eq!(grants.entry_to_write(unbounded, &another, &wants), None);
        grants.clusters.pop_first();
        assert!(grants.entry_to_write(unbounded, &another, &wants).is_some());
    }
}
