//! Metrics of budgets over several clusters.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::budget::amounts::BudgetAmounts;

/// The metrics: one series for each budget and resource, of which there are as many as RayPolicies.
#[derive(Debug, Default)]
pub struct BudgetMetrics {
    limit: Family<BudgetLabels, Amount>,
    granted: Family<BudgetLabels, Amount>,
    wanted: Family<BudgetLabels, Amount>,
}

type Amount = Gauge<f64, AtomicU64>;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BudgetLabels {
    policy: String,
    resource: &'static str,
}

impl BudgetMetrics {
    /// Registers everything.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "budget_limit",
            "What the budget of a RayPolicy lets all its clusters use: CPUs, bytes of memory, GPUs",
            self.limit.clone(),
        );
        registry.register(
            "budget_granted",
            "What clusters are granted of the budget of a RayPolicy",
            self.granted.clone(),
        );
        registry.register(
            "budget_wanted",
            "What clusters would use if the budget of a RayPolicy did not bound them",
            self.wanted.clone(),
        );
    }

    /// Records what a budget allows.
    pub fn limit(&self, policy: &str, total: BudgetAmounts) {
        for (labels, amount, is_bounded) in series(policy, total) {
            if is_bounded {
                self.limit.get_or_create(&labels).set(amount);
            } else {
                // A series without bound would have to show the largest number there is, against
                // which a dashboard's curve of use is flat.
                self.limit.remove(&labels);
            }
        }
    }

    /// Records what clusters are granted of a budget, and want.
    pub fn record(&self, policy: &str, granted: BudgetAmounts, wanted: BudgetAmounts) {
        for (family, amounts) in [(&self.granted, granted), (&self.wanted, wanted)] {
            for (labels, amount, _) in series(policy, amounts) {
                family.get_or_create(&labels).set(amount);
            }
        }
    }

    /// Records that the record of a budget is gone.
    pub fn forget(&self, policy: &str) {
        for (labels, ..) in series(policy, BudgetAmounts::default()) {
            for family in [&self.limit, &self.granted, &self.wanted] {
                family.remove(&labels);
            }
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a gauge for people")]
fn series(
    policy: &str,
    amounts: BudgetAmounts,
) -> impl Iterator<Item = (BudgetLabels, f64, bool)> + '_ {
    let units = [("cpu", 1000.0), ("memory", 1.0), ("gpu", 1.0)];
    let series = units.into_iter().zip(amounts.list());
    series.map(move |((resource, unit), amount)| {
        let labels = BudgetLabels {
            policy: policy.to_owned(),
            resource,
        };
        (
            labels,
            amount as f64 / unit,
            amount != BudgetAmounts::UNBOUNDED,
        )
    })
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    #[test]
    fn what_a_budget_does_not_bound_has_no_limit() {
        let metrics = BudgetMetrics::default();
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        let text = || {
            let mut text = String::new();
            encode(&mut text, &registry).unwrap();
            text
        };
        metrics.limit("team", BudgetAmounts::of([2500, u64::MAX, u64::MAX]));
        let amounts = BudgetAmounts::of([1500, 1 << 30, 0]);
        metrics.record("team", amounts, amounts);
        let shown = text();
        assert!(
            shown.contains("budget_limit{policy=\"team\",resource=\"cpu\"} 2.5"),
            "{shown}"
        );
        assert!(!shown.contains("budget_limit{policy=\"team\",resource=\"memory\"}"));
        assert!(shown.contains("budget_granted{policy=\"team\",resource=\"cpu\"} 1.5"));
        metrics.forget("team");
        assert!(!text().contains("team"));
    }
}
