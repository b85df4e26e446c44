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
pub mod cryptography;
pub mod directory;
pub mod pair;
pub mod store;

pub use config::server_config_for;
pub use cryptography::provider;
pub use pair::{PairError, ServingPair};
pub use store::{CertificateStore, Installed};
