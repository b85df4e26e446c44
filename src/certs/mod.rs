//! Certificates without cert-manager: Rayfit makes and rotates its own authority and serving
//! certificate, and keeps the authority in the webhook configurations.
//!
//! A Secret is the truth. Every replica does the same, without a leader: it looks, takes at most
//! one step ([`next`]), looks again. Each step is a compare-and-swap on one object, so a step
//! taken on old sight fails and costs nothing. The order leaves no gap:
//!
//! 1. a new authority is put into the Secret, then into every webhook's `caBundle`, beside the old;
//! 2. once the bundles have stood unchanged for so long that every API server has them, the new
//!    authority signs a new serving certificate;
//! 3. every replica takes it and says so in the Secret;
//! 4. once every pod has said so, the old authority leaves the Secret, then the bundles.
//!
//! # Invariants
//!
//! - Time enters as two arguments: the wall clock for validity, a clock that never jumps for
//!   waiting. No time of one machine is compared with that of another.
//! - An authority in a bundle that the Secret does not know stays until nobody can need it: so a
//!   Secret that was deleted, or a change of who issues certificates, is no outage either.
//! - Private keys are in the Secret and in memory, never in logs or messages.
//!
//! Everything but `run` and `cluster` is pure, save that [`issue`] draws random numbers.

mod bundle;
mod cluster;
pub mod contents;
mod inspect;
#[cfg(test)]
mod interleavings;
pub mod issue;
pub mod next;
mod options;
mod run;
mod secret;
#[cfg(test)]
mod simulation;

pub use options::{CertificateOptions, CertificateOptionsError, parse_lifetime};
pub use run::{Clock, run, run_with_clock};
