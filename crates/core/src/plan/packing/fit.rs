//! Fitting all requests onto one node: which of them the node would take, and how good it would be
//! for them. (Ray, `scheduler.py`, `SchedulingNode.try_schedule` and `_compute_score`.)

use crate::plan::demand::names::Name;
use crate::plan::demand::requests::RequestBatch;
use crate::plan::demand::shape::{LabelCondition, Shape, ShapeId};
use crate::plan::nodes::amounts::{CountedAmounts, NodeAmounts, NodeResource};
use crate::plan::nodes::node::{Placement, PlannedNode};
use crate::plan::outcome::step::PlacementStep;
use crate::plan::packing::state::DecisionState;
use crate::snapshot::gcs::LabelOperator;

/// The most units that are placed one after the other, as Ray places them. Each subtraction rounds,
/// so that a division may give one unit more or less. No real tasks are so small that more of them
/// fit on a node; for those that are, the rest is divided out.
const ONE_BY_ONE: u64 = 100_000;

/// The steps of the work budget that storing the place of a unit costs.
const STORING: usize = 8;

/// A node after it took the requests that fit on it.
#[derive(Debug, Clone)]
pub(crate) struct FitTrial {
    pub(crate) amounts: NodeAmounts,
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
    pub(crate) label: usize,
    /// False for a GPU node that took no request for a GPU.
    pub(crate) gpu_ok: bool,
    /// The number of kinds of the node's resources that the requests use.
    pub(crate) kinds: usize,
    /// The least and the mean of total × (share in use)³ over the node's resources.
    pub(crate) least: f64,
    pub(crate) mean: f64,
}

impl FitTrial {
    /// Takes requests in order, each one as often as it fits. Returns `None` if none fits.
    pub(crate) fn of(
        node: &PlannedNode,
        batches: &[RequestBatch],
        source: CountedAmounts,
        state: &DecisionState,
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
        // Resources and labels of the node have to be looked through.
        let size = |trial: &Self| trial.amounts.listed.len() + trial.labels.len();
        state.work.spend(batches.len() / STORING + size(&trial));
        let open = batches.iter().enumerate();
        for (index, batch) in open.filter(|(_, batch)| batch.count > 0) {
            let shape = state.shapes.get(batch.shape);
            if !(state.work).spend(shape.steps * (1 + size(&trial) / STORING)) {
                return None;
            }
            // If the label has another value, Ray asserts and gives up the whole round; here the node
            // is simply not suitable.
            let has = |label: Name| trial.labels.iter().any(|(name, _)| *name == label);
            if !admits(shape, &trial.labels) || shape.anti_affinity().any(|(name, _)| has(name)) {
                continue;
            }
            let most = if shape.anti_affinity().next().is_some() {
                // The first unit sets the label that keeps the next one off this node.
                batch.count.min(1)
            } else {
                batch.count
            };
            let count = trial.fill(shape, most, source as usize, state);
            if count > 0 {
                for label in shape.anti_affinity() {
                    if !trial.labels.contains(&label) {
                        trial.labels.push(label);
                    }
                }
                state.work.spend(STORING + trial.placed.len() / STORING);
                trial.taken.push((index, count));
                if !trial.placed.contains(&batch.shape) {
                    trial.placed.push(batch.shape);
                }
            }
        }
        if trial.taken.is_empty() {
            return None;
        }
        trial.score = trial.score(source as usize, state)?;
        Some(trial)
    }

    /// Places units as long as they fit: by division where the division is exact, otherwise one by
    /// one, and the rest of very many units by division again. Returns how many were placed.
    fn fill(&mut self, shape: &Shape, count: u64, source: usize, state: &DecisionState) -> u64 {
        if shape.positive().next().is_none() {
            return count;
        }
        // Nearly all requests name only a few resources. No memory is allocated for those.
        let (mut few, mut many) = ([0.0; 8], Vec::new());
        let frees = if let Some(few) = few.get_mut(..shape.needs.len()) {
            few
        } else {
            many.resize(shape.needs.len(), 0.0);
            many.as_mut_slice()
        };
        for (free, (name, needed)) in frees.iter_mut().zip(&shape.needs) {
            let amount = self.amounts.get(*name);
            let listed = amount.and_then(|amount| amount.free[source]);
            *free = listed.unwrap_or(state.names.implied(*name));
            if *needed > *free {
                return 0;
            }
        }
        let needs = || shape.needs.iter().map(|(_, needed)| *needed);
        let fits = |frees: &[f64]| !needs().zip(frees).any(|(needed, free)| needed > *free);
        let mut taken = 0;
        let mut both = needs().zip(frees.iter());
        let is_exact = both.all(|(needed, free)| divides_exactly(needed, *free));
        while !is_exact && taken < count.min(ONE_BY_ONE) && fits(frees) {
            for (free, needed) in frees.iter_mut().zip(needs()) {
                *free -= needed;
            }
            taken += 1;
        }
        let steps = usize::try_from(taken).unwrap_or(usize::MAX) / 4 * frees.len();
        state.work.spend(steps);
        if taken < count && fits(frees) {
            let both = needs().zip(frees.iter());
            let more = both.map(|(needed, free)| times(needed, *free));
            let more = more.fold(count - taken, u64::min);
            #[expect(clippy::cast_precision_loss, reason = "exact where it matters")]
            let factor = more as f64;
            for (free, needed) in frees.iter_mut().zip(needs()) {
                // Ray takes off unit by unit, and each one fitted, so it never ends below zero. A
                // product that was rounded up would.
                *free = (*free - factor * needed).max(0.0_f64.min(*free));
            }
            taken += more;
        }
        let used = shape.needs.iter().zip(frees.iter());
        for ((name, _), free) in used.filter(|((_, needed), _)| taken > 0 && *needed != 0.0) {
            match self.amounts.get_mut(*name) {
                Some(amount) => amount.free[source] = Some(*free),
                // Only an implicit resource can be missing here: nothing is free of any other one.
                None => self.amounts.listed.push(NodeResource {
                    name: *name,
                    total: None,
                    free: std::array::from_fn(|one| (one == source).then_some(*free)),
                }),
            }
        }
        taken
    }

