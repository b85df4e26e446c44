//! What budgets leave for a cluster: no launch and no growth takes it above its limits.

use std::sync::Arc;

use crate::budget::amounts::BudgetAmounts;
use crate::budget::limit::BudgetLimit;
use crate::hash::HashMap;
use crate::plan::growth::headroom::NodeHeadroom;
use crate::plan::growth::resize::{Resize, ResizeProgress};
use crate::plan::growth::size::Size;
use crate::plan::list::GroupIndex;
use crate::plan::nodes::group::GroupConfig;
use crate::quantity::Quantity;
use crate::snapshot::amounts::Amounts;

/// What a cluster may still take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Allowance {
    budgets: Vec<Remaining>,
    /// What the cluster uses beyond any of them.
    over: BudgetAmounts,
    /// Whether others may wait for that.
    is_awaited: bool,
    /// By group, hosts of replicas that were begun, which are paid for already.
    prepaid: HashMap<GroupIndex, u64>,
}

/// What nodes cost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NodeCost {
    /// Their group.
    pub(crate) group: GroupIndex,
    /// What one of them costs.
    pub(crate) each: BudgetAmounts,
    /// How many of them a replica has: `KubeRay` makes whole ones.
    pub(crate) hosts: u64,
}

/// What is left of one budget.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Remaining {
    policy: Arc<str>,
    left: BudgetAmounts,
}

impl NodeCost {
    /// What each node of a group costs.
    pub(crate) fn of(group: GroupIndex, config: &GroupConfig, each: BudgetAmounts) -> Self {
        Self {
            group,
            each,
            hosts: config.hosts,
        }
    }
}

/// Whether others may wait for what the cluster has beyond its share.
pub(crate) fn is_awaited(allowance: Option<&Allowance>) -> bool {
    allowance.is_some_and(|allowance| allowance.is_awaited)
}

impl Allowance {
    /// What is left of limits.
    pub(crate) fn of(limits: &[BudgetLimit], charge: BudgetAmounts) -> Self {
        let left = |one: &BudgetLimit| Remaining {
            policy: Arc::clone(&one.policy),
            left: one.limit.minus(charge),
        };
        let known = limits.iter().filter(|one| !one.is_new);
        let over = known.map(|one| charge.minus(one.limit));
        Self {
            budgets: limits.iter().map(left).collect(),
            is_awaited: limits.iter().any(|one| !one.is_new),
            over: over.fold(BudgetAmounts::default(), BudgetAmounts::max),
            prepaid: HashMap::default(),
        }
    }

    /// What the cluster uses beyond any of its limits: once others want their share of a budget, less is
    /// left to it than it has.
    pub(crate) fn over(&self) -> BudgetAmounts {
        self.over
    }

    /// How many nodes of that cost it allows.
    pub(crate) fn nodes(&self, cost: &NodeCost) -> u64 {
        let allowed = self.budgets.iter().map(|one| times(cost.each, one.left));
        let allowed = allowed.min().unwrap_or(u64::MAX);
        let whole = allowed - allowed.checked_rem(cost.hosts).unwrap_or(0);
        whole.saturating_add(self.prepaid(cost))
    }

    fn prepaid(&self, cost: &NodeCost) -> u64 {
        self.prepaid.get(&cost.group).copied().unwrap_or(0)
    }

    /// The policy whose budget does not allow another node of that cost.
    pub(crate) fn forbids(&self, cost: BudgetAmounts) -> Option<&Arc<str>> {
        let forbids = |one: &&Remaining| times(cost, one.left) == 0;
        self.budgets.iter().find(forbids).map(|one| &one.policy)
    }

    /// Takes what so many nodes cost.
    pub(crate) fn launch(&mut self, cost: &NodeCost, count: u64) {
        let prepaid = self.prepaid(cost);
        // KubeRay makes all hosts of a replica, whichever of them was asked for, so the first one
        // pays for the others.
        let paid = count
            .saturating_sub(prepaid)
            .next_multiple_of(cost.hosts.max(1));
        let left = prepaid.saturating_add(paid).saturating_sub(count);
        self.prepaid.insert(cost.group, left);
        self.take(cost.each.times(paid));
    }

    /// The headroom of a Kubernetes node, as far as the allowance lets a pod use it.
    pub(crate) fn within(&self, headroom: Option<&NodeHeadroom>) -> NodeHeadroom {
        let unbounded = BudgetAmounts::of([u64::MAX; 3]);
        let left = self.budgets.iter().map(|one| one.left);
        let left = left.fold(unbounded, BudgetAmounts::min);
        let whole = |amount: u64| i64::try_from(amount).unwrap_or(i64::MAX);
        let (cpu, memory) = (
            Quantity::from_milli(whole(left.cpu_milli)),
            Quantity::from_units(whole(left.memory_bytes)),
        );
        match headroom {
            None => NodeHeadroom {
                node: String::new(),
                is_closed: false,
                cpu,
                memory,
            },
            Some(known) => NodeHeadroom {
                node: known.node.clone(),
                is_closed: known.is_closed,
                cpu: known.cpu.min(cpu),
                memory: known.memory.min(memory),
            },
        }
    }

