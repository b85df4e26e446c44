//! The time for which idle pods are kept that are below their resize limits.
//!
//! A pod that has shrunk costs little, and grows again within a second where a new pod takes a
//! minute or more. When work comes again is not known. So what idle pods at their resize limits
//! would have cost within the idle timeout is spent otherwise: all small pods are kept for that
//! timeout, and the rest of the money keeps ever fewer of them for ever longer. Pods that were never
//! resized save nothing, because they would be as small with Ray's autoscaler. Of pods kept for
//! times in proportion to 1, 1/2, 1/3 and so on, each doubling of the gap between two bursts leaves
//! half as many, and no gap is favoured over another. Where it is learnt from the gaps that a group has
//! had, `by_gaps` says how the money is spent.

use crate::hash::HashMap;
use crate::plan::growth::resize::Resize;
use crate::plan::growth::size::Size;
use crate::plan::list::{GroupIndex, NodeIndex};
use crate::plan::nodes::node::{Fate, PlannedNode};
use crate::plan::packing::state::DecisionState;
use crate::plan::removal::enforce::sort_for_removal;
use crate::plan::slices::findings::Findings;
use crate::plan::slices::small_pods::reason::GapsSeen;
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

/// The least number of gaps that must have been seen.
const FEWEST: usize = 4;

/// The most pods of a group whose times are learnt; further ones are kept for the idle timeout.
const MOST_PODS: u64 = 16;

/// The factor by which a pod is kept for longer than a gap.
const MARGIN: f64 = 1.1;

