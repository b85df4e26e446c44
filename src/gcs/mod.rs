//! The client of Ray's GCS: reads the state of a running Ray cluster, drains and resizes its nodes,
//! and reports to it, over gRPC.
//!
//! Reading order: [`Endpoint`] (where a GCS is, and which credentials it requires), [`Client`] (the
//! calls), [`CallError`] (what can go wrong with them), `wire` (converting messages to and from
//! Rayfit's own types), `pubsub` (the memory in use on nodes, and
//! what drivers print).
//!
//! Messages that would crash a GCS cannot be expressed with these types: a node id that is not 28
//! bytes, and a version of the cluster's state that is newer than its own.
//!
//! In: an endpoint with its credentials, and what is to be asked or told. Out: Rayfit's own types, or a [`CallError`].
//! Invariant: no answer costs more memory or time than its bounds, whatever the other side sends.

mod calls;
mod client;
mod codec;
mod credentials;
mod endpoint;
mod error;
mod link;
mod pubsub;
mod validate;
mod wire;

pub use calls::DrainCall;
pub use client::{Client, GcsLimits};
pub(crate) use codec::aside;
pub use credentials::{Material, Tls};
pub use endpoint::{Address, Endpoint};
pub use error::{Call, CallError, GcsFault};
pub use pubsub::{MemoryReport, Subscription};
pub use validate::{Counted, Excess, Unusable};
pub use wire::read_state;
