//! Fitting all requests onto one node: which of them the node would take, and how good it would be
//! for them. (Ray, `scheduler.py`, `SchedulingNode.try_schedule` and `_compute_score`.)

use std::cmp::Ordering;

use crate::plan::demand::batch::RequestBatch;
use crate::plan::demand::names::{Name, Names};
use crate::plan::demand::shape::{LabelCondition, Shape, ShapeId, Shapes};
use crate::plan::nodes::node::{CountedAmounts, NodeResource, PlannedNode};
use crate::plan::packing::budget::WorkBudget;
use crate::snapshot::gcs::LabelOperator;

/// The most units that are placed one after the other, as Ray places them. Each subtraction rounds,
/// so that a division may give one unit more or less. No real tasks are so small that more of them
/// fit on a node; for those that are, the rest is divided out.
const ONE_BY_ONE: u64 = 100_000;

/// The steps of the work budget that storing the place of a unit costs.
const STORING: usize = 8;

/// The parts of a decision that fitting needs besides the node and the requests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FitContext<'a> {
    pub(crate) names: &'a Names,
    pub(crate) shapes: &'a Shapes,
    /// The name of the resource GPU, if any node has it or any request wants it.
    pub(crate) gpu: Option<Name>,
    /// Keep GPU nodes for requests that name a GPU.
    pub(crate) conserve_gpus: bool,
    /// The work budget of the decision.
    pub(crate) work: &'a WorkBudget,
}

/// A node after it took the requests that fit on it.
#[derive(Debug, Clone)]
pub(crate) struct FitTrial {
    pub(crate) amounts: Vec<NodeResource>,
    pub(crate) labels: Vec<(Name, Name)>,
    pub(crate) placed: Vec<ShapeId>,
    /// The request batches that the node took of, by their index, with the number of units of each.
    pub(crate) taken: Vec<(usize, u64)>,
    pub(crate) score: Score,
}

/// The score of a node for the requests that it took. The greater score is the better one; fields
/// are compared from the first on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Score {
    /// The rank of the label selector that the node satisfies: higher for one that is earlier in
    /// the list.
    label: usize,
    /// False for a GPU node that took no request for a GPU.
    gpu_ok: bool,
    /// The number of kinds of the node's resources that the requests use.
    kinds: usize,
    /// The least and the mean of total × (share in use)³ over the node's resources.
    least: f64,
    mean: f64,
}

impl Score {
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        self.label
            .cmp(&other.label)
            .then(self.gpu_ok.cmp(&other.gpu_ok))
            .then(self.kinds.cmp(&other.kinds))
            .then_with(|| self.least.total_cmp(&other.least))
            .then_with(|| self.mean.total_cmp(&other.mean))
    }
}

impl FitTrial {
    /// Takes requests in order, each one as often as it fits. Returns `None` if none fits.
    pub(crate) fn of(
        node: &PlannedNode,
        batches: &[RequestBatch],
        source: CountedAmounts,
        rules: FitContext<'_>,
    ) -> Option<Self> {
        let mut trial = Self {
            amounts: node.amounts.clone(),
            labels: node.labels.clone(),
            placed: node.placed[source as usize].clone(),
            taken: Vec::new(),
            score: Score {
                label: 0,
                gpu_ok: true,
                kinds: 0,
                least: 0.0,
                mean: 0.0,
            },
        };
        rules.work.spend(batches.len() / STORING + trial.size());
        for (index, batch) in batches
            .iter()
            .enumerate()
            .filter(|(_, batch)| batch.count > 0)
        {
            let shape = rules.shapes.get(batch.shape);
            if !rules.work.spend(shape.steps * (1 + trial.size() / STORING)) {
                return None;
            }
            let count = trial.take(shape, batch.count, source as usize, rules);
            if count > 0 {
                rules.work.spend(STORING + trial.placed.len() / STORING);
                trial.taken.push((index, count));
                if !trial.placed.contains(&batch.shape) {
                    trial.placed.push(batch.shape);
                }
            }
        }
        if trial.taken.is_empty() {
            return None;
        }
        trial.score = trial.score(node.untouched, source as usize, rules)?;
        Some(trial)
    }

