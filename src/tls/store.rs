//! The pair in use, which is replaced as a whole.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use arc_swap::ArcSwapOption;
use rayfit_core::text::Misread;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::ServingPair;

/// Holds the certificate and key for the next TLS handshake.
///
/// Share it as an `Arc`: the listener resolves from it, sources install into it.
///
/// ```
/// # use std::sync::Arc;
/// # use rayfit::tls::{CertificateStore, Installed};
/// # let signed = rcgen::generate_simple_self_signed(["rayfit.rayfit-system.svc".to_owned()])?;
/// # let (chain_pem, key_pem) = (signed.cert.pem(), signed.signing_key.serialize_pem());
/// let store = Arc::new(CertificateStore::default());
/// assert!(store.current().is_none()); // the server runs, but is not ready
/// let done = store.install(chain_pem.as_bytes(), key_pem.as_bytes())?;
/// assert_eq!(done, Installed::Swapped);
/// assert!(store.install(b"no certificate", key_pem.as_bytes()).is_err());
/// assert!(store.current().is_some()); // a pair that cannot be served changes nothing
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct CertificateStore {
    current: ArcSwapOption<ServingPair>,
    swapped: AtomicU64,
    refused: AtomicU64,
}

/// The result of an installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Installed {
    /// The next handshake uses the new pair.
    Swapped,
    /// This certificate was already in use.
    Unchanged,
}

impl CertificateStore {
    /// Puts a chain (PEM, leaf first) and its key (PEM: PKCS#8, PKCS#1 or SEC1) in use, both at
    /// once, for the next handshake. A pair that cannot be used is refused and counted, and the
    /// pair in use stays. Safe to call from several tasks; the last call wins.
    pub fn install(&self, chain_pem: &[u8], key_pem: &[u8]) -> Result<Installed, Misread> {
        let pair =
            ServingPair::from_pem(chain_pem, key_pem).inspect_err(|_| self.count_refused())?;
        // Put in use first and compared afterwards: of two tasks that compared first, both could
        // report that they swapped.
        let replaced = self.current.swap(Some(Arc::new(pair.clone())));
        if replaced.is_some_and(|old| old.certified.cert == pair.certified.cert) {
            return Ok(Installed::Unchanged);
        }
        self.swapped.fetch_add(1, Ordering::Relaxed);
        Ok(Installed::Swapped)
    }

    /// The pair in use, if there is one yet.
    pub fn current(&self) -> Option<Arc<ServingPair>> {
        self.current.load_full()
    }

    /// The end of validity of the pair in use.
    pub fn not_after(&self) -> Option<SystemTime> {
        self.current().map(|pair| pair.not_after)
    }

    /// The number of times that another certificate came into use, including the first one.
    pub fn swapped(&self) -> u64 {
        self.swapped.load(Ordering::Relaxed)
    }

    /// The number of pairs that were refused, or that their source could not read.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Counts an attempt that failed before there was a pair to refuse.
    pub fn count_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }
}

impl ResolvesServerCert for CertificateStore {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.current().map(|pair| pair.certified.clone())
    }
}
