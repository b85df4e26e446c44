//! Fair shares: the weighted max-min shares of what there is, higher priorities first.
//!
//! Nobody gets more than it wants. Of those with the same priority that get less, each gets as much
//! for each unit of its weight as the others. (The rule of fair schedulers: Bertsekas and Gallager,
//! *Data Networks*, 6.5.2.)

use std::cmp::Reverse;

/// What one of several claimants asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// How much it wants.
    pub wants: u64,
    /// Its weight among those of the same priority; 0 counts as 1.
    pub weight: u32,
    /// Higher priorities are served first.
    pub priority: i32,
}

/// The share of each claim, in the order of the claims. Their sum is at most `total`. What rounding
/// leaves over goes to those that lack the most for their weight, one for each.
pub fn shares(total: u64, claims: &[Claim]) -> Vec<u64> {
    let mut shares = vec![0; claims.len()];
    let mut order: Vec<usize> = (0..claims.len()).collect();
    order.sort_by_key(|at| claims.get(*at).map(|claim| Reverse(claim.priority)));
    let mut left = total;
    for level in order.chunk_by(|one, other| priority(claims, *one) == priority(claims, *other)) {
        left = fill(left, claims, level, &mut shares);
    }
    shares
}

fn priority(claims: &[Claim], at: usize) -> Option<i32> {
    claims.get(at).map(|claim| claim.priority)
}

/// Divides what is left among claims of one priority. Returns what they leave.
fn fill(mut left: u64, claims: &[Claim], level: &[usize], shares: &mut [u64]) -> u64 {
    let claim = |at: &usize| claims.get(*at).copied();
    let weight = |claim: Claim| u128::from(claim.weight.max(1));
    // Those that want the least for their weight are satisfied first: with what each of them leaves,
    // all others get more.
    let mut waiting: Vec<(usize, Claim)> = (level.iter())
        .filter_map(|at| Some((*at, claim(at)?)))
        .collect();
    waiting.sort_by(|(_, one), (_, other)| {
        // Wants divided by weights, compared without division, which would round.
        let (one_part, other_part) = (
            u128::from(one.wants) * weight(*other),
            u128::from(other.wants) * weight(*one),
        );
        one_part.cmp(&other_part)
    });
    let mut weights: u128 = waiting.iter().map(|(_, claim)| weight(*claim)).sum();
    let is_satisfied = |left: u64, weights: u128, claim: Claim| {
        u128::from(claim.wants) * weights <= u128::from(left) * weight(claim)
    };
    let mut waiting = waiting.into_iter().peekable();
    while let Some((at, claim)) = waiting.next_if(|(_, claim)| is_satisfied(left, weights, *claim))
    {
        set(shares, at, claim.wants);
        left -= claim.wants;
        weights -= weight(claim);
    }
    // All others get less than they want. Each part is rounded down, which leaves less than one for each
    // of them: were all of it left to one, that one would have more for its weight than the others. Of equal
    // claims the last ones come first here, because each cluster puts its own claim first when it
    // works out its share: no two of them may count on the same rest.
    let parts: Vec<(usize, u64)> = waiting
        .map(|(at, claim)| {
            let part = u128::from(left) * weight(claim) / weights.max(1);
            (at, u64::try_from(part).unwrap_or(u64::MAX))
        })
        .collect();
    for (_, part) in &parts {
        left -= part;
    }
    for (at, part) in parts.into_iter().rev() {
        let more = left.min(1);
        set(shares, at, part + more);
        left -= more;
    }
    left
}

fn set(shares: &mut [u64], at: usize, share: u64) {
    if let Some(place) = shares.get_mut(at) {
        *place = share;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn claim(wants: u64, weight: u32, priority: i32) -> Claim {
        Claim {
            wants,
            weight,
            priority,
        }
    }

    #[test]
    fn who_wants_little_gets_it_and_the_others_get_the_rest_by_weight() {
        let claims = [claim(10, 1, 0), claim(100, 1, 0), claim(100, 2, 0)];
        assert_eq!(shares(100, &claims), [10, 30, 60]);
        assert_eq!(shares(1000, &claims), [10, 100, 100]);
    }

    #[test]
    fn higher_priorities_are_served_first() {
        let claims = [claim(50, 1, 0), claim(80, 1, 5), claim(50, 1, 0)];
        assert_eq!(shares(100, &claims), [10, 80, 10]);
    }

    #[test]
    fn what_rounding_leaves_over_is_not_all_for_one() {
        let claims = [claim(74, 3, 1), claim(93, 4, 1), claim(47, 2, 1)];
        assert_eq!(shares(209, &claims), [70, 92, 47]);
    }

    fn claims() -> impl Strategy<Value = Vec<Claim>> {
        let one = (0..200_u64, 0..5_u32, -1..2_i32).prop_map(|(a, b, c)| claim(a, b, c));
        prop::collection::vec(one, 0..8)
    }

    proptest! {
        #[test]
        fn nothing_is_given_twice_and_nothing_is_left_that_anybody_wants(
            total in 0..500_u64,
            claims in claims(),
        ) {
            let shares = shares(total, &claims);
            let wanted: u64 = claims.iter().map(|claim| claim.wants).sum();
            prop_assert_eq!(shares.iter().sum::<u64>(), total.min(wanted));
            for (share, claim) in shares.iter().zip(&claims) {
                prop_assert!(*share <= claim.wants);
            }
        }

        /// A cluster that gets less than it wants gets no less for its weight than others of its
        /// priority, and nobody of a lower priority gets anything.
        #[test]
        fn nobody_can_complain(total in 0..500_u64, claims in claims()) {
            let shares = shares(total, &claims);
            let all: Vec<_> = claims.iter().zip(&shares).collect();
            for (mine, share) in all.iter().filter(|(mine, share)| **share < mine.wants) {
                for (other, theirs) in &all {
                    if other.priority < mine.priority {
                        prop_assert_eq!(**theirs, 0);
                    } else if other.priority == mine.priority {
                        let weight = |claim: &Claim| u64::from(claim.weight.max(1));
                        // Whole numbers may be off by one.
                        prop_assert!(
                            theirs.saturating_sub(1) * weight(mine) <= (*share + 1) * weight(other)
                        );
                    }
                }
            }
        }
    }
}
