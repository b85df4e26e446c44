//! The choices that no other choice beats, and the knee among them.

use super::trial::TrialScore;

/// The positions of the scores that none beats, by cost. Those with more failed jobs than the
/// fewest are left out, and of equal ones the first counts.
pub fn front(scores: &[Option<TrialScore>]) -> Vec<usize> {
    let all = scores.iter().enumerate();
    let all = all.filter_map(|(at, score)| Some((at, score.as_ref()?)));
    let mut all: Vec<(usize, &TrialScore)> = all.collect();
    let fewest = all.iter().map(|(_, score)| score.failed).min();
    all.retain(|(_, score)| Some(score.failed) == fewest);
    // In this order nothing is beaten by what comes later.
    all.sort_by_key(|(at, score)| (**score, *at));
    let mut unbeaten: Vec<(usize, &TrialScore)> = Vec::new();
    for (at, score) in all {
        let is_beaten = |(_, other): &(usize, &TrialScore)| {
            other.beats(score) || other.amounts() == score.amounts()
        };
        if !unbeaten.iter().any(is_beaten) {
            unbeaten.push((at, score));
        }
    }
    unbeaten.into_iter().map(|(at, _)| at).collect()
}

/// The place of the knee, of costs and waits. Both are taken as ratios, from the least to the most of
/// them, and the knee is the place farthest below the line from the cheapest to the fastest; `None` if
/// none lies below it. A single place is the knee.
pub fn knee(places: &[(f64, f64)]) -> Option<usize> {
    if places.len() == 1 {
        return Some(0);
    }
    let below = (0..places.len()).filter(|at| sum(places, *at) < LINE);
    nearest(places, below)
}

/// The one of some places that is farthest below the line, or least above it.
pub fn nearest(places: &[(f64, f64)], of: impl Iterator<Item = usize>) -> Option<usize> {
    of.min_by(|one, other| sum(places, *one).total_cmp(&sum(places, *other)))
}

/// A place is clearly below the line with this sum.
const LINE: f64 = 0.95;

/// Cost and wait of a place, each from 0 to 1. On the line both make 1.
fn sum(places: &[(f64, f64)], at: usize) -> f64 {
    // One second is added, so that waits far below a second do not make large ratios.
    let ratios = |(cost, wait): &(f64, f64)| ((cost + 1e-6).ln(), (wait + 1.0).ln());
    let ratio = |of: fn((f64, f64)) -> f64| {
        let ends = (f64::INFINITY, f64::NEG_INFINITY);
        let all = places.iter().map(|place| of(ratios(place)));
        let (least, most) = all.fold(ends, |(least, most), value| {
            (least.min(value), most.max(value))
        });
        // With the same cost, or the same wait, everywhere, the difference is 0, and that side
        // counts for nothing.
        (of(ratios(&places[at])) - least) / (most - least).max(1e-9)
    };
    ratio(|place| place.0) + ratio(|place| place.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(cost: u64, mean: u64) -> TrialScore {
        TrialScore {
            failed: 0,
            cost,
            mean,
            p99: mean,
            changes: 0,
        }
    }

    #[test]
    fn the_front_has_what_nothing_beats() {
        let scores = [(5, 5), (4, 6), (6, 5), (9, 1), (4, 6)];
        let scores = scores.map(|(cost, mean)| Some(score(cost, mean)));
        assert_eq!(front(&scores), [1, 0, 3]);
        let failed = TrialScore {
            failed: 1,
            ..score(0, 0)
        };
        assert_eq!(
            front(&[None, Some(failed), Some(score(9, 9))]),
            [2],
            "jobs that run come first"
        );
    }

    #[test]
    fn the_knee_is_where_less_waiting_begins_to_cost_more() {
        let places = [(1.0, 100.0), (1.1, 10.0), (1.3, 8.0), (4.0, 1.0)];
        assert_eq!(knee(&places), Some(1));
        assert_eq!(nearest(&places, 2..4), Some(2));
        assert_eq!(knee(&places[..1]), Some(0));
        assert_eq!(knee(&[]), None);
        let line = [(1.0, 99.0), (2.0, 9.0), (4.0, 0.0)];
        assert_eq!(knee(&line), None, "less waiting costs the same everywhere");
    }
}
