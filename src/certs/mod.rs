//! Certificates without cert-manager: Rayfit creates an authority, renews its own serving
//! certificate, and keeps the authority in the webhook configurations.
//!
//! All state is in a Secret. Every replica does the same, without a leader: it reads the cluster,
//! takes at most one step ([`next`]), and reads again. Each step is a compare-and-swap on one
//! object, so that a step that was decided from outdated data fails without harm.
//!
//! The authority is made once and lives ten years; who takes its key away has it replaced. Then the
//! new one is put into the Secret, and into every webhook's `caBundle` beside the former one. It
//! signs the serving certificate a minute later, when every API server knows it, and the former one
//! leaves the bundles ten minutes after that, when every replica serves the new certificate.
//!
//! # Invariants
//!
//! - These times are counted from the dates in the certificates, so a replica remembers nothing. The
//!   clocks of replicas that differ by minutes shorten or lengthen them by as much.
//! - An authority in a bundle that the Secret does not have becomes a former one. So a Secret that
//!   was emptied, or a change of who issues certificates, causes no outage either.
//! - Private keys are in the Secret and in memory, never in logs or messages.
//!
//! Everything except `run` and `cluster` is pure, but [`issue`] draws random numbers.

mod bundle;
mod cluster;
pub mod contents;
mod inspect;
pub mod issue;
pub mod next;
mod options;
mod run;
mod secret;

pub use options::{CertificateOptions, parse_lifetime};
pub use run::{WallClock, run};
