//! Which requests each account may make: what the code under it needs, and no more. The lists stand
//! here, below the code that makes the requests, so that the manifests depend on none of it;
//! `tests/core/manifests.rs` holds them together.

pub mod audit;
pub mod certificates;
pub mod controller;
pub mod objects;
mod request;
pub mod watch;

pub use objects::{namespace, roles, service_account};
pub use request::{Access, Scope};
