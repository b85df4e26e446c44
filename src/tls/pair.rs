//! A certificate chain with its private key, after checking that they match.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rayfit_core::text::Misread;
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, RootCertStore};

use super::provider;

/// A certificate chain (leaf first) with its private key. The key never shows in `Debug`.
#[derive(Debug, Clone)]
pub struct ServingPair {
    pub(super) certified: std::sync::Arc<CertifiedKey>,
    /// The end of validity: the earliest one in the chain.
    pub not_after: SystemTime,
}

impl ServingPair {
    /// Reads a chain and a key in PEM. Expired certificates are read as well, because the caller,
    /// who knows the time, decides about them.
    pub fn from_pem(chain_pem: &[u8], key_pem: &[u8]) -> Result<Self, Misread> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain_pem).collect();
        let chain = chain.map_err(|error| {
            Misread(format!(
                "the certificate is not valid PEM ({error}): write the leaf first, then intermediates"
            ))
        })?;
        let key = PrivateKeyDer::from_pem_slice(key_pem).map_err(|error| {
            Misread(format!(
                "the private key is not valid PEM ({error}): PKCS#8, PKCS#1 and SEC1 keys are read"
            ))
        })?;
        let mut ends = Vec::new();
        for (index, certificate) in chain.iter().enumerate() {
            let (_, end) = validity(certificate).map_err(|error| {
                let position = index + 1;
                Misread(format!(
                    "certificate {position} of the chain cannot be read ({error}): issue it again"
                ))
            })?;
            ends.push(end);
        }
        let not_after = ends.into_iter().min().ok_or_else(|| {
            let problem =
                "there is no certificate in the PEM: write the leaf first, then intermediates";
            Misread(problem.to_owned())
        })?;
        let certified = CertifiedKey::from_der(chain, key, &provider()).map_err(|error| {
            Misread(format!(
                "the private key cannot serve this certificate ({error}): issue both together again"
            ))
        })?;
        Ok(Self {
            certified: certified.into(),
            not_after,
        })
    }

    /// The leaf certificate, in DER.
    pub fn leaf(&self) -> Option<&CertificateDer<'static>> {
        self.certified.cert.first()
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
