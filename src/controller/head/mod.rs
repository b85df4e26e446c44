//! The head of a cluster: where its GCS is ([`address`]), which credentials the GCS requires
//! ([`credentials`]), and why a cluster cannot be observed ([`blind`]).

pub mod address;
pub mod blind;
pub mod credentials;
