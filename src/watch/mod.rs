//! Policies and facts, kept up to date from the API server by one watch for each kind of object.
//! Of every object only what is looked at is kept.
//!
//! A part that cannot be read, or that has not been confirmed for minutes, is unknown: rules that
//! need it are silent. Policies are different: the last ones known stay in force, since to forget
//! them would change what is denied.

pub mod access;
mod facts;
pub(crate) mod follow;
pub(crate) mod kinds;
mod objects;
mod policies;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arc_swap::ArcSwap;
use kube::Client;

use crate::admission::Policy;

/// Keeps policies and facts in `policy` up to date, for ever. `known` becomes true once policies
/// that decide on objects of any namespace can be folded, or once it is clear that they cannot be
/// read.
pub async fn run(client: Client, policy: Arc<ArcSwap<Policy>>, known: Arc<AtomicBool>) {
    tokio::join!(
        policies::keep(&client, &policy, &known),
        facts::keep(&client, &policy),
        objects::keep(&client, &policy),
    );
}

/// Keeps policies only up to date, and the labels of namespaces by which they match.
pub async fn policies_only(client: Client, policy: Arc<ArcSwap<Policy>>, known: Arc<AtomicBool>) {
    policies::keep(&client, &policy, &known).await;
}

/// Changes what objects are judged by; the next request sees it.
fn change(policy: &ArcSwap<Policy>, change: impl Fn(&mut Policy)) {
    policy.rcu(|policy| {
        let mut next = Policy::clone(policy);
        change(&mut next);
        next
    });
}
