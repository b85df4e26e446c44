//! The mean of simulations that differ in their seed alone.

use crate::simulate::result::{Cost, JobCounts, SimulationResult, WaitSummary};

/// The mean of each figure, without curves. Counts are rounded up, so that what happened once is not lost.
/// Without simulations everything is 0.
pub fn mean(all: &[SimulationResult]) -> SimulationResult {
    let seeds = u32::try_from(all.len()).unwrap_or(u32::MAX).max(1);
    let float =
        |of: fn(&SimulationResult) -> f64| all.iter().map(of).sum::<f64>() / f64::from(seeds);
    let count = |of: fn(&SimulationResult) -> u64| {
        let sum = all.iter().map(of).fold(0, u64::saturating_add);
        sum.div_ceil(u64::from(seeds))
    };
    let places = |of: fn(&SimulationResult) -> usize| {
        let sum = all.iter().map(of).fold(0, usize::saturating_add);
        sum.div_ceil(all.len().max(1))
    };
    let cost = |of: fn(&SimulationResult) -> Cost| {
        let sum = all.iter().map(of).fold(Cost::default(), |sum, one| Cost {
            paid: sum.paid + one.paid,
            work: sum.work + one.work,
            slack: sum.slack + one.slack,
        });
        let each = f64::from(seeds);
        Cost {
            paid: sum.paid / each,
            work: sum.work / each,
            slack: sum.slack / each,
        }
    };
    let parts = all.first().map_or(0, |one| one.wait_by_tenth.len());
    let tenth = |part: usize| {
        let waits = all.iter().filter_map(|one| one.wait_by_tenth.get(part));
        waits.sum::<f64>() / f64::from(seeds)
    };
    SimulationResult {
        jobs: JobCounts {
            ended: places(|one| one.jobs.ended),
            lost: places(|one| one.jobs.lost),
            unfinished: places(|one| one.jobs.unfinished),
        },
        wait: WaitSummary {
            mean: float(|one| one.wait.mean),
            p50: float(|one| one.wait.p50),
            p99: float(|one| one.wait.p99),
            longest: float(|one| one.wait.longest),
        },
        wait_by_tenth: (0..parts).map(tenth).collect(),
        makespan: float(|one| one.makespan),
        endless_makespan: float(|one| one.endless_makespan),
        cpu_hours: cost(|one| one.cpu_hours),
        gib_hours: cost(|one| one.gib_hours),
        gpu_hours: cost(|one| one.gpu_hours),
        node_hours: float(|one| one.node_hours),
        pods: count(|one| one.pods),
        resizes: count(|one| one.resizes),
        harmed: count(|one| one.harmed),
        evicted: count(|one| one.evicted),
        out_of_memory: count(|one| one.out_of_memory),
        api_writes: count(|one| one.api_writes),
        gcs_writes: count(|one| one.gcs_writes),
        rounds: count(|one| one.rounds),
        curve: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_is_its_own_mean_and_what_happened_once_is_not_lost() {
        let one = SimulationResult {
            harmed: 1,
            wait_by_tenth: vec![2.0, 4.0],
            makespan: 7.0,
            ..SimulationResult::default()
        };
        assert_eq!(mean(std::slice::from_ref(&one)), one);
        let other = SimulationResult {
            wait_by_tenth: vec![4.0, 4.0],
            makespan: 8.0,
            ..SimulationResult::default()
        };
        let both = mean(&[one, other]);
        assert_eq!((both.harmed, both.wait_by_tenth), (1, vec![3.0, 4.0]));
        assert!((both.makespan - 7.5).abs() < 1e-9);
    }
}
