//! Recommendations: the choices that no other choice beats, which of them to take, and how often
//! each would have been worse than today.

use serde::Serialize;

use super::front::{front, knee, nearest};
use super::search::SearchResult;
use super::trial::Trial;

/// The choices that no other choice beats in wait, slowest wait and cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Recommendation {
    /// The positions of these choices among the trials, from the cheapest to the dearest.
    pub trials: Vec<usize>,
    /// The position of the knee in `trials`: from there on less waiting costs much more. `None` where
    /// there is no knee.
    pub knee: Option<usize>,
    /// The position in `trials` of the choice to take: one as wanted, or, where nothing is wanted, the
    /// one nearest to the knee that is better than today's settings, or else the knee. `None` if none is
    /// as wanted.
    pub taken: Option<usize>,
}

impl Recommendation {
    /// The front of a search, where users may want a longest mean wait in seconds, or a highest cost in hours.
    pub fn of(searched: &SearchResult, max_wait: Option<f64>, max_cost: Option<f64>) -> Self {
        let scores = searched.scores();
        let trials = front(&scores);
        let chosen = trials.iter().map(|at| &searched.trials[*at]);
        let places: Vec<(f64, f64)> = chosen.map(Trial::place).collect();
        let knee = knee(&places);
        let is_wanted = |at: &usize| {
            let (cost, wait) = places[*at];
            max_wait.is_none_or(|most| wait <= most) && max_cost.is_none_or(|most| cost <= most)
        };
        let mut good = (0..places.len()).filter(is_wanted);
        let taken = match (max_wait, max_cost) {
            (None, None) => {
                let better = (0..trials.len()).filter(|at| searched.is_better(trials[*at]));
                let today = trials.iter().position(|trial| *trial == 0);
                nearest(&places, better).or(knee).or(today).or(good.next())
            }
            // Places are in the order of cost.
            (Some(_), None) => good.next(),
            (None, Some(_)) => {
                good.min_by(|one, other| places[*one].1.total_cmp(&places[*other].1))
            }
            (Some(_), Some(_)) => nearest(&places, good),
        };
        Self {
            trials,
            knee,
            taken,
        }
    }

    /// Checks whether today's settings are on the front.
    pub fn has_today(&self) -> bool {
        self.trials.contains(&0)
    }
}

/// The parts of the trace in which a choice let jobs wait longer than today, and by how much at the
/// worst, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Risk {
    /// The parts in which the mean wait was longer.
    pub worse_parts: usize,
    /// All parts.
    pub parts: usize,
    /// The seconds by which it was longer in the worst of them; 0 if it was in none.
    pub worst_by: f64,
    /// The number of seeds with which the choice was better than today.
    pub better_seeds: usize,
    /// All seeds.
    pub seeds: usize,
}

impl Risk {
    /// The risk of a trial.
    pub fn of(searched: &SearchResult, trial: &Trial) -> Self {
        let today = &searched.trials[0].result.wait_by_tenth;
        let both = trial.result.wait_by_tenth.iter().zip(today);
        let worse = both.filter(|(wait, before)| searched.grain.is_longer(**wait, **before));
        let by: Vec<f64> = worse.map(|(wait, before)| wait - before).collect();
        Self {
            worse_parts: by.len(),
            parts: today.len(),
            worst_by: by.into_iter().fold(0.0, f64::max),
            better_seeds: searched.better_seeds(trial),
            seeds: trial.by_seed.len(),
        }
    }
}
