//! The steps of a look from the answer of the GCS to effects and their results.

use std::sync::Arc;

use serde_json::Value;

use crate::budget::limit::{BudgetLimit, allow_more};
use crate::reconcile::decide;
use crate::reconcile::effects::chain::Chain;
use crate::reconcile::effects::done::Done;
use crate::reconcile::look::end::{Finishing, LookEnd, LookReason, Rest};
use crate::reconcile::look::state::LookState;
use crate::reconcile::round::Round;
use crate::snapshot::{OwnPods, Snapshot};

/// What is to be done next. `A` is what the GCS has answered.
#[must_use]
#[derive(Debug)]
pub enum RoundStep<A> {
    /// Compare the answer with that of the round before, which found nothing to do.
    Compare(Comparing<A>),
    /// Make a snapshot of the answer and the objects.
    Observe(Observing<A>),
    /// Read the RayCluster and its pods as they are stored, before the cluster may grow within budgets.
    ReadObjects(ReadingObjects),
    /// Make the round of the snapshot.
    Decide(Deciding),
    /// Take in the records of budgets, and write what is to be written for the plan.
    KeepBudgets(AskingBudgets),
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

/// The objects are to be read as they are stored.
#[must_use]
#[derive(Debug)]
pub struct ReadingObjects(Box<Snapshot>);

/// A round is to be made.
#[must_use]
#[derive(Debug)]
pub struct Deciding {
    snapshot: Box<Snapshot>,
    /// Budgets have been asked for what it takes.
    has_asked: bool,
}

/// Budgets are to be asked for what the plan takes.
#[must_use]
#[derive(Debug)]
pub struct AskingBudgets {
    snapshot: Box<Snapshot>,
    round: Round,
}

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

    fn conclude(snapshot: Box<Snapshot>, round: Round) -> Self {
        if round.chains.is_empty() {
            Self::Finish(Finishing::new(round, Vec::new(), Some(snapshot)))
        } else {
            Self::Perform(PerformingEffects(round), snapshot)
        }
    }
}

impl<A> Comparing<A> {
    /// What the GCS has answered.
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
    /// What the GCS has answered, to make the snapshot of.
    pub fn answer(self) -> (A, Observing<()>) {
        (self.0, Observing(()))
    }
}

impl Observing<()> {
    /// Takes in the snapshot.
    pub fn observed<A>(self, state: &LookState, snapshot: Snapshot, now: f64) -> RoundStep<A> {
        let needs_read = || state.memory.needs_read(&snapshot.pods, now);
        let needs_read = !state.limits.is_empty() && needs_read();
        let snapshot = Box::new(snapshot);
        if needs_read {
            RoundStep::ReadObjects(ReadingObjects(snapshot))
        } else {
            RoundStep::Decide(Deciding {
                snapshot,
                has_asked: false,
            })
        }
    }
}

impl ReadingObjects {
    /// Takes in the RayCluster and its pods as they are stored, if they could be read. If the snapshot is
    /// older, that is done again at the next look.
    pub fn read<A>(
        self,
        state: &mut LookState,
        stored: Option<(&Value, &OwnPods)>,
        now: f64,
    ) -> RoundStep<A> {
        let snapshot = self.0;
        let shown = stored.filter(|(cluster, pods)| shows(&snapshot, cluster, pods));
        if let Some((_, pods)) = shown {
            state.memory.read_pods(pods, now);
        }
        RoundStep::Decide(Deciding {
            snapshot,
            has_asked: false,
        })
    }
}

impl Deciding {
    /// The snapshot.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The round, within what budgets allow. That may take long.
    pub fn round(&self, state: &LookState) -> Round {
        decide::round(&self.snapshot, &state.memory, &state.within())
    }

    /// Takes in the round. Where budgets leave too little for it, more is asked for first.
    pub fn decided<A>(self, state: &mut LookState, round: Round, now: f64) -> RoundStep<A> {
        if let Some(of) = round.budget {
            state.budgets.plans(of, now);
        }
        let snapshot = self.snapshot;
        if self.has_asked || state.budgets.is_empty() {
            RoundStep::conclude(snapshot, round)
        } else {
            RoundStep::KeepBudgets(AskingBudgets { snapshot, round })
        }
    }
}

impl AskingBudgets {
    /// Takes in what budgets let the cluster use from now on. If that is more, the round is made again.
    pub fn kept<A>(self, state: &mut LookState, limits: Arc<[BudgetLimit]>) -> RoundStep<A> {
        let before = std::mem::replace(&mut state.limits, limits);
        let Self { snapshot, round } = self;
        if allow_more(&state.limits, &before) {
            RoundStep::Decide(Deciding {
                snapshot,
                has_asked: true,
            })
        } else {
            RoundStep::conclude(snapshot, round)
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

/// Whether a snapshot is as new as what is stored.
fn shows(snapshot: &Snapshot, cluster: &Value, pods: &OwnPods) -> bool {
    let generation = |cluster: &Value| cluster["metadata"]["generation"].clone();
    generation(cluster) == generation(snapshot.ray_cluster.object())
        && pods
            .iter()
            .all(|pod| snapshot.pods.find(pod.name).is_some())
}