    /// Keeps a resize that was just decided on, because the kubelet suggested it, within the
    /// allowance. What the kubelet refused is not charged.
    pub(crate) fn bound(&mut self, resize: &mut Resize) {
        if resize.progress == ResizeProgress::New && resize.current.is_below(resize.desired) {
            let goal = self.within(None).bound(resize.current, resize.desired);
            resize.ask(Some(goal.cpu), Some(goal.memory));
            self.grow(resize.current, goal);
        }
    }

    /// Takes what a pod gains when it grows.
    pub(crate) fn grow(&mut self, from: Size, goal: Size) {
        self.take(size(Size {
            cpu: goal.cpu - from.cpu,
            memory: goal.memory - from.memory,
        }));
    }

    fn take(&mut self, amounts: BudgetAmounts) {
        for one in &mut self.budgets {
            one.left = one.left.minus(amounts);
        }
    }
}

/// How often a cost is within what is left.
fn times(cost: BudgetAmounts, left: BudgetAmounts) -> u64 {
    // What is unbounded is the largest number, and divided by a cost that would be a bound.
    let of = |(left, cost): (u64, u64)| match left {
        BudgetAmounts::UNBOUNDED => u64::MAX,
        left => left.checked_div(cost).unwrap_or(u64::MAX),
    };
    let amounts = left.list().into_iter().zip(cost.list());
    amounts.map(of).min().unwrap_or(0)
}

/// What a new node of a group costs at the size with which its pod starts.
pub(crate) fn cost(group: &GroupConfig) -> BudgetAmounts {
    BudgetAmounts {
        gpus: gpus(group),
        ..asked(group.pod_requests)
    }
}

/// What a new node of a group costs when its pod has grown up to its resize limits.
pub(crate) fn cost_at_limits(group: &GroupConfig) -> BudgetAmounts {
    let gained = group.resize_limits.zip(group.base).map(|(limits, base)| {
        size(Size {
            cpu: limits.cpu - base.cpu,
            memory: limits.memory - base.memory,
        })
    });
    cost(group).plus(gained.unwrap_or_default())
}

/// The GPUs of a node of the group.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "whole, and never negative"
)]
pub(crate) fn gpus(group: &GroupConfig) -> u64 {
    let gpus = group.resources.iter().find(|(name, _)| name == "GPU");
    gpus.map_or(0, |(_, count)| count.max(0.0) as u64)
}

/// What a pod asks for, rounded up.
pub(crate) fn asked(amounts: Amounts) -> BudgetAmounts {
    // Up, so that many small pods do not take more than the budget by what would be cut off of
    // each.
    let up = |quantity: Option<Quantity>, unit: i128| {
        let nanos = quantity.unwrap_or_default().nanos().max(0);
        let whole = nanos / unit + i128::from(nanos % unit > 0);
        u64::try_from(whole).unwrap_or(u64::MAX)
    };
    BudgetAmounts {
        cpu_milli: up(amounts.cpu, Quantity::from_milli(1).nanos()),
        memory_bytes: up(amounts.memory, Quantity::from_units(1).nanos()),
        gpus: 0,
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturating, and never negative"
)]
fn size(size: Size) -> BudgetAmounts {
    BudgetAmounts {
        cpu_milli: (size.cpu.max(0.0) * 1000.0).ceil() as u64,
        memory_bytes: size.memory.max(0).unsigned_abs(),
        gpus: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::list::ListPosition as _;

    fn allowance(limit: [u64; 3]) -> Allowance {
        let limit = BudgetLimit {
            policy: "team".into(),
            limit: BudgetAmounts::of(limit),
            is_new: false,
        };
        Allowance::of(&[limit], BudgetAmounts::default())
    }

    fn node_cost(each: [u64; 3], hosts: u64) -> NodeCost {
        NodeCost {
            group: GroupIndex::at(1),
            each: BudgetAmounts::of(each),
            hosts,
        }
    }

    #[test]
    fn the_scarcest_resource_decides() {
        let mut allowance = allowance([8000, 1 << 33, BudgetAmounts::UNBOUNDED]);
        let cost = node_cost([2000, 1 << 32, 1], 1);
        assert_eq!(allowance.nodes(&cost), 2);
        allowance.launch(&cost, 2);
        assert_eq!(allowance.nodes(&cost), 0);
        assert_eq!(
            allowance.forbids(cost.each).map(|policy| &**policy),
            Some("team")
        );
        assert_eq!(allowance.within(None).cpu, Quantity::from_units(4));
    }

    #[test]
    fn hosts_come_in_whole_replicas() {
        let unbounded = BudgetAmounts::UNBOUNDED;
        let mut allowance = allowance([11_000, unbounded, unbounded]);
        let cost = node_cost([1000, 0, 0], 4);
        assert_eq!(allowance.nodes(&cost), 8);
        allowance.launch(&cost, 1);
        assert_eq!(allowance.nodes(&cost), 7);
        allowance.launch(&cost, 3);
        assert_eq!(allowance.nodes(&cost), 4);
        assert_eq!(allowance.within(None).cpu, Quantity::from_units(7));
    }
}