/// Says of each idle pod that has shrunk below its resize limits for how long it is kept, if that is longer than the
/// idle timeout, which is `timeout` where the group has none of its own. Those that would be removed last are kept for
/// longest, which is `longest` at the most.
pub(crate) fn keep_small(
    state: &mut DecisionState,
    findings: &Findings<'_>,
    (timeout, longest): (f64, f64),
) {
    let has_shrunk = |resize: &Resize| resize.noted.is_some() && resize.is_below_limits();
    let is_small = |node: &PlannedNode| {
        node.fate == Fate::Stay
            && node.is_idle_worker()
            && node.resize.as_deref().is_some_and(has_shrunk)
    };
    let numbers = state.order.iter().copied();
    let mut order: Vec<NodeIndex> = numbers
        .filter(|number| is_small(&state.nodes[*number]))
        .collect();
    sort_for_removal(state, &mut order);
    let mut places: HashMap<Option<GroupIndex>, u64> = HashMap::default();
    let mut learnt: HashMap<Option<GroupIndex>, Option<Vec<Choice>>> = HashMap::default();
    for number in order.iter().rev() {
        let node = &state.nodes[*number];
        let group = node.group();
        let Some((resize, notes)) =
            (node.resize.as_deref()).zip(state.tables.sizes.get_mut(number))
        else {
            continue;
        };
        let of_group = group.and_then(|group| state.groups[group].config.idle_timeout_s());
        let timeout = of_group.unwrap_or(timeout);
        let place = places.entry(group).or_default();
        *place += 1;
        // More pods may be idle than ever had work at once.
        let most = group.map_or(0, |group| findings.at_work[group]).max(*place);
        // The cost of the pod at its resize limits, as a multiple of its present cost.
        #[expect(clippy::cast_precision_loss, reason = "a ratio")]
        let cost = |size: Size| size.cpu + size.memory as f64 / MEMORY_OF_A_CORE;
        let now = cost(resize.current).max(f64::MIN_POSITIVE);
        let ratio = (cost(resize.limits) / now).max(1.0);
        let learnt = learnt.entry(group).or_insert_with(|| {
            let bursts = &findings.bursts.as_ref()?[group?];
            // Seconds of small pods that are spent on a gap beyond the idle timeout.
            #[expect(clippy::cast_precision_loss, reason = "numbers of pods")]
            let money = most as f64 * timeout * SPENT_BY_GAPS * (ratio - 1.0);
            by_gaps(bursts, (timeout, longest), most, money)
        });
        if let Some(learnt) = learnt {
            let place = usize::try_from(*place - 1).ok();
            let stay = place.and_then(|place| learnt.get(place)).copied();
            notes.kept = stay.map(|stay| (stay.seconds, Some(stay.of_gaps)));
        } else {
            let stay = timeout * times(ratio, *place, most);
            let seconds = stay.min(longest);
            notes.kept = (seconds > timeout).then_some((seconds, None));
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

/// For each of so many pods, the one that is kept for longest first, for how long it is kept beyond
/// `timeout`, and at most for `longest`. `money` is how many seconds of small pods one gap may
/// cost. Nothing, if too few gaps have been seen.
///
/// Without knowledge, money is spread over all gaps alike. Once some gaps have been seen, it goes
/// to where they end: step by step to the pod and the time with which most gaps end for what it
/// costs, and to none if no gap ends in time. (Shahrad et al., "Serverless in the Wild", USENIX ATC
/// 2020: a keep-alive time from the histogram of idle times, with a margin, and the usual one while
/// the histogram says too little.)
fn by_gaps(
    bursts: &[BurstMemory],
    (timeout, longest): (f64, f64),
    pods: u64,
    mut money: f64,
) -> Option<Vec<Choice>> {
    let places = (1..=pods.min(MOST_PODS)).map(|place| gaps(bursts, place));
    let places = places.take_while(|gaps| gaps.len() >= FEWEST);
    let choices: Vec<Vec<Choice>> = places
        .map(|gaps| choices(&gaps, timeout, longest))
        .collect();
    if choices.is_empty() {
        return None;
    }
    // Money goes where it lets most gaps end for what it costs, step by step: from what is chosen to something longer
    // that is worth most for what it costs more.
    let mut chosen: Vec<Option<Choice>> = vec![None; choices.len()];
    loop {
        let mut best: Option<(&mut Option<Choice>, Choice, f64)> = None;
        let mut of_best = f64::NEG_INFINITY;
        for (choices, now) in choices.iter().zip(&mut chosen) {
            let (share, cost) = now.map_or((0.0, 0.0), |now| (now.share, now.cost));
            let mut step = None;
            for choice in choices.iter().filter(|choice| choice.share > share) {
                let more = choice.cost - cost;
                // A choice that costs nothing more is worth the most, and not a division by zero.
                let worth = (choice.share - share) / more.max(f64::MIN_POSITIVE);
                if more <= money && worth > of_best {
                    (of_best, step) = (worth, Some((*choice, more)));
                }
            }
            if let Some((choice, more)) = step {
                best = Some((now, choice, more));
            }
        }
        let Some((now, choice, more)) = best else {
            break;
        };
        money -= more;
        *now = Some(choice);
    }
    let mut stay: Vec<Choice> = chosen.into_iter().flatten().collect();
    stay.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    Some(stay)
}

/// A time for which a pod may be kept, with what it brings and costs.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Choice {
    /// The seconds from the end of a burst.
    seconds: f64,
    /// The gaps from which it was learnt, and how many ended in that time.
    of_gaps: GapsSeen,
    /// The part of the gaps that end in that time, and not before.
    share: f64,
    /// Seconds for which the pod is kept beyond the timeout, on average.
    cost: f64,
}

/// The times between bursts that needed at least so many pods, in seconds.
fn gaps(bursts: &[BurstMemory], pods: u64) -> Vec<f64> {
    let large = bursts.iter().filter(|burst| burst.pods >= pods);
    let pairs = large.clone().zip(large.skip(1));
    let gap = pairs.filter_map(|(one, next)| Some(next.at - one.until?));
    gap.filter(|gap| *gap > 0.0).collect()
}

/// The times for which a pod may be kept, each until one of the gaps has ended.
#[expect(clippy::cast_precision_loss, reason = "a few gaps")]
fn choices(gaps: &[f64], timeout: f64, longest: f64) -> Vec<Choice> {
    let count = gaps.len() as f64;
    let until = gaps.iter().map(|gap| (gap * MARGIN).min(longest));
    until
        .filter(|seconds| *seconds > timeout)
        .map(|seconds| {
            let ended = gaps.iter().filter(|gap| **gap <= seconds);
            let share = ended.clone().filter(|gap| **gap > timeout).count();
            let beyond = gaps.iter().map(|gap| (gap.min(seconds) - timeout).max(0.0));
            Choice {
                seconds,
                of_gaps: GapsSeen {
                    count: gaps.len() as u64,
                    ended: ended.count() as u64,
                },
                share: share as f64 / count,
                cost: beyond.sum::<f64>() / count,
            }
        })
        .collect()
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
        let stay = |gap: f64| {
            let stay = (1..=64).map(|place| times(8.0, place, 64) - 1.0);
            stay.filter(|times| *times >= gap).count()
        };
        assert_eq!((stay(2.0), stay(4.0), stay(8.0)), (23, 11, 5));
    }

    /// Bursts of so many pods that last a minute, with these gaps between them.
    fn bursts(pods: u64, gaps: &[f64]) -> Vec<BurstMemory> {
        let mut at = 0.0;
        let mut bursts = Vec::new();
        for gap in gaps.iter().chain(&[0.0]) {
            let until = Some(at + 60.0);
            bursts.push(BurstMemory { at, until, pods });
            at += 60.0 + gap;
        }
        bursts
    }

    #[test]
    fn a_pod_is_kept_until_the_next_burst_comes() {
        let history = bursts(8, &[300.0, 310.0, 290.0, 305.0]);
        // 240 s beyond the timeout cost each of them, so the money keeps three.
        let stay = by_gaps(&history, (60.0, 900.0), 8, 800.0).unwrap();
        assert_eq!(stay.len(), 3);
        assert!((stay[0].seconds - 330.0).abs() < 0.1, "{stay:?}");
        assert_eq!(stay[0].of_gaps, GapsSeen { count: 4, ended: 4 });
    }

    #[test]
    fn nothing_is_spent_where_no_gap_ends_in_time() {
        let history = bursts(8, &[2000.0; 5]);
        assert_eq!(by_gaps(&history, (60.0, 900.0), 8, 1e6), Some(Vec::new()));
    }

    #[test]
    fn few_gaps_teach_nothing() {
        let history = bursts(8, &[300.0; 3]);
        assert_eq!(by_gaps(&history, (60.0, 900.0), 8, 1e6), None);
    }

    /// Most bursts need two pods, and every fourth one eight.
    #[test]
    fn pods_that_are_seldom_needed_are_kept_for_what_they_are_needed_for() {
        let mut history = bursts(2, &[100.0; 15]);
        for burst in history.iter_mut().step_by(4) {
            burst.pods = 8;
        }
        let stay = by_gaps(&history, (60.0, 900.0), 8, 1e6).unwrap();
        assert!((stay[0].seconds - 110.0).abs() < 0.1, "{stay:?}");
        assert_eq!(stay.len(), 2, "three gaps of the others are too few");
    }
}