    /// Scores the node. Returns `None` for a node with more of a resource free than it has in
    /// total, where Ray asserts and gives up the round.
    fn score(&self, source: usize, state: &DecisionState) -> Option<Score> {
        let placed = || self.placed.iter().map(|id| state.shapes.get(*id));
        let total = |name| self.amounts.total(name);
        let has_gpu = total(state.gpu).is_some_and(|gpus| gpus > 0.0);
        let mut kinds: Vec<Name> = Vec::new();
        for (name, _) in placed().flat_map(Shape::positive) {
            if !kinds.contains(&name) && total(name).is_some() {
                kinds.push(name);
            }
        }
        // Resources that are not in use at all weigh 0.
        let mut count = self.amounts.untouched;
        let mut least = if count > 0 { 0.0 } else { f64::INFINITY };
        let mut sum = 0.0;
        for amount in &self.amounts.listed {
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
        let (least, mean) = match count {
            0 => (0.0, 0.0),
            count => (least, sum / f64::from(count)),
        };
        let mut labels = placed().map(|shape| preference(shape, &self.labels));
        Some(Score {
            label: labels.find(|label| *label > 0).unwrap_or(0),
            gpu_ok: !state.conserve_gpus || !has_gpu || placed().any(|shape| shape.names_gpu),
            kinds: kinds.len(),
            least,
            mean,
        })
    }

    /// Puts the trial into effect on a node.
    pub(crate) fn apply(
        &self,
        node: &mut PlannedNode,
        source: CountedAmounts,
        batches: &[RequestBatch],
        step: PlacementStep,
    ) {
        // Nodes of one class are equal in the amounts that count for this demand, and may differ in the
        // others, so only the former are taken over.
        let source = source as usize;
        for after in &self.amounts.listed {
            match node.amounts.get_mut(after.name) {
                Some(amount) => amount.free[source] = after.free[source],
                None => node.amounts.listed.push(*after),
            }
        }
        node.labels.clone_from(&self.labels);
        node.placed[source].clone_from(&self.placed);
        node.takes
            .extend(self.taken.iter().filter_map(|(batch, count)| {
                Some(Placement {
                    demand: batches.get(*batch)?.demand,
                    count: *count,
                    step,
                })
            }));
        node.class = [None; 2];
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

/// True if dividing is exact: every multiple of `needed` up to `free` is a number of its own in a
/// double, and so is the amount that is left. That holds if both are whole multiples of one, or of
/// one 1,048,576th, and not too large.
fn divides_exactly(needed: f64, free: f64) -> bool {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    [1.0, 1_048_576.0].iter().any(|unit| {
        let whole = |amount: f64| (amount * unit).fract() == 0.0 && (amount * unit).abs() < EXACT;
        needed == 0.0 || needed > 0.0 && whole(needed) && whole(free)
    })
}

/// True if the label selectors of the shape admit a node with these labels.
pub(crate) fn admits(shape: &Shape, labels: &[(Name, Name)]) -> bool {
    shape.selectors.is_empty() || preference(shape, labels) > 0
}

/// The rank of the first label selector that holds: the number of selectors for the first one, 1
/// for the last one, and 0 if none holds.
fn preference(shape: &Shape, labels: &[(Name, Name)]) -> usize {
    let holds = |selector: &Vec<LabelCondition>| {
        selector.iter().all(|condition| {
            let value = labels.iter().find(|(label, _)| *label == condition.label);
            let is_listed = value.is_some_and(|(_, value)| condition.values.contains(value));
            match condition.operator {
                LabelOperator::In => is_listed,
                LabelOperator::NotIn => !is_listed,
                LabelOperator::Unspecified => false,
            }
        })
    };
    let first = shape.selectors.iter().position(holds);
    first.map_or(0, |index| shape.selectors.len() - index)
}
