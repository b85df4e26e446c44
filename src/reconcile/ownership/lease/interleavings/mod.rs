//! Plays two replicas and one shard, or two replicas that divide clusters differently, in every
//! order of observing, sending, being answered, being cut off and time passing, up to some length,
//! and at random beyond it. The two replicas never both trust that the shard is theirs, and two
//! divisions are never at work at the same time.

mod world;

use std::collections::HashSet;

use world::{Move, SimulatedLeases};

/// The possible moves; a move that is listed more often is made more often at random.
fn moves() -> Vec<Move> {
    let mut moves = vec![Move::Time];
    for who in [0, 1] {
        moves.extend((0..3).map(|which| Move::Look(who, which)));
        for _ in 0..6 {
            moves.extend([
                Move::Ask(who, 0),
                Move::Ask(who, 1),
                Move::Serve(who),
                Move::Answer(who),
            ]);
        }
        moves.extend([
            Move::Lose(who),
            Move::Lose(who),
            Move::Arrive(who),
            Move::Restart(who),
        ]);
    }
    moves
}

#[test]
fn no_two_replicas_trust_the_same_shard() {
    let mut seen = HashSet::new();
    let mut frontier = vec![SimulatedLeases::new()];
    for _ in 0..8 {
        let mut next = Vec::new();
        for world in &frontier {
            for step in moves() {
                let Some(after) = world.after(step) else {
                    continue;
                };
                assert!(
                    after.holders() <= 1,
                    "{step:?} leads to two holders:\n{after:#?}"
                );
                if seen.insert(format!("{after:?}")) {
                    next.push(after);
                }
            }
        }
        frontier = next;
    }
    assert!(
        seen.len() > 1_000,
        "the test plays too little: {}",
        seen.len()
    );
}

/// A rollout that changes `--shards`: replicas of both kinds start, end and fall silent. Two
/// divisions are never at work at the same time, yet each of them gets to work.
#[test]
fn two_divisions_are_never_at_work_at_the_same_time() {
    let mut turns = [0, 0];
    let mut random = Random(11);
    let moves = moves();
    for _ in 0..200 {
        let mut world = SimulatedLeases::of([1, 2]);
        let mut silent = None;
        for turn in 0..5_000 {
            if turn % 500 == 0 {
                silent = [None, Some(0), Some(1)][random.below(3)];
            }
            let step = moves[random.below(moves.len())];
            if silent.is_some()
                && step.by() == silent
                && !matches!(step, Move::Serve(_) | Move::Arrive(_))
            {
                continue;
            }
            if let Some(after) = world.after(step) {
                world = after;
            }
            assert!(world.holders() <= 1, "two divisions at work:\n{world:#?}");
            if let Some(holder) = world.holder() {
                turns[holder] += 1;
            }
        }
    }
    assert!(turns.iter().all(|turns| *turns > 1_000), "{turns:?}");
}

/// Longer random games, in which replicas fall silent for a while. The shard has to change hands in
/// many of them, with and without a release by the previous holder.
#[test]
fn nor_do_they_in_long_games() {
    let (mut changed_hands, mut burials) = (0, 0);
    let mut random = Random(7);
    let moves = moves();
    for _ in 0..200 {
        let mut world = SimulatedLeases::new();
        let (mut last, mut silent, mut blind) = (None, None, None);
        for turn in 0..5_000 {
            if turn % 500 == 0 {
                // Neither replica, or one of the two.
                silent = [None, Some(0), Some(1)][random.below(3)];
                // The watch reports nothing about one of the Leases.
                blind = [None, Some(0), Some(1), Some(2)][random.below(4)];
            }
            let step = moves[random.below(moves.len())];
            // Requests that the silent replica sent before may still arrive.
            if silent.is_some()
                && step.by() == silent
                && !matches!(step, Move::Serve(_) | Move::Arrive(_))
            {
                continue;
            }
            if matches!(step, Move::Look(_, which) if Some(which) == blind) {
                continue;
            }
            burials += u32::from(world.hears_of_a_burial(step));
            if let Some(after) = world.after(step) {
                world = after;
            }
            assert!(world.holders() <= 1, "two holders:\n{world:#?}");
            let holder = world.holder();
            changed_hands += u32::from(holder.is_some() && last.is_some() && holder != last);
            last = holder.or(last);
        }
    }
    assert!(
        changed_hands > 200 && burials > 200,
        "the test plays too little: {changed_hands} changes, {burials} burials"
    );
}

struct Random(u64);

impl Random {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % count
    }
}
