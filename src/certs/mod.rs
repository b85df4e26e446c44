//! Certificates without cert-manager: Rayfit creates and rotates its own authority and serving
//! certificate, and keeps the authority in the webhook configurations.
//!
//! All state is in a Secret. Every replica does the same, without a leader: it reads the cluster,
//! takes at most one step ([`next`]), and reads again. Each step is a compare-and-swap on one
//! object, so that a step that was decided from outdated data fails without harm. The order of the
//! steps leaves no gap:
//!
//! 1. a new authority is put into the Secret, then into every webhook's `caBundle` beside the old
//!    one;
//! 2. once the bundles have been unchanged for so long that every API server has them, the new
//!    authority signs a new serving certificate;
//! 3. every replica serves that certificate and acknowledges it in the Secret;
//! 4. once every pod has acknowledged it, the old authority leaves the Secret, then the bundles.
//!
//! # Invariants
//!
//! - Time enters as two arguments: the wall clock for validity, and a clock that never jumps for
//!   waiting. The times of two machines are never compared.
//! - An authority in a bundle that the Secret does not have stays until no replica can need it. So
//!   a Secret that was deleted, or a change of who issues certificates, causes no outage either.
//! - Private keys are in the Secret and in memory, never in logs or messages.
//!
//! Everything except `run` and `cluster` is pure, but [`issue`] draws random numbers.

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
pub use run::{WallClock, run, run_with_clock};
