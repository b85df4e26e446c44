//! Two replicas and one shard, in every order of looking, asking, being answered, being cut off and
//! time passing, up to some length: never do both trust that the shard is theirs.

use std::collections::HashSet;
use std::time::Duration;

use super::ledger::{Ledger, Name, Record, Step, Terms};

const SECOND: Duration = Duration::from_secs(1);
const SHARD: Name = Name::Shard(0);
const TERMS: Terms = Terms {
    duration: Duration::from_secs(3),
    renew: SECOND,
    margin: SECOND,
};
/// So many seconds are played.
const LONGEST: u32 = 7;
const NAMES: [&str; 2] = ["a", "b"];

#[derive(Debug, Clone)]
struct World {
    now: u32,
    /// The Lease in the API server; its version.
    lease: Option<Record>,
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
    /// A replica looks at the Lease.
    Look(usize),
    /// A replica hears that the other one lives.
    Hear(usize),
    /// A replica does what it thinks is due.
    Ask(usize),
    /// The API server gets a request.
    Serve(usize),
    /// A replica gets the answer.
    Answer(usize),
    /// A request or its answer is lost.
    Lose(usize),
}

impl World {
    fn new() -> Self {
        let replica = |name: &str| {
            let mut ledger = Ledger::new(name.to_owned(), 1, TERMS);
            ledger.complete();
            Replica {
                ledger,
                request: None,
            }
        };
        Self {
            now: 0,
            lease: None,
            version: 0,
            replicas: NAMES.map(replica),
        }
    }

    fn time(&self) -> Duration {
        SECOND * self.now
    }

    fn alive(&mut self, seen_by: usize, who: usize) {
        // Renewed a moment ago.
        self.version += 1;
        let record = Record {
            holder: Some(NAMES[who].to_owned()),
            version: self.version.to_string(),
            duration: TERMS.duration,
        };
        let now = self.time();
        self.replicas[seen_by]
            .ledger
            .note(Name::Replica(NAMES[who].to_owned()), record, now);
    }

    /// The world after a move; `None` if it is not possible or changes nothing.
    fn after(&self, step: Move) -> Option<Self> {
        let mut next = self.clone();
        let now = self.time();
        match step {
            Move::Time => {
                next.now += 1;
                (next.now <= LONGEST).then_some(next)
            }
            Move::Look(who) => {
                let lease = self.lease.clone()?;
                next.replicas[who].ledger.note(SHARD, lease, now);
                Some(next)
            }
            Move::Hear(who) => {
                next.alive(who, 1 - who);
                Some(next)
            }
            Move::Ask(who) => next.ask(who).then_some(next),
            Move::Serve(who) => next.serve(who).then_some(next),
            Move::Answer(who) => next.answer(who).then_some(next),
            Move::Lose(who) => {
                next.replicas[who].request.take()?;
                Some(next)
            }
        }
    }

    fn ask(&mut self, who: usize) -> bool {
        if self.replicas[who].request.is_some() {
            return false;
        }
        let sent = self.time();
        self.alive(who, who);
        let ledger = &mut self.replicas[who].ledger;
        let step = ledger
            .steps(sent, |_| false)
            .into_iter()
            .find(|step| *step.name() == SHARD);
        let Some(step) = step else {
            return false;
        };
        ledger.attempted(&SHARD, sent);
        self.replicas[who].request = Some(Request {
            step,
            sent,
            answer: None,
        });
        true
    }

    /// Compare and swap, as the API server does it.
    fn serve(&mut self, who: usize) -> bool {
        let Some(request) = self.replicas[who]
            .request
            .as_mut()
            .filter(|request| request.answer.is_none())
        else {
            return false;
        };
        let stored = self.lease.as_ref().map(|lease| lease.version.as_str());
        let (expected, holder) = match &request.step {
            Step::Create(_) => (None, Some(NAMES[who].to_owned())),
            Step::Hold(_, record) => (Some(record.version.as_str()), Some(NAMES[who].to_owned())),
            Step::Release(_, record) => (Some(record.version.as_str()), None),
            Step::Remove(..) => return false,
        };
        request.answer = Some(if stored == expected {
            self.version += 1;
            let record = Record {
                holder,
                version: self.version.to_string(),
                duration: TERMS.duration,
            };
            self.lease = Some(record.clone());
            Ok(record)
        } else {
            Err(())
        });
        true
    }

    fn answer(&mut self, who: usize) -> bool {
        let now = self.time();
        let replica = &mut self.replicas[who];
        let Some(Request {
            step,
            sent,
            answer: Some(answer),
        }) = replica.request.clone()
        else {
            return false;
        };
        replica.request = None;
        match (step, answer) {
            (Step::Release(..), Ok(record)) => replica.ledger.released(&SHARD, record, now),
            (_, Ok(record)) => replica.ledger.holds(SHARD, record, sent),
            (_, Err(())) => {
                if let Some(lease) = &self.lease {
                    replica.ledger.note(SHARD, lease.clone(), now);
                }
            }
        }
        true
    }

    fn holders(&self) -> usize {
        let trusts = |replica: &&Replica| {
            replica
                .ledger
                .trusted()
                .any(|(_, until)| until > self.time())
        };
        self.replicas.iter().filter(trusts).count()
    }
}

const MOVES: [Move; 13] = [
    Move::Time,
    Move::Look(0),
    Move::Look(1),
    Move::Hear(0),
    Move::Hear(1),
    Move::Ask(0),
    Move::Ask(1),
    Move::Serve(0),
    Move::Serve(1),
    Move::Answer(0),
    Move::Answer(1),
    Move::Lose(0),
    Move::Lose(1),
];

#[test]
fn no_two_replicas_trust_the_same_shard() {
    let mut seen = HashSet::new();
    let mut frontier = vec![World::new()];
    let (mut held, mut changed_hands) = (false, false);
    for _ in 0..6 {
        let mut next = Vec::new();
        for world in &frontier {
            for step in MOVES {
                let Some(after) = world.after(step) else {
                    continue;
                };
                assert!(
                    after.holders() <= 1,
                    "{step:?} leads to two holders:\n{after:#?}"
                );
                held |= after.holders() == 1;
                if seen.insert(format!("{after:?}")) {
                    next.push(after);
                }
            }
        }
        frontier = next;
    }
    assert!(
        held && seen.len() > 1_000,
        "the test plays too little: {}",
        seen.len()
    );
    // Longer games, at random: the Lease has to change hands in some of them.
    let mut random = 7_u64;
    for _ in 0..3_000 {
        let mut world = World::new();
        let mut last = None;
        for _ in 0..80 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let step = MOVES[(random >> 33) as usize % MOVES.len()];
            if let Some(after) = world.after(step) {
                world = after;
            }
            assert!(world.holders() <= 1, "two holders:\n{world:#?}");
            let holder = world.replicas.iter().position(|replica| {
                replica
                    .ledger
                    .trusted()
                    .any(|(_, until)| until > world.time())
            });
            changed_hands |= holder.is_some() && last.is_some() && holder != last;
            last = holder.or(last);
        }
    }
    assert!(changed_hands, "the Lease never changed hands");
}
