//! The object audit: stored objects are checked as if they were created now, for the background
//! audit, the status of policies, and `rayfit rollout`. Pure.
//!
//! In: stored objects, policies and facts. Out: counts and findings by policy. Invariant: an object that cannot be read
//! ends the audit of no other one.

mod judged;
pub mod open_report;
pub mod page;
pub mod patch;
pub mod progress;
pub mod rollout;
pub mod table;
mod tally;

pub use judged::{AuditFinding, AuditedObject, examine};
pub use tally::{AuditTally, OFFENDERS};
