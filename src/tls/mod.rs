//! The serving certificate of the webhooks: where it comes from, and replacing it while connections
//! are open.
//!
//! [`CertificateStore`] holds the pair in use. Two sources install into it: [`directory`] (a
//! mounted Secret, as cert-manager fills it) and the self-managed certificates of this process. The
//! next handshake uses the new pair; open connections keep theirs. [`clients`] decides which
//! callers may connect.
//!
//! Invariant: a pair that cannot be used never replaces one that can.

pub mod clients;
pub mod config;
pub mod directory;
pub mod pair;
pub mod store;

pub use config::server_config_for;
pub use pair::ServingPair;
/// The cryptography that all TLS of the process uses. It is always passed explicitly rather than taken from the process.
// With a second provider in the build rustls would refuse to choose one for the process.
pub use rustls::crypto::ring::default_provider as provider;
pub use store::{CertificateStore, Installed};
