//! A study: the same trace by each strategy, and with each value of what is varied.

use serde::Serialize;
use serde_json::Value;

use crate::plan::Strategy;
use crate::reconcile::RoundSettings;
use crate::simulate::price::Price;
use crate::simulate::result::SimulationResult;
use crate::simulate::run::{SimulationError, run};
use crate::simulate::settings::WorldSettings;
use crate::simulate::trace::Trace;
use crate::simulate::vary::Variation;

/// The most simulations of one study.
pub const MOST_SIMULATIONS: usize = 500;

/// The input of a study.
#[derive(Debug, Clone)]
pub struct Study {
    /// The RayCluster.
    pub cluster: Value,
    /// The workload.
    pub trace: Trace,
    /// The simulated world.
    pub world: WorldSettings,
    /// The settings by which the cluster is scaled, but for the strategy.
    pub reconciler: RoundSettings,
    /// The strategies that are compared.
    pub strategies: Vec<Strategy>,
    /// The fields to vary; each combination is tried.
    pub variations: Vec<Variation>,
    /// The prices by which the results are shown in money as well.
    pub price: Option<Price>,
}

/// One simulation of a study.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StudyRow {
    /// The strategy.
    pub strategy: Strategy,
    /// The fields that were set, with their values.
    pub set: Vec<(String, f64)>,
    /// Its result.
    pub result: SimulationResult,
}

impl Study {
    /// The number of its simulations.
    pub fn simulations(&self) -> usize {
        let values = self
            .variations
            .iter()
            .map(|variation| variation.values.len());
        values.fold(self.strategies.len(), usize::saturating_mul)
    }

    /// Checks that every variation changes something.
    ///
    /// # Errors
    ///
    /// Something would not, or makes no sense for this cluster.
    pub fn check(&self) -> Result<(), String> {
        let mut all = self.variations.iter();
        all.try_for_each(|one| one.check(&self.cluster, &self.world, &self.strategies))
    }

    /// Runs all simulations. `progress` hears the share that is done, from 0 to 1.
    ///
    /// # Errors
    ///
    /// A group of the RayCluster cannot be read, or the scaler makes too many rounds.
    pub fn run(&self, progress: &mut dyn FnMut(f64)) -> Result<Vec<StudyRow>, SimulationError> {
        // Every combination of values; one without any if nothing is varied.
        let mut combinations: Vec<Vec<(&Variation, f64)>> = vec![Vec::new()];
        for variation in &self.variations {
            let longer = combinations.iter().flat_map(|set| {
                let values = variation.values.iter();
                values.map(move |value| [&set[..], &[(variation, *value)]].concat())
            });
            combinations = longer.collect();
        }
        let all = self.simulations().max(1) as f64;
        let mut done = 0.0;
        let mut rows = Vec::new();
        for set in combinations {
            let (mut cluster, mut world) = (self.cluster.clone(), self.world.clone());
            let mut reconciler = self.reconciler.clone();
            for (variation, value) in &set {
                variation.set(*value, &mut cluster, &mut world, &mut reconciler);
            }
            // Strategies are innermost, so that those of one setting are beside each other in the table.
            for strategy in &self.strategies {
                let mut reconciler = reconciler.clone();
                reconciler.plan.strategy = *strategy;
                let mut part = |part: f64| progress((done + part) / all);
                let result = run(&cluster, &self.trace, &world, reconciler, &mut part)?;
                done += 1.0;
                rows.push(StudyRow {
                    strategy: *strategy,
                    set: set
                        .iter()
                        .map(|(variation, value)| (variation.to_string(), *value))
                        .collect(),
                    result,
                });
            }
        }
        Ok(rows)
    }
}
