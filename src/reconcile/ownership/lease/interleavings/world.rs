//! The model: two replicas, the Leases, and the requests between them.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::reconcile::ownership::lease::ledger::LeaseLedger;
use crate::reconcile::ownership::lease::record::{LeaseName, LeaseRecord, LeaseStep, Terms};

const SECOND: Duration = Duration::from_secs(1);
const SHARD: LeaseName = LeaseName::Shard(0);
const TERMS: Terms = Terms {
    duration: Duration::from_secs(3),
    renew: SECOND,
    margin: SECOND,
};
/// How many seconds a game lasts.
const LONGEST: u32 = 300;
const NAMES: [&str; 2] = ["a", "b"];

#[derive(Debug, Clone)]
pub(super) struct SimulatedLeases {
    now: u32,
    /// The Leases in the API server.
    leases: BTreeMap<LeaseName, LeaseRecord>,
    version: u32,
    replicas: [LeaseReplica; 2],
}

#[derive(Debug, Clone)]
pub(super) struct LeaseReplica {
    ledger: LeaseLedger,
    /// Into how many shards it divides clusters.
    shards: u32,
    request: Option<Request>,
    /// A request that the replica no longer waits for, and that may still arrive.
    late: Option<Request>,
}

/// A request on its way, or its answer.
#[derive(Debug, Clone)]
pub(super) struct Request {
    step: LeaseStep,
    sent: Duration,
    answer: Option<CallAnswer>,
}

#[derive(Debug, Clone)]
pub(super) enum CallAnswer {
    Written(LeaseRecord),
    Listed(Vec<(LeaseName, LeaseRecord)>),
    Refused,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Move {
    /// A second passes for both replicas.
    Time,
    /// A replica is told of a Lease, by a watch or an answer, or that the Lease does not exist.
    Look(usize, usize),
    /// A replica sends the n-th of the steps that it finds due.
    Ask(usize, usize),
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
}

impl Move {
    /// The replica that makes the move.
    pub(super) fn by(self) -> Option<usize> {
        match self {
            Self::Time => None,
            Self::Look(who, _)
            | Self::Ask(who, _)
            | Self::Serve(who)
            | Self::Arrive(who)
            | Move::Answer(who)
            | Self::Lose(who)
            | Self::Restart(who) => Some(who),
        }
    }
}

fn leases() -> [LeaseName; 3] {
    let [a, b] = NAMES.map(|name| LeaseName::Replica(name.to_owned()));
    [SHARD, a, b]
}

fn ledger(name: &str, shards: u32) -> LeaseLedger {
    let mut ledger = LeaseLedger::new(name.to_owned(), shards, TERMS);
    ledger.complete();
    ledger
}

impl SimulatedLeases {
    /// Two replicas that divide clusters into these numbers of shards.
    pub(super) fn of(shards: [u32; 2]) -> Self {
        let replica = |who: usize| LeaseReplica {
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

    /// Two replicas that divide clusters in the same way and know it.
    pub(super) fn new() -> Self {
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
    pub(super) fn after(&self, step: Move) -> Option<Self> {
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
                // The killed process can write nothing any more, so what it trusted does not count.
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

    fn look(&mut self, who: usize, name: &LeaseName) {
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

    /// Handles a request by compare-and-swap, as the API server does.
    fn serve(&mut self, who: usize, request: &mut Request) -> bool {
        if request.answer.is_some() {
            return false;
        }
        if matches!(request.step, LeaseStep::Look(_)) {
            let all = self.leases.clone().into_iter();
            request.answer = Some(CallAnswer::Listed(all.collect()));
            return true;
        }
        let me = || Some(NAMES[who].to_owned());
        let (expected, holder) = match &request.step {
            LeaseStep::Create(_) => (None, me()),
            LeaseStep::Hold(_, record) => (Some(record), me()),
            LeaseStep::Release(_, record) | LeaseStep::Remove(_, record) => (Some(record), None),
            LeaseStep::ReleaseDead(_, record) => (record.as_ref(), None),
            LeaseStep::Look(_) => return false,
        };
        let name = request.step.name().clone();
        let stored = self.leases.get(&name).map(|lease| &lease.version);
        let answer = if stored == expected.map(|record| &record.version) {
            self.version += 1;
            let record = LeaseRecord {
                holder,
                version: self.version.to_string(),
                duration: TERMS.duration,
                shards: Some(self.replicas[who].shards),
                acquired: None,
            };
            if matches!(request.step, LeaseStep::Remove(..)) {
                self.leases.remove(&name);
            } else {
                self.leases.insert(name, record.clone());
            }
            CallAnswer::Written(record)
        } else {
            CallAnswer::Refused
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
            (LeaseStep::Create(name) | LeaseStep::Hold(name, _), CallAnswer::Written(record)) => {
                ledger.holds(name, record, sent);
            }
            (LeaseStep::Release(name, _), CallAnswer::Written(record)) => {
                ledger.released(&name, record, now);
            }
            (LeaseStep::ReleaseDead(name, _), CallAnswer::Written(record)) => {
                ledger.released_dead(&name, record, sent, now);
            }
            (LeaseStep::Remove(name, _), CallAnswer::Written(_)) => ledger.gone(&name),
            (_, CallAnswer::Listed(leases)) => ledger.listed(leases, sent, now),
            (step, _) => self.look(who, step.name()),
        }
        true
    }

    fn trusts(&self, who: usize) -> bool {
        let mut trusted = self.replicas[who].ledger.trusted();
        trusted.any(|(_, until)| until > self.time())
    }

    pub(super) fn holders(&self) -> usize {
        [0, 1].into_iter().filter(|who| self.trusts(*who)).count()
    }

    /// Whether the move tells a replica that it has released the other one's Lease.
    pub(super) fn hears_of_a_burial(&self, step: Move) -> bool {
        let Move::Answer(who) = step else {
            return false;
        };
        self.replicas[who].request.as_ref().is_some_and(|request| {
            matches!(request.step, LeaseStep::ReleaseDead(..))
                && matches!(request.answer, Some(CallAnswer::Written(_)))
        })
    }

    pub(super) fn holder(&self) -> Option<usize> {
        [0, 1].into_iter().find(|who| self.trusts(*who))
    }
}
