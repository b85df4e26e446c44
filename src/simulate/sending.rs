//! The calls of a round, one after the other in each chain: whether they are sent, and what becomes of
//! them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::reconcile::ownership::lease::trust::{LONGEST_WRITE, may_begin};
use crate::reconcile::{Chain, Done, Effect, Failure, Reply, look};
use crate::simulate::moment::Moment;
use crate::simulate::world::World;

/// The time until which a process may write for a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// Nobody else does.
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
        let begun = may_begin(left, LONGEST_WRITE);
        begun
            .err()
            .map(|fenced| Failure::NotSent(fenced.to_string()))
    }
}

/// A round whose effects are being performed.
#[derive(Debug, Clone)]
pub(super) struct Performing {
    pub(super) step: look::round_step::PerformingEffects,
    pub(super) chains: Vec<Chain>,
    /// The call of each chain.
    calls: Vec<Call>,
    /// The number of chains that have not ended.
    pub(super) left: usize,
    pub(super) done: Vec<Done>,
}

/// The present call of a chain.
#[derive(Debug, Clone, Default)]
enum Call {
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

impl Performing {
    /// Sends the first call of each chain.
    pub(super) fn new(
        step: look::round_step::PerformingEffects,
        trust: Trust,
        now: Moment,
    ) -> Self {
        let chains = step.chains().to_vec();
        Self {
            left: chains.len(),
            calls: chains.iter().map(|_| sent(trust, now)).collect(),
            step,
            chains,
            done: Vec::new(),
        }
    }

    /// Whether a call is under way.
    pub(super) fn is_writing(&self) -> bool {
        let mut calls = self.calls.iter();
        calls.any(|call| matches!(call, Call::Sent | Call::Made(_)))
    }

    /// Whether the call of a chain is on its way to where it is sent.
    pub(super) fn is_arriving(&self, chain: usize) -> bool {
        matches!(self.calls.get(chain), Some(Call::Sent))
    }

    /// The calls that are on their way.
    pub(super) fn calls(&self) -> Vec<Effect> {
        let calls = self.chains.iter().zip(&self.calls);
        let sent = calls.filter(|(_, call)| matches!(call, Call::Sent));
        sent.filter_map(|(chain, _)| chain.next()).collect()
    }

    /// The call of a chain was not let through.
    pub(super) fn turn_away(&mut self, chain: usize, why: Failure) {
        if let Some(call @ Call::Sent) = self.calls.get_mut(chain) {
            *call = Call::Refused(why);
        }
    }

    /// Whether the call of a chain goes to the API server.
    pub(super) fn is_kubernetes(&self, chain: usize) -> bool {
        let is_sent = self.is_arriving(chain);
        let effect = self.chains.get(chain).and_then(Chain::next);
        is_sent && effect.is_some_and(|effect| effect.is_kubernetes())
    }

    /// The call of a chain arrives where it is sent. Returns whether that is new.
    pub(super) fn arrive(&mut self, chain: usize, cut: Option<Cut>, world: &mut World) -> bool {
        let Some(call @ Call::Sent) = self.calls.get_mut(chain) else {
            return false;
        };
        let Some(effect) = self.chains.get(chain).and_then(Chain::next) else {
            return false;
        };
        let no_answer = || Err(Failure::NoAnswer("played: cut off".to_owned()));
        *call = Call::Made(match cut {
            None => world.call(&effect),
            Some(Cut::Requests) => no_answer(),
            Some(Cut::Answers) => {
                let _ = world.call(&effect);
                no_answer()
            }
        });
        true
    }

    /// The answer to the call of a chain has come, and the next one is sent. Returns whether there is
    /// one.
    pub(super) fn take_in(&mut self, chain: usize, trust: Trust, at: (Moment, f64)) -> bool {
        let (now, clock) = at;
        let (Some(of), Some(call)) = (self.chains.get_mut(chain), self.calls.get_mut(chain)) else {
            return false;
        };
        let result = match std::mem::take(call) {
            Call::Refused(failure) => Err(failure),
            Call::Made(result) => result,
            Call::None | Call::Sent => return false,
        };
        if let Some(effect) = of.next() {
            of.answered(result.as_ref(), clock);
            self.done.push(Done {
                about: of.about.clone(),
                effect,
                result,
            });
        }
        if of.next().is_some() {
            // Each call of a chain asks again: the Lease may have been lost while the one before
            // was under way.
            *call = sent(trust, now);
            return true;
        }
        self.left -= 1;
        false
    }
}

fn sent(trust: Trust, now: Moment) -> Call {
    trust.refusal(now).map_or(Call::Sent, Call::Refused)
}