    /// Places up to `count` units of a shape. Returns how many were placed.
    fn take(&mut self, shape: &Shape, count: u64, source: usize, rules: FitContext<'_>) -> u64 {
        if !admits(shape, &self.labels) || self.forbids(shape) {
            return 0;
        }
        let count = if shape.anti_affinity().next().is_some() {
            // The first unit sets the label that keeps the next one off this node.
            count.min(1)
        } else {
            count
        };
        let taken = if shape.positive().next().is_none() {
            count
        } else {
            self.fill(shape, count, source, rules)
        };
        if taken > 0 {
            for label in shape.anti_affinity() {
                if !self.labels.contains(&label) {
                    self.labels.push(label);
                }
            }
        }
        taken
    }

    /// Whether the node has a label that the shape must be apart from. (If the label has another
    /// value, Ray asserts and gives up the whole round; here the node is simply not suitable.)
    fn forbids(&self, shape: &Shape) -> bool {
        shape
            .anti_affinity()
            .any(|(label, _)| self.labels.iter().any(|(name, _)| *name == label))
    }

    /// Places units as long as they fit: by division where the division is exact, otherwise one by
    /// one, and the rest of very many units by division again. Returns how many were placed.
    fn fill(&mut self, shape: &Shape, count: u64, source: usize, rules: FitContext<'_>) -> u64 {
        // Nearly all requests name only a few resources. No memory is allocated for those.
        let (mut few, mut many) = ([0.0; 8], Vec::new());
        let frees = if let Some(few) = few.get_mut(..shape.needs.len()) {
            few
        } else {
            many.resize(shape.needs.len(), 0.0);
            many.as_mut_slice()
        };
        for (free, (name, needed)) in frees.iter_mut().zip(&shape.needs) {
            *free = self.free(*name, source, rules.names);
            if *needed > *free {
                return 0;
            }
        }
        let needs = || shape.needs.iter().map(|(_, needed)| *needed);
        let fits = |frees: &[f64]| !needs().zip(frees).any(|(needed, free)| needed > *free);
        let mut taken = 0;
        let is_exact = needs()
            .zip(frees.iter())
            .all(|(needed, free)| divides_exactly(needed, *free));
        while !is_exact && taken < count.min(ONE_BY_ONE) && fits(frees) {
            frees
                .iter_mut()
                .zip(needs())
                .for_each(|(free, needed)| *free -= needed);
            taken += 1;
        }
        rules
            .work
            .spend(usize::try_from(taken).unwrap_or(usize::MAX) / 4 * frees.len());
        if taken < count && fits(frees) {
            let times = needs()
                .zip(frees.iter())
                .map(|(needed, free)| times(needed, *free));
            let more = times.fold(count - taken, u64::min);
            #[expect(clippy::cast_precision_loss, reason = "exact where it matters")]
            let factor = more as f64;
            for (free, needed) in frees.iter_mut().zip(needs()) {
                // Ray takes off unit by unit, and each one fitted, so it never ends below zero. A
                // product that was rounded up would.
                *free = (*free - factor * needed).max(0.0_f64.min(*free));
            }
            taken += more;
        }
        if taken > 0 {
            for ((name, needed), free) in shape.needs.iter().zip(frees.iter()) {
                if *needed != 0.0 {
                    self.set_free(*name, *free, source);
                }
            }
        }
        taken
    }

    fn free(&self, name: Name, source: usize, names: &Names) -> f64 {
        let amount = self.amounts.iter().find(|amount| amount.name == name);
        let implied = if names.is_implicit(name) { 1.0 } else { 0.0 };
        amount
            .and_then(|amount| amount.free[source])
            .unwrap_or(implied)
    }

    fn set_free(&mut self, name: Name, left: f64, source: usize) {
        if let Some(amount) = self.amounts.iter_mut().find(|amount| amount.name == name) {
            amount.free[source] = Some(left);
        } else {
            // Only an implicit resource can be missing here: nothing is free of any other one.
            let mut free = [None; 2];
            free[source] = Some(left);
            self.amounts.push(NodeResource {
                name,
                total: None,
                free,
            });
        }
    }

