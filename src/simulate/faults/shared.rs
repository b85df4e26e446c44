//! What several clusters of one simulated world share: Kubernetes nodes with the pods on them, and a budget.

use super::budget::SceneBudget;
use super::plan::FaultPlan;
use super::trial::FaultTrial;
use crate::budget::amounts::BudgetAmounts;
use crate::simulate::budget::SimulatedBudget;
use crate::simulate::moment::Moment;
use crate::simulate::world::Machines;

/// What clusters share. Each of them has it only while something happens to it.
#[derive(Debug)]
pub(super) struct SharedParts {
    pub(super) machines: Machines,
    budget: Option<SimulatedBudget>,
    /// For each cluster what it uses of the budget, if that is over it.
    uses: Vec<Option<BudgetAmounts>>,
}

impl SharedParts {
    /// What clusters with these plans share.
    pub(super) fn new(plans: &[FaultPlan], machines: Machines) -> Self {
        let of = |plan: &FaultPlan| plan.scene.settings.budget.clone();
        let budget = plans.iter().find_map(of);
        let has = |plan: &FaultPlan| {
            plan.scene
                .settings
                .budget
                .as_ref()
                .map(|_| BudgetAmounts::default())
        };
        Self {
            machines,
            budget: budget.map(|budget| SimulatedBudget::shared(budget.budget())),
            uses: plans.iter().map(has).collect(),
        }
    }

    /// Lets something happen to a cluster while it has what is shared, and tells the others what follows.
    pub(super) fn with<T>(
        &mut self,
        clusters: &mut [FaultTrial<'_>],
        number: usize,
        act: impl FnOnce(&mut FaultTrial<'_>) -> T,
    ) -> T {
        let result = self.lend(&mut clusters[number], number, act);
        let now = clusters[number].world.now;
        self.tell(clusters, now);
        result
    }

    fn tell(&mut self, clusters: &mut [FaultTrial<'_>], now: Moment) {
        loop {
            let notices = self.machines.take_notices();
            if notices.is_empty() {
                return;
            }
            for (number, notice) in notices {
                if let Some(cluster) = clusters.get_mut(number) {
                    self.lend(cluster, number, |cluster| cluster.world.hear(notice, now));
                }
            }
        }
    }

    fn lend<T>(
        &mut self,
        cluster: &mut FaultTrial<'_>,
        number: usize,
        act: impl FnOnce(&mut FaultTrial<'_>) -> T,
    ) -> T {
        cluster.world.exchange(&mut self.machines);
        let is_budgeted = self.uses[number].is_some();
        if is_budgeted && let Some(mut budget) = self.budget.take() {
            let others = self.uses.iter().enumerate();
            let others = others.filter(|(other, _)| *other != number);
            let others = others.filter_map(|(_, uses)| *uses);
            budget.used = others.fold(BudgetAmounts::default(), BudgetAmounts::plus);
            cluster.world.budget = Some(budget);
        }
        let result = act(cluster);
        if is_budgeted {
            self.budget = cluster.world.budget.take();
            self.uses[number] = Some(cluster.checker.budget.own);
        }
        cluster.world.exchange(&mut self.machines);
        result
    }
}

/// The same plans, with one budget over all clusters that strategy `rayfit` scales, if any of them has one;
/// it has as many times the cores as there are clusters.
pub(super) fn with_one_budget(plans: &mut [FaultPlan]) {
    let cores = plans.iter().find_map(|plan| {
        let budget = plan.scene.settings.budget.as_ref();
        budget.map(|budget| budget.cores)
    });
    let is_under = |plan: &FaultPlan| plan.scene.settings.strategy.is_rayfit();
    let clusters = plans.iter().filter(|plan| is_under(plan)).count() as u64;
    for plan in plans {
        let under = cores.filter(|_| is_under(plan));
        plan.scene.settings.budget = under.map(|cores| SceneBudget {
            cores: cores * clusters,
            others: Vec::new(),
        });
    }
}
