//! The cryptography that all TLS of the process uses.

use rustls::crypto::{CryptoProvider, ring};

/// The cryptography that we link. Always passed on, never taken from the process: with a second
/// provider in the build rustls would refuse to choose one.
pub fn provider() -> CryptoProvider {
    ring::default_provider()
}
