//! The order of the choices to try: each field by itself, then what lies around the best ones.

use std::collections::HashSet;

use super::bounds::SearchField;
use super::front::{front, nearest};
use super::patch::ChoicePatch;
use super::seeds;
use super::space::{Choice, Space};
use super::trial::{Grain, Trial, TrialScore, cost};
use crate::facts::Facts;
use crate::judge::judge;
use crate::policy::Settings;
use crate::ray::RayObject;
use crate::reconcile::RoundSettings;
use crate::simulate::run::{SimulationError, TAIL_S, run};
use crate::simulate::settings::WorldSettings;
use crate::simulate::trace::Trace;
use crate::simulate::vary::PolicyField;
use crate::snapshot::cluster_object::DEFAULT_IDLE_TIMEOUT_S;

/// The most simulations of one search.
pub const MOST_SIMULATIONS: usize = 5_000;

/// The share of simulations that may go to single fields; the others go to what lies around the best choices.
const SINGLE: (usize, usize) = (2, 3);

/// The input of a search.
#[derive(Debug, Clone)]
pub struct Search {
    /// The choices there are.
    pub space: Space,
    /// The workload.
    pub trace: Trace,
    /// The simulated world.
    pub world: WorldSettings,
    /// The settings by which the cluster is scaled.
    pub reconciler: RoundSettings,
    /// The settings of admission.
    pub admission: Settings,
    /// The most simulations.
    pub simulations: usize,
    /// The number of seeds with which each choice is simulated, from that of the world on; at least 1.
    pub seeds: u32,
    /// The CPU-hours for which a GPU-hour counts.
    pub gpu_weight: f64,
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchResult {
    /// All choices that were simulated, today's first.
    pub trials: Vec<Trial>,
    /// The smallest differences that count.
    pub grain: Grain,
    /// Choices that were not simulated because admission would refuse them.
    pub refused: usize,
    /// The CPU-hours for which a GPU-hour counts.
    pub gpu_weight: f64,
    /// True if today's settings are within the bounds. All others are.
    is_today_within: bool,
}

impl SearchResult {
    /// The scores of the trials; `None` for what is out of bounds.
    pub fn scores(&self) -> Vec<Option<TrialScore>> {
        let all = self.trials.iter().enumerate();
        let is_within = |at: usize| at > 0 || self.is_today_within;
        all.map(|(at, trial)| is_within(at).then(|| self.grain.score(trial)))
            .collect()
    }

    /// Checks whether a trial is better than today's settings: no worse in anything that counts, and better in
    /// something.
    pub fn is_better(&self, trial: usize) -> bool {
        let score = |trial: &Trial| self.grain.score(trial);
        let trial = self.trials.get(trial);
        trial.is_some_and(|trial| score(trial).beats(&score(self.today())))
    }

    /// The number of seeds with which a trial was better than today's settings.
    pub fn better_seeds(&self, trial: &Trial) -> usize {
        let changes = trial.patch.changes.len();
        let score = |result, changes| {
            self.grain
                .score_of(result, cost(result, self.gpu_weight), changes)
        };
        let both = trial.by_seed.iter().zip(&self.today().by_seed);
        both.filter(|(one, today)| score(one, changes).beats(&score(today, 0)))
            .count()
    }

    /// Today's settings.
    pub fn today(&self) -> &Trial {
        &self.trials[0]
    }
}

impl Search {
    /// Searches. `progress` hears the share of the simulations that are done, from 0 to 1.
    ///
    /// # Errors
    ///
    /// A group of the RayCluster cannot be read, or the scaler makes too many rounds.
    pub fn run(&self, progress: &mut dyn FnMut(f64)) -> Result<SearchResult, SimulationError> {
        let today = self.space.today();
        let patch = ChoicePatch::of(&self.space, &today);
        let today = self.trial(today, patch, 0, progress)?;
        let is_today_within = self.space.is_within(&today.choice);
        let mut walk = Walk {
            search: self,
            tried: HashSet::from([today.choice.clone()]),
            result: SearchResult {
                grain: Grain::of(&today),
                trials: vec![today],
                refused: 0,
                gpu_weight: self.gpu_weight,
                is_today_within,
            },
            progress,
        };
        // Today's settings may lie outside the bounds that users give; the search begins at what
        // lies nearest within.
        walk.try_out(self.space.start());
        walk.singly();
        walk.around();
        Ok(walk.result)
    }

