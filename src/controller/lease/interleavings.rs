//! Two replicas and one shard, in every order of looking, asking, being answered, being cut off and
//! time passing, up to some length, and at random beyond: never do both trust that the shard is
//! theirs.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use super::ledger::Ledger;
use super::record::{Name, Record, Step, Terms};

const SECOND: Duration = Duration::from_secs(1);
const SHARD: Name = Name::Shard(0);
const TERMS: Terms = Terms {
    duration: Duration::from_secs(3),
    renew: SECOND,
    margin: SECOND,
};
/// So many seconds are played.
const LONGEST: u32 = 300;
const NAMES: [&str; 2] = ["a", "b"];

#[derive(Debug, Clone)]
struct World {
    now: u32,
    /// The Leases in the API server.
    leases: BTreeMap<Name, Record>,
    version: u32,
    replicas: [Replica; 2],
}

#[derive(Debug, Clone)]
struct Replica {
    ledger: Ledger,
    request: Option<Request>,
}

/// A request on its way, or its answer.
#[derive(Debug, Clone)]
struct Request {
    step: Step,
    sent: Duration,
    answer: Option<Result<Record, ()>>,
}

#[derive(Debug, Clone, Copy)]
enum Move {
    /// A second passes for everybody.
    Time,
    /// A replica is told of a Lease, by a watch or an answer: of one that is not there, too.
    Look(usize, usize),
    /// A replica does the n-th thing that it thinks is due.
    Ask(usize, usize),
    /// The API server gets a request.
    Serve(usize),
    /// A replica gets the answer.
    Answer(usize),
    /// A replica hears no answer any more. Its request may still get there, or not.
    Lose(usize),
    /// A process ends without a word; another one begins under its name.
    Restart(usize),
}

impl Move {
    /// Whose it is.
    fn by(self) -> Option<usize> {
        match self {
            Self::Time => None,
            Self::Look(who, _) | Self::Ask(who, _) => Some(who),
            Self::Serve(who) | Self::Answer(who) | Self::Lose(who) | Self::Restart(who) => {
                Some(who)
            }
        }
    }
}

fn leases() -> [Name; 3] {
    let [a, b] = NAMES.map(|name| Name::Replica(name.to_owned()));
    [SHARD, a, b]
}

fn ledger(name: &str) -> Ledger {
    let mut ledger = Ledger::new(name.to_owned(), 1, TERMS);
    ledger.complete();
    ledger
}

impl World {
    fn new() -> Self {
        let replica = |name: &str| Replica {
            ledger: ledger(name),
            request: None,
        };
        Self {
            now: 0,
            leases: BTreeMap::new(),
            version: 0,
            replicas: NAMES.map(replica),
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
            Move::Look(who, which) => {
                next.look(who, &leases()[which]);
                Some(next)
            }
            Move::Ask(who, nth) => next.ask(who, nth).then_some(next),
            Move::Serve(who) => next.serve(who).then_some(next),
            Move::Answer(who) => next.answer(who).then_some(next),
            Move::Lose(who) => {
                next.replicas[who].request.take()?;
                Some(next)
            }
            Move::Restart(who) => {
                // Its requests have ended with it, and so has what was written under its trust.
                let trusts = |until: Duration| until > now;
                let held = next.replicas[who]
                    .ledger
                    .trusted()
                    .any(|(_, until)| trusts(until));
                next.replicas[who] = Replica {
                    ledger: ledger(NAMES[who]),
                    request: None,
                };
                held.then_some(next)
            }
        }
    }

    fn look(&mut self, who: usize, name: &Name) {
        let now = self.time();
        let ledger = &mut self.replicas[who].ledger;
        match self.leases.get(name) {
            Some(lease) => ledger.note(name.clone(), lease.clone(), now),
            None => ledger.gone(name),
        }
    }

    fn ask(&mut self, who: usize, nth: usize) -> bool {
        if self.replicas[who].request.is_some() {
            return false;
        }
        let sent = self.time();
        let ledger = &mut self.replicas[who].ledger;
        let Some(step) = ledger.steps(sent, |_| false).into_iter().nth(nth) else {
            return false;
        };
        ledger.attempted(step.name(), sent);
        self.replicas[who].request = Some(Request {
            step,
            sent,
            answer: None,
        });
        true
    }

