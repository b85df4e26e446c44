//! The results of a choice, and which of two is better.

use super::patch::ChoicePatch;
use super::space::Choice;
use crate::quantity::nearest_whole;
use crate::simulate::result::SimulationResult;

/// The smallest difference of waits that counts, in seconds, and as a share of today's.
const WAIT: (f64, f64) = (0.2, 0.02);

/// The smallest difference that counts of what the slowest jobs wait. It is larger, since a few
/// jobs decide it.
const P99: (f64, f64) = (1.0, 0.05);

/// The smallest difference of costs that counts, in hours, and as a share of today's.
const COST: (f64, f64) = (1e-4, 0.01);

/// A choice that was simulated.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// The choice.
    pub choice: Choice,
    /// Its changes.
    pub patch: ChoicePatch,
    /// The result of its simulations, as the mean over all seeds, without curves.
    pub result: SimulationResult,
    /// The result with each seed, without curves.
    pub by_seed: Vec<SimulationResult>,
    /// CPU-hours, with GPU-hours at their weight.
    pub cost: f64,
}

/// The smallest differences that count: those below are chance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Grain {
    mean: f64,
    p99: f64,
    cost: f64,
}

/// The score of a trial, in whole grains; the smaller the better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TrialScore {
    /// Jobs that never ran, were lost, or ran when their pod went, and processes for which there was too
    /// little memory.
    pub failed: u64,
    /// The cost.
    pub cost: u64,
    /// The mean wait.
    pub mean: u64,
    /// The 99th percentile of the wait.
    pub p99: u64,
    /// The number of fields that change.
    pub changes: usize,
}

impl Grain {
    /// The grain of a search that begins with this trial.
    pub fn of(today: &Trial) -> Self {
        let step = |(least, share): (f64, f64), value: f64| least.max(share * value);
        Self {
            mean: step(WAIT, today.result.wait.mean),
            p99: step(P99, today.result.wait.p99),
            cost: step(COST, today.cost),
        }
    }

    /// The score of a trial.
    pub fn score(&self, trial: &Trial) -> TrialScore {
        let changes = trial.patch.changes.len();
        self.score_of(&trial.result, trial.cost, changes)
    }

    /// The score of one simulation.
    pub fn score_of(&self, result: &SimulationResult, cost: f64, changes: usize) -> TrialScore {
        TrialScore {
            failed: failed(result),
            cost: nearest_whole(cost / self.cost),
            mean: nearest_whole(result.wait.mean / self.mean),
            p99: nearest_whole(result.wait.p99 / self.p99),
            changes,
        }
    }

    /// Checks whether a wait is longer than another one by as much as counts.
    pub fn is_longer(&self, wait: f64, than: f64) -> bool {
        wait - than > self.mean.max(WAIT.1 * than)
    }
}

impl Trial {
    /// Its place between waiting and cost: the cost, and the mean wait in seconds.
    pub fn place(&self) -> (f64, f64) {
        (self.cost, self.result.wait.mean)
    }
}

/// The cost of a simulation, where a GPU-hour counts for so many CPU-hours.
pub fn cost(result: &SimulationResult, gpu_weight: f64) -> f64 {
    result.cpu_hours.paid + gpu_weight * result.gpu_hours.paid
}

/// Jobs that never ran, were lost, or ran when their pod went, and processes for which there was too little
/// memory.
pub fn failed(result: &SimulationResult) -> u64 {
    let jobs = result.jobs;
    let lost = u64::try_from(jobs.lost + jobs.unfinished).unwrap_or(u64::MAX);
    lost.saturating_add(result.harmed)
        .saturating_add(result.out_of_memory)
}

impl TrialScore {
    /// The cost, the mean wait and that of the slowest jobs.
    pub fn amounts(&self) -> (u64, u64, u64) {
        (self.cost, self.mean, self.p99)
    }

    /// Checks whether nothing speaks for the other one, and something against it; of two that are equal
    /// the one that changes less is better.
    pub fn beats(&self, other: &Self) -> bool {
        let (own, others) = (self.amounts(), other.amounts());
        let is_no_worse = self.failed <= other.failed
            && own.0 <= others.0
            && own.1 <= others.1
            && own.2 <= others.2;
        let is_equal = own == others && self.failed == other.failed;
        is_no_worse && (!is_equal || self.changes < other.changes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn better_is_what_nothing_speaks_against() {
        let score = |failed, cost, mean, changes| TrialScore {
            failed,
            cost,
            mean,
            p99: 0,
            changes,
        };
        let one = score(0, 10, 10, 1);
        assert!(one.beats(&score(0, 11, 10, 0)) && one.beats(&score(1, 10, 10, 0)));
        assert!(one.beats(&score(0, 10, 10, 2)) && !one.beats(&one));
        let trade = score(0, 9, 11, 1);
        assert!(!one.beats(&trade) && !trade.beats(&one));
    }
}
