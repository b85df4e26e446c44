//! The calls of a round, one after the other in each chain: whether they are sent, and what becomes of
//! them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::reconcile::ownership::lease::trust::{LONGEST_WRITE, may_begin};
use crate::reconcile::{Chain, Done, Effect, Failure, Reply, Round};
use crate::simulate::moment::Moment;
use crate::simulate::world::World;

/// The time until which a process may write for a cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Trust {
    /// Nobody else does.
    #[default]
    Always,
    /// As its Leases say; not at all without a moment.
    Until(Option<Moment>),
}

/// The messages that are lost while a process is cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Cut {
    /// Its requests are lost.
    Requests,
    /// Its requests arrive, and the answers are lost.
    Answers,
}

impl Trust {
    /// The failure of a write that would begin now, if none may begin.
    pub(super) fn refusal(self, now: Moment) -> Option<Failure> {
        let Self::Until(until) = self else {
            return None;
        };
        let left = until.map(|until| Duration::from_secs_f64(until.since(now)));
        may_begin(left, LONGEST_WRITE).err()
    }
}

/// A round whose effects are being performed.
#[derive(Debug, Clone)]
pub(super) struct Performing {
    pub(super) round: Round,
    /// The chains, each with its present call.
    pub(super) chains: Vec<(Chain, ChainCall)>,
    pub(super) done: Vec<Done>,
}

/// The present call of a chain.
#[derive(Debug, Clone, Default)]
pub(super) enum ChainCall {
    /// The chain has ended.
    #[default]
    None,
    /// It was not sent.
    Refused(Failure),
    /// It is on its way.
    Sent,
    /// It was made, and its answer is on its way.
    Made(Result<Reply, Failure>),
}

impl ChainCall {
    /// The next call of a chain. Each asks again whether it may be sent: the Lease may have been lost while the one
    /// before was under way.
    pub(super) fn next(trust: Trust, now: Moment) -> Self {
        trust.refusal(now).map_or(Self::Sent, Self::Refused)
    }
}

impl Performing {
    /// The call of a chain that is on its way to where it is sent.
    pub(super) fn sent(&self, chain: usize) -> Option<Effect> {
        match self.chains.get(chain)? {
            (chain, ChainCall::Sent) => chain.next(),
            _ => None,
        }
    }

    /// The call of a chain arrives where it is sent. Returns whether that is new.
    pub(super) fn arrive(&mut self, chain: usize, cut: Option<Cut>, world: &mut World) -> bool {
        let Some(effect) = self.sent(chain) else {
            return false;
        };
        let made = match cut {
            Some(Cut::Requests) => None,
            Some(Cut::Answers) | None => Some(world.call(&effect)),
        };
        let no_answer = || Err(Failure::NoAnswer("played: cut off".to_owned()));
        let answer = made.filter(|_| cut.is_none()).unwrap_or_else(no_answer);
        self.chains[chain].1 = ChainCall::Made(answer);
        true
    }

    /// The answer to the call of a chain has come, and the next one is sent. Returns whether there is
    /// one.
    pub(super) fn take_in(&mut self, chain: usize, trust: Trust, at: (Moment, f64)) -> bool {
        let (now, clock) = at;
        let Some((chain, call)) = self.chains.get_mut(chain) else {
            return false;
        };
        let result = match std::mem::take(call) {
            ChainCall::Refused(failure) => Err(failure),
            ChainCall::Made(result) => result,
            ChainCall::None | ChainCall::Sent => return false,
        };
        if let Some(effect) = chain.next() {
            chain.answered(result.as_ref(), clock);
            self.done.push(Done {
                about: chain.about.clone(),
                effect,
                result,
            });
        }
        let is_next = chain.next().is_some();
        if is_next {
            *call = ChainCall::next(trust, now);
        }
        is_next
    }
}