    fn trial(
        &self,
        choice: Choice,
        patch: ChoicePatch,
        done: usize,
        progress: &mut dyn FnMut(f64),
    ) -> Result<Trial, SimulationError> {
        let cluster = patch.apply(&self.space.cluster);
        let mut reconciler = self.reconciler.clone();
        for (field, value) in &patch.policy {
            field.set(f64::from(*value), &mut reconciler);
        }
        let longest = |field: SearchField, least: f64| {
            let of_field = self
                .space
                .parameters
                .iter()
                .filter(|one| one.field == field);
            let values = of_field.filter_map(|one| one.values.last());
            values.copied().fold(least, f64::max)
        };
        // All simulations go on equally long after the last job, so that pods that are kept
        // longer are paid for in all of them alike.
        let tail_s = longest(SearchField::IdleTimeoutSeconds, DEFAULT_IDLE_TIMEOUT_S)
            + TAIL_S
            + longest(SearchField::Policy(PolicyField::KeepSmallSeconds), 0.0);
        let mut by_seed = Vec::new();
        for number in 0..self.seeds.max(1) {
            // All choices have the same seeds, so that chance speaks for none of them.
            let world = WorldSettings {
                seed: self.world.seed.wrapping_add(number.into()),
                tail_s,
                ..self.world.clone()
            };
            let (done, all) = (done as f64, self.most_choices() as f64);
            let mut part = |part: f64| {
                let part = (f64::from(number) + part) / f64::from(self.seeds.max(1));
                progress(((done + part) / all).min(1.0));
            };
            let mut result = run(&cluster, &self.trace, &world, reconciler.clone(), &mut part)?;
            // Thousands of curves would not be small.
            result.curve = Vec::new();
            by_seed.push(result);
        }
        let result = seeds::mean(&by_seed);
        Ok(Trial {
            cost: cost(&result, self.gpu_weight),
            choice,
            patch,
            result,
            by_seed,
        })
    }

    /// The number of choices that can be tried: each takes as many simulations as there are seeds.
    pub fn most_choices(&self) -> usize {
        let seeds = usize::try_from(self.seeds).unwrap_or(usize::MAX).max(1);
        (self.simulations / seeds).max(1)
    }

    /// Checks whether a choice makes no sense, or makes a cluster of today's that admission would newly refuse.
    fn is_refused(&self, choice: &Choice, patch: &ChoicePatch) -> bool {
        use SearchField::{MaxReplicas, MinReplicas, PodCpus, ResizeCpus};
        let value = |field, group: usize| self.space.value(choice, field, Some(group));
        let is_pair = |low, high, group, holds: fn(&f64, &f64) -> bool| {
            let pair = value(low, group).zip(value(high, group));
            pair.is_none_or(|(low, high)| holds(&low, &high))
        };
        // A group has no more replicas than it may have, and pods may grow where any may.
        let is_sensible = (0..self.space.groups.len()).all(|group| {
            is_pair(MinReplicas, MaxReplicas, group, f64::le)
                && is_pair(PodCpus, ResizeCpus, group, f64::lt)
        });
        if !is_sensible {
            return true;
        }
        let cluster = patch.apply(&self.space.cluster);
        // Beside today's object, as an update is judged: what was wrong with the cluster before
        // is allowed to stay, and must not refuse all choices.
        let old = RayObject::parse(&self.space.cluster);
        RayObject::parse(&cluster).is_some_and(|new| {
            // The Kubernetes cluster is not known here: rules that need facts about it say nothing.
            let facts = Facts::default();
            !judge(&new, old.as_ref(), None, &facts, &self.admission).is_allowed()
        })
    }
}

/// A search on its way.
struct Walk<'a> {
    search: &'a Search,
    tried: HashSet<Choice>,
    result: SearchResult,
    progress: &'a mut dyn FnMut(f64),
}

