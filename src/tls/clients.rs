//! Client certificates: which callers may connect.

use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{VerifierBuilderError, WebPkiClientVerifier};

use super::cryptography::provider;

/// The error of callers' certificates that cannot be checked.
#[derive(Debug, thiserror::Error)]
pub enum ClientAuthorityError {
    /// No PEM.
    #[error("the authority of callers' certificates is not valid PEM: {0}")]
    Pem(pem::Error),
    /// A certificate that cannot be an authority.
    #[error("the authority of callers' certificates cannot be read: {0}")]
    Unreadable(rustls::Error),
    /// There is no certificate.
    #[error("there is no authority of callers' certificates: write at least one, in PEM ({0})")]
    None(VerifierBuilderError),
}

/// Any caller, without a certificate.
pub fn anybody() -> Arc<dyn ClientCertVerifier> {
    WebPkiClientVerifier::no_client_auth()
}

/// Only callers with a client certificate that one of these authorities (PEM) has issued. Others
/// cannot open a connection.
pub fn issued_by(authorities: &[u8]) -> Result<Arc<dyn ClientCertVerifier>, ClientAuthorityError> {
    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(authorities) {
        let authority = authority.map_err(ClientAuthorityError::Pem)?;
        roots
            .add(authority)
            .map_err(ClientAuthorityError::Unreadable)?;
    }
    let roots = Arc::new(roots);
    let verifier = WebPkiClientVerifier::builder_with_provider(roots, Arc::new(provider()));
    let verifier = verifier.build().map_err(ClientAuthorityError::None)?;
    Ok(verifier)
}
