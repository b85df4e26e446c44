//! Converting between Ray's messages, as far as they are used (`proto/`), and Rayfit's own types.
//!
//! The conversions are total: everything that a GCS sends, within [`bounds`], can be converted;
//! unknown enum values count as unspecified.
//!
//! Invariant: a message that is within the bounds always becomes a value, and one that is not becomes an error
//! before it takes memory.

pub(super) mod bounds;
mod generated;
mod states;
mod tasks;
pub(super) mod users;

pub(super) use generated::ray;
use rayfit_core::snapshot::gcs::ClusterResourceState;

use super::validate::{self, Excess, Unusable};
use prost::Message as _;

/// The state in an answer, checked and decoded like that of a GCS.
pub fn read_state(bytes: &[u8]) -> Result<ClusterResourceState, Unusable> {
    use ray::rpc::autoscaler::GetClusterResourceStateReply as Reply;
    bounds::check::<Reply>(bytes)?;
    let reply = Reply::decode(bytes).map_err(|_| Excess::Malformed)?;
    let state = reply.cluster_resource_state.unwrap_or_default().into();
    validate::check(&state)?;
    Ok(state)
}

#[cfg(test)]
mod tests;
