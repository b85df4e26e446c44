//! The requests that each account may make: those that its code makes, and no others. The lists are
//! here rather than next to that code, so that the manifests do not depend on it;
//! `tests/core/manifests.rs` compares the two.
//!
//! In: the options of an install. Out: rules of Roles. Invariant: each right is needed, and no other is asked for.

pub mod objects;
mod request;
pub mod rights;

pub use objects::{namespace, roles, service_account};
pub use request::{Access, AccessScope};
