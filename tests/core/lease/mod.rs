//! Plays two replicas and their Lease in every order of observing, sending, being answered, being cut off,
//! restarting, deletions by people and time passing, up to some length, and at random beyond it. The two replicas
//! never both trust that they lead.

pub(crate) mod played;

use std::collections::HashSet;
use std::time::Duration;

use played::PlayedLease;
use rayfit_core::reconcile::ownership::lease::leader::{Leadership, LeaseRequest};
use rayfit_core::reconcile::ownership::lease::record::{LeaseRecord, Terms};

const SECOND: Duration = Duration::from_secs(1);
const TERMS: Terms = Terms {
    duration: Duration::from_secs(3),
    renew: SECOND,
    margin: SECOND,
};
/// The length of a game, in seconds.
const LONGEST: u32 = 300;
const NAMES: [&str; 2] = ["a", "b"];

#[derive(Debug, Clone)]
struct World {
    now: u32,
    lease: PlayedLease,
    replicas: [Replica; 2],
    /// The time at which somebody last deleted the Lease.
    deleted: Option<u32>,
}

#[derive(Debug, Clone)]
struct Replica {
    leadership: Leadership,
    call: Option<Call>,
    /// A request that the replica no longer waits for, and that may still arrive.
    late: Option<Call>,
}

/// A request on its way, and its answer: the Lease as it was written, or as it is.
#[derive(Debug, Clone)]
struct Call {
    request: LeaseRequest,
    sent: Duration,
    answer: Option<Result<LeaseRecord, Option<LeaseRecord>>>,
}

#[derive(Debug, Clone, Copy)]
enum Move {
    /// A second passes for both replicas.
    Time,
    /// The watch of a replica shows the Lease as it is.
    Look(usize),
    /// A replica sends the request that it finds due.
    Ask(usize),
    /// The API server handles a request.
    Serve(usize),
    /// A replica receives the answer.
    Answer(usize),
    /// A replica gives up waiting for an answer. Its request may still arrive, or not.
    Lose(usize),
    /// The request that a replica has given up arrives.
    Arrive(usize),
    /// A process is killed, and another one starts under its name.
    Restart(usize),
    /// Somebody deletes the Lease, of which both replicas know, so that neither is about to create it.
    Delete,
}

impl Move {
    /// The replica that makes the move.
    fn by(self) -> Option<usize> {
        match self {
            Self::Time | Self::Delete => None,
            Self::Look(who)
            | Self::Ask(who)
            | Self::Serve(who)
            | Self::Arrive(who)
            | Self::Answer(who)
            | Self::Lose(who)
            | Self::Restart(who) => Some(who),
        }
    }
}

/// The possible moves; a move that is listed more often is made more often at random.
fn moves() -> Vec<Move> {
    let mut moves = vec![Move::Time, Move::Time, Move::Delete];
    for who in [0, 1] {
        for _ in 0..6 {
            let usual = [Move::Look(who), Move::Ask(who), Move::Serve(who)];
            moves.extend(usual);
            moves.push(Move::Answer(who));
        }
        moves.extend([Move::Lose(who), Move::Lose(who), Move::Arrive(who)]);
        moves.push(Move::Restart(who));
    }
    moves
}

impl World {
    fn new() -> Self {
        let replica = |who: usize| Replica {
            leadership: Leadership::new(NAMES[who].to_owned(), TERMS),
            call: None,
            late: None,
        };
        Self {
            now: 0,
            lease: PlayedLease::default(),
            replicas: [0, 1].map(replica),
            deleted: None,
        }
    }

    fn time(&self) -> Duration {
        SECOND * self.now
    }

