//! Two replicas and one shard, or two replicas that divide clusters differently, in every order of looking, asking, being answered, being cut off and
//! time passing, up to some length, and at random beyond: never do both trust that the shard is
//! theirs, and never are two divisions at work.

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
    /// Into how many shards it divides clusters.
    shards: u32,
    request: Option<Request>,
    /// A request that nobody waits for any more, and that may still arrive.
    late: Option<Request>,
}

/// A request on its way, or its answer.
#[derive(Debug, Clone)]
struct Request {
    step: Step,
    sent: Duration,
    answer: Option<Answer>,
}

#[derive(Debug, Clone)]
enum Answer {
    Written(Record),
    Listed(Vec<(Name, Record)>),
    Refused,
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
    /// A replica waits for no answer any more. Its request may still arrive, or not.
    Lose(usize),
    /// It does.
    Arrive(usize),
    /// A process ends without a word; another one begins under its name.
    Restart(usize),
}

impl Move {
    /// Whose it is.
    fn by(self) -> Option<usize> {
        match self {
            Self::Time => None,
            Self::Look(who, _)
            | Self::Ask(who, _)
            | Self::Serve(who)
            | Self::Arrive(who)
            | Self::Answer(who)
            | Self::Lose(who)
            | Self::Restart(who) => Some(who),
        }
    }
}

fn leases() -> [Name; 3] {
    let [a, b] = NAMES.map(|name| Name::Replica(name.to_owned()));
    [SHARD, a, b]
}

fn ledger(name: &str, shards: u32) -> Ledger {
    let mut ledger = Ledger::new(name.to_owned(), shards, TERMS);
    ledger.complete();
    ledger
}

impl World {
    /// Two replicas that divide clusters so.
    fn of(shards: [u32; 2]) -> Self {
        let replica = |who: usize| Replica {
            ledger: ledger(NAMES[who], shards[who]),
            shards: shards[who],
            request: None,
            late: None,
        };
        Self {
            now: 0,
            leases: BTreeMap::new(),
            version: 0,
            replicas: [0, 1].map(replica),
        }
    }

    /// Two that divide them alike and know that.
    fn new() -> Self {
        let mut world = Self::of([1, 1]);
        for who in [0, 1, 0, 1] {
            for step in [Move::Ask(who, 0), Move::Serve(who), Move::Answer(who)] {
                world = world.after(step).unwrap();
            }
        }
        world
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
            Move::Serve(who) => {
                let mut request = next.replicas[who].request.take()?;
                let served = next.serve(who, &mut request);
                next.replicas[who].request = Some(request);
                served.then_some(next)
            }
            Move::Answer(who) => next.answer(who).then_some(next),
            Move::Lose(who) => {
                let replica = &mut next.replicas[who];
                replica.late = Some(replica.request.take()?);
                Some(next)
            }
            Move::Arrive(who) => {
                let mut late = next.replicas[who].late.take()?;
                next.serve(who, &mut late).then_some(next)
            }
            Move::Restart(who) => {
                // Its requests have ended with it, and so has what was written under its trust.
                let trusts = |until: Duration| until > now;
                let held = next.replicas[who]
                    .ledger
                    .trusted()
                    .any(|(_, until)| trusts(until));
                let replica = &mut next.replicas[who];
                replica.ledger = ledger(NAMES[who], replica.shards);
                replica.late = replica.request.take();
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
        ledger.attempted(&step, sent);
        self.replicas[who].request = Some(Request {
            step,
            sent,
            answer: None,
        });
        true
    }

    /// Compare and swap, as the API server does it.
    fn serve(&mut self, who: usize, request: &mut Request) -> bool {
        if request.answer.is_some() {
            return false;
        }
        if matches!(request.step, Step::Look(_)) {
            let all = self.leases.clone().into_iter();
            request.answer = Some(Answer::Listed(all.collect()));
            return true;
        }
        let me = || Some(NAMES[who].to_owned());
        let (expected, holder) = match &request.step {
            Step::Create(_) => (None, me()),
            Step::Hold(_, record) => (Some(record), me()),
            Step::Release(_, record) | Step::Remove(_, record) => (Some(record), None),
            Step::Bury(_, record) => (record.as_ref(), None),
            Step::Look(_) => return false,
        };
        let name = request.step.name().clone();
        let stored = self.leases.get(&name).map(|lease| &lease.version);
        let answer = if stored == expected.map(|record| &record.version) {
            self.version += 1;
            let record = Record {
                holder,
                version: self.version.to_string(),
                duration: TERMS.duration,
                shards: Some(self.replicas[who].shards),
            };
            if matches!(request.step, Step::Remove(..)) {
                self.leases.remove(&name);
            } else {
                self.leases.insert(name, record.clone());
            }
            Answer::Written(record)
        } else {
            Answer::Refused
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
            (Step::Create(name) | Step::Hold(name, _), Answer::Written(record)) => {
                ledger.holds(name, record, sent);
            }
            (Step::Release(name, _), Answer::Written(record)) => {
                ledger.released(&name, record, now);
            }
            (Step::Bury(name, _), Answer::Written(record)) => {
                ledger.buried(&name, record, sent, now);
            }
            (Step::Remove(name, _), Answer::Written(_)) => ledger.gone(&name),
            (_, Answer::Listed(leases)) => ledger.listed(leases, sent, now),
            (step, _) => self.look(who, step.name()),
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
            matches!(request.step, Step::Bury(..))
                && matches!(request.answer, Some(Answer::Written(_)))
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

/// During a rollout that changes `--shards`: replicas of both kinds begin, end and fall silent, and
/// never are two divisions at work; yet each of them gets its turn.
#[test]
fn two_divisions_are_never_at_work_at_the_same_time() {
    let mut turns = [0, 0];
    let mut random = Random(11);
    let moves = moves();
    for _ in 0..400 {
        let mut world = World::of([1, 2]);
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
