//! Policies and facts, kept up to date from the API server by one watch for each kind of object.
//! Of every object only what is looked at is kept.
//!
//! A part that cannot be read, or that has not been confirmed for minutes, is unknown: rules that
//! need it are silent. Policies are different: the last ones known stay in force, since to forget
//! them would change what is denied.

mod change;
mod facts;
pub(crate) mod follow;
pub(crate) mod kinds;
mod objects;
mod policies;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arc_swap::ArcSwap;

use crate::apiserver::Source;
use crate::policy::EffectivePolicy;

/// Keeps policies and facts in `policy` up to date, for ever. `known` becomes true once policies
/// that decide on objects of any namespace can be folded, or once it is clear that there can be
/// none.
pub async fn run(source: Source, policy: Arc<ArcSwap<EffectivePolicy>>, known: Arc<AtomicBool>) {
    tokio::join!(
        policies::keep(&source, &policy, &known),
        facts::keep(&source, &policy),
        objects::keep(&source, &policy),
    );
}

/// Keeps policies only up to date, and the labels of namespaces by which they match.
pub async fn policies_only(
    source: Source,
    policy: Arc<ArcSwap<EffectivePolicy>>,
    known: Arc<AtomicBool>,
) {
    policies::keep(&source, &policy, &known).await;
}
