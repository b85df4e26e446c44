//! The certificate that webhooks are served with: where it comes from, and swapping it while
//! connections are open.
//!
//! [`CertificateStore`] holds the pair in use. Two sources install into it: [`directory`] (a
//! mounted Secret, as cert-manager fills it) and, in process, whoever makes certificates itself.
//! The next handshake takes the new pair; connections that are open keep theirs. [`clients`] says who
//! may call at all.

pub mod clients;
pub mod config;
pub mod cryptography;
pub mod directory;
pub mod pair;
pub mod store;

pub use config::{server_config, server_config_for};
pub use cryptography::provider;
pub use directory::CertificateDirectory;
pub use pair::{PairError, ServingPair};
pub use store::{CertificateStore, Installed};
