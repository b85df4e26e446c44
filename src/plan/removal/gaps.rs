//! The time for which small pods are kept, by the gaps between the bursts that a group has had.
//!
//! Without knowledge, money is spread over all gaps alike. Once some gaps have been seen, it goes
//! to where they end: step by step to the pod and the time with which most gaps end for what it
//! costs, and to none if no gap ends in time. (Shahrad et al., "Serverless in the Wild", USENIX ATC
//! 2020: a keep-alive time from the histogram of idle times, with a margin, and the usual one while
//! the histogram says too little.)

use crate::plan::outcome::standby_reason::GapsSeen;
use crate::snapshot::history::BurstMemory;

/// The least number of gaps that must have been seen.
const FEWEST: usize = 4;

/// The most pods of a group whose times are learnt; further ones are kept for the idle timeout.
const MOST_PODS: u64 = 16;

/// The factor by which a pod is kept for longer than a gap.
const MARGIN: f64 = 1.1;

/// The time for which a pod is kept, and the gaps from which it was learnt.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LearntKeep {
    /// The seconds from the end of a burst.
    pub(crate) seconds: f64,
    /// The gaps, and how many ended in that time.
    pub(crate) of_gaps: GapsSeen,
}

/// For each of so many pods, the one that is kept for longest first, for how long it is kept beyond
/// `timeout`, and at most for `longest`. `money` is how many seconds of small pods one gap may
/// cost. Nothing, if too few gaps have been seen.
pub(crate) fn keep(
    bursts: &[BurstMemory],
    (timeout, longest): (f64, f64),
    pods: u64,
    mut money: f64,
) -> Option<Vec<LearntKeep>> {
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
            let (found, cost) = now.map_or((0.0, 0.0), |now| (now.found, now.cost));
            let mut step = None;
            for choice in choices.iter().filter(|choice| choice.found > found) {
                let more = choice.cost - cost;
                // A choice that costs nothing more is worth the most, and not a division by zero.
                let worth = (choice.found - found) / more.max(f64::MIN_POSITIVE);
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
    let mut kept: Vec<LearntKeep> = chosen.into_iter().flatten().map(|one| one.keep).collect();
    kept.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    Some(kept)
}

/// A time for which a pod may be kept, with what it brings and costs.
#[derive(Debug, Clone, Copy)]
struct Choice {
    keep: LearntKeep,
    /// The part of the gaps that end in that time, and not before.
    found: f64,
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
            let found = ended.clone().filter(|gap| **gap > timeout).count();
            let beyond = gaps.iter().map(|gap| (gap.min(seconds) - timeout).max(0.0));
            Choice {
                keep: LearntKeep {
                    seconds,
                    of_gaps: GapsSeen {
                        seen: gaps.len() as u64,
                        ended: ended.count() as u64,
                    },
                },
                found: found as f64 / count,
                cost: beyond.sum::<f64>() / count,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let seen = bursts(8, &[300.0, 310.0, 290.0, 305.0]);
        // 240 s beyond the timeout cost each of them, so the money keeps three.
        let kept = keep(&seen, (60.0, 900.0), 8, 800.0).unwrap();
        assert_eq!(kept.len(), 3);
        assert!((kept[0].seconds - 330.0).abs() < 0.1, "{kept:?}");
        assert_eq!(kept[0].of_gaps, GapsSeen { seen: 4, ended: 4 });
    }

    #[test]
    fn nothing_is_spent_where_no_gap_ends_in_time() {
        let seen = bursts(8, &[2000.0; 5]);
        assert_eq!(keep(&seen, (60.0, 900.0), 8, 1e6), Some(Vec::new()));
    }

    #[test]
    fn few_gaps_teach_nothing() {
        let seen = bursts(8, &[300.0; 3]);
        assert_eq!(keep(&seen, (60.0, 900.0), 8, 1e6), None);
    }

    /// Most bursts need two pods, and every fourth one eight.
    #[test]
    fn pods_that_are_seldom_needed_are_kept_for_what_they_are_needed_for() {
        let mut seen = bursts(2, &[100.0; 15]);
        for burst in seen.iter_mut().step_by(4) {
            burst.pods = 8;
        }
        let kept = keep(&seen, (60.0, 900.0), 8, 1e6).unwrap();
        assert!((kept[0].seconds - 110.0).abs() < 0.1, "{kept:?}");
        assert_eq!(kept.len(), 2, "three gaps of the others are too few");
    }
}