    /// Compare and swap, as the API server does it.
    fn serve(&mut self, who: usize) -> bool {
        let waiting = |request: &&mut Request| request.answer.is_none();
        let Some(request) = self.replicas[who].request.as_mut().filter(waiting) else {
            return false;
        };
        let me = || Some(NAMES[who].to_owned());
        let (expected, holder) = match &request.step {
            Step::Create(_) => (None, me()),
            Step::Hold(_, record) => (Some(record), me()),
            Step::Release(_, record) | Step::Remove(_, record) => (Some(record), None),
            Step::Bury(_, record) => (record.as_ref(), None),
        };
        let name = request.step.name().clone();
        let stored = self.leases.get(&name).map(|lease| &lease.version);
        let answer = if stored == expected.map(|record| &record.version) {
            self.version += 1;
            let record = Record {
                holder,
                version: self.version.to_string(),
                duration: TERMS.duration,
            };
            if matches!(request.step, Step::Remove(..)) {
                self.leases.remove(&name);
            } else {
                self.leases.insert(name, record.clone());
            }
            Ok(record)
        } else {
            Err(())
        };
        request.answer = Some(answer);
        true
    }

    fn answer(&mut self, who: usize) -> bool {
        let now = self.time();
        let Some(Request {
            step,
            sent,
            answer: Some(answer),
        }) = self.replicas[who].request.clone()
        else {
            return false;
        };
        self.replicas[who].request = None;
        let ledger = &mut self.replicas[who].ledger;
        match (step, answer) {
            (Step::Create(name) | Step::Hold(name, _), Ok(record)) => {
                ledger.holds(name, record, sent);
            }
            (Step::Release(name, _), Ok(record)) => ledger.released(&name, record, now),
            (Step::Bury(name, _), Ok(record)) => ledger.buried(&name, record, sent, now),
            (Step::Remove(name, _), Ok(_)) => ledger.gone(&name),
            (step, Err(())) => self.look(who, step.name()),
        }
        true
    }

    fn trusts(&self, who: usize) -> bool {
        let mut trusted = self.replicas[who].ledger.trusted();
        trusted.any(|(_, until)| until > self.time())
    }

    fn holders(&self) -> usize {
        [0, 1].into_iter().filter(|who| self.trusts(*who)).count()
    }

    /// The move tells a replica that it has buried the other one.
    fn hears_of_a_burial(&self, step: Move) -> bool {
        let Move::Answer(who) = step else {
            return false;
        };
        self.replicas[who].request.as_ref().is_some_and(|request| {
            matches!(request.step, Step::Bury(..)) && matches!(request.answer, Some(Ok(_)))
        })
    }

    fn holder(&self) -> Option<usize> {
        [0, 1].into_iter().find(|who| self.trusts(*who))
    }
}

/// The more often a move is there, the more often it is made at random.
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
        moves.extend([Move::Lose(who), Move::Restart(who)]);
    }
    moves
}

#[test]
fn no_two_replicas_trust_the_same_shard() {
    let mut seen = HashSet::new();
    let mut frontier = vec![World::new()];
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

/// Longer games, at random, in which replicas fall silent for a while: the shard has to change hands
/// in many of them, without and with the consent of who had it.
#[test]
fn nor_do_they_in_long_games() {
    let (mut changed_hands, mut burials) = (0, 0);
    let mut random = Random(7);
    let moves = moves();
    for _ in 0..400 {
        let mut world = World::new();
        let (mut last, mut silent, mut blind) = (None, None, None);
        for turn in 0..5_000 {
            if turn % 500 == 0 {
                // Nobody, one or the other.
                silent = [None, Some(0), Some(1)][random.below(3)];
                // Of one Lease no watch tells.
                blind = [None, Some(0), Some(1), Some(2)][random.below(4)];
            }
            let step = moves[random.below(moves.len())];
            // What it sent before may still arrive.
            if silent.is_some() && step.by() == silent && !matches!(step, Move::Serve(_)) {
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
