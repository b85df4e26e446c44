//! The steps of a look from the answer of the GCS to effects and their results.

use crate::reconcile::decide;
use crate::reconcile::effects::chain::Chain;
use crate::reconcile::effects::done::Done;
use crate::reconcile::look::end::{Finishing, LookEnd, LookReason, Rest};
use crate::reconcile::look::state::LookState;
use crate::reconcile::round::Round;
use crate::snapshot::Snapshot;

/// The next step of a round. `A` is the GCS's answer.
#[must_use]
#[derive(Debug)]
pub enum RoundStep<A> {
    /// Compare the answer with that of the round before, which found nothing to do.
    Compare(Comparing<A>),
    /// Make a snapshot of the answer and the objects.
    Observe(Observing<A>),
    /// Make the round of the snapshot.
    Decide(Deciding),
    /// Perform the effects, which follow from that state.
    Perform(PerformingEffects, Box<Snapshot>),
    /// Read the RayCluster again: a watch may lag, and a sidecar has none for the RayCluster.
    ReadCluster(RereadingStale),
    /// Remember the round.
    Finish(Finishing),
    /// The look is over.
    Rest(Rest),
}

/// The answer is to be compared.
#[must_use]
#[derive(Debug)]
pub struct Comparing<A>(A);

/// A snapshot is to be made.
#[must_use]
#[derive(Debug)]
pub struct Observing<A>(A);

/// A round is to be made.
#[must_use]
#[derive(Debug)]
pub struct Deciding(Box<Snapshot>);

/// The effects are to be performed.
#[must_use]
#[derive(Debug, Clone)]
pub struct PerformingEffects(Round);

/// The RayCluster is to be read again.
#[must_use]
#[derive(Debug)]
pub struct RereadingStale(Finishing);

impl<A> RoundStep<A> {
    pub(super) fn begin(state: &LookState, answer: A) -> Self {
        if state.is_idle {
            Self::Compare(Comparing(answer))
        } else {
            Self::Observe(Observing(answer))
        }
    }
}

impl<A> Comparing<A> {
    /// The GCS's answer.
    pub fn answer(&mut self) -> &mut A {
        &mut self.0
    }

    /// A round would find nothing to do either. `busy` says whether something is pending or on its way.
    pub fn same(self, state: &mut LookState, busy: bool, now: f64) -> RoundStep<A> {
        state.memory.is_the_same(busy, now);
        RoundStep::Rest(Rest {
            end: LookEnd::Paced { busy },
            why: LookReason::Unchanged,
        })
    }

    /// A round might find something to do.
    pub fn differs(self, state: &mut LookState) -> RoundStep<A> {
        state.is_idle = false;
        RoundStep::Observe(Observing(self.0))
    }
}

impl<A> Observing<A> {
    /// The GCS's answer, to make the snapshot of.
    pub fn answer(self) -> (A, Observing<()>) {
        (self.0, Observing(()))
    }
}

impl Observing<()> {
    /// Takes in the snapshot.
    pub fn observed<A>(self, snapshot: Snapshot) -> RoundStep<A> {
        RoundStep::Decide(Deciding(Box::new(snapshot)))
    }
}

impl Deciding {
    /// The snapshot.
    pub fn snapshot(&self) -> &Snapshot {
        &self.0
    }

    /// The round. That may take long.
    pub fn round(&self, state: &LookState) -> Round {
        decide::round(&self.0, &state.memory, &state.settings)
    }

    /// Takes in the round.
    pub fn decided<A>(self, round: Round) -> RoundStep<A> {
        if round.chains.is_empty() {
            RoundStep::Finish(Finishing::new(round, Vec::new(), Some(self.0)))
        } else {
            RoundStep::Perform(PerformingEffects(round), self.0)
        }
    }
}

impl PerformingEffects {
    /// The effects. The chains are independent of each other; the most urgent come first.
    pub fn chains(&self) -> &[Chain] {
        &self.0.chains
    }

    /// Takes in the results of the effects, whether all of them were tried or not.
    pub fn performed<A>(self, done: Vec<Done>) -> RoundStep<A> {
        let is_stale = done.iter().any(Done::is_stale);
        let finishing = Finishing::new(self.0, done, None);
        if is_stale {
            RoundStep::ReadCluster(RereadingStale(finishing))
        } else {
            RoundStep::Finish(finishing)
        }
    }
}

impl RereadingStale {
    /// Goes on, whether or not it could be read.
    pub fn read<A>(self) -> RoundStep<A> {
        RoundStep::Finish(self.0)
    }
}
