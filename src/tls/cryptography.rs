//! The cryptography that all TLS of the process uses.

use rustls::crypto::{CryptoProvider, ring};

/// The provider that is linked. It is always passed explicitly rather than taken from the process.
pub fn provider() -> CryptoProvider {
    // With a second provider in the build rustls would refuse to choose one for the process.
    ring::default_provider()
}
