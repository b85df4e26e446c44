//! The order of the choices to try: each field by itself, then what lies around the best ones.

use std::collections::HashSet;

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
pub struct Searched {
    /// All choices that were simulated, today's first.
    pub trials: Vec<Trial>,
    /// The smallest differences that count.
    pub grain: Grain,
    /// Choices that were not simulated because admission would refuse them.
    pub refused: usize,
    /// The CPU-hours for which a GPU-hour counts.
    pub gpu_weight: f64,
    /// Whether each trial is within the bounds.
    within: Vec<bool>,
}

impl Searched {
    /// The scores of the trials; `None` for what is out of bounds.
    pub fn scores(&self) -> Vec<Option<TrialScore>> {
        let both = self.trials.iter().zip(&self.within);
        both.map(|(trial, within)| within.then(|| self.grain.score(trial)))
            .collect()
    }

    /// Whether a trial is better than today's settings: no worse in anything that counts, and better in
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
    pub fn run(&self, progress: &mut dyn FnMut(f64)) -> Result<Searched, SimulationError> {
        let today = self.space.today();
        let patch = ChoicePatch::of(&self.space, &today);
        let today = self.trial(today, patch, 0, progress)?;
        let is_within = self.space.is_within(&today.choice);
        let mut walk = Walk {
            search: self,
            tried: HashSet::from([today.choice.clone()]),
            found: Searched {
                grain: Grain::of(&today),
                trials: vec![today],
                refused: 0,
                gpu_weight: self.gpu_weight,
                within: vec![is_within],
            },
            progress,
        };
        // Today's settings may lie outside the bounds that users give; the search begins at what
        // lies nearest within.
        walk.try_out(self.space.start());
        walk.singly();
        walk.around();
        Ok(walk.found)
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
        patch.apply_policy(&mut reconciler);
        let mut by_seed = Vec::new();
        for number in 0..self.seeds.max(1) {
            let world = WorldSettings {
                seed: self.world.seed.wrapping_add(number.into()),
                // All simulations go on equally long after the last job, so that pods that are kept
                // longer are paid for in all of them alike.
                tail_s: self.space.longest_idle_s() + TAIL_S + self.space.longest_keep_s(),
                ..self.world.clone()
            };
            #[expect(clippy::cast_precision_loss, reason = "some thousands")]
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

    /// Whether admission would refuse what a choice makes of the cluster, and does not refuse today's.
    fn is_refused(&self, choice: &Choice, patch: &ChoicePatch) -> bool {
        if !self.space.is_sensible(choice) {
            return true;
        }
        let cluster = patch.apply(&self.space.cluster);
        let (old, new) = (
            RayObject::parse(&self.space.cluster),
            RayObject::parse(&cluster),
        );
        new.is_some_and(|new| {
            let facts = Facts::default();
            // Beside today's object, as an update is judged: what was wrong with the cluster before
            // is allowed to stay, and must not refuse all choices.
            !judge(&new, old.as_ref(), None, &facts, &self.admission).is_allowed()
        })
    }
}

/// A search on its way.
struct Walk<'a> {
    search: &'a Search,
    tried: HashSet<Choice>,
    found: Searched,
    progress: &'a mut dyn FnMut(f64),
}

impl Walk<'_> {
    fn has_left(&self, most: usize) -> bool {
        self.found.trials.len() < most
    }

    /// Simulates a choice, unless that was done already, or admission would refuse it.
    fn try_out(&mut self, choice: Choice) {
        if !self.has_left(self.search.most_choices())
            || !self.search.space.is_within(&choice)
            || !self.tried.insert(choice.clone())
        {
            return;
        }
        let done = self.found.trials.len();
        let patch = ChoicePatch::of(&self.search.space, &choice);
        if !self.search.is_refused(&choice, &patch)
            && let Ok(trial) = self.search.trial(choice, patch, done, self.progress)
        {
            self.found.trials.push(trial);
            self.found.within.push(true);
        } else {
            self.found.refused += 1;
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
                for choice in [up(&start, at, step, space), down(&start, at, step)] {
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
            let front = front(&self.found.scores());
            let trials = front.iter().map(|at| &self.found.trials[*at]);
            let places: Vec<(f64, f64)> = trials.map(Trial::place).collect();
            let knee = nearest(&places, 0..places.len()).unwrap_or(0);
            let new = (0..front.len()).filter(|at| !expanded.contains(&front[*at]));
            let Some(next) = new.min_by_key(|at| at.abs_diff(knee)).map(|at| front[at]) else {
                return;
            };
            expanded.insert(next);
            let others: Vec<Choice> = (front.iter())
                .map(|at| self.found.trials[*at].choice.clone())
                .collect();
            for choice in self.moves(&self.found.trials[next].choice, &others) {
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
            moves.extend(up(from, at, 1, space));
            moves.extend(down(from, at, 1));
        }
        moves
    }

    /// Whether a field by itself made any difference, as far as that was tried.
    fn matters(&self, at: usize, start: &Choice) -> bool {
        let is_single = |choice: &Choice| {
            let mut both = choice.iter().zip(start).enumerate();
            both.all(|(index, (one, other))| (one == other) != (index == at))
        };
        let amounts = |trial: &Trial| TrialScore {
            changes: 0,
            ..self.found.grain.score(trial)
        };
        let mut trials = self.found.trials.iter();
        let from = trials.clone().find(|trial| trial.choice == *start);
        let mut alone = trials.by_ref().filter(|trial| is_single(&trial.choice));
        let Some(from) = from.map(amounts) else {
            return true;
        };
        let Some(first) = alone.next() else {
            return true;
        };
        amounts(first) != from || alone.any(|trial| amounts(trial) != from)
    }
}

fn up(from: &Choice, at: usize, step: usize, space: &Space) -> Option<Choice> {
    let mut choice = from.clone();
    choice[at] = from[at].checked_add(step)?;
    (choice[at] < space.parameters[at].values.len()).then_some(choice)
}

fn down(from: &Choice, at: usize, step: usize) -> Option<Choice> {
    let mut choice = from.clone();
    choice[at] = from[at].checked_sub(step)?;
    Some(choice)
}
