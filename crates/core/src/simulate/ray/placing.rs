//! Placement of tasks and bundles on nodes.

use crate::simulate::ray::node::{RayNode, RayNodeStage};
use crate::simulate::ray::resources::Bundle;
use crate::simulate::trace::PlacementStrategy;

/// The utilisation below which nodes are equally good, so that work is packed on the first of them.
/// (`scheduler_spread_threshold`)
const SPREAD_THRESHOLD: f64 = 0.5;

/// The part of the nodes, the best ones, of which one is drawn. (`scheduler_top_k_fraction`)
const TOP_PART: f64 = 0.2;

/// The node for a task or an actor, by Ray's hybrid policy. (`hybrid_scheduling_policy.cc`.)
/// `alive` are the numbers of the nodes that are not dead. `gpu` is the number of the resource GPU.
/// `draw` gives a number below its argument.
pub(super) fn hybrid(
    nodes: &[RayNode],
    alive: &[usize],
    bundle: &Bundle,
    gpu: Option<usize>,
    mut draw: impl FnMut(usize) -> usize,
) -> Option<usize> {
    let mut fitting: Vec<(bool, f64, usize)> = Vec::new();
    for number in alive.iter().copied() {
        let node = &nodes[number];
        // A draining node takes no more work, whatever is free.
        let takes_work = node.stage == RayNodeStage::Alive;
        if !takes_work || !bundle.fits_beside(&node.used, &node.total) {
            continue;
        }
        // Nodes with GPUs are kept for tasks that ask for them, while others have room. (Ray,
        // `scheduler_avoid_gpu_nodes`.)
        let spares = gpu.is_some_and(|gpu| bundle.get(gpu) == 0 && node.total.get(gpu) > 0);
        let utilisation = node.used.utilisation(&node.total);
        let score = if utilisation < SPREAD_THRESHOLD {
            0.0
        } else {
            utilisation
        };
        fitting.push((spares, score, number));
    }
    // Equal nodes stay in the order of their numbers, so that equal simulations draw equal nodes.
    fitting.sort_by(|one, other| {
        (one.0.cmp(&other.0))
            .then(one.1.total_cmp(&other.1))
            .then(one.2.cmp(&other.2))
    });
    let first = fitting.first()?.0;
    let candidates = fitting
        .iter()
        .take_while(|(spares, ..)| *spares == first)
        .count();
    // A part of all nodes, as in Ray, and not of those that have room.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a part of a count"
    )]
    let best = ((alive.len() as f64 * TOP_PART) as usize).clamp(1, candidates);
    fitting.get(draw(best)).map(|(_, _, number)| *number)
}

/// The nodes for the bundles of a placement group, in the order of the bundles; `None` if they do not
/// all fit. (`bundle_scheduling_policy.cc`.)
pub(super) fn gang(
    nodes: &[RayNode],
    alive: &[usize],
    strategy: PlacementStrategy,
    bundles: &[Bundle],
) -> Option<Vec<usize>> {
    let takes_work = alive
        .iter()
        .filter(|number| nodes[**number].stage == RayNodeStage::Alive);
    let mut free: Vec<(usize, Bundle)> = takes_work
        .map(|number| (*number, nodes[*number].free()))
        .collect();
    if strategy == PlacementStrategy::StrictPack {
        // All bundles of such a placement group are on one node, so that node holds their sum.
        let mut sum = Bundle::default();
        for bundle in bundles {
            sum.add(bundle);
        }
        let (number, _) = free.iter().find(|(_, free)| sum.fits(free))?;
        return Some(vec![*number; bundles.len()]);
    }
    // The largest first, as they are the hardest to place.
    let mut order: Vec<usize> = (0..bundles.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(bundles[*at].weight()));
    let mut chosen = vec![0; bundles.len()];
    let mut taken: Vec<usize> = Vec::new();
    for at in order {
        let fits = |(_, (_, free)): &(usize, &(usize, Bundle))| bundles[at].fits(free);
        let is_taken = |(_, (number, _)): &(usize, &(usize, Bundle))| taken.contains(number);
        let candidates = || free.iter().enumerate().filter(fits);
        let place = match strategy {
            PlacementStrategy::StrictSpread => candidates().find(|node| !is_taken(node)),
            // `SPREAD` and `PACK` are wishes: where they cannot be met, any node will do.
            PlacementStrategy::Spread => candidates()
                .find(|node| !is_taken(node))
                .or_else(|| candidates().next()),
            PlacementStrategy::Pack | PlacementStrategy::StrictPack => {
                candidates().find(is_taken).or_else(|| candidates().next())
            }
        };
        let (index, (number, _)) = place?;
        chosen[at] = *number;
        taken.push(*number);
        free[index].1.subtract(&bundles[at]);
    }
    Some(chosen)
}
