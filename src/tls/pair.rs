//! A certificate chain with its private key, after checking that they match.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, RootCertStore};

use super::provider;

/// A certificate chain (leaf first) with its private key. The key never shows in `Debug`.
#[derive(Debug, Clone)]
pub struct ServingPair {
    certified: std::sync::Arc<CertifiedKey>,
    not_after: SystemTime,
}

/// The error of a pair that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PairError {
    /// The chain is not PEM.
    #[error("the certificate is not valid PEM ({0}): write the leaf first, then intermediates")]
    Chain(pem::Error),
    /// The chain's PEM contains no certificate.
    #[error("there is no certificate in the PEM: write the leaf first, then intermediates")]
    NoCertificate,
    /// The key is not PEM, or has an unknown format.
    #[error("the private key is not valid PEM ({0}): PKCS#8, PKCS#1 and SEC1 keys are read")]
    Key(pem::Error),
    /// The key's algorithm is not supported, or it does not belong to the certificate.
    #[error("the private key cannot serve this certificate ({0}): issue both together again")]
    Mismatch(rustls::Error),
    /// A certificate of the chain cannot be read.
    #[error("certificate {position} of the chain cannot be read ({source}): issue it again")]
    Unreadable {
        /// Position in the chain, from 1.
        position: usize,
        /// The fault of the certificate.
        source: rustls::Error,
    },
}

impl ServingPair {
    /// Reads a chain and a key in PEM. Expired certificates are read as well, because the caller,
    /// who knows the time, decides about them.
    pub fn from_pem(chain_pem: &[u8], key_pem: &[u8]) -> Result<Self, PairError> {
        let chain = CertificateDer::pem_slice_iter(chain_pem)
            .collect::<Result<Vec<_>, _>>()
            .map_err(PairError::Chain)?;
        let key = PrivateKeyDer::from_pem_slice(key_pem).map_err(PairError::Key)?;
        let mut ends = Vec::new();
        for (index, certificate) in chain.iter().enumerate() {
            let (_, end) = validity(certificate).map_err(|source| PairError::Unreadable {
                position: index + 1,
                source,
            })?;
            ends.push(end);
        }
        let not_after = ends.into_iter().min().ok_or(PairError::NoCertificate)?;
        let certified = CertifiedKey::from_der(chain, key, &provider())
            .map_err(PairError::Mismatch)?
            .into();
        Ok(Self {
            certified,
            not_after,
        })
    }

    /// The end of validity: the earliest one in the chain.
    pub fn not_after(&self) -> SystemTime {
        self.not_after
    }

    /// The leaf certificate, in DER.
    pub fn leaf(&self) -> Option<&CertificateDer<'static>> {
        self.certified.cert.first()
    }

    pub(super) fn certified(&self) -> std::sync::Arc<CertifiedKey> {
        self.certified.clone()
    }
}

/// The beginning and the end of validity of one certificate. rustls has no accessor for them, but its
/// verifier checks the dates first, and names the one that a time is outside of; that avoids a second
/// X.509 parser.
pub(crate) fn validity(
    certificate: &CertificateDer<'_>,
) -> Result<(SystemTime, SystemTime), rustls::Error> {
    let parsed = ParsedCertificate::try_from(certificate)?;
    let complaint = |seconds| {
        verify_server_cert_signed_by_trust_anchor(
            &parsed,
            &RootCertStore::empty(),
            &[],
            UnixTime::since_unix_epoch(Duration::from_secs(seconds)),
            provider().signature_verification_algorithms.all,
        )
        .err()
    };
    let not_before = match complaint(0) {
        Some(rustls::Error::InvalidCertificate(CertificateError::NotValidYetContext {
            not_before,
            ..
        })) => not_before.as_secs(),
        // It is valid since 1970 or longer.
        _ => 0,
    };
    let not_after = match complaint(u64::MAX) {
        Some(rustls::Error::InvalidCertificate(CertificateError::ExpiredContext {
            not_after,
            ..
        })) => not_after.as_secs(),
        Some(other) => return Err(other),
        // Does not happen: nothing is valid at that time, and without roots nobody has issued it.
        None => return Err(CertificateError::BadEncoding.into()),
    };
    let time = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
    Ok((time(not_before), time(not_after)))
}