    /// The world after a move; `None` if it is not possible.
    fn after(&self, step: Move) -> Option<Self> {
        let mut next = self.clone();
        let now = self.time();
        match step {
            Move::Time => {
                next.now += 1;
                (next.now <= LONGEST).then_some(next)
            }
            Move::Look(who) => {
                let stored = self.lease.stored.clone();
                next.replicas[who].leadership.note(stored, now);
                Some(next)
            }
            Move::Ask(who) => {
                let replica = &mut next.replicas[who];
                let request = replica.leadership.request(now, false)?;
                if replica.call.is_some() {
                    return None;
                }
                replica.leadership.asks(&request, now);
                replica.call = Some(Call {
                    request,
                    sent: now,
                    answer: None,
                });
                Some(next)
            }
            Move::Serve(who) => {
                let call = next.replicas[who].call.take()?;
                next.replicas[who].call = Some(next.serve(who, call)?);
                Some(next)
            }
            Move::Answer(who) => {
                let replica = &mut next.replicas[who];
                let call = replica.call.take_if(|call| call.answer.is_some())?;
                match call.answer? {
                    Ok(record) => replica.leadership.wrote(record, call.sent),
                    Err(shown) => replica.leadership.note(shown, now),
                }
                Some(next)
            }
            Move::Lose(who) => {
                let replica = &mut next.replicas[who];
                replica.late = Some(replica.call.take()?);
                Some(next)
            }
            Move::Arrive(who) => {
                let late = next.replicas[who].late.take()?;
                next.serve(who, late)?;
                Some(next)
            }
            Move::Restart(who) => {
                // A process that starts after a deletion cannot know that there was a Lease.
                if self.is_deleted() {
                    return None;
                }
                // The killed process can write nothing any more, so what it trusted does not count.
                let led = self.trusts(who);
                let replica = &mut next.replicas[who];
                replica.leadership = Leadership::new(NAMES[who].to_owned(), TERMS);
                replica.late = replica.call.take();
                led.then_some(next)
            }
            Move::Delete => {
                next.lease.stored.take()?;
                next.deleted = Some(self.now);
                let creates = |call: &Call| call.request == LeaseRequest::Create;
                let knows = |replica: &Replica| {
                    let mut calls = replica.call.iter().chain(&replica.late);
                    replica.leadership.lease.is_some() && !calls.any(creates)
                };
                self.replicas.iter().all(knows).then_some(next)
            }
        }
    }

    /// Handles a request, as the API server does.
    fn serve(&mut self, who: usize, mut call: Call) -> Option<Call> {
        if call.answer.is_some() {
            return None;
        }
        let answer = self.lease.serve(NAMES[who], &call.request, TERMS.duration);
        call.answer = Some(answer);
        Some(call)
    }

    /// The Lease was deleted lately.
    fn is_deleted(&self) -> bool {
        self.deleted.is_some_and(|at| self.now < at + 10)
    }

    fn trusts(&self, who: usize) -> bool {
        let until = self.replicas[who].leadership.leads_until();
        until.is_some_and(|until| self.time() < until)
    }

    fn leaders(&self) -> Vec<usize> {
        [0, 1].into_iter().filter(|who| self.trusts(*who)).collect()
    }
}

#[test]
fn no_two_replicas_lead() {
    let mut seen = HashSet::new();
    let mut frontier = vec![World::new()];
    for _ in 0..9 {
        let mut next = Vec::new();
        for world in &frontier {
            for step in moves() {
                let Some(after) = world.after(step) else {
                    continue;
                };
                assert!(
                    after.leaders().len() <= 1,
                    "{step:?} leads to two leaders:\n{after:#?}"
                );
                if seen.insert(format!("{after:?}")) {
                    next.push(after);
                }
            }
        }
        frontier = next;
    }
    assert!(seen.len() > 1_000, "too little is played: {}", seen.len());
}

/// Longer random games, in which replicas fall silent for a while. The Lease has to change hands in many of them.
#[test]
fn nor_do_they_in_long_games() {
    let mut changed_hands = 0;
    let mut random = fastrand::Rng::with_seed(7);
    let moves = moves();
    for _ in 0..100 {
        let mut world = World::new();
        let (mut last, mut silent) = (None, None);
        for turn in 0..5_000 {
            if turn % 500 == 0 {
                silent = [None, Some(0), Some(1)][random.usize(..3)];
            }
            let step = moves[random.usize(..moves.len())];
            // Requests that the silent replica sent before may still arrive.
            let arrives = matches!(step, Move::Serve(_) | Move::Arrive(_));
            if silent.is_some() && step.by() == silent && !arrives {
                continue;
            }
            if let Some(after) = world.after(step) {
                world = after;
            }
            let leaders = world.leaders();
            assert!(leaders.len() <= 1, "two leaders:\n{world:#?}");
            let leader = leaders.first().copied();
            changed_hands += u32::from(leader.is_some() && last.is_some() && leader != last);
            last = leader.or(last);
        }
    }
    assert!(changed_hands > 200, "too little is played: {changed_hands}");
}
