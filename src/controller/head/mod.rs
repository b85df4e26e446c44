//! The head of a cluster: where its GCS is ([`address`]), which credentials the GCS requires
//! ([`credentials`]), what it is asked beside its state ([`extras`]), why a cluster cannot be observed
//! ([`blind`]), and how much memory is in use in its pods ([`memory_watch`]).

pub mod address;
pub mod blind;
pub mod credentials;
pub mod extras;
pub mod memory_watch;
