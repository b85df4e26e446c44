//! Policies and facts, kept up to date from the API server by one watch for each kind of object.
//! Only the needed parts of the objects are kept.
//!
//! A kind of facts that cannot be read, or that has not been confirmed for minutes, is unknown, and
//! rules that need it report nothing. Policies are different: the last known ones stay in force,
//! because forgetting them would change which objects are denied.
//!
//! In: lists and watches of the API server. Out: policies and facts as values. Invariant: a fact that is not known to be
//! true now is not known.

mod change;
mod facts;
pub(crate) mod follow;
pub(crate) mod kinds;
mod objects;
pub mod policies;

pub(crate) use change::change;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arc_swap::ArcSwap;
use rayfit_core::policy::EffectivePolicy;

use crate::apiserver::Informers;

/// Keeps the policies and facts in `policy` up to date for ever. `known` becomes true once the
/// policies that decide on objects of any namespace can be folded, or once it is clear that there
/// can be none.
pub async fn run(
    informers: Informers,
    policy: Arc<ArcSwap<EffectivePolicy>>,
    known: Arc<AtomicBool>,
) {
    tokio::join!(
        policies::keep(&informers, &policy, &known),
        facts::keep(&informers, &policy),
        objects::keep(&informers, &policy),
    );
}