    /// The number of resources and labels of the node that have to be looked through.
    fn size(&self) -> usize {
        self.amounts.len() + self.labels.len()
    }

    /// Scores the node. Returns `None` for a node with more of a resource free than it has in
    /// total, where Ray asserts and gives up the round.
    fn score(&self, untouched: u32, source: usize, rules: FitContext<'_>) -> Option<Score> {
        let placed = || self.placed.iter().map(|id| rules.shapes.get(*id));
        let total = |name| {
            let amount = self.amounts.iter().find(|amount| amount.name == name);
            amount.and_then(|amount| amount.total)
        };
        let has_gpu = rules.gpu.and_then(total).is_some_and(|gpus| gpus > 0.0);
        let mut kinds: Vec<Name> = Vec::new();
        for (name, _) in placed().flat_map(Shape::positive) {
            if !kinds.contains(&name) && total(name).is_some() {
                kinds.push(name);
            }
        }
        let (least, mean) = self.usage(untouched, source)?;
        Some(Score {
            label: placed()
                .map(|shape| preference(shape, &self.labels))
                .find(|score| *score > 0)
                .unwrap_or(0),
            gpu_ok: !rules.conserve_gpus || !has_gpu || placed().any(|shape| shape.names_gpu),
            kinds: kinds.len(),
            least,
            mean,
        })
    }

    /// The least and the mean of total × (share in use)³. Resources that are not in use at all
    /// weigh 0.
    fn usage(&self, untouched: u32, source: usize) -> Option<(f64, f64)> {
        let mut count = untouched;
        let mut least = if untouched > 0 { 0.0 } else { f64::INFINITY };
        let mut sum = 0.0;
        for amount in &self.amounts {
            if let (Some(total), Some(free)) = (amount.total, amount.free[source])
                && total != 0.0
            {
                let share = (total - free) / total;
                if !(0.0..=1.0).contains(&share) {
                    return None;
                }
                // Python's `**` calls `pow`. `powi` multiplies instead and can differ in the last
                // bit, by which Ray's order of nearly equal nodes would change.
                let used = total * share.powf(3.0);
                sum += used;
                least = used.min(least);
                count += 1;
            }
        }
        Some(if count == 0 {
            (0.0, 0.0)
        } else {
            (least, sum / f64::from(count))
        })
    }
}

/// The number of times that `needed` fits into `free`. An amount of zero fits without end.
fn times(needed: f64, free: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not negative, and saturates"
    )]
    if needed > 0.0 {
        (free / needed).max(0.0) as u64
    } else {
        u64::MAX
    }
}

/// Whether dividing is exact: every multiple of `needed` up to `free` is a number of its own in a
/// double, and so is the amount that is left. That holds if both are whole multiples of one, or of
/// one 1,048,576th, and not too large.
fn divides_exactly(needed: f64, free: f64) -> bool {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    [1.0, 1_048_576.0].iter().any(|unit| {
        let whole = |amount: f64| (amount * unit).fract() == 0.0 && (amount * unit).abs() < EXACT;
        needed == 0.0 || needed > 0.0 && whole(needed) && whole(free)
    })
}

/// Whether the label selectors of the shape admit a node with these labels.
pub(crate) fn admits(shape: &Shape, labels: &[(Name, Name)]) -> bool {
    shape.selectors.is_empty() || preference(shape, labels) > 0
}

/// The rank of the first label selector that holds: the number of selectors for the first one, 1
/// for the last one, and 0 if none holds.
fn preference(shape: &Shape, labels: &[(Name, Name)]) -> usize {
    let holds =
        |selector: &Vec<LabelCondition>| selector.iter().all(|c| condition_holds(c, labels));
    let first = shape.selectors.iter().position(holds);
    first.map_or(0, |index| shape.selectors.len() - index)
}

fn condition_holds(condition: &LabelCondition, labels: &[(Name, Name)]) -> bool {
    let value = labels.iter().find(|(label, _)| *label == condition.label);
    let listed = value.is_some_and(|(_, value)| condition.values.contains(value));
    match condition.operator {
        LabelOperator::In => listed,
        LabelOperator::NotIn => !listed,
        LabelOperator::Unspecified => false,
    }
}
