//! A budget in a scene, and how much of it is used.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::violation::WorldViolation;
use crate::budget::amounts::BudgetAmounts;
use crate::budget::limit::Budget;
use crate::plan;
use crate::simulate::budget::SimulatedBudget;
use crate::simulate::moment::Moment;
use crate::simulate::world::World;

/// The memory that goes with a core, in GiB.
pub(super) const MEMORY_GI: i64 = 4;

/// For how many seconds a scaler may not have seen what users have set: no fault stops watches for longer.
const UNSEEN_S: f64 = 60.0;

/// A budget over the cluster and another one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SceneBudget {
    /// Its cores; there are 4 GiB for each.
    pub cores: u64,
    /// The cores that the other cluster wants, and from when on, in seconds since the first job.
    pub others: Vec<(f64, u64)>,
}

/// What was used when the budget was checked last.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct BudgetSeen {
    pub(super) own: BudgetAmounts,
    other: BudgetAmounts,
    /// When users last set more replicas than the cluster used. What follows from that before the
    /// scaler has seen it and written it down is not its doing.
    overrun: Option<Moment>,
}

impl SceneBudget {
    /// The budget as a policy has it.
    pub(super) fn budget(&self) -> Budget {
        Budget {
            policy: Arc::from("scene"),
            total: amounts(self.cores),
        }
    }

    /// The budget in its world.
    pub(super) fn simulated(&self) -> SimulatedBudget {
        let wants = self.others.iter().map(|(at, cores)| (*at, amounts(*cores)));
        SimulatedBudget::new(self.budget(), wants.collect())
    }
}

impl BudgetSeen {
    /// Takes in what is used after somebody else has changed the cluster: replicas and minima that users
    /// set are not asked for by the scaler.
    pub(super) fn rebase(&mut self, world: &World) {
        if let Some(budget) = &world.budget {
            let (own, _) = plan::charged(world.cluster_object(), &world.own_pods());
            *self = Self {
                own,
                other: budget.used,
                overrun: if own.is_within(self.own) {
                    self.overrun
                } else {
                    Some(world.now)
                },
            };
        }
    }

    /// Whether more is used than there is. What minima and the head take is not asked for; and what is
    /// used already is never taken away because others begin. Where users of one cluster have taken what
    /// was granted to the other one, that may still use its grant.
    pub(super) fn check(&mut self, world: &World) -> Result<(), WorldViolation> {
        let Some(budget) = &world.budget else {
            return Ok(());
        };
        let (own, least) = plan::charged(world.cluster_object(), &world.own_pods());
        let before = std::mem::replace(
            self,
            Self {
                own,
                other: budget.used,
                ..*self
            },
        );
        let sum = own.plus(budget.used);
        let known = own.min(budget.budget.total);
        let is_recorded = known.is_within(budget.recorded(&world.uid()));
        self.overrun =
            (self.overrun).filter(|since| !is_recorded || world.now.since(*since) < UNSEEN_S);
        let bounds = sum.list().into_iter().zip(budget.budget.total.list());
        let is_above: Vec<bool> = bounds.map(|(sum, total)| sum > total).collect();
        let own = before.own.list().into_iter().zip(own.list());
        let has_grown = own.zip(least.list());
        let has_grown = has_grown.map(|((before, now), least)| now > before && now > least);
        let other = before.other.list().into_iter().zip(budget.used.list());
        let has_grown = has_grown.zip(other.map(|(before, now)| now > before));
        // What another simulated cluster does is checked with it; this one may use its grant meanwhile.
        let (own_counts, other_counts) = if budget.is_shared() {
            (!is_recorded, false)
        } else {
            (true, !budget.is_overdrawn())
        };
        let broken = has_grown
            .zip(is_above)
            .any(|((own, other), above)| above && (own && own_counts || other && other_counts));
        let broken = broken || budget.is_overgranted();
        if broken && self.overrun.is_none() && !has_faulty_group(world) {
            return Err(WorldViolation::AboveBudget {
                own: self.own,
                other: self.other,
                total: budget.budget.total,
            });
        }
        Ok(())
    }
}

/// Whether the minimum of a group is above its maximum. The planner leaves such a group as it is, while
/// KubeRay makes its pods, which are charged once they are there.
pub(super) fn has_faulty_group(world: &World) -> bool {
    let spec = world.cluster_object().spec.as_ref();
    let mut groups = spec.into_iter().flat_map(|spec| &spec.groups);
    groups.any(|group| group.min_replicas > group.max_replicas)
}

fn amounts(cores: u64) -> BudgetAmounts {
    BudgetAmounts {
        cpu_milli: cores * 1000,
        memory_bytes: (cores * MEMORY_GI.unsigned_abs()) << 30,
        gpus: BudgetAmounts::UNBOUNDED,
    }
}
