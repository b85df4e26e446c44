//! The requests that each account may make: those that its code makes, and no others. The lists are
//! here rather than next to that code, so that the manifests do not depend on it;
//! `tests/core/manifests.rs` compares the two.
//!
//! In: the options of an install. Out: rules of Roles. Invariant: each right is needed, and no other is asked for.

pub mod audit;
pub mod certificates;
pub mod controller;
pub mod initial_size;
pub mod objects;
mod request;
pub mod watch;

pub use objects::{namespace, roles, service_account};
pub use request::{Access, AccessScope};
