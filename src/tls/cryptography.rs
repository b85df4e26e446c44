//! The cryptography that all TLS of the process uses.

use rustls::crypto::{CryptoProvider, ring};

/// The provider that is linked. It is always passed explicitly rather than taken from the process,
/// because with a second provider in the build rustls would refuse to choose one.
pub fn provider() -> CryptoProvider {
    ring::default_provider()
}