impl Walk<'_> {
    fn has_left(&self, most: usize) -> bool {
        self.result.trials.len() < most
    }

    /// Simulates a choice, unless that was done already, or admission would refuse it.
    fn try_out(&mut self, choice: Choice) {
        if !self.has_left(self.search.most_choices())
            || !self.search.space.is_within(&choice)
            || !self.tried.insert(choice.clone())
        {
            return;
        }
        let done = self.result.trials.len();
        let patch = ChoicePatch::of(&self.search.space, &choice);
        if !self.search.is_refused(&choice, &patch)
            && let Ok(trial) = self.search.trial(choice, patch, done, self.progress)
        {
            self.result.trials.push(trial);
        } else {
            // A choice that cannot be simulated does not end the search, since others can be.
            self.result.refused += 1;
        }
    }

    /// Changes one field at a time, first by one step, then by two, four and so on.
    fn singly(&mut self) {
        let (space, start) = (&self.search.space, self.search.space.start());
        let longest = space.parameters.iter().map(|one| one.values.len()).max();
        let most = (self.search.most_choices() * SINGLE.0 / SINGLE.1).max(2);
        // Near values of all fields come before far values of any, so that a search of few
        // simulations does not spend them all on the first fields.
        let steps = std::iter::successors(Some(1), |step: &usize| step.checked_mul(2));
        for step in steps.take_while(|step| *step < longest.unwrap_or(0)) {
            for at in 0..start.len() {
                for to in [start[at].checked_add(step), start[at].checked_sub(step)] {
                    let choice = space.with_value(&start, at, to);
                    if let Some(choice) = choice.filter(|_| self.has_left(most)) {
                        self.try_out(choice);
                    }
                }
            }
        }
    }

    /// Tries what lies around each choice of the front, nearest to the knee first, until there is
    /// nothing new, or there are no simulations left.
    fn around(&mut self) {
        let mut expanded: HashSet<usize> = HashSet::new();
        while self.has_left(self.search.most_choices()) {
            let front = front(&self.result.scores());
            let trials = front.iter().map(|at| &self.result.trials[*at]);
            let places: Vec<(f64, f64)> = trials.map(Trial::place).collect();
            let knee = nearest(&places, 0..places.len()).unwrap_or(0);
            let new = (0..front.len()).filter(|at| !expanded.contains(&front[*at]));
            let Some(next) = new.min_by_key(|at| at.abs_diff(knee)).map(|at| front[at]) else {
                return;
            };
            expanded.insert(next);
            let others: Vec<Choice> = (front.iter())
                .map(|at| self.result.trials[*at].choice.clone())
                .collect();
            for choice in self.moves(&self.result.trials[next].choice, &others) {
                self.try_out(choice);
            }
        }
    }

    /// The neighbours of a choice: one change less, what the others change as well, one step of
    /// each field that matters.
    fn moves(&self, from: &Choice, others: &[Choice]) -> Vec<Choice> {
        let (space, start) = (&self.search.space, self.search.space.start());
        let mut moves = Vec::new();
        for at in 0..from.len() {
            if from[at] != start[at] {
                let mut less = from.clone();
                less[at] = start[at];
                moves.push(less);
            }
        }
        for other in others {
            let both = from.iter().zip(other).zip(&start);
            let both = both.map(|((own, other), start)| if own == start { *other } else { *own });
            moves.push(both.collect());
        }
        for at in (0..from.len()).filter(|at| self.matters(*at, &start)) {
            for to in [from[at].checked_add(1), from[at].checked_sub(1)] {
                moves.extend(space.with_value(from, at, to));
            }
        }
        moves
    }

    /// Checks whether a field by itself made any difference, as far as that was tried.
    fn matters(&self, at: usize, start: &Choice) -> bool {
        let is_single = |choice: &Choice| {
            let mut both = choice.iter().zip(start).enumerate();
            both.all(|(index, (one, other))| (one == other) != (index == at))
        };
        let amounts = |trial: &Trial| TrialScore {
            changes: 0,
            ..self.result.grain.score(trial)
        };
        let trials = self.result.trials.iter();
        let from = trials.clone().find(|trial| trial.choice == *start);
        let mut alone = trials.filter(|trial| is_single(&trial.choice)).peekable();
        let Some(from) = from.filter(|_| alone.peek().is_some()).map(amounts) else {
            return true;
        };
        alone.any(|trial| amounts(trial) != from)
    }
}
