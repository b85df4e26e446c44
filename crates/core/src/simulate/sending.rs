//! The calls of a round, one after the other in each chain: their way to where they are sent, and back.

use crate::reconcile::{Chain, Done, Effect, Failure, Reply, Round};
use crate::simulate::world::World;

/// A round whose effects are being performed.
#[derive(Debug, Clone)]
pub struct RoundInProgress {
    /// The round.
    pub round: Round,
    /// The chains, each with its present call.
    pub chains: Vec<(Chain, ChainCall)>,
    /// The calls that were answered.
    pub done: Vec<Done>,
}

/// The present call of a chain.
#[derive(Debug, Clone, Default)]
pub enum ChainCall {
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
    pub(super) fn next(world: &World) -> Self {
        (world.disturbance.fence(world.now)).map_or(Self::Sent, Self::Refused)
    }
}

impl RoundInProgress {
    /// The call of a chain that is on its way to where it is sent.
    pub fn sent(&self, chain: usize) -> Option<Effect> {
        match self.chains.get(chain)? {
            (chain, ChainCall::Sent) => chain.next(),
            _ => None,
        }
    }

    /// The call of a chain arrives where it is sent. Returns whether that is new.
    pub fn arrive(&mut self, chain: usize, world: &mut World) -> bool {
        let Some(effect) = self.sent(chain) else {
            return false;
        };
        self.chains[chain].1 = ChainCall::Made(world.call(&effect));
        true
    }

    /// The answer to the call of a chain has come, and the next one is sent. Returns whether there is
    /// one.
    pub(super) fn take_in(&mut self, chain: usize, clock_s: f64, world: &World) -> bool {
        let Some((chain, call)) = self.chains.get_mut(chain) else {
            return false;
        };
        let result = match std::mem::take(call) {
            ChainCall::Refused(failure) => Err(failure),
            ChainCall::Made(result) => result,
            ChainCall::None | ChainCall::Sent => return false,
        };
        if let Some(effect) = chain.next() {
            chain.answered(result.as_ref(), clock_s);
            self.done.push(Done {
                about: chain.about.clone(),
                effect,
                result,
            });
        }
        // A chain ends early where a call failed on which the next ones build.
        let is_next = chain.next().is_some();
        if is_next {
            *call = ChainCall::next(world);
        }
        is_next
    }
}
