//! The time for which idle pods are kept that are below their resize limits.
//!
//! A pod that has shrunk costs little, and grows again within a second where a new pod takes a
//! minute or more. When work comes again is not known. So what idle pods at their resize limits
//! would have cost within the idle timeout is spent otherwise: all small pods are kept for that
//! timeout, and the rest of the money keeps ever fewer of them for ever longer. Of pods kept for
//! times in proportion to 1, 1/2, 1/3 and so on, each doubling of the gap between two bursts leaves
//! half as many, and no gap is favoured over another. Where it is learnt from the gaps that a group has
//! had, `gaps` says how the money is spent.

use crate::hash::HashMap;
use crate::plan::growth::size::Size;
use crate::plan::list::{ByGroup, GroupIndex, NodeIndex};
use crate::plan::nodes::node::Fate;
use crate::plan::packing::state::DecisionState;
use crate::plan::removal::gaps::{self, LearntKeep};
use crate::snapshot::history::BurstMemory;

/// The part of what small pods cost less that is spent on keeping them. (Of the parts that were
/// tried in `make outcome`, the largest one with which groups that grow cost three quarters of what
/// they cost with Ray.)
const SPENT: f64 = 0.5;

/// The part that is spent where it is known when work comes again: all of it, so that small pods cost no
/// more than idle ones did at their limits. (With it, groups that grow cost three quarters of what they
/// cost with Ray, too.)
const SPENT_BY_GAPS: f64 = 1.0;

/// The memory that costs as much as a core, in bytes: 8 GiB, as clouds sell them. (The default
/// prices of `OpenCost` give 7.5 GiB.)
const MEMORY_OF_A_CORE: f64 = 8.0 * 1_073_741_824.0;

/// The rules for keeping small pods.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Keep<'a> {
    /// The longest time, in seconds.
    pub(crate) longest: f64,
    /// The number of pods that each group had when it last had work for all of them.
    pub(crate) most: &'a ByGroup<u64>,
    /// The bursts of work of each group, if the times are to be learnt from them.
    pub(crate) bursts: Option<&'a ByGroup<Vec<BurstMemory>>>,
}

/// Says of each idle pod below its resize limits for how long it is kept, if that is longer than the
/// idle timeout, which is `timeout` where the group has none of its own. `order` has the nodes that
/// are removed first in front, and the last ones are kept for longest.
pub(crate) fn keep_small(
    state: &mut DecisionState,
    order: &[NodeIndex],
    keep: Keep<'_>,
    timeout: f64,
) {
    let mut places: HashMap<Option<GroupIndex>, u64> = HashMap::default();
    let mut learnt: HashMap<Option<GroupIndex>, Option<Vec<LearntKeep>>> = HashMap::default();
    for number in order.iter().rev() {
        let Some(node) = state.nodes.get_mut(*number) else {
            continue;
        };
        let (group, is_idle) = (
            node.group(),
            node.fate == Fate::Stay && node.is_idle_worker(),
        );
        let resize = node.resize.as_deref_mut();
        let Some(resize) = resize.filter(|resize| is_idle && resize.is_below_limits()) else {
            continue;
        };
        let own = group.and_then(|group| state.groups.get(group)?.config.idle_timeout_s);
        let timeout = own.unwrap_or(timeout);
        let place = places.entry(group).or_default();
        *place += 1;
        // More pods may be idle than ever had work at once.
        let most = group.map_or(0, |group| keep.most.count(group)).max(*place);
        // The cost of the pod at its resize limits, as a multiple of its present cost.
        #[expect(clippy::cast_precision_loss, reason = "a ratio")]
        let cost = |size: Size| size.cpu + size.memory as f64 / MEMORY_OF_A_CORE;
        let now = cost(resize.current).max(f64::MIN_POSITIVE);
        let ratio = (cost(resize.limits) / now).max(1.0);
        let by_gaps = learnt.entry(group).or_insert_with(|| {
            let bursts = keep.bursts?.get(group?)?;
            // Seconds of small pods that are spent on a gap beyond the idle timeout.
            #[expect(clippy::cast_precision_loss, reason = "numbers of pods")]
            let money = most as f64 * timeout * SPENT_BY_GAPS * (ratio - 1.0);
            gaps::keep(bursts, (timeout, keep.longest), most, money)
        });
        if let Some(by_gaps) = by_gaps {
            let place = usize::try_from(*place - 1).ok();
            let kept = place.and_then(|place| by_gaps.get(place)).copied();
            resize.kept_for = kept.map(|kept| kept.seconds);
            resize.of_gaps = kept.map(|kept| kept.of_gaps);
        } else {
            let kept = timeout * times(ratio, *place, most);
            resize.kept_for = Some(kept.min(keep.longest)).filter(|kept| *kept > timeout);
        }
    }
}

/// The multiple of the idle timeout for which the pod at `place` of `most` is kept, if it would
/// cost `ratio` times as much at its resize limits.
#[expect(clippy::cast_precision_loss, reason = "numbers of pods")]
fn times(ratio: f64, place: u64, most: u64) -> f64 {
    /// Euler's constant, by which a sum of 1, 1/2, 1/3 and so on differs from the logarithm.
    const EULER: f64 = 0.577_215_664_9;
    let (place, most) = (place as f64, most as f64);
    // A formula, because each idle pod asks for the sum: adding up would make that quadratic.
    let sum = most.ln() + EULER + 0.5 / most - 1.0 / (12.0 * most * most);
    1.0 + SPENT * (ratio - 1.0) * most / (place * sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_spent_than_small_pods_cost_less() {
        for (ratio, most) in [(4.0, 1), (4.0, 8), (8.0, 300), (1.0, 5)] {
            let all: f64 = (1..=most).map(|place| times(ratio, place, most)).sum();
            #[expect(clippy::cast_precision_loss, reason = "a number of pods")]
            let budget = most as f64 * (1.0 + SPENT * (ratio - 1.0));
            assert!((all / budget - 1.0).abs() < 0.02, "{all} of {budget}");
        }
    }

    #[test]
    fn a_gap_twice_as_long_finds_half_as_many() {
        let kept = |gap: f64| {
            let kept = (1..=64).map(|place| times(8.0, place, 64) - 1.0);
            kept.filter(|times| *times >= gap).count()
        };
        assert_eq!((kept(2.0), kept(4.0), kept(8.0)), (23, 11, 5));
    }
}
